"""``fwbench report --tensorflow-paper``: Table 1 of 2016, and steps of today."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from fwbench import cli
from fwbench_extras.studies import tensorflow_2016
from support.launched_runs import write
from support.reports import case, run_of, runs_of
from support.section_parts import rows

_USAGE_ERROR = 2


def _step(network: str, framework: str, step_s: float, **facts: Any) -> dict[str, Any]:
    return case(f"{network}_step", framework, step_s, direction="train", **facts)


def test_figures_of_2016_are_listed_with_ratios() -> None:
    run = run_of(_step("alexnet", "torch", 1.0))
    then, _ = tensorflow_2016.sections([run])
    caffe, neon, _, tensorflow = rows(then)
    assert caffe["library"] == "Caffe"
    assert (caffe["AlexNet"], caffe["GoogLeNet"]) == ("324 ms (4.00x)", "1.94 s (4.35x)")
    assert neon["OxfordNet (VGG A)"] == "320 ms (0.59x)"
    assert tensorflow["OverFeat"] == "279 ms (1.00x)"
    assert "Titan X" in then.notes[0]


def test_steps_of_today_have_a_column_for_each_network_and_size() -> None:
    """In the paper's order; ratios are to the fastest execution of TensorFlow."""
    run = run_of(
        _step("googlenet", "torch", 3.0),
        _step("alexnet", "tensorflow", 4.0, execution="eager"),
        _step("alexnet", "tensorflow", 2.0, execution="graph"),
        _step("alexnet", "torch", 1.0),
        _step("alexnet", "torch", 0.5, size=50),
        case(),
    )
    _, today = tensorflow_2016.sections([run])
    assert today.title == "training steps today: cpu float32"
    assert list(today.columns) == ["framework", "AlexNet 100", "AlexNet 50", "GoogLeNet 100"]
    assert [[cell.text for cell in row.cells] for row in today.rows] == [
        ["tensorflow eager", "4 s (2.00x)", "", ""],
        ["tensorflow graph", "2 s (1.00x)", "", ""],
        ["torch eager", "1 s (0.50x)", "500 ms", "3 s"],
    ]


def test_contended_steps_are_in_no_ratio() -> None:
    """Neither as the reference nor over it."""
    run = run_of(
        _step("alexnet", "tensorflow", 1.0, execution="eager", condition="contended"),
        _step("alexnet", "tensorflow", 2.0, execution="graph"),
        _step("alexnet", "torch", 3.0, condition="contended"),
        _step("alexnet", "mxnet", 1.0),
    )
    _, today = tensorflow_2016.sections([run])
    assert [row.cells[1].text for row in today.rows] == [
        *("1 s (0.50x)", "1 s (contended)", "2 s (1.00x)", "3 s (contended)")
    ]


def test_devices_dtypes_and_runs_are_apart() -> None:
    """A table for each device and dtype, a row for each run."""
    steps = [_step("vgg_a", "torch", 1.0), _step("vgg_a", "torch", 1.0, dtype="bfloat16")]
    runs = runs_of(first=steps, second=[_step("vgg_a", "torch", 2.0)])
    _, float32, bfloat16 = tensorflow_2016.sections(runs)
    assert bfloat16.title.endswith("cpu bfloat16")
    assert [row["framework"] for row in rows(float32)] == [
        "torch eager (first.json)",
        "torch eager (second.json)",
    ]


def test_runs_without_these_networks_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    write(tmp_path / "run.json", case())
    arguments = ["report", "run.json", "--tensorflow-paper", "--markdown", "x.md"]
    assert cli.main(arguments) == _USAGE_ERROR
    assert "these runs have none; measure some: pytest" in capsys.readouterr().err
