"""Faults at random moments leave nothing of `fwbench ab` and `fwbench env add` behind.

Each round starts one of the two in a small repository and sends one signal, at a moment that the
seed decides, to one of its processes: the command itself, the guard of what it has started, a
launch, a worker, an installer, what that has started. SIGSTOP is followed by SIGCONT. Ten seconds
after the command has ended there must be no process, no worktree, no temporary file and no half
environment; if the command itself was killed, the next one (`fwbench env list`) may remove files.
Launches that had finished must still be there, and `fwbench ab --resume` must go on with them.

The installer is a program of this script's that takes a while, starts another one and writes
temporary files; everything else is real.
"""

from __future__ import annotations

import collections
import os
import random
import shutil
import signal
import subprocess
import sys
import sysconfig
import tempfile
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

import bounds
import psutil
import watched

_SIGNALS = ("SIGINT", "SIGTERM", "SIGHUP", "SIGKILL", "SIGSTOP")
_LEFT_AFTER_S = 10.0
_PATIENCE_S = 300.0
_STOPPED_S = 1.0

_VERDICTS = (0, 1, 10, 11)
_INTERRUPTED = 130

_SUITE = """
import numpy as np
import pytest
from fwbench import Operation

double = Operation(
    name="double",
    inputs=lambda size, rng: (rng.standard_normal(size),),
    reference=lambda x: 2.0 * x,
    sizes=(4,),
)
double.implement("numpy")(lambda np: lambda x: 2.0 * x)

@pytest.mark.fwbench(double)
def test_double(case):
    case.measure()
"""

#: Asking what the CPU is takes a second, in every launch.
_CONFTEST = """
def pytest_benchmark_generate_machine_info():
    return {"cpu": {"brand_raw": "a CPU"}}
"""

_INI = """
[pytest]
addopts = --fw=numpy --benchmark-max-time=0.05 --fw-warmup=0.02 --fw-direction=forward
"""

_UV = """\
#!{python}
import os, subprocess, sys, tempfile, time
from pathlib import Path

if sys.argv[1] == "venv":
    folder = Path(sys.argv[-1])
    (folder / "bin").mkdir(exist_ok=True)
    packages = folder / "lib" / Path({packages!r}).parent.name / "site-packages"
    packages.mkdir(parents=True)
    for entry in Path({packages!r}).iterdir():
        if not entry.name.startswith({large!r}):
            (packages / entry.name).symlink_to(entry)
    (folder / "pyvenv.cfg").write_text(Path({prefix!r}, "pyvenv.cfg").read_text())
    (folder / "bin" / "python").symlink_to({real!r})
else:
    tempfile.mkdtemp()
    subprocess.Popen(["sleep", "600"])
    time.sleep(2)
"""

#: Frameworks that take seconds to import are left out of environments.
_LARGE = ("tensorflow", "torch", "mxnet", "jax", "keras")

#: Which process is which, by a word of its command line; the first that fits.
_KINDS = {
    "guard": "guard.py",
    "worker": "fwbench.plugin.worker",
    "launch": "-m pytest",
    "installer": "/uv ",
    "installer's child": "sleep 600",
    "git": "git ",
    "doctor": "fwbench doctor",
}


@dataclass
class Place:
    """A repository, and a folder for temporary files and one for programs.

    Attributes:
        folder: of all of them.
        number: of the round.
    """

    folder: Path
    number: int = 0

    def __post_init__(self) -> None:
        for name in ("repository", "temporary", "programs", "state"):
            (self.folder / name).mkdir()
        self.repository = self.folder / "repository"
        self.temporary = self.folder / "temporary"
        self._git("init", "--quiet")
        for commit in ("first", "second"):
            (self.repository / "pytest.ini").write_text(_INI, encoding="utf-8")
            (self.repository / "conftest.py").write_text(_CONFTEST, encoding="utf-8")
            (self.repository / "test_double.py").write_text(f"{_SUITE}# {commit}\n")
            self._git("add", "--all")
            self._git("commit", "--quiet", "--message", commit)
        uv = self.folder / "programs" / "uv"
        real = os.path.realpath(sys.executable)
        facts = {"prefix": sys.prefix, "packages": sysconfig.get_path("purelib"), "large": _LARGE}
        uv.write_text(_UV.format(python=sys.executable, real=real, **facts), encoding="utf-8")
        uv.chmod(0o755)

    def _git(self, *arguments: str) -> str:
        who = ("-c", "user.name=nobody", "-c", "user.email=nobody@example.org")
        done = subprocess.run(
            ["git", *who, *arguments],
            cwd=self.repository,
            check=True,
            capture_output=True,
            text=True,
        )
        return done.stdout

    @property
    def variables(self) -> Mapping[str, str]:
        """The environment variables of everything that this round starts."""
        return {
            **os.environ,
            watched.MARK: f"{os.getpid()}-{self.number}",
            "TMPDIR": str(self.temporary),
            "XDG_STATE_HOME": str(self.folder / "state"),
            "PATH": f"{self.folder / 'programs'}{os.pathsep}{os.environ['PATH']}",
        }

    def start(self, *arguments: str) -> subprocess.Popen[str]:
        """Start a command of fwbench."""
        return subprocess.Popen(
            [sys.executable, "-m", "fwbench", *arguments],
            cwd=self.repository,
            env=self.variables,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
            preexec_fn=_listen,  # noqa: PLW1509
        )

    def run(self, *arguments: str) -> tuple[int, str]:
        """Run one to its end: exit status and output."""
        process = self.start(*arguments)
        output, _ = process.communicate(timeout=_PATIENCE_S)
        return process.returncode, output

    def processes(self) -> list[psutil.Process]:
        """The processes of this round that are alive."""
        marked = watched.processes(self.variables[watched.MARK])
        return [alive for alive in marked if alive.status() != psutil.STATUS_ZOMBIE]

    def worktrees(self) -> int:
        """The number of worktrees beside the repository, git's notes included."""
        notes = [*(self.repository / ".git").glob("worktrees/*")]
        return max(len(notes), self._git("worktree", "list").count("\n") - 1)

    def temporary_files(self) -> list[str]:
        """The names of all temporary files and folders, but for the one that ONNX Runtime keeps."""
        return sorted(path.name for path in self.temporary.iterdir() if path.name != ".ses")

    def environments(self) -> list[str]:
        """The names of the folders of environments, half ones included."""
        folder = self.repository / ".fwbench" / "envs"
        return (
            sorted(path.name for path in folder.iterdir() if path.is_dir())
            if folder.exists()
            else []
        )

    def pairs(self) -> int:
        """The number of finished pairs that are kept."""
        return len([*self.repository.glob(".fwbench/ab/*/launch-*.json")])


def _listen() -> None:
    for name in _SIGNALS[:3]:
        signal.signal(getattr(signal, name), signal.SIG_DFL)


@dataclass
class Tally:
    """Leftovers of all rounds.

    Attributes:
        counts: by what it is.
        faults: how many of each kind were sent, to which process.
    """

    counts: collections.Counter[str] = field(default_factory=collections.Counter)
    faults: collections.Counter[str] = field(default_factory=collections.Counter)

    def note(self, what: str, number: int, fault: str, detail: object = "") -> None:
        """Note what is left, and say so."""
        self.counts[what] += number
        if number:
            print(f"LEFT after {fault}: {number} {what} {detail}", flush=True)


AB = (
    *("ab", "git:HEAD~1", "git:HEAD", "--pairs", "2", "--budget", "1min", "--seed", "1"),
    *("--threshold", "0.9", "--resolution", "0.95", "--threshold-first-call", "100"),
)
ADD = ("env", "add", "second", "numpy")


def _fault(place: Place, tally: Tally, draw: random.Random, lasts_s: Mapping[str, float]) -> None:
    """One round: a command, a signal, and a look at what is left."""
    kind = draw.choice(("ab", "ab", "ab", "add"))
    name = draw.choice(_SIGNALS)
    process = place.start(*(AB if kind == "ab" else ADD))
    time.sleep(draw.uniform(0.05, lasts_s[kind]))
    victims = _victims(process.pid)
    victim = draw.choice(sorted(victims))
    finished = place.pairs()
    fault = f"{kind}: {name} to {victim}"
    print(f"{place.number + 1}: {fault}", flush=True)
    tally.faults[f"{name} to {victim}"] += 1
    with suppress(ProcessLookupError):
        os.kill(victims[victim], getattr(signal, name))
        if name == "SIGSTOP":
            time.sleep(_STOPPED_S)
            os.kill(victims[victim], signal.SIGCONT)
    output, _ = process.communicate(timeout=_PATIENCE_S)
    killed = process.returncode < 0
    _check_status(tally, fault, process.returncode, output)
    _check_nothing_left(place, tally, fault, killed=killed)
    if kind == "ab" and process.returncode not in _VERDICTS:
        tally.note("finished pairs lost", max(0, finished - place.pairs()), fault)
        if place.pairs():
            status, output = place.run(*AB, "--resume")
            tally.note("comparisons not resumed", status not in _VERDICTS, fault, output)
    if kind == "add":
        _check_environment(place, tally, fault, process.returncode)
    shutil.rmtree(place.repository / ".fwbench" / "ab", ignore_errors=True)


def _victims(parent: int) -> dict[str, int]:
    """The processes that could be hit, by what they are."""
    victims = {"the command": parent}
    with suppress(psutil.Error):
        for process in psutil.Process(parent).children(recursive=True):
            with suppress(psutil.Error):
                line = " ".join(process.cmdline())
                kind = next((kind for kind, word in _KINDS.items() if word in line), None)
                if kind is not None:
                    victims[kind] = process.pid
    return victims


def _check_status(tally: Tally, fault: str, status: int, output: str) -> None:
    expected = {*_VERDICTS, 3}
    if fault.endswith("the command"):
        expected |= {_INTERRUPTED, -signal.SIGINT, -signal.SIGTERM, -signal.SIGHUP, -signal.SIGKILL}
    tally.note("unexpected exit statuses", status not in expected, fault, f"{status}\n{output}")
    # A signal that comes before there is a handler for it ends Python in its own words.
    is_trace = "Traceback" in output and "KeyboardInterrupt" not in output
    tally.note("tracebacks", is_trace, fault, output)


def _check_nothing_left(place: Place, tally: Tally, fault: str, *, killed: bool) -> None:
    _wait(lambda: not place.processes())
    left = place.processes()
    tally.note("processes", len(left), fault, [survivor.cmdline() for survivor in left])
    for process in left:
        with suppress(psutil.Error):
            process.kill()
    if killed:
        place.run("env", "list")
    tally.note("worktrees", place.worktrees(), fault)
    files = place.temporary_files()
    tally.note("temporary files", len(files), fault, files)
    for name in files:
        shutil.rmtree(place.temporary / name, ignore_errors=True)


def _check_environment(place: Place, tally: Tally, fault: str, status: int) -> None:
    """It is there as a whole; or, if `env add` was killed, as a half one that can be removed."""
    left = place.environments()
    listed = place.run("env", "list")[1]
    if status == 0:
        tally.note("environments lost", left != ["second"], fault)
    elif status < 0:
        half = left == ["second"] and "second is not complete" in listed
        whole = left == ["second"] and "second: python" in listed
        tally.note("environments unknown", not (half or whole or not left), fault, (left, listed))
    else:
        tally.note("environments left", len(left), fault, left)
    if left:
        tally.note("environments not removed", place.run("env", "remove", "second")[0] != 0, fault)
    tally.note("environments left", len(place.environments()), fault)


def _wait(is_over: Callable[[], bool]) -> None:
    until = time.monotonic() + _LEFT_AFTER_S
    while not is_over() and time.monotonic() < until:
        time.sleep(0.2)


def _lasting_s(place: Place) -> dict[str, float]:
    """Seconds that each command takes without a fault."""
    lasts_s = {}
    for kind, arguments in (("ab", AB), ("add", ADD)):
        start_s = time.monotonic()
        status, output = place.run(*arguments)
        lasts_s[kind] = time.monotonic() - start_s
        if status not in _VERDICTS:
            raise SystemExit(f"fwbench {kind} fails without a fault: {status}\n{output}")
    place.run("env", "remove", "second")
    return lasts_s


def main() -> int:
    """Send faults, and count what they leave."""
    arguments = bounds.arguments(__doc__, rounds=100, seed=0)
    draw = random.Random(arguments.seed)  # noqa: S311
    tally = Tally()
    with tempfile.TemporaryDirectory() as folder:
        place = Place(Path(folder))
        lasts_s = _lasting_s(place)
        print(", ".join(f"{kind}: {lasts:.1f} s" for kind, lasts in lasts_s.items()), flush=True)
        for place.number in range(arguments.rounds):
            _fault(place, tally, draw, lasts_s)
    sent = [bounds.Finding(what, str(number)) for what, number in sorted(tally.faults.items())]
    left = [
        bounds.Finding(what, str(number), "0", not number) for what, number in tally.counts.items()
    ]
    return bounds.conclude([*sent, *left])


if __name__ == "__main__":
    sys.exit(main())
