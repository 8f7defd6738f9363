"""Attacks on all that fwbench reads, is told or depends on, one by one until the time is over.

Each class is attacked by turns: the one that has had the least time is next. An attack is held if
there is no traceback, the exit status is a documented one, the message says what is wrong, nothing
is lost, and no comparison passes that should not. The end is a table: class, tried, held, failed;
the exit status is 1 if anything failed. What failed is kept in a folder, with the reason and with
the command that repeats it (damage repeats exactly, moments of signals do not).

The other scripts that cause faults are classes, too: a few rounds of each. Linux only.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import attacked_files
import attacked_sessions
import bounds

Attack = Callable[[Path, random.Random], None]

#: An attack that takes longer hangs. Scripts have limits of their own.
_HANGS_AFTER_S = 120

_HARNESS = Path(__file__).parent

#: Other scripts, and what makes a few rounds of each.
_SCRIPTS = {
    "faults": ("--rounds=4",),
    "faults_ab": ("--rounds=4",),
    "startups": ("--rounds=1",),
    "gang_faults": ("--gangs=numpy",),
}


class Hangs(BaseException):
    """An attack did not end; no handler of exceptions is to catch this."""


def _script(name: str) -> Attack:
    """The class of another script: it holds if the script's exit status is 0."""

    def attack(folder: Path, source: random.Random) -> None:
        seed = () if name == "gang_faults" else (f"--seed={source.randrange(10**6)}",)
        command = [sys.executable, str(_HARNESS / f"{name}.py"), *_SCRIPTS[name], *seed]
        signal.alarm(0)
        with (folder / "output.txt").open("w") as output:
            done = subprocess.run(command, stdout=output, stderr=output, check=False)
        text = (folder / "output.txt").read_text(encoding="utf-8", errors="replace")
        assert done.returncode == 0, text[-4000:]

    return attack


CLASSES: Mapping[str, Attack] = {
    **attacked_files.CLASSES,
    **attacked_sessions.CLASSES,
    **{name: _script(name) for name in _SCRIPTS},
}


def _raise_hangs(*_: object) -> None:
    raise Hangs(f"no end after {_HANGS_AFTER_S} s")


def _problem(attack: Attack, folder: Path, source: random.Random) -> str:
    """The traceback of an attack that was not held; empty if it was."""
    signal.alarm(_HANGS_AFTER_S)
    try:
        with contextlib.chdir(folder):
            attack(folder, source)
    except (Exception, Hangs):  # noqa: BLE001 (whatever it is, it was not held)
        return traceback.format_exc()
    finally:
        signal.alarm(0)
    return ""


def _attempts(names: list[str], first: int, until_s: float) -> Iterator[tuple[str, int]]:
    """Classes and the numbers of their attacks: next is the class that has had the least time."""
    spent_s, numbers = dict.fromkeys(names, 0.0), dict.fromkeys(names, first)
    while time.monotonic() < until_s:
        name = min(names, key=spent_s.__getitem__)
        begun_s = time.monotonic()
        yield name, numbers[name]
        spent_s[name] += time.monotonic() - begun_s
        numbers[name] += 1


def _keep(kept: Path, folder: Path, name: str, number: int, seed: int, problem: str) -> None:
    """Keep the files of an attack that was not held, and say what repeats it."""
    where = kept / f"{name.replace(' ', '-')}-{number}"
    shutil.move(folder, where)
    again = f"python {__file__} --seed {seed} --only {name!r} --first {number} --minutes 0.01"
    (where / "problem.txt").write_text(f"{again}\n\n{problem}", "utf-8", "backslashreplace")
    last = problem.strip().splitlines()[-1][:300]
    print(ascii(f"FAILED {name} {number}: {last}")[1:-1], f"  repeat: {again}", sep="\n")
    print(f"  see {where}", flush=True)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add = parser.add_argument
    add("--minutes", type=float, default=60.0, metavar="N", help="default: 60")
    add("--seed", type=int, default=random.randrange(10**6), metavar="N")  # noqa: S311
    known = f"a class, several times several (default: all): {', '.join(CLASSES)}"
    add("--only", action="append", choices=[*CLASSES], metavar="CLASS", help=known)
    add("--first", type=int, default=0, metavar="N", help="number of the first attack")
    return parser.parse_args()


def main() -> int:
    """Attack, and print the table."""
    given = _arguments()
    print(f"--seed {given.seed}", flush=True)
    signal.signal(signal.SIGALRM, _raise_hangs)
    os.environ["COLUMNS"] = "80"
    names = given.only or [name for name in CLASSES if attacked_sessions.can_be_tried(name)]
    for name in CLASSES.keys() - {*names} if not given.only else ():
        print(f"{name}: cannot be tried on this machine", flush=True)
    tried: Counter[str] = Counter()
    failed: Counter[str] = Counter()
    kept = Path(tempfile.mkdtemp(prefix="fwbench-attacks-"))
    until_s = time.monotonic() + given.minutes * 60
    with attacked_sessions.forking():
        for name, number in _attempts(names, given.first, until_s):
            with tempfile.TemporaryDirectory(prefix="fwbench-attack-") as temporary:
                (folder := Path(temporary) / "attack").mkdir()
                source = random.Random(f"{given.seed}/{name}/{number}")  # noqa: S311
                tried[name] += 1
                if problem := _problem(CLASSES[name], folder, source):
                    failed[name] += 1
                    _keep(kept, folder, name, number, given.seed, problem)
    rows = [(n, f"{tried[n]:,}", f"{tried[n] - failed[n]:,}", f"{failed[n]:,}") for n in names]
    bounds.table([("class", "tried", "held", "failed"), *rows])
    if not failed:
        kept.rmdir()
    return int(bool(failed))


if __name__ == "__main__":
    sys.exit(main())
