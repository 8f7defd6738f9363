"""The examples of the how-to pages, run as a reader would run them."""

import importlib.util
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from fwbench import cli
from support.documents import blocks, commands
from support.launched_runs import QUIET, case_id, entry, write
from support.projects import Project
from support.real_training import facts_of


def _examples(page: str) -> list[str]:
    return [block.text for block in blocks(page) if block.language == "python"]


def _installed(*names: str) -> int:
    return sum(importlib.util.find_spec(name) is not None for name in names)


#: Not by an import: modules that a test with a project imports are removed again, and a second
#: import of PyTorch fails (``SystemError: bad call flags``).
needs_torch = pytest.mark.skipif(not _installed("torch"), reason="PyTorch is not installed")


@needs_torch
def test_operations_and_models_of_ones_own_are_measured(project: Project) -> None:
    """The blocks on operations are one file; each block on models is another."""
    models = _examples("docs/own-model.md")
    usable = [text for text in models if _installed("transformers") or "transformers" not in text]
    for place, text in enumerate(["\n".join(_examples("docs/own-operation.md")), *usable]):
        project.write(f"test_{place}.py", text)
    quickly = ("--fw-size=2", "--fw-threads=1", "--fw-execution=eager,hybridize")
    result, records = project.measure(*quickly, fw=None)
    assert not {"failed", "errors"} & result.parseoutcomes().keys()
    cells = Counter(tuple(name.split("-")[:2]) for name in records)
    assert cells.pop(("rescale", "numpy")) == 1
    # In float32 and float64; the models each in use and in training.
    assert cells.pop(("swish", "torch")) == 2
    networks = ["convnet", "transformer", "linear", *["bert"] * _installed("transformers")]
    names = {f"{network}_{part}" for network in networks for part in ("inference", "step")}
    assert {name for name, framework in cells if framework == "torch"} == names
    # Both executions of MXNet.
    assert cells["linear_step", "mxnet"] == 2 * _installed("mxnet")
    against = {
        name: facts_of(entry)["verified_against"]
        for name, entry in records.items()
        if name.startswith("linear")
    }
    assert len({*against.values()}) == 1, against


@needs_torch
def test_a_function_of_ones_own_takes_ten_lines(project: Project) -> None:
    (text,) = _examples("README.md")
    assert len([line for line in text.splitlines() if line.strip()]) <= 10
    project.write("test_squash.py", text)
    result, records = project.measure("--fw-size=2", "--fw-threads=1", fw="torch")
    assert not {"failed", "errors"} & result.parseoutcomes().keys()
    assert [name.split("-")[:2] for name in records] == [["squash", "torch"]]


@needs_torch
def test_a_model_of_another_package_is_collected_without_that_package(project: Project) -> None:
    """It is imported in the process of the framework alone, when its model is built."""
    (bert,) = [text for text in _examples("docs/own-model.md") if "from transformers" in text]
    project.write("test_bert.py", bert)
    collected = project.run("--collect-only", "-q", fw="torch").stdout.str()
    for case in ("bert_inference-torch-cpu-eager-forward-float32-1", "bert_step-torch-cpu-eager"):
        assert f"test_bert.py::test_bert[{case}" in collected


@pytest.mark.parametrize("file", [0, 1])
def test_a_model_of_ones_own_takes_15_lines(file: int) -> None:
    lines = _examples("docs/own-model.md")[file].splitlines()
    assert len([line for line in lines if line.strip()]) <= 15


def test_claims_of_the_page_hold(project: Project) -> None:
    (claims,) = _examples("docs/comparing.md")
    project.write("test_claims.py", claims)
    project.run("test_claims.py", fw=None).assert_outcomes(passed=3)


# Lines of a report


def _lines(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The files that docs/reporting.md names: on Tuesday one case takes twice as long."""
    monkeypatch.chdir(folder)
    write(folder / "monday.json", entry(condition="clean"), entry("dot", condition="clean"))
    slower = entry("dot", [2 * value for value in QUIET], condition="clean")
    write(folder / "tuesday.json", entry(condition="clean"), slower)
    (report,) = [each for each in commands("docs/reporting.md") if "--csv cases.csv" in each.text]
    assert cli.main(report.arguments[1:]) == 0


def test_lines_are_read_with_pandas(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("pandas")
    _lines(tmp_path, monkeypatch)
    (example,) = _examples("docs/reporting.md")
    found: dict[str, Any] = {}
    exec(example, found)  # noqa: S102 (the page's)
    assert found["ratios"].to_dict() == pytest.approx({case_id(): 1.0, case_id("dot"): 2.0})
    assert case_id("dot") in capsys.readouterr().out


def test_lines_are_read_with_duckdb(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    duckdb = pytest.importorskip("duckdb")
    _lines(tmp_path, monkeypatch)
    (query,) = [block.text for block in blocks("docs/reporting.md") if block.language == "sql"]
    (first, ratio, slower), _ = duckdb.sql(query).fetchall()
    assert (first, slower) == (case_id("dot"), "tuesday.json")
    assert ratio == pytest.approx(2.0)


def test_a_run_is_validated_with_the_schema_of_the_package(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    jsonschema = pytest.importorskip("jsonschema")
    monkeypatch.chdir(tmp_path)
    (example,) = _examples("docs/record.md")
    write(tmp_path / "run.json", entry())
    exec(example)  # noqa: S102 (the page's)
    write(tmp_path / "run.json", entry(load="high"))
    with pytest.raises(jsonschema.ValidationError, match="'high' is not of type 'number'"):
        exec(example)  # noqa: S102 (the page's)
