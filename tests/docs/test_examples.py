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


#: Without an import: all modules that a test with a project imports are taken back, and PyTorch
#: does not stand being imported a second time (``SystemError: bad call flags``).
needs_torch = pytest.mark.skipif(not _installed("torch"), reason="PyTorch is not installed")


def test_operations_of_ones_own_are_measured(project: Project) -> None:
    project.write("test_swish.py", _example("docs/own-operation.md"))
    result = project.run("--fw-size=64", fw=None)
    counts = result.parseoutcomes()
    assert "failed" not in counts
    assert "errors" not in counts
    # PyTorch computes the operation in two tests and three cells.
    assert counts["passed"] >= 3 * _installed("torch")


@needs_torch
def test_models_of_ones_own_are_measured(project: Project) -> None:
    """Each block of the page is a file: a convolutional net, a transformer, and shared weights."""
    files = [block.text for block in blocks("docs/own-model.md") if block.language == "python"]
    there = [text for text in files if _installed("transformers") or "transformers" not in text]
    for place, text in enumerate(there):
        project.write(f"test_{place}.py", text)
    frameworks = ["torch", *["mxnet"] * _installed("mxnet")]
    result, records = project.measure("--fw-size=2", "--fw-threads=1", fw=",".join(frameworks))
    counts = result.parseoutcomes()
    # Both parts of each in PyTorch, and those of the last in both executions of MXNet.
    passed = 6 + 2 * _installed("transformers") + 4 * _installed("mxnet")
    assert (counts["passed"], counts.get("failed")) == (passed, None)
    against = {name: facts_of(entry)["verified_against"] for name, entry in records.items()}
    shared = {by for name, by in against.items() if name.startswith("linear")}
    assert len(shared) == 1, against


@needs_torch
def test_a_model_of_another_package_is_collected_without_that_package(project: Project) -> None:
    """It is imported in the process of the framework alone, when its model is built."""
    (bert,) = [
        block.text for block in blocks("docs/own-model.md") if "from transformers" in block.text
    ]
    project.write("test_bert.py", bert)
    collected = project.run("--collect-only", "-q", fw="torch").stdout.str()
    for case in ("bert_inference-torch-cpu-eager-forward-float32-1", "bert_step-torch-cpu-eager"):
        assert f"test_bert.py::test_bert[{case}" in collected


@pytest.mark.parametrize("file", [0, 1])
def test_a_model_of_ones_own_takes_15_lines(file: int) -> None:
    files = [block.text for block in blocks("docs/own-model.md") if block.language == "python"]
    assert len([line for line in files[file].splitlines() if line.strip()]) <= 15
