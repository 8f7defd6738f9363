"""Names that a third party imports from the package itself."""

import ast
from pathlib import Path

import pytest

import fwbench
from support import programs

#: What writing a framework, its training code or a workload needs.
_NEEDED = {
    *("Case", "Cost", "Form", "Operation", "Schedule", "Shape", "Sizes", "Training"),
    *("BoundCall", "Call", "Device", "Framework", "Gap", "Implementation", "Table", "Toggle"),
    *("Laid", "Layout", "axes"),
    *("Job", "Learner", "Loader", "Order", "Adam", "RMSprop", "SGD"),
    *("DeclarationError", "FrameworkBroken", "FrameworkMissing", "FwbenchError"),
}


def test_everything_that_a_third_party_needs_is_public() -> None:
    assert {*fwbench.__all__} >= _NEEDED
    assert len(fwbench.__all__) == len({*fwbench.__all__})


@pytest.mark.parametrize("name", fwbench.__all__)
def test_every_public_name_can_be_imported(name: str) -> None:
    assert getattr(fwbench, name) is not None
    assert getattr(getattr(fwbench, name), "__name__", name) == name or name in {
        *("BoundCall", "Implementation", "Table")
    }


def test_type_checkers_see_the_public_names() -> None:
    tree = ast.parse(Path(fwbench.__file__).read_text(encoding="utf-8"))
    seen = {
        name.name: node.module
        for block in tree.body
        if isinstance(block, ast.If)
        for node in block.body
        if isinstance(node, ast.ImportFrom)
        for name in node.names
    }
    assert seen == fwbench._PUBLIC
    assert {*seen} == {*fwbench.__all__}


def test_a_name_that_is_not_public() -> None:
    with pytest.raises(AttributeError, match="has no attribute 'Framwork'"):
        _ = fwbench.Framwork  # type: ignore[attr-defined]


def test_importing_the_package_imports_nothing_heavy() -> None:
    """Pytest does so in every session, and those that measure nothing must not pay for NumPy."""
    program = "import sys, fwbench; print('numpy' in sys.modules)"
    assert programs.output("-c", program) == "False\n"
