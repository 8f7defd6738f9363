"""Progress takes no time from what is measured: at most 5 ms of processor time a second.

Sessions of two of NumPy's cases on a terminal (a line in place, drawn a few times a second), in a
log, and without pytest's terminal plugin, which show none, in turn. Of each: the processor time of
the session's own process while its workers measure, for each second of that; and the medians of
the cases, to be seen beside those of sessions that show nothing.
"""

from __future__ import annotations

import contextlib
import json
import os
import pty
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import bounds

_BOUND_MS = 5.0

_TEST = """\
import pytest

from fwbench.workloads import gemm, noop


@pytest.mark.fwbench(noop, gemm, sizes=256)
def test_it(case):
    case.measure()
"""

#: Notes what the process of the session takes while its workers measure.
_CONFTEST = """\
import json, resource, time
from pathlib import Path
import pytest


def now():
    used = resource.getrusage(resource.RUSAGE_SELF)
    return time.monotonic(), used.ru_utime + used.ru_stime


@pytest.hookimpl(wrapper=True)
def pytest_runtestloop():
    (start_s, before_s), result = now(), (yield)
    end_s, after_s = now()
    Path("used.json").write_text(json.dumps((after_s - before_s) / (end_s - start_s)))
    return result
"""

_SESSIONS = {"terminal": (True, ()), "log": (False, ()), "nothing": (True, ("-p", "no:terminal"))}


@dataclass(frozen=True)
class _Session:
    """Times of a session.

    Attributes:
        used_ms: processor time of its own process, for each second in which its workers measured.
        medians_s: of its cases, by workload.
    """

    used_ms: float
    medians_s: Mapping[str, float]


class _Project:
    """A project of two cases.

    Args:
        folder: of the project.
        seconds: how long each case is measured.
    """

    def __init__(self, folder: Path, seconds: int) -> None:
        self.folder = folder
        self.seconds = seconds
        for name, text in {
            "pytest.ini": "[pytest]\n",
            "test_it.py": _TEST,
            "conftest.py": _CONFTEST,
        }.items():
            (folder / name).write_text(text, encoding="utf-8")

    def run(self, kind: str) -> _Session:
        """Run a session that shows its progress on a terminal, in a log, or not at all."""
        on_terminal, more = _SESSIONS[kind]
        self._run(on_terminal, *more)
        entries = json.loads((self.folder / "out.json").read_text())["benchmarks"]
        return _Session(
            1e3 * float(json.loads((self.folder / "used.json").read_text())),
            {entry["params"]["workload"]: entry["stats"]["median"] for entry in entries},
        )

    def _run(self, on_terminal: bool, *more: str) -> None:
        own_end, other_end = pty.openpty() if on_terminal else os.pipe()
        session = subprocess.Popen(
            [
                *(sys.executable, "-m", "pytest", "--fw=numpy", "--benchmark-json=out.json"),
                *(f"--benchmark-max-time={self.seconds}", "--fw-precision=off", *more),
            ],
            cwd=self.folder,
            env={**os.environ, "TERM": "xterm"},
            stdout=other_end,
            stderr=other_end,
        )
        os.close(other_end)
        with contextlib.suppress(OSError):  # so Linux ends a terminal
            while os.read(own_end, 65_536):
                pass
        os.close(own_end)
        if session.wait():
            sys.exit(f"a session ended with exit status {session.returncode}")


def main() -> int:
    """Measure, print, and give the exit status."""
    given = bounds.arguments(__doc__, rounds=5, seconds=5)
    with tempfile.TemporaryDirectory() as name:
        project = _Project(Path(name), given.seconds)
        sessions = bounds.in_turn(
            given.rounds, {kind: partial(project.run, kind) for kind in _SESSIONS}
        )
    used_ms = bounds.medians(
        {kind: [session.used_ms for session in sessions[kind]] for kind in sessions}
    )
    findings = [
        bounds.Finding(f"{kind}, per second", f"{ms:.2f} ms") for kind, ms in used_ms.items()
    ]
    findings += [
        bounds.at_most(
            f"{kind} beyond nothing", used_ms[kind] - used_ms["nothing"], _BOUND_MS, "ms"
        )
        for kind in ("terminal", "log")
    ]
    for workload in ("noop", "gemm"):
        medians_s = bounds.medians(
            {kind: [session.medians_s[workload] for session in sessions[kind]] for kind in sessions}
        )
        ratio = medians_s["terminal"] / medians_s["nothing"]
        findings.append(bounds.Finding(f"{workload}, terminal over nothing", f"{ratio:.3f}x"))
    return bounds.conclude(findings)


if __name__ == "__main__":
    sys.exit(main())
