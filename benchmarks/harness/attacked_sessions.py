"""Attacks on sessions of pytest: their settings, caches, clock, memory and time.

Sessions and their workers are forked from a process that has imported what they need, where that
makes no difference (``tests/support/forkserver.py``).
"""

from __future__ import annotations

import contextlib
import json
import os
import random
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

from attacked_files import WORDS, damage
from watched import processes

from fwbench.options.options import SELECTORS, SETTINGS, Option
from support.data_files import damaged
from support.forkserver import ForkServer

_OPTIONS: Sequence[Option] = (*SELECTORS.values(), *SETTINGS.values())

#: Plugins of others cost half of a session's start.
_PYTEST = ("-m", "pytest", "-p", "benchmark", "-p", "fwbench", "-p", "no:randomly")
_VARIABLES = {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}

#: A case that ends at once, or as the name of its operation says.
_SUITE = """
import threading

import pytest
from fwbench import Operation

def compute(name):
    if name.startswith("hangs"):
        return lambda x: threading.Event().wait()
    if name == "hungry":
        return lambda x: bytes(4 * 10**9) and 2.0 * x
    return lambda x: 2.0 * x

def made(name):
    operation = Operation(
        name=name, inputs=lambda size, rng: (rng.standard_normal(size),),
        reference=lambda x: 2.0 * x, sizes=(10,),
    )
    operation.implement("numpy")(lambda np: compute(name))
    return operation

@pytest.mark.fwbench(*map(made, NAMES))
def test_case(case):
    case.measure()
"""

_QUICK = (
    *("-q", "--fw=numpy", "--fw-threads=1", "--benchmark-max-time=0.01", "--fw-warmup=0"),
    *("--benchmark-min-rounds=1", "--fw-revisit=0", "--benchmark-json=run.json"),
)

_USAGE_ERROR = 4

#: What reads a device to its end fails here, and not where the machine has no memory left.
_MOST_BYTES = 12 * 2**30


class _Server:
    """The fork server of this script; there is none outside of :func:`forking`."""

    started: ForkServer | None = None


@contextlib.contextmanager
def forking() -> Iterator[None]:
    """Have sessions forked, and limit what each process may take, until the block is left."""
    limits = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (_MOST_BYTES, limits[1]))
    _Server.started = ForkServer.start("-p no:randomly")
    try:
        yield
    finally:
        _Server.started.stop()
        resource.setrlimit(resource.RLIMIT_AS, limits)


def _suite(folder: Path, *names: str) -> None:
    (folder / "pytest.ini").touch()
    text = _SUITE.replace("NAMES", repr(names or ("first", "second")))
    (folder / "test_it.py").write_text(text, encoding="utf-8")


def _session(*options: str, **variables: str) -> tuple[int, str]:
    """Run a session in the current folder: exit status and output."""
    assert _Server.started
    with _Server.started.forking():
        ended = subprocess.run(
            [sys.executable, *_PYTEST, *options],
            env={**os.environ, **_VARIABLES, **variables},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            check=False,
        )
    text = ended.stdout.decode("utf-8", "replace")
    Path("output.txt").write_text(text, encoding="utf-8")
    assert "INTERNALERROR" not in text, text
    assert "Traceback (most recent call last)" not in text, text
    return ended.returncode, text


def _assert_passed(ended: tuple[int, str], cases: int = 2) -> None:
    assert ended[0] == 0, ended
    kept = json.loads(Path("run.json").read_bytes())["benchmarks"]
    assert len(kept) == cases, ended
    assert all(0 < entry["stats"]["min"] < 60 for entry in kept), kept


#: Values of TOML, of every type.
_TOML = (
    *("1", "-1", "0", "2.5", "nan", "-inf", "true", "false", "[]", "[1, 2]", '["a", "b"]', '"x"'),
    *("{}", "{ a = 1 }", "[[]]", "1979-05-27", "07:32:00", "1979-05-27T07:32:00Z", '""', '" "'),
    *("0x1F", "9223372036854775807", '"\\u0661"', '"""a\nb"""', '["cpu", 1, {}]', '"1"', "1_000"),
)


def _ini(head: str) -> Callable[[str, random.Random], str]:
    def write(name: str, source: random.Random) -> str:
        word = source.choice([word for word in WORDS if word.isprintable()])
        lines = source.choice(
            (f"{name} = {word}", f"{name} =\n    {word}\n    {word}", f"{name} =")
        )
        return f"{head}\n{lines}\n"

    return write


def _toml(head: str) -> Callable[[str, random.Random], str]:
    def write(name: str, source: random.Random) -> str:
        return f"{head}\n{name} = {source.choice(_TOML)}\n"

    return write


_FILES = {
    "pytest.ini": _ini("[pytest]"),
    "tox.ini": _ini("[pytest]"),
    "setup.cfg": _ini("[tool:pytest]"),
    "pyproject.toml": _toml("[tool.pytest.ini_options]"),
    "pytest.toml": _toml("[pytest]"),
    "pyproject.toml ": _toml("[tool.pytest]"),
}


def settings(folder: Path, source: random.Random) -> None:
    """A setting of any value or type in any file is used, or refused by its name."""
    _suite(folder)
    (folder / "pytest.ini").unlink()
    option, file = source.choice(_OPTIONS), source.choice([*_FILES])
    text = _FILES[file](option.dest, source)
    (folder / file.strip()).write_text(text, encoding="utf-8")
    _assert_refused_or_used(_collected(option), option.dest, text)


def options(folder: Path, source: random.Random) -> None:
    """A wrong value of an option is refused by the option's name."""
    _suite(folder)
    option, word = source.choice(_OPTIONS), source.choice(WORDS)
    if option.ini:
        name, line = option.dest, f"-o{option.dest}={word}"
    else:
        name = option.flag
        line = name if option.switch or source.random() < 0.1 else f"{name}={word}"
    _assert_refused_or_used(_collected(option, line), name, line)


def _collected(attacked: Option, *given: str) -> tuple[int, str]:
    """A session that collects, of NumPy alone unless the frameworks are attacked."""
    numpy = () if attacked is SELECTORS["frameworks"] else ("--fw=numpy",)
    return _session("-q", "--collect-only", *numpy, *given)


def _assert_refused_or_used(ended: tuple[int, str], name: str, given: str) -> None:
    status, text = ended
    assert status in (0, _USAGE_ERROR, 5), (given, ended)
    # Names of what there may be are refused by what they are of: "unknown dtype 'x'".
    said = (name, name.replace("_", "-"), "unknown ", "is not there", "an empty name")
    assert status != _USAGE_ERROR or any(words in text for words in said), (given, ended)


def caches(folder: Path, source: random.Random) -> None:
    """A session does without what is damaged in its caches."""
    _suite(folder)
    _assert_passed(_session(*_QUICK))
    roots = (folder / ".pytest_cache", folder / ".fwbench", folder / ".benchmarks")
    kept = [path for root in roots for path in sorted(root.rglob("*")) if path.is_file()]
    for path in source.sample(kept, min(source.randint(1, 2), len(kept))):
        # pytest crashes on wrong values of its own, and reads a device to its end.
        if path.parent.name != "cache" and ".pytest_cache" in path.parts:
            path.write_bytes(damaged(source, path.read_bytes()))
        elif ".pytest_cache" not in path.parts:
            damage(source, path)
    _assert_passed(_session(*_QUICK))


def hanging(folder: Path, source: random.Random) -> None:
    """Each of several cases that hang fails by the limit of time; the others pass."""
    hang, rest = source.randint(1, 6), source.randint(1, 2)
    names = [*(f"hangs{n}" for n in range(hang)), *(f"runs{n}" for n in range(rest))]
    source.shuffle(names)
    _suite(folder, *names)
    hangs(hang, rest)


def hangs(hang: int, rest: int) -> None:
    """Run the current folder's suite, in which so many cases hang and others do not."""
    mark = f"{os.getpid()}-{time.monotonic_ns()}"
    status, text = _session(*_QUICK, "--fw-timeout=0.5", FWBENCH_FAULTS=mark)
    said = " ".join(text.split()).count("did not finish the case within 0.5 s")
    assert (status, said) == (1, hang), text
    assert f"{hang} failed, {rest} passed" in text, text
    assert not [*processes(mark)], "processes are left"


def _cgroup() -> Path | None:
    """The folder of groups that limit memory, if this process may make one."""
    for root in map(Path, ("/sys/fs/cgroup/memory", "/sys/fs/cgroup")):
        with contextlib.suppress(OSError), tempfile.TemporaryDirectory(dir=root) as group:
            if [*Path(group).glob("memory.*")]:
                return root
    return None


@contextlib.contextmanager
def _limited(limit_bytes: int) -> Iterator[Callable[[], None]]:
    """A function that limits a process and its children: in a group, or each by itself."""
    root = _cgroup()
    if root is None:
        yield lambda: resource.setrlimit(resource.RLIMIT_AS, (limit_bytes, limit_bytes))
        return
    group = Path(tempfile.mkdtemp(prefix="fwbench-", dir=root))
    try:
        names = ("memory.limit_in_bytes", "memory.max")
        limit = next(group / name for name in names if (group / name).exists())
        limit.write_text(str(limit_bytes), encoding="ascii")
        yield lambda: _enter(group)
    finally:
        group.rmdir()


def _enter(group: Path) -> None:
    (group / "cgroup.procs").write_text(str(os.getpid()), encoding="ascii")


def memory(folder: Path, source: random.Random) -> None:
    """A case that needs more memory than there is fails alone."""
    _suite(folder, *source.choice((("first", "hungry"), ("hungry", "first"))))
    limit_bytes = source.randrange(700, 2_000) * 10**6
    with _limited(limit_bytes) as limit, (folder / "output.txt").open("w") as output:
        session = subprocess.run(
            [sys.executable, *_PYTEST, *_QUICK],
            env={**os.environ, **_VARIABLES},
            stdout=output,
            stderr=output,
            preexec_fn=limit,
            check=False,
        )
    text = (folder / "output.txt").read_text(encoding="utf-8")
    assert session.returncode == 1, text
    assert "1 failed, 1 passed" in text, text
    assert "SIGKILL" in text or "MemoryError" in text, text
    assert len(json.loads((folder / "run.json").read_bytes())["benchmarks"]) == 1


#: The wall clock that all processes see is off by up to two periods, for a second by each.
_JUMPS = """
#define _GNU_SOURCE
#include <dlfcn.h>
#include <time.h>

int clock_gettime(clockid_t id, struct timespec *now) {
    int (*real)(clockid_t, struct timespec *) = dlsym(RTLD_NEXT, "clock_gettime");
    int status = real(id, now);
    if (id == CLOCK_REALTIME)
        now->tv_sec += ((long)(now->tv_sec * 2654435761u / 65536 % 5) - 2) * 86400 * DAYS;
    return status;
}
"""


def clock(folder: Path, source: random.Random) -> None:
    """A wall clock that jumps to and fro spoils no time, no journal and no history."""
    cases = source.randint(4, 12)
    _suite(folder, *(f"case{n}" for n in range(cases)))
    (folder / "jumps.c").write_text(_JUMPS.replace("DAYS", str(source.choice((1, 30, 4_000)))))
    library = folder / "jumps.so"
    subprocess.run(["cc", "-shared", "-fPIC", "-o", library, "jumps.c"], check=True)
    moved = {"LD_PRELOAD": str(library)}
    _assert_passed(_session(*_QUICK, **moved), cases)
    for line in ("recover -o recovered.json", "report --history . -o history.html"):
        ended = subprocess.run(
            [sys.executable, "-m", "fwbench", *line.split()],
            env={**os.environ, **moved},
            capture_output=True,
            text=True,
            check=False,
        )
        assert ended.returncode == 0, ended


CLASSES: Mapping[str, Callable[[Path, random.Random], None]] = {
    "settings": settings,
    "options": options,
    "caches": caches,
    "hanging": hanging,
    "memory": memory,
    "clock": clock,
}


def can_be_tried(name: str) -> bool:
    """Return whether a class has what it needs on this machine."""
    return name != "clock" or shutil.which("cc") is not None
