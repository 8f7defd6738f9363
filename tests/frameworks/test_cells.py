"""No cell goes missing in silence: their numbers are kept, by framework and family."""

import dataclasses

import pytest

from fwbench.frameworks.declared import manifests
from fwbench.terms.names import DTYPES
from fwbench.workloads import FAMILIES, OPERATIONS
from support import verification
from support.verification import EVERYTHING, FLOAT32, PARTS, Part

_DIRECTIONS = 2


@pytest.mark.parametrize(
    "framework", ["jax", "mxnet", "numpy", "onnxruntime", "tensorflow", "torch"]
)
def test_cells_passes_and_gaps_are_those_that_are_kept(framework: str) -> None:
    """If they are not, see what has changed, then: python tests/support/verification.py."""
    declared = manifests()[framework]
    result = verification.counted(declared)
    assert result == verification.kept()[framework]
    executions = EVERYTHING.executions(declared)
    for family, count in result.items():
        in_all = _DIRECTIONS * len(executions) * len(DTYPES) * len(FAMILIES[family])
        assert count.endswith(f" of {in_all} cells")


def test_every_framework_and_every_family_is_kept() -> None:
    assert [*verification.kept()] == [*manifests()]
    families = [name for name, operations in FAMILIES.items() if operations]
    assert all([*counts] == families for counts in verification.kept().values())


def test_a_new_gap_is_noticed() -> None:
    """And so are a framework's new dtype, and an operation that it has no longer."""
    torch = manifests()["torch"]
    counts = verification.counted(torch)
    (some, *_) = torch.operations
    for changed in (
        {"operations": tuple(name for name in torch.operations if name != some)},
        {"dtypes": torch.dtypes[:-1]},
        {"executions": (*torch.executions, "new")},
        {"differentiable": False},
    ):
        assert verification.counted(dataclasses.replace(torch, **changed)) != counts


def test_the_parts_have_every_operation_in_float32_and_every_dtype() -> None:
    """Tests after each change leave out compiled cells of other dtypes only."""
    tensorflow = manifests()["tensorflow"]
    everything = {cell.id for cell in verification.cells(tensorflow, EVERYTHING)}
    parts = [cell.id for part in PARTS.values() for cell in verification.cells(tensorflow, part)]
    assert len(parts) == len({*parts})
    assert {*parts} <= everything
    left_out = everything - {*parts}
    assert not any("-eager-" in name or "-float32-" in name for name in left_out)
    shown = {operation.name for operation in OPERATIONS if operation.representative}
    assert not any(name.partition("-")[0] in shown for name in left_out)


def test_a_framework_has_the_parts_in_which_it_has_cells() -> None:
    """Without a compiler there is nothing to compile."""
    assert verification.parts_of("tensorflow") == [*PARTS]
    assert verification.parts_of("numpy") == verification.parts_of("torch") == [*PARTS][:2]


def test_executions_on_request_are_in_no_part() -> None:
    """They take long; the others are in every part that is not for the eager one."""
    torch, tensorflow = manifests()["torch"], manifests()["tensorflow"]
    assert FLOAT32.executions(torch) == ("eager",)
    assert Part(DTYPES, eager=False).executions(torch) == ()
    assert Part(DTYPES, eager=False).executions(tensorflow) == ("graph", "xla")
