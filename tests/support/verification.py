"""The suite's operations, verified as users do: what is run, and how many cells must pass.

The number of cells, passes and gaps is kept by framework and family, so that none goes missing in
silence. After a change to what is declared::

    python tests/support/verification.py    writes tests/frameworks/cells.json
"""

import importlib.util
import json
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from unittest import mock

import pytest

from fwbench.frameworks.declared import manifests
from fwbench.options.options import Selection
from fwbench.terms import manifest as declarations
from fwbench.terms.manifest import Manifest
from fwbench.terms.names import DTYPES
from fwbench.workloads import FAMILIES, OPERATIONS, grid
from fwbench.workloads.grid import Cell
from fwbench.workloads.operation import Operation
from support import programs

ROOT = Path(__file__).parents[2]
TABLE = ROOT / "tests/frameworks/cells.json"

#: XLA without the optimisations that LLVM makes of its programs, which are the same ones.
UNOPTIMIZED_XLA = "--xla_backend_optimization_level=0 --xla_llvm_disable_expensive_passes=true"

#: Half the time of a session with XLA goes into optimising programs that run once. JAX 0.12, which
#: needs Python 3.12, has no emitters to choose from, and ends at a flag that it does not know.
_OTHER_EMITTERS = " --xla_cpu_use_fusion_emitters=false" if sys.version_info < (3, 12) else ""
QUICK_XLA = UNOPTIMIZED_XLA + _OTHER_EMITTERS

#: What a framework has by family: "16 of 112 cells"; the others are gaps.
Counts = dict[str, str]


@dataclass(frozen=True)
class Part:
    """A part of the grid, which one session verifies.

    Attributes:
        dtypes: which.
        eager: whether the execution is eager; None for every execution.
        everything: whether it has every operation, and not the representatives alone.
    """

    dtypes: Sequence[str]
    eager: bool | None = None
    everything: bool = True

    def executions(self, manifest: Manifest) -> tuple[str, ...]:
        """The executions of a framework, without those that run on request only."""
        offered = (name for name in manifest.executions if name not in manifest.on_request)
        return tuple(name for name in offered if self.eager in (None, name == "eager"))

    @property
    def operations(self) -> Sequence[Operation]:
        """The operations that it has."""
        return [
            operation for operation in OPERATIONS if self.everything or operation.representative
        ]


#: What is verified after each change: everything in float32, or of two such numbers, and the other
#: dtypes in the eager execution, where kernels are chosen by dtype. Compilers are tried in them by
#: representatives.
FLOAT32 = Part(("float32", "complex64"))
_OTHERS = tuple(dtype for dtype in DTYPES if dtype not in FLOAT32.dtypes)
PARTS = {
    "float32": FLOAT32,
    "other dtypes, eager": Part(_OTHERS, eager=True),
    "other dtypes, compiled": Part(_OTHERS, eager=False, everything=False),
}

#: What is verified every night.
EVERYTHING = Part(DTYPES)


def installed(framework: str) -> pytest.MarkDecorator:
    """Skips a test where a framework is not installed."""
    missing = importlib.util.find_spec(framework) is None
    return pytest.mark.skipif(missing, reason=f"{framework} is not installed")


def cells(manifest: Manifest, part: Part, device: str = "cpu") -> Iterator[Cell]:
    """The cells of a framework: every operation at its smallest size, in both directions."""
    selection = Selection(
        devices=(device,), dtypes=tuple(part.dtypes), executions=part.executions(manifest)
    )
    requested = grid.GridRequest(verify_only=True)
    return grid.cells(part.operations, selection, {manifest.name: manifest}, more=requested)


def passes(manifest: Manifest, part: Part, device: str = "cpu") -> int:
    """The number of cells that are not gaps, and so must pass."""
    return sum(cell.gap is None for cell in cells(manifest, part, device))


def counted(manifest: Manifest) -> Counts:
    """The cells of a framework in all dtypes on the CPU, by family where there are any.

    They are the same everywhere: of a CPU that lacks nothing, and of no process's defaults.
    """
    counts: dict[str, list[int]] = {}
    with mock.patch.object(declarations, "cpu_features", frozenset):
        for cell in cells(replace(manifest, defaults={}), EVERYTHING):
            of_family = counts.setdefault(cell.workload.family, [0, 0])
            of_family[0] += cell.gap is None
            of_family[1] += 1
    ordered = {family: counts[family] for family in FAMILIES if family in counts}
    return {family: f"{passed} of {all_} cells" for family, (passed, all_) in ordered.items()}


def kept() -> Mapping[str, Counts]:
    """The counts in the repository."""
    table: Mapping[str, Counts] = json.loads(TABLE.read_text(encoding="utf-8"))
    return table


def verify(
    frameworks: str, part: Part, cache: Path, *arguments: str, **variables: str
) -> tuple[int, str]:
    """Verify a part of the suite, as users do.

    Args:
        frameworks: as ``--fw`` takes them; of the first are the executions.
        cache: where pytest keeps what frameworks say of themselves.

    Returns:
        Exit status and output.
    """
    selected = [f"--fw={frameworks}", f"--fw-dtype={','.join(part.dtypes)}"]
    if part.everything:
        selected.append("--fw-family=all")
    if part.eager is not None:
        executions = part.executions(manifests()[frameworks.partition(",")[0]])
        selected.append(f"--fw-execution={','.join(executions)}")
    done = programs.run(
        *("-m", "pytest", "benchmarks", "--benchmark-disable", "-rfE"),
        "--fw-threads=1",  # as the processes that workers are forked from
        # See tests/frameworks/training.
        *("--ignore=benchmarks/test_training.py", "--ignore=benchmarks/test_files.py"),
        *("-o", f"cache_dir={cache}", *selected, *arguments),
        cwd=ROOT,
        variables=variables,
    )
    return done.returncode, done.stdout + done.stderr


def found(framework: str, cache: Path) -> Manifest:
    """The declaration of a framework, with what its process in a session had by default."""
    kept = json.loads((cache / "v/fwbench/manifests" / framework).read_text(encoding="utf-8"))
    return replace(manifests()[framework], defaults=kept["manifest"]["defaults"])


def parts_of(framework: str) -> list[str]:
    """The names of the parts in which a framework has cells that are no gaps."""
    manifest = manifests()[framework]
    return [name for name, part in PARTS.items() if passes(manifest, part)]


def every_cell(framework: str, *parts: Any) -> Callable[[str, Path], None]:
    """A test: all cells of a framework on the CPU that are no gaps pass, and none is left out.

    Args:
        parts: of :data:`PARTS`, a session for each; default: those with cells that are no gaps.
    """

    @installed(framework)
    @pytest.mark.parametrize("part", parts or parts_of(framework))
    def test(part: str, suite_cache: Path) -> None:
        status, output = verify(framework, PARTS[part], suite_cache, "--fw-device=cpu")
        assert status == pytest.ExitCode.OK, output
        expected = passes(found(framework, suite_cache), PARTS[part])
        assert expected
        assert f" {expected} passed" in output, output

    return test


def main() -> None:
    """Write the counts of every framework."""
    counts: dict[str, Any] = {name: counted(manifest) for name, manifest in manifests().items()}
    TABLE.write_text(json.dumps(counts, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
