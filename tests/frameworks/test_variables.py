"""The variables that fwbench's own frameworks record are named one by one."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

import fwbench.frameworks

_SOURCES = Path(fwbench.frameworks.__file__).parent


def _names(path: Path) -> set[str]:
    """Every text of a module that looks like a variable or the end of its name."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    # What f-strings put together, as TF_{name}, is no name yet.
    parts = {
        id(p) for node in ast.walk(tree) if isinstance(node, ast.JoinedStr) for p in node.values
    }
    nodes = (node for node in ast.walk(tree) if id(node) not in parts)
    constants = (node.value for node in nodes if isinstance(node, ast.Constant))
    return {text for text in constants if isinstance(text, str) and re.fullmatch(r"[A-Z_]+", text)}


@pytest.mark.parametrize(
    "path",
    [_SOURCES / "variables.py", *sorted(_SOURCES.glob("*/framework.py"))],
    ids=lambda path: "/".join(path.parts[-2:]),
)
def test_names_are_whole(path: Path) -> None:
    """A prefix would record whatever else begins so, secrets included."""
    assert [name for name in _names(path) if name.endswith("_")] == []


def test_there_are_some() -> None:
    """The check above finds the names that it is about."""
    assert {"OMP_WAIT_POLICY", "MKL_NUM_THREADS"} <= _names(_SOURCES / "variables.py")
    assert "XLA_FLAGS" in _names(_SOURCES / "tensorflow" / "framework.py")
