"""Sessions that are short of something: what should not matter does not, and what does is said."""

import contextlib
import os
import resource
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

import pytest

from fwbench.errors import FrameworkBroken
from fwbench.workers.process import WorkerProcess, WorkerSpec
from support.projects import CASES, QUICKLY, Project, measuring
from support.verification import installed

if sys.platform != "linux":
    pytest.skip("limits as Linux has them", allow_module_level=True)


def start(
    folder: Path,
    *arguments: str,
    before: Callable[[], object] = lambda: None,
    variables: Mapping[str, str] | None = None,
    prefix: Sequence[str] = (),
) -> subprocess.Popen[bytes]:
    """Start a session.

    Args:
        before: called in the process that becomes the session.
        variables: all of its environment; None for that of this process.
        prefix: a command that runs the one behind it.
    """
    return subprocess.Popen(
        [*prefix, sys.executable, "-m", "pytest", *QUICKLY, "--fw=numpy", *arguments],
        cwd=folder,
        env=os.environ if variables is None else variables,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        preexec_fn=before,  # noqa: PLW1509 (no other thread runs here)
    )


def printed_by(session: subprocess.Popen[bytes]) -> str:
    """Wait for the end of a session; returns what it has printed."""
    output, _ = session.communicate(timeout=120)
    text = output.decode("ascii", errors="backslashreplace")
    print(text)
    return text


_JUMPING = """
import itertools, time

_jumps = itertools.cycle([0.0, 3e6, -7e8, 1e9])
_time = time.time
time.time = lambda: _time() + next(_jumps)
"""


def _scarce() -> None:
    """One CPU and 64 file descriptors."""
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64))


def test_what_does_not_matter(project: Project) -> None:
    """Few descriptors, one CPU, ASCII, no home, an odd path and a wall clock that jumps.

    All of it at once: what changes nothing together does not by itself.
    """
    folder = project.path / """it's a "folder" with\tblanks; $HOME & \u00fc"""
    folder.mkdir()
    (folder / "conftest.py").write_text(_JUMPING, encoding="utf-8")
    (folder / "test_it.py").write_text(CASES, encoding="utf-8")
    homeless = {name: value for name, value in os.environ.items() if name != "HOME"}
    plain = {"LC_ALL": "C", "PYTHONCOERCECLOCALE": "0", "PYTHONUTF8": "0"}
    session = start(
        folder, "--benchmark-json=out.json", before=_scarce, variables={**homeless, **plain}
    )
    output = printed_by(session)
    assert session.returncode == pytest.ExitCode.OK
    assert ", 1 thread: numpy " in output
    entries = project.entries(str(folder / "out.json"))
    assert len(entries) == 4
    for entry in entries:
        facts = entry["extra_info"]["fwbench"]
        times_s = [*entry["stats"]["data"], facts["first_call_in_process_s"], facts["completion_s"]]
        assert all(0 < time_s < 60 for time_s in times_s)
        assert 0 <= facts["warmup_s"] < 60


def test_two_sessions_at_once(project: Project) -> None:
    project.write("test_it.py", CASES)
    sessions = [
        start(project.path, f"--benchmark-json={name}", f"--benchmark-save={name}")
        for name in ("one.json", "other.json")
    ]
    assert all("5 passed" in printed_by(session) for session in sessions)
    assert [len(project.entries(name)) for name in ("one.json", "other.json")] == [4, 4]
    assert len([*project.path.glob(".benchmarks/*/*.json")]) == 2
    assert len([*project.path.glob(".fwbench/journal/*.jsonl")]) == 2


_LARGE = measuring(
    'doubling("large", lambda x: np.ones(2**34)), double, sizes=(4,)', "import numpy as np"
)


def test_too_little_memory(project: Project) -> None:
    project.write("test_it.py", _LARGE)
    limit = (8 * 2**30, 8 * 2**30)
    session = start(project.path, before=lambda: resource.setrlimit(resource.RLIMIT_AS, limit))
    output = printed_by(session)
    assert "1 failed, 1 passed" in output
    assert "MemoryError: Unable to allocate 128. GiB" in output


_LOADING = measuring("mlp.loader, mlp.step", "from fwbench.workloads import mlp")

#: Runs its arguments where nothing can be written to shared memory.
_UNSHARED = [
    "unshare",
    "--mount",
    "sh",
    "-c",
    'mount -t tmpfs -o ro none /dev/shm && exec "$@"',
    "-",
]


def _can_unshare() -> bool:
    """True where a process may have file systems of its own."""
    with contextlib.suppress(OSError):
        return (
            subprocess.run([*_UNSHARED, "true"], check=False, capture_output=True).returncode == 0
        )
    return False


@pytest.mark.skipif(not _can_unshare(), reason="only root may mount, and not in every container")
@installed("torch")
def test_no_shared_memory(project: Project) -> None:
    project.write("test_it.py", _LOADING)
    arguments = ["--fw=torch", "--fw-toggle=workers=0,1", "--fw-train=steps=2", "-rf"]
    session = start(project.path, *arguments, prefix=_UNSHARED)
    output = printed_by(session)
    assert "1 failed, 2 passed" in output
    assert "cannot start its processes" in output
    assert "they need a /dev/shm with room" in output


def _without_processes() -> None:
    """No further process, as a user to whom the limit applies: it does not to root."""
    if os.geteuid() == 0:
        os.setgroups([])
        os.setgid(_NOBODY)
        os.setuid(_NOBODY)
    resource.setrlimit(resource.RLIMIT_NPROC, (1, 1))


_NOBODY = 65534


def _somebody_else_can_run() -> bool:
    """True where another user than root may run this interpreter."""
    with contextlib.suppress(OSError):
        command = [sys.executable, "-c", "import fwbench"]
        return subprocess.run(command, user=_NOBODY, check=False, cwd="/").returncode == 0
    return False


@pytest.mark.skipif(
    os.geteuid() == 0 and not _somebody_else_can_run(),
    reason="root may start any number of processes, and only root may run this interpreter",
)
def test_too_few_processes(project: Project) -> None:
    project.write("test_it.py", CASES)
    project.path.chmod(0o777)
    # NumPy's own threads are processes, too, and without them it ends the process that imports it.
    variables = {**os.environ, "OPENBLAS_NUM_THREADS": "1"}
    output = printed_by(start(project.path, before=_without_processes, variables=variables))
    assert "Traceback" not in output
    assert "its process cannot be started: [Errno 11]" in output
    assert "allow more processes (ulimit -u" in output


@pytest.fixture
def no_more_files() -> Iterator[None]:
    limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    lowest_free = os.dup(0)
    os.close(lowest_free)
    resource.setrlimit(resource.RLIMIT_NOFILE, (lowest_free, limits[1]))
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, limits)


@pytest.mark.usefixtures("no_more_files")
def test_too_few_open_files() -> None:
    with pytest.raises(FrameworkBroken, match=r"Too many open files.*; allow more open files \(ul"):
        WorkerProcess(WorkerSpec("numpy"), threads=1)
