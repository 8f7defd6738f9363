"""Collecting 5,000 cases costs at most 1.5 times what plain pytest needs for 5,000 tests.

Two files of one shape, each with one test: in one it is marked with as many operations as make so
many cases, at three sizes each, in every framework that is installed; in the other it is
parametrised with the very ids of those cases. `pytest --collect-only -q` collects each in a fresh
process, in turn; the manifests of the frameworks are cached, as in every session but the first. The
plain session runs without fwbench. Start-up makes the ratio look better than it is, so it is taken
again without: what a session with one operation takes is subtracted on both sides.

Also: no framework is imported in the process that collects.
"""

from __future__ import annotations

import math
import sys
import tempfile
from functools import partial
from pathlib import Path

import bounds

from fwbench.frameworks.registry import registered

_BOUND = 1.5

_MARKED = """\
import numpy as np
import pytest

from fwbench import Operation, Sizes
from fwbench.frameworks.registry import registered


def operation(number):
    made = Operation(
        name=f"operation_{{number}}",
        inputs=lambda size, rng: (rng.standard_normal(size),),
        reference=np.tanh,
        sizes=Sizes(quick=(8, 64, 512)),
    )
    for framework in registered():
        made.implement(framework)(lambda namespace: namespace.tanh)
    return made


@pytest.mark.fwbench(*map(operation, range({operations})))
def test_cases(case):
    case.measure()
"""

_PLAIN = """\
import pytest


@pytest.mark.parametrize("case", {ids})
def test_cases(case):
    pass
"""

#: Collects, then says which frameworks have been imported on the way.
_IMPORTED = """\
import sys, pytest
arguments, frameworks = sys.argv[1].split(), sys.argv[2].split()
assert pytest.main(arguments) == 0
print("imported:", *(name for name in frameworks if name in sys.modules))
"""


def _write(folder: Path, name: str, operations: int) -> list[str]:
    """Both files, the marked one and the plain one; returns the ids of the cases."""
    marked = folder / f"{name}.py"
    marked.write_text(_MARKED.format(operations=operations), encoding="utf-8")
    _, output = bounds.python("-m", "pytest", "-q", "--collect-only", marked.name, folder=folder)
    lines = (line for line in output.splitlines() if line.startswith(f"{marked.name}::"))
    ids = [line.partition("[")[2].rstrip("]") for line in lines]
    (folder / f"{name}_plain.py").write_text(_PLAIN.format(ids=ids), encoding="utf-8")
    return ids


def _imported(folder: Path) -> str:
    # NumPy is always imported there: references are computed with it.
    names = " ".join(name for name in registered() if name != "numpy")
    command = "-q --collect-only many.py"
    _, output = bounds.python("-c", _IMPORTED, command, names, folder=folder)
    return output.splitlines()[-1].removeprefix("imported:").strip()


def main() -> int:
    """Measure, print, and give the exit status."""
    given = bounds.arguments(__doc__, rounds=7, cases=5_000)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "pytest.ini").write_text("[pytest]\n", encoding="utf-8")
        few = _write(folder, "few", 1)
        many = _write(folder, "many", math.ceil(given.cases / len(few)))
        collect = partial(bounds.pytest_s, "--collect-only", folder=folder)
        times_s = bounds.in_turn(
            given.rounds,
            {
                "fwbench": partial(collect, "many.py"),
                "plain": partial(collect, "many_plain.py", "-p", "no:fwbench"),
                "fwbench, one operation": partial(collect, "few.py"),
                "plain, one operation": partial(collect, "few_plain.py", "-p", "no:fwbench"),
            },
        )
        imported = _imported(folder)
    took = bounds.medians(times_s)
    alone = {kind: took[kind] - took[f"{kind}, one operation"] for kind in ("fwbench", "plain")}
    return bounds.conclude(
        [
            *(
                bounds.Finding(f"{kind}: {len(ids)} cases", f"{took[name]:.2f} s")
                for name, kind, ids in (
                    ("fwbench", "fwbench", many),
                    ("plain", "plain pytest", many),
                    ("fwbench, one operation", "fwbench", few),
                    ("plain, one operation", "plain pytest", few),
                )
            ),
            bounds.at_most("fwbench / plain", took["fwbench"] / took["plain"], _BOUND, "x"),
            bounds.at_most(
                "the same without start-up", alone["fwbench"] / alone["plain"], _BOUND, "x"
            ),
            bounds.Finding("frameworks imported", imported or "none", "none", not imported),
        ]
    )


if __name__ == "__main__":
    sys.exit(main())
