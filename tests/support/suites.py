"""A repository with a small suite, two revisions of which ``fwbench ab`` compares."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from support.projects import Project
from support.schemas import load_valid

_MYMATH = """
import numpy as np
from fwbench import Operation

def sorted_often(times):
    def run(x):
        for _ in range(times):
            y = np.sort(x)
        return y
    return run

def operation(name, times):
    made = Operation(
        name=name,
        inputs=lambda size, rng: (rng.standard_normal(size),),
        reference=np.sort,
        sizes=(5000,),
        differentiable=False,
    )
    made.implement("numpy")(lambda np: sorted_often(times))
    return made

slowing = operation("slowing", {slowing})
steady = operation("steady", 2)
"""


TESTS = """
import pytest
from mymath import slowing, steady

@pytest.mark.fwbench(slowing, steady)
def test_it(case):
    case.measure()
"""


#: Others may be at work on the machine: what they do to launches is not what is tested here. And
#: asking what the CPU is takes pytest-benchmark a second, in every launch.
CONFTEST = """
from fwbench.records import launches

launches.is_contended = lambda launch: False

def pytest_benchmark_generate_machine_info():
    return {"cpu": {"brand_raw": "Fake CPU"}}
"""


#: Time of the processor, which does not run while others have it.
INI = """
[pytest]
addopts =
    --fw=numpy --benchmark-max-time=0.02 --benchmark-min-rounds=2 --fw-warmup=0
    --benchmark-timer=time.thread_time
"""


SLOWING = "slowing-numpy-cpu-eager-forward-float32-5000"
STEADY = SLOWING.replace("slowing", "steady")

#: As few pairs as can show anything, and margins that nothing but twice the work is beyond.
FEW = (
    *("--pairs", "2", "--budget", "1min", "--level", "0.9", "--confidence", "0.5", "--seed", "1"),
    *("--margin", "0.3", "--threshold", "0.5", "--resolution", "0.9"),
    *("--threshold-first-call", "100", "--threshold-dispatch", "100"),
)


class Suite:
    """A repository with a small suite.

    Args:
        temporary: a folder for temporary files, and nothing else.
    """

    def __init__(self, project: Project, temporary: Path) -> None:
        self.project = project
        self.path = project.path.resolve()
        self.temporary = temporary
        project.write(".gitignore", "__pycache__/\n/packages/\n")
        run_git(self.path, "init", "--quiet")
        self.commit(
            pytest__ini=INI,
            conftest__py=CONFTEST,
            mymath__py=_MYMATH.replace("{slowing}", "2"),
            test_it__py=TESTS,
        )

    def commit(self, **files: str) -> str:
        """Commit files; returns the commit."""
        return commit_all(self.path, **files)

    def slow(self) -> str:
        """The code that makes one operation do twice the work."""
        return _MYMATH.replace("{slowing}", "4")

    def start(self, *arguments: str, **variables: str) -> subprocess.Popen[str]:
        """Start ``fwbench ab``."""
        with self.project.forking():
            return subprocess.Popen(
                [sys.executable, "-m", "fwbench", "ab", *arguments],
                cwd=self.path,
                env={**os.environ, **variables},
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
                preexec_fn=listen,  # noqa: PLW1509
            )

    def ab(self, *arguments: str) -> tuple[int, str, str]:
        """Run ``fwbench ab``; gives exit status, what it printed, what it said beside."""
        process = self.start(*arguments)
        out, err = process.communicate(timeout=300)
        assert "Traceback" not in err
        return process.returncode, out, err

    def figures(self) -> dict[str, Any]:
        """The content of ``--json figures.json``."""
        results: dict[str, Any] = load_valid("comparison", self.path / "figures.json")
        return results

    def kept(self) -> list[str]:
        """The names of the files of kept launches."""
        return sorted(path.name for path in self.path.glob(".fwbench/ab/*/launch-*.json"))

    def assert_clean(self) -> None:
        """Neither worktrees nor temporary files are left, nor journals of launches."""
        assert count_worktrees(self.path) == 1
        assert not (self.path / ".git" / "worktrees").exists()
        assert [path.name for path in self.temporary.iterdir()] == []
        assert not (self.path / ".fwbench" / "journal").exists()


_ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def listen() -> None:
    """Have this process hear every signal; ``nohup`` and the background of a shell switch some off.

    For ``preexec_fn``.
    """
    for number in _ENDING:
        signal.signal(number, signal.SIG_DFL)


@contextmanager
def listening() -> Iterator[None]:
    """The same within a block, where what is there already is restored at its end."""
    before = {number: signal.getsignal(number) for number in _ENDING}
    listen()
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


GIT = ("git", "-c", "user.name=nobody", "-c", "user.email=nobody@example.org")


def run_git(folder: Path, *arguments: str) -> str:
    return subprocess.run(
        [*GIT, *arguments], cwd=folder, check=True, capture_output=True, text=True
    ).stdout.strip()


def commit_all(folder: Path, **files: str) -> str:
    """Write files and commit everything; returns the commit."""
    for name, text in files.items():
        (folder / name.replace("__", ".")).write_text(text, encoding="utf-8")
    run_git(folder, "add", "--all")
    run_git(folder, "commit", "--quiet", "--message", "a commit")
    return run_git(folder, "rev-parse", "HEAD")


def count_worktrees(root: Path) -> int:
    return run_git(root, "worktree", "list").count("\n") + 1
