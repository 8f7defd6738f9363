"""Isolation costs at most 2 ms a case, and a worker is soon ready.

Per case: sessions of NumPy's noop with `--benchmark-disable`, in workers and without, with few
cases and with many, in turn. The slope between few and many is what a case costs, start-up left
out; the worker's own collection counts as isolation's. The difference of the slopes is bounded.

Start: on the quick grid, the time from the start of a worker's process until it could run its first
case (it has imported its framework, begun its session, collected its files) exceeds by at most
0.7 s what `python -c "import framework"` takes until the import is done, measured in turn.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import bounds
import pytest

from fwbench.plugin.case import begin
from fwbench.plugin.handover import worker_session
from fwbench.plugin.session import CELL
from fwbench.workers.process import WorkerProcess, WorkerSpec

_PER_CASE_BOUND_MS = 2.0
_START_BOUND_S = 0.7
_PATIENCE_S = 300.0

_NOOP = """\
import pytest

from fwbench.workloads import noop


@pytest.mark.fwbench(noop)
def test_noop(case):
    case.measure()
"""

#: What a framework's import needs before it.
_BEFORE_IMPORT = {"mxnet": "import numpy; numpy.bool = numpy.bool_; "}


def _per_case(rounds: int, few: int, many: int) -> list[bounds.Finding]:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "pytest.ini").write_text("[pytest]\n", encoding="utf-8")
        (folder / "test_noop.py").write_text(_NOOP, encoding="utf-8")
        session = partial(
            bounds.pytest_s,
            *("--fw=numpy", "--fw-direction=forward", "--benchmark-disable"),
            folder=folder,
        )
        times_s = bounds.in_turn(
            rounds,
            {
                f"{kind} {count}": partial(
                    session,
                    f"--fw-isolation={kind}",
                    "--fw-size=" + ",".join(map(str, range(1, count + 1))),
                )
                for kind in ("process", "none")
                for count in (few, many)
            },
        )
    took = bounds.medians(times_s)
    per_case_ms = {
        kind: 1e3 * (took[f"{kind} {many}"] - took[f"{kind} {few}"]) / (many - few)
        for kind in ("process", "none")
    }
    cost_ms = per_case_ms["process"] - per_case_ms["none"]
    return [
        bounds.Finding("a case in a worker", f"{per_case_ms['process']:.2f} ms"),
        bounds.Finding("a case without", f"{per_case_ms['none']:.2f} ms"),
        bounds.at_most("isolation, per case", cost_ms, _PER_CASE_BOUND_MS, "ms"),
    ]


class _Starts:
    """A plugin of a session that collects the quick grid and then, instead of running it, starts
    each framework's worker and looks how long it takes to be ready.
    """

    def __init__(self, rounds: int) -> None:
        self.rounds = rounds
        self.findings: list[bounds.Finding] = []

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        """In place of running tests."""
        known = begin(session.config)
        manifests, threads = known.manifests, known.options.threads
        measurements: dict[str, Callable[[], float]] = {}
        for framework, manifest in manifests.items():
            files = {
                str(item.path): None
                for item in session.items
                if CELL in item.stash and item.stash[CELL].framework == framework
            }
            spec = WorkerSpec(framework, interpreter=known.inventory.interpreter_of(framework))
            handed = worker_session(session.config, list(files), manifest, spec.interpreter)
            measurements[framework] = partial(_ready_s, spec, threads, handed)
            measurements[f"import {framework}"] = partial(_import_s, framework)
        took = bounds.medians(bounds.in_turn(self.rounds, measurements))
        for framework in manifests:
            ready_s, import_s = took[framework], took[f"import {framework}"]
            self.findings += [
                bounds.Finding(f"{framework}: import", f"{import_s:.2f} s"),
                bounds.Finding(f"{framework}: worker ready", f"{ready_s:.2f} s"),
                bounds.at_most(f"{framework}: difference", ready_s - import_s, _START_BOUND_S, "s"),
            ]
        return True


def _ready_s(spec: WorkerSpec, threads: int, handed: Any) -> float:
    start = time.perf_counter()
    worker = WorkerProcess(spec, threads)
    try:
        worker.load()
        worker.send("session", handed)
        # Nothing is called so: the worker says so as soon as it could have run something.
        worker.send("run", "ready?", None)
        kind, problem = worker.receive(time.monotonic() + _PATIENCE_S, "did not get ready")
        ready_s = time.perf_counter() - start
        assert kind == "done"
        assert problem.startswith("ready? was not collected in the worker"), problem
    finally:
        worker.kill()
    return ready_s


def _import_s(framework: str) -> float:
    command = f"{_BEFORE_IMPORT.get(framework, '')}import {framework}; print('.', flush=True)"
    start = time.perf_counter()
    with subprocess.Popen(
        [sys.executable, "-c", command], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    ) as process:
        assert process.stdout is not None
        process.stdout.readline()
        imported_s = time.perf_counter() - start
    if process.returncode:
        raise SystemExit(f"import {framework}: exit status {process.returncode}")
    return imported_s


def main() -> int:
    """Measure, print, and give the exit status."""
    given = bounds.arguments(__doc__, rounds=7, few=50, many=550)
    starts = _Starts(given.rounds)
    status = pytest.main(
        [
            "-q",
            "--no-header",
            "--disable-warnings",
            str(bounds.REPOSITORY / "benchmarks"),
            "--rootdir",
            str(bounds.REPOSITORY),
        ],
        plugins=[starts],
    )
    if status not in (pytest.ExitCode.OK, pytest.ExitCode.NO_TESTS_COLLECTED):
        return int(status)
    return bounds.conclude([*_per_case(given.rounds, given.few, given.many), *starts.findings])


if __name__ == "__main__":
    sys.exit(main())
