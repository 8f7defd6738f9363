"""Count the cheats that get a number: from a typical loop, from a careful one, from fwbench.

The cheats are those of ``fwbench_extras.cheats`` (docs/cheats.md), each in every direction in which
it cheats. The loops time them in this process. fwbench runs in a pytest session in which each cheat
is a framework with a worker process of its own; this file is that session's test file, too. Those
that fwbench says it catches must end without a record.
"""

from __future__ import annotations

import itertools
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import bounds
import numpy as np
import pytest

from fwbench.cases.case import Case
from fwbench_extras.cheats import CHEATS, BoundCheat, Cheat, check_harness, register
from fwbench_extras.cheats.naive import first_call_checked

_CALLS = 20
#: With one thread, so that a processor is free for work that is hidden from the count of threads.
_QUICKLY = ("--fw-threads=1", "--fw-warmup=0.05", "--fw-train=epochs=2", "--fw-train=steps=2")

#: A cheat's name and its direction.
_Case = tuple[str, str]


def _key(cheat: Cheat) -> tuple[str, int, str, tuple[str, ...]]:
    return cheat.workload.name, cheat.size, cheat.dtype, cheat.directions


def _test(cheats: tuple[Cheat, ...]) -> Any:
    """A test of cheats that have the same workload."""
    first = cheats[0]
    trained = {} if first.workload.directions else {"directions": first.directions}
    names = tuple(cheat.name for cheat in cheats)

    @pytest.mark.fwbench(
        first.workload, frameworks=names, sizes=(first.size,), dtypes=(first.dtype,), **trained
    )
    def measure(case: Case) -> None:
        case.measure()

    return measure


#: Cheats before any work is bound are refused, in any workload.
_BOUND = sorted((cheat for cheat in CHEATS if cheat.directions), key=_key)

for _number, (_, _group) in enumerate(itertools.groupby(_BOUND, key=_key)):
    globals()[f"test_{_number}"] = _test(tuple(_group))


def last_call_checked(cheat: BoundCheat) -> float:
    """The least of twenty calls that were waited for, once first and last were right."""
    _check(cheat, cheat.run())
    seconds = []
    for _ in range(_CALLS):
        cheat.wait()
        start = time.perf_counter()
        returned = cheat.run()
        cheat.wait()
        seconds.append(time.perf_counter() - start)
    _check(cheat, returned)
    return min(seconds)


def _check(cheat: BoundCheat, returned: Any) -> None:
    for actual, expected in zip(cheat.read(returned), cheat.expected(), strict=True):
        np.testing.assert_allclose(actual, expected, rtol=1e-5, atol=1e-4)


def _with_a_number() -> set[_Case]:
    """The cheats of which fwbench keeps a record."""
    with tempfile.TemporaryDirectory() as folder:
        register(Path(folder))
        stored = Path(folder) / "run.json"
        options = [*_QUICKLY, f"--rootdir={folder}", f"--benchmark-json={stored}"]
        done = subprocess.run(
            [sys.executable, "-m", "pytest", "-q", __file__, *options],
            cwd=bounds.REPOSITORY,
            # Its workers import this file by its path, and what it imports from this folder.
            env={**os.environ, "PYTHONPATH": f"{folder}{os.pathsep}{Path(__file__).parent}"},
            stdout=subprocess.PIPE,
            text=True,
            check=False,  # cases that fail are what it is for
        )
        if not stored.exists():
            raise SystemExit(f"nothing was measured:\n{done.stdout[-2_000:]}")
        records = json.loads(stored.read_text(encoding="utf-8"))["benchmarks"]
    facts = [record["extra_info"]["fwbench"] for record in records]
    return {(fact["framework"], fact["direction"]) for fact in facts}


def main() -> int:
    """Try all three on the cheats, print, and give the exit status."""
    bounds.arguments(__doc__, rounds=1)
    findings = []
    for harness in (first_call_checked, last_call_checked):
        outcomes = check_harness(harness)
        missed = [case for case, error in outcomes.items() if error is None]
        name = harness.__name__.replace("_", " ")
        findings.append(bounds.Finding(name, f"{len(missed)} of {len(outcomes)} get a number"))
    return bounds.conclude([*findings, *_fwbench_findings(_with_a_number())])


def _fwbench_findings(numbers: set[_Case]) -> list[bounds.Finding]:
    cases = {(cheat.name, direction): cheat for cheat in _BOUND for direction in cheat.directions}
    escaped = [case for case in numbers if cases[case].caught_by is not None]
    return [
        bounds.Finding("fwbench", f"{len(numbers)} of {len(cases)} get a number"),
        bounds.Finding("  of those that it catches", str(len(escaped)), "0", not escaped),
        *(
            bounds.Finding(f"    {' '.join(case)}", "a number", "none", kept=False)
            for case in escaped
        ),
    ]


if __name__ == "__main__":
    sys.exit(main())
