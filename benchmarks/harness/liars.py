"""How many liars get a number: from a loop as many are written, from a careful one, from fwbench.

The liars are those of ``fwbench_extras.cheats`` (docs/cheats.md), each in every direction in which
it lies. The loops are held against them in this process. fwbench runs as ever, in a pytest session
in which each liar is a framework with a worker process of its own; this file is that session's test
file, too. Those that fwbench says it catches must end without a record.
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
from fwbench_extras.cheats import LIARS, Exhibit, Liar, hold_against, register
from fwbench_extras.cheats.naive import first_call_checked

_CALLS = 20
_QUICKLY = ("--benchmark-max-time=0.05", "--fw-warmup=0.05", "--fw-epochs=2", "--fw-steps=2")

#: A liar's name and the direction in which it lies.
Lie = tuple[str, str]


def _key(liar: type[Liar]) -> tuple[str, int, str, tuple[str, ...]]:
    return liar.workload.name, liar.size, liar.dtype, liar.directions


def _test(liars: tuple[type[Liar], ...]) -> Any:
    """A test of liars that show what they do in the same workload."""
    one = liars[0]
    trained = {} if one.workload.directions else {"directions": one.directions}
    names = tuple(liar.name for liar in liars)

    @pytest.mark.fwbench(
        one.workload, frameworks=names, sizes=(one.size,), dtypes=(one.dtype,), **trained
    )
    def measure(case: Case) -> None:
        case.measure()

    return measure


#: Those that lie before any work is bound are refused, in any workload.
_BOUND = sorted((liar for liar in LIARS if liar.directions), key=_key)

for _number, (_, _group) in enumerate(itertools.groupby(_BOUND, key=_key)):
    globals()[f"test_{_number}"] = _test(tuple(_group))


def last_call_checked(exhibit: Exhibit) -> float:
    """The least of twenty calls that were waited for, once first and last were right."""
    _check(exhibit, exhibit.run())
    seconds = []
    for _ in range(_CALLS):
        exhibit.wait()
        start = time.perf_counter()
        returned = exhibit.run()
        exhibit.wait()
        seconds.append(time.perf_counter() - start)
    _check(exhibit, returned)
    return min(seconds)


def _check(exhibit: Exhibit, returned: Any) -> None:
    for actual, expected in zip(exhibit.read(returned), exhibit.expected(), strict=True):
        np.testing.assert_allclose(actual, expected, rtol=1e-5, atol=1e-4)


def _with_a_number() -> set[Lie]:
    """The lies of which fwbench keeps a record."""
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
    """Hold all three against the liars, print, and give the exit status."""
    bounds.arguments(__doc__, rounds=1)
    findings = []
    for harness in (first_call_checked, last_call_checked):
        outcomes = hold_against(harness)
        missed = [lie for lie, error in outcomes.items() if error is None]
        name = harness.__name__.replace("_", " ")
        findings.append(bounds.Finding(name, f"{len(missed)} of {len(outcomes)} get a number"))
    return bounds.conclude([*findings, *_of_fwbench(_with_a_number())])


def _of_fwbench(numbers: set[Lie]) -> list[bounds.Finding]:
    lies = {(liar.name, direction): liar for liar in _BOUND for direction in liar.directions}
    escaped = [lie for lie in numbers if lies[lie].caught_by is not None]
    return [
        bounds.Finding("fwbench", f"{len(numbers)} of {len(lies)} get a number"),
        bounds.Finding("  of those that it catches", str(len(escaped)), "0", not escaped),
        *(
            bounds.Finding(f"    {' '.join(lie)}", "a number", "none", kept=False)
            for lie in escaped
        ),
    ]


if __name__ == "__main__":
    sys.exit(main())
