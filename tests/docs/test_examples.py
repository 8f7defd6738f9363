"""The examples of the how-to pages, run as a reader would run them."""

from __future__ import annotations

import importlib.util

from support.documents import blocks
from support.projects import Project


def _example(page: str) -> str:
    """The Python of a page, as one file."""
    return "\n".join(block.text for block in blocks(page) if block.language == "python")


def _installed(*names: str) -> int:
    return sum(importlib.util.find_spec(name) is not None for name in names)


def test_operations_and_models_of_ones_own_are_measured(project: Project) -> None:
    """Both pages' blocks, pasted into files outside the repository, measure and pass."""
    project.write("test_swish.py", _example("docs/own-operation.md"))
    project.write("test_mlp.py", _example("docs/own-model.md"))
    result = project.run("--fw-size=64", fw=None)
    counts = result.parseoutcomes()
    assert "failed" not in counts
    assert "errors" not in counts
    # PyTorch computes the operation in two tests and three cells, NumPy and PyTorch the model.
    assert counts["passed"] >= 3 * _installed("torch") + _installed("torch", "numpy")
