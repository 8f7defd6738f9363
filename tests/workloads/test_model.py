"""Declarations of users' models; frameworks are not needed."""

from typing import Any

import pytest

from fwbench import Input, Model
from fwbench.errors import DeclarationError


@pytest.mark.parametrize(
    ("name", "inputs", "more", "says"),
    [
        ("my-net", Input("batch", 3), {}, "use letters, digits and underscores"),
        ("net", (), {}, r"takes nothing; give it an Input"),
        ("net", ("batch", 3), {}, r"takes \['batch', 3\]; give it an Input"),
        ("net", Input("batch", 3), {"batches": (0,)}, "give positive whole numbers"),
        ("net", Input("batch", 3), {"output": Input("batch", 2)}, r"output=\('batch', 10\)"),
        ("net", Input("batch", 3), {"output": ("batch", 0)}, r"declares the output \('batch', 0\)"),
    ],
)
def test_what_cannot_be_measured_is_refused_where_it_is_declared(
    name: str, inputs: Any, more: dict[str, Any], says: str
) -> None:
    """Not when a case is measured, by an error of Python's."""
    with pytest.raises(DeclarationError, match=says):
        Model(name, inputs, **more)


def test_a_framework_has_one_version() -> None:
    """A second one would replace what is measured, in silence."""
    model = Model("net", Input("batch", 3), models={"torch": object})
    with pytest.raises(DeclarationError, match="is given twice for torch"):
        model.implement("torch")(object)
