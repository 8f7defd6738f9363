"""Whenever a session is killed while it starts, all that it has started is gone within a second.

Each trial is a session of its own, of a framework alone or of a gang. SIGKILL goes to it, and to
nothing else, at a random moment between its start and the end of its first case. Linux only.
"""

from __future__ import annotations

import importlib.util
import random
import shutil
import sys
import tempfile
import time
from pathlib import Path

import bounds
from watched import Watched, settled

_GONE_WITHIN_S = 1.0

#: A session that is never killed takes less, on a busy machine.
_STARTS_WITHIN_S = 120.0

_SUITE = """
from pathlib import Path

import pytest
from fwbench.workloads import WORK

@pytest.mark.fwbench(WORK)
def test_it(case):
    case.measure()
    Path(__file__).with_name("measured").touch()
"""

#: What is measured, by what starts how: a worker, or replicas in its stead.
_ALONE = ("gemm", ())
_GANG = ("lenet_step", ("--fw-replicas=2",))
_GANGS = {
    "numpy": ("all_reduce", ("--fw-replicas=2",)),
    "mxnet": (
        "lenet_step",
        ("--fw-replicas=2", "--fw-toggle=strategy=ps_sync", "--fw-toggle=servers=1"),
    ),
}


class Session(Watched):
    """A session that is to be killed.

    Args:
        folder: an empty one.
    """

    def __init__(self, folder: Path, framework: str, work: str, options: tuple[str, ...]) -> None:
        arguments = (
            f"--fw={framework}",
            "--fw-size=quick",
            "--fw-threads=1",
            "--benchmark-max-time=0.1",
            *options,
        )
        suite = {"test_suite.py": _SUITE.replace("WORK", work)}
        super().__init__(folder, suite, ("-p", "no:randomly", "-x", *arguments))

    def has_measured(self) -> bool:
        """Return whether its first case is over."""
        return (self.folder / "measured").exists()


def _begin(framework: str, work: tuple[str, tuple[str, ...]], delay_s: float | None) -> Session:
    """A session that was killed after so long, or after its first case."""
    session = Session(Path(tempfile.mkdtemp(prefix="fwbench-startups-")), framework, *work)
    if delay_s is None:
        session.wait(session.has_measured, time.monotonic() + _STARTS_WITHIN_S)
    else:
        time.sleep(delay_s)
    session.process.kill()
    session.process.wait()
    return session


def _left(framework: str, work: tuple[str, tuple[str, ...]], delay_s: float) -> list[str]:
    session = _begin(framework, work, delay_s)
    try:
        return settled(session.left, _GONE_WITHIN_S)
    finally:
        session.end()
        shutil.rmtree(session.folder, ignore_errors=True)


def _starting_s(framework: str, work: tuple[str, tuple[str, ...]]) -> float:
    """Seconds of a session until its first case is over."""
    begun_s = time.monotonic()
    session = _begin(framework, work, None)
    took_s = time.monotonic() - begun_s
    session.end()
    if not session.has_measured():
        raise SystemExit(f"{framework} did not measure {work[0]}:\n{session.printed}")
    shutil.rmtree(session.folder, ignore_errors=True)
    return took_s


def main() -> int:
    """Do what the options say, and give the exit status: 1 if anything was left."""
    given = bounds.arguments(__doc__, rounds=50, seed=random.randrange(10**6))  # noqa: S311
    source = random.Random(given.seed)  # noqa: S311 (no secret)
    print(f"--rounds {given.rounds} --seed {given.seed}", flush=True)
    names = [name for name in ("numpy", "torch", "mxnet", "tensorflow", "jax") if _is_here(name)]
    findings = []
    for framework in names:
        for kind, work in (("alone", _ALONE), ("gang", _GANGS.get(framework, _GANG))):
            starting_s = _starting_s(framework, work)
            broken = 0
            for _ in range(given.rounds):
                delay_s = source.uniform(0.0, starting_s)
                if left := _left(framework, work, delay_s):
                    broken += 1
                    print(f"{framework}, {kind}, killed after {delay_s:.2f} s:", *left, sep="\n   ")
            text = f"{broken} of {given.rounds} within {starting_s:.1f} s"
            name = f"{framework}, {kind}: killed, and something left"
            findings.append(bounds.Finding(name, text, "0", broken == 0))
    return bounds.conclude(findings)


def _is_here(framework: str) -> bool:
    return importlib.util.find_spec(framework) is not None


if __name__ == "__main__":
    sys.exit(main())
