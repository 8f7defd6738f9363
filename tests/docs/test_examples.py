"""The examples of the how-to pages, run as a reader would run them."""

from __future__ import annotations

import importlib.util

import pytest

from support.documents import blocks
from support.projects import Project
from support.real_training import facts_of


def _example(page: str) -> str:
    """The Python of a page, as one file."""
    return "\n".join(block.text for block in blocks(page) if block.language == "python")


def _installed(*names: str) -> int:
    return sum(importlib.util.find_spec(name) is not None for name in names)


def test_operations_of_ones_own_are_measured(project: Project) -> None:
    """The page's blocks, pasted into a file outside the repository, measure and pass."""
    project.write("test_swish.py", _example("docs/own-operation.md"))
    result = project.run("--fw-size=64", fw=None)
    counts = result.parseoutcomes()
    assert "failed" not in counts
    assert "errors" not in counts
    # PyTorch computes the operation in two tests and three cells.
    assert counts["passed"] >= 3 * _installed("torch")


def test_models_of_ones_own_are_measured(project: Project) -> None:
    """Each block of the page is a file: a convolutional net, a transformer, and shared weights."""
    pytest.importorskip("torch")
    files = [block.text for block in blocks("docs/own-model.md") if block.language == "python"]
    for name, text in zip(("convnet", "transformer", "shared"), files, strict=True):
        project.write(f"test_{name}.py", text)
    there = ["torch", *["mxnet"] * _installed("mxnet")]
    result, records = project.measure("--fw-size=2", "--fw-threads=1", fw=",".join(there))
    counts = result.parseoutcomes()
    # Both parts of the three in PyTorch, and those of the last in both executions of MXNet.
    assert (counts["passed"], counts.get("failed")) == (6 + 4 * _installed("mxnet"), None)
    against = {name: facts_of(entry)["verified_against"] for name, entry in records.items()}
    shared = {by for name, by in against.items() if name.startswith("linear")}
    assert len(shared) == 1, against


@pytest.mark.parametrize("file", [0, 1])
def test_a_model_of_ones_own_takes_15_lines(file: int) -> None:
    """A net and a transformer: lines that are not blank."""
    files = [block.text for block in blocks("docs/own-model.md") if block.language == "python"]
    assert len([line for line in files[file].splitlines() if line.strip()]) <= 15
