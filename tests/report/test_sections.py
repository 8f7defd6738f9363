"""What a report says beside times: gains over eager, ceilings, verdicts; and charts as pictures."""

from __future__ import annotations

import csv
import itertools
import json
import math
import re
import struct
import sys
import zlib
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from fwbench import cli
from fwbench.ceilings import ceilings
from fwbench.ceilings.ceilings import Ceiling
from fwbench.gate.verdicts import Comparison, Judgement, Rules, Verdict, compare
from fwbench.report import charts, sections
from fwbench.report.charts import Chart, Point
from fwbench.report.model import Run, read
from fwbench.report.sections import Part
from fwbench.report.writers import text
from support.launched_runs import entry, output, plain, run, sample, times, write
from support.reports import (
    Node,
    case,
    chart_of,
    column,
    parsed,
    part,
    rounds_of,
    runs_of,
    shown,
    stored,
    training,
)

_USAGE_ERROR = 2
_FAILED = 3
_SOME_UNREADABLE = 1


# What is read


def titles(runs: Sequence[Run]) -> list[str]:
    """Of all parts."""
    return [one.title for one in sections.details(runs)]


def rows(of: Part) -> list[dict[str, str]]:
    """A table, row by row."""
    return [
        {name: cell.text for name, cell in zip(of.columns, row.cells, strict=True)}
        for row in of.rows
    ]


def legends(chart: Chart) -> list[str]:
    """What the lines, or the colours, of a chart are called."""
    return [one.text for one in parsed(chart.svg).of_class("legend")]


def _lines(picture: Node) -> list[Node]:
    """The lines of a chart; the guides of its axes are called so, too."""
    return [one for one in picture.of_class("line") if one in picture.of_class("reactive")]


def _places(node: Node) -> list[tuple[float, float]]:
    """Where something that is drawn begins, bends and ends."""
    if node.tag == "circle":
        return [(float(node.attributes["cx"]), float(node.attributes["cy"]))]
    if node.tag == "rect":
        x, y, width, height = (
            float(node.attributes.get(name, 0)) for name in ("x", "y", "width", "height")
        )
        return [(x, y), (x + width, y + height)]
    found = re.findall(r"(-?[\d.]+) (-?[\d.]+)", node.attributes["d"])
    return [(float(x), float(y)) for x, y in found]


def outside(chart: Chart) -> list[tuple[float, float]]:
    """Whatever is drawn beside the frame of a chart, where it has no scale and may be cut off."""
    picture = parsed(chart.svg)
    background = picture.of_class("plot")[0].of_class("background")[0]
    width, height = (float(background.attributes[name]) for name in ("width", "height"))
    drawn = picture.of_class("dot") + _lines(picture) + picture.of_class("rect")
    drawn += [path for spread in picture.of_class("ci") for path in spread.all("path")]
    assert drawn
    return [
        (x, y)
        for node in drawn
        for x, y in _places(node)
        if not (-1 <= x <= width + 1 and -1 <= y <= height + 1)
    ]


# Gains over eager: operations

#: The median of five of these is any of them: its interval is from the first to the last.
_SPREAD = (1.0, 2.0, 2.0, 2.0, 4.0)


def test_gains_are_drawn_over_sizes(tmp_path: Path) -> None:
    """A line for each execution that has its eager beside it, above 1 where it is faster."""
    made = stored(
        tmp_path,
        "run.json",
        case("gemm", "torch", (4.0,) * 5, size=100),
        case("gemm", "torch", (2.0,) * 5, "compile", size=100),
        case("gemm", "torch", (8.0,) * 5, size=1000),
        case("gemm", "torch", (1.0,) * 5, "compile", size=1000),
        case("gemm", "tensorflow", (1.0,) * 5, size=100),
        case("gemm", "tensorflow", (4.0,) * 5, "xla", size=100),
        case("gemm", "jax", (1.0,) * 5, "jit", size=100),
        case("gemm", "mxnet", (1.0,) * 5, size=100),
        case("gemm", "mxnet", (1.0,) * 5, "hybridize", size=1000),
    )
    chart = chart_of(part([made], "gemm"), "times as fast as eager")
    assert legends(chart) == ["torch compile", "tensorflow xla"]
    assert chart.text.endswith("torch compile 2x to 8x; tensorflow xla 0.25x to 0.25x")
    picture = parsed(chart.svg)
    assert len(picture.all("circle")) == 3
    assert "times as fast" in picture.text


def test_gains_have_intervals(tmp_path: Path) -> None:
    """At the point, in its tooltip, and in the table; values that do not spread have none."""
    made = stored(
        tmp_path,
        "run.json",
        *(case("gemm", "torch", (4.0,) * 5), case("gemm", "torch", _SPREAD, "compile")),
        *(case("gemm", "jax", (4.0,) * 5), case("gemm", "jax", (2.0,) * 5, "jit")),
    )
    found = part([made], "gemm")
    cells = column(found, "against eager")
    assert cells["torch compile"].text == "2.00x (1.00 to 4.00)"
    assert cells["torch compile"].value == 2.0
    chart = chart_of(found, "times as fast as eager")
    picture = parsed(chart.svg)
    told = [one.text for one in picture.of_class("dots")]
    assert "2x" in told[0]
    assert "5 launches, 1x to 4x" in told[0]
    assert len(picture.of_class("ci")) == 1
    assert outside(chart) == []


def test_rounds_have_gains_with_intervals(tmp_path: Path) -> None:
    """Also what was measured in one process, where many values are drawn in another way."""
    eager = [4.0 + i / 1000 for i in range(1000)]
    compiled = [2.0 + i / 1000 for i in range(1000)]
    made = stored(
        tmp_path,
        "run.json",
        rounds_of(case("gemm", "torch", eager)),
        rounds_of(case("gemm", "torch", compiled, "compile")),
    )
    cell = column(part([made], "gemm"), "against eager")["torch compile"]
    gain, low, high = map(float, re.findall(r"[\d.]+", cell.text))
    assert gain == pytest.approx(4.4995 / 2.4995, abs=0.01)
    assert 1.6 < low < gain < high < 2.0


@pytest.mark.parametrize(
    "other",
    [
        case("gemm", "numpy", execution="compile"),
        case("gemm", "torch", execution="compile", size=200),
        case("gemm", "torch", execution="compile", device="gpu:0"),
        case("gemm", "torch", execution="compile", direction="both"),
        case("gemm", "torch", execution="compile", dtype="float64"),
        case("gemm", "torch", execution="compile", toggles_asked={"threads": "1"}),
        case("dot", "torch", execution="compile"),
    ],
    ids=["framework", "size", "device", "direction", "dtype", "toggle", "operation"],
)
def test_no_gain_over_other_work(tmp_path: Path, other: dict[str, Any]) -> None:
    """Eager in another framework, size, place or precision is nothing to be faster than."""
    made = stored(tmp_path, "run.json", case("gemm", "torch"), other)
    drawn = [chart.title for one in sections.details([made]) for chart in one.charts]
    assert drawn
    assert [title for title in drawn if "eager" in title] == []


def test_gains_are_drawn_toggle_by_toggle(tmp_path: Path) -> None:
    """Each over the eager execution with the same toggles."""
    entries = [
        case("gemm", "tensorflow", (seconds,) * 5, execution, toggles_asked={"onednn": onednn})
        for onednn, eager_s in (("off", 8.0), ("on", 2.0))
        for execution, seconds in (("eager", eager_s), ("graph", 1.0))
    ]
    made = stored(tmp_path, "run.json", *entries)
    chart = chart_of(part([made], "gemm"), "times as fast as eager")
    assert chart.text.endswith(
        "tensorflow graph onednn=off 8x to 8x; tensorflow graph onednn=on 2x to 2x"
    )


def test_gains_of_operations_say_their_run(tmp_path: Path) -> None:
    """Each run is compared with its own eager executions, and has its own line."""
    runs = runs_of(
        tmp_path,
        first=[case(values_s=(2.0,) * 5), case(values_s=(1.0,) * 5, execution="compile")],
        second=[case(values_s=(9.0,) * 5), case(values_s=(3.0,) * 5, execution="compile")],
    )
    chart = chart_of(part(runs, "gemm"), "times as fast as eager")
    assert chart.text.endswith(
        "numpy compile (first.json) 2x to 2x; numpy compile (second.json) 3x to 3x"
    )


# Trainings


def taking(made: dict[str, Any], factor: float) -> dict[str, Any]:
    """The same training, all of its epochs so many times as long."""
    made["stats"]["data"] = [factor * seconds for seconds in made["stats"]["data"]]
    for epoch in made["extra_info"]["fwbench"]["epochs"]:
        epoch["seconds"] *= factor
    return made


def test_gains_of_trainings_are_drawn(tmp_path: Path) -> None:
    """By framework, a colour for each execution; a framework without eager has no bar."""
    made = stored(
        tmp_path,
        "run.json",
        *(taking(training(), 4.0), taking(training(execution="compile"), 2.0)),
        *(training("mxnet"), taking(training("mxnet", "hybridize"), 2.0)),
        training("jax", "jit"),
    )
    chart = chart_of(part([made], "training lenet"), "times as fast as eager")
    assert chart.text.endswith("torch, compile: 2x; mxnet, hybridize: 0.5x")
    assert legends(chart) == ["compile", "hybridize"]
    picture = parsed(chart.svg)
    assert len(picture.of_class("bar")) == len(picture.of_class("ci")) == 2
    assert "4 epochs" in picture.of_class("bars")[0].text


def test_a_training_alone_gains_nothing(tmp_path: Path) -> None:
    """Eager executions alone, and other batches, dtypes or devices, have no such chart."""
    made = stored(
        tmp_path,
        "run.json",
        *(training(), training("mxnet")),
        training(execution="compile", size=100),
        training(execution="compile", dtype="bfloat16"),
        training(execution="compile", device="gpu:0"),
    )
    drawn = [chart.title for one in sections.details([made]) for chart in one.charts]
    assert [title for title in drawn if "as fast as" in title] == []


def test_gains_of_trainings_are_drawn_toggle_by_toggle(tmp_path: Path) -> None:
    """With four workers over eager with four workers."""
    entries = [
        taking(training(execution=execution, toggles_asked={"workers": workers}), factor)
        for workers, execution, factor in (
            *(("0", "eager", 2.0), ("0", "compile", 1.0)),
            *(("4", "eager", 3.0), ("4", "compile", 1.0)),
        )
    ]
    made = stored(tmp_path, "run.json", *entries)
    chart = chart_of(part([made], "training lenet cpu"), "times as fast as eager")
    assert chart.text.endswith("torch workers=0, compile: 2x; torch workers=4, compile: 3x")


def test_gains_of_trainings_say_their_run(tmp_path: Path) -> None:
    """Two runs of the same training are two bars."""
    runs = runs_of(
        tmp_path,
        first=[taking(training(), 2.0), training(execution="compile")],
        second=[taking(training(), 3.0), training(execution="compile")],
    )
    chart = chart_of(part(runs, "training lenet"), "times as fast as eager")
    assert len(parsed(chart.svg).of_class("bar")) == 2
    for told in ("first.json", "2x", "second.json", "3x"):
        assert told in chart.text


def test_memory_is_drawn(tmp_path: Path) -> None:
    """Of the process, and of the device where that is known."""
    made = stored(
        tmp_path,
        "run.json",
        training(device="gpu:0", peak_device_memory_bytes=3 * 2**30),
        training("mxnet", device="gpu:0", peak_host_memory_bytes=2**29),
    )
    chart = chart_of(part([made], "training lenet"), "peak memory")
    assert chart.text.endswith(
        "torch eager, of the process: 1.00 GiB; torch eager, of the device: 3.00 GiB; "
        "mxnet eager, of the process: 0.50 GiB"
    )
    assert legends(chart) == ["of the process", "of the device"]


def test_the_memory_of_a_cpu_is_that_of_the_process(tmp_path: Path) -> None:
    """What nobody has is no entry of the legend."""
    made = stored(tmp_path, "run.json", training())
    assert legends(chart_of(part([made], "training lenet"), "peak memory")) == ["of the process"]


def test_memory_that_is_not_known_is_not_drawn(tmp_path: Path) -> None:
    """Neither as 0 nor as an empty chart."""
    made = stored(tmp_path, "run.json", training(peak_host_memory_bytes=None))
    found = part([made], "training lenet")
    assert [chart.title for chart in found.charts if "memory" in chart.title] == []
    assert column(found, "peak memory")["torch eager"].text == ""


def _losses(runs: Sequence[Run]) -> str:
    """The title of the loss curves."""
    return chart_of(part(runs, "training lenet"), "training loss").title


def test_the_largest_deviation_of_losses_is_in_the_title(tmp_path: Path) -> None:
    """Over all pairs and epochs of the first repetition, with who and when."""
    made = stored(
        tmp_path,
        "run.json",
        training(losses=((2.0, 1.0, 0.5), (9.0, 8.0, 7.0))),
        training("mxnet", losses=((2.0, 1.25, 0.5), (0.0, 0.0, 0.0))),
        training("jax", losses=((2.125, 1.125, 0.5), (0.0, 0.0, 0.0))),
    )
    assert _losses([made]).endswith(
        "training loss after each epoch "
        "(at most 0.25 nats apart: torch eager and mxnet eager, epoch 2)"
    )


def test_one_curve_deviates_from_nothing(tmp_path: Path) -> None:
    """A curve alone has a title that says no more."""
    made = stored(tmp_path, "run.json", training())
    assert _losses([made]).endswith("training loss after each epoch")


_BAD = ((2.0, math.nan, math.nan), (2.0, math.inf, math.inf), (math.nan,) * 3, (math.inf,) * 3)


@pytest.mark.parametrize("losses", _BAD, ids=map(str, _BAD))
@pytest.mark.parametrize("first", [True, False], ids=["first", "last"])
def test_a_curve_that_diverged_is_not_called_near(
    tmp_path: Path, losses: Sequence[float], first: bool
) -> None:
    """Until it diverged it may have been near: that is not the most that they lay apart."""
    good, bad = training(), training("mxnet", losses=(losses,) * 2)
    made = stored(tmp_path, "run.json", *((bad, good) if first else (good, bad)))
    title = _losses([made])
    assert "at most" not in title
    assert "nan" not in title


def test_the_deviation_does_not_depend_on_the_order(tmp_path: Path) -> None:
    """Of three trainings, one of which diverged, the same is said wherever it stands."""
    entries = [
        training(losses=((2.0, 1.0, 0.5),) * 2),
        training("mxnet", losses=((2.0, 1.25, 0.5),) * 2),
        training("jax", losses=((math.nan,) * 3,) * 2),
    ]
    said = {
        "at most" in _losses([stored(tmp_path, f"{number}.json", *order)])
        for number, order in enumerate(itertools.permutations(entries))
    }
    assert len(said) == 1


def test_curves_of_other_data_are_not_compared(tmp_path: Path) -> None:
    """What was learned from made-up digits lies nowhere near what was learned from real ones."""
    other = {"name": "mnist", "source": "synthetic", "origin": "made", "digest": "other"}
    made = stored(
        tmp_path, "run.json", training(), training("mxnet", losses=((9.0,) * 3,) * 2, data=other)
    )
    drawn = [chart.title for one in sections.details([made]) for chart in one.charts]
    assert sum("training loss" in title for title in drawn) == 2
    assert [title for title in drawn if "apart" in title] == []


@pytest.mark.parametrize("loss", [math.nan, math.inf])
def test_trainings_that_all_diverged_are_shown(tmp_path: Path, loss: float) -> None:
    """Their times are, and the page is made."""
    made = stored(tmp_path, "run.json", training(losses=((loss,) * 3,) * 2))
    (section,) = shown(made).all("section", id="part-training-lenet-cpu-float32-200")
    assert "2.75 s" in section.text
    assert str(loss) in section.text


_BY_BATCH = "training lenet: time of an epoch by batch size"


def test_batch_sizes_are_compared(tmp_path: Path) -> None:
    """A line and a row for each setting of the loader; what was not measured is empty."""
    made = stored(
        tmp_path,
        "run.json",
        *(
            taking(training(size=size, toggles_asked={"workers": workers}), factor)
            for size, workers, factor in ((200, "0", 1.0), (100, "0", 2.0), (200, "4", 4.0))
        ),
    )
    found = part([made], _BY_BATCH)
    assert found.title.endswith("by batch size and loader workers")
    assert found.columns == ["case", "batch 100", "batch 200"]
    assert rows(found) == [
        {"case": "torch eager workers=0, cpu float32", "batch 100": "5.5 s", "batch 200": "2.75 s"},
        {"case": "torch eager workers=4, cpu float32", "batch 100": "", "batch 200": "11 s"},
    ]
    (chart,) = found.charts
    assert chart.text.endswith(
        "torch eager workers=0, cpu float32 2.75 s to 5.5 s; "
        "torch eager workers=4, cpu float32 11 s to 11 s"
    )
    picture = parsed(chart.svg)
    assert len(picture.all("circle")) == len(picture.of_class("ci")) == 3
    assert "4 epochs" in picture.of_class("dots")[0].text


@pytest.mark.parametrize(
    ("changes", "compared"),
    [
        ({}, False),
        ({"size": 100}, True),
        ({"toggles_asked": {"workers": "4"}}, True),
        ({"dtype": "bfloat16"}, False),
        ({"device": "gpu:0"}, False),
    ],
    ids=["nothing", "batch", "workers", "dtype", "device"],
)
def test_one_batch_size_is_compared_with_nothing(
    tmp_path: Path, changes: dict[str, Any], compared: bool
) -> None:
    """Another batch, or another setting, is."""
    made = stored(tmp_path, "run.json", training(), training("mxnet", **changes))
    assert [title.startswith(_BY_BATCH) for title in titles([made])].count(True) == compared


def test_batches_of_different_devices_dtypes_and_runs_are_apart(tmp_path: Path) -> None:
    """Each has a row of its own."""
    places = [("cpu", "float32", 1.0), ("gpu:0", "float32", 2.0), ("cpu", "bfloat16", 4.0)]
    entries = [
        taking(training(size=size, device=device, dtype=dtype), factor)
        for device, dtype, factor in places
        for size in (100, 200)
    ]
    found = part(runs_of(tmp_path, first=entries, second=[training()]), _BY_BATCH)
    assert {row["case"]: row["batch 200"] for row in rows(found)} == {
        "torch eager (first.json), cpu float32": "2.75 s",
        "torch eager (first.json), gpu:0 float32": "5.5 s",
        "torch eager (first.json), cpu bfloat16": "11 s",
        "torch eager (second.json), cpu float32": "2.75 s",
    }


_EVERY_DEVICE = "training lenet: time against accuracy on every device"


def test_time_against_accuracy_over_devices(tmp_path: Path) -> None:
    """A point for each training that was tested: device, and whether it was optimised."""
    made = stored(
        tmp_path,
        "run.json",
        training(accuracies=(0.9, 0.8)),
        taking(training(execution="compile", device="gpu:0", accuracies=(0.7,)), 0.5),
        training("mxnet", device="gpu:0", accuracies=()),
    )
    found = part([made], _EVERY_DEVICE)
    assert rows(found) == [
        {
            "case": "torch eager, cpu float32 200, optimisation off",
            "all epochs": "8.5 s",
            "accuracy": "85.00%",
        },
        {
            "case": "torch compile, gpu:0 float32 200, optimisation on",
            "all epochs": "4.25 s",
            "accuracy": "70.00%",
        },
    ]
    (chart,) = found.charts
    assert chart.text.endswith(
        "torch eager, cpu float32 200, optimisation off 8.5 s, 85.00%; "
        "torch compile, gpu:0 float32 200, optimisation on 4.25 s, 70.00%"
    )
    assert len(parsed(chart.svg).all("circle")) == 2


@pytest.mark.parametrize(
    ("device", "accuracies"), [("cpu", (0.9, 0.8)), ("gpu:0", ())], ids=["one device", "untested"]
)
def test_one_device_is_not_set_beside_another(
    tmp_path: Path, device: str, accuracies: tuple[float, ...]
) -> None:
    """Nor are trainings that were not tested."""
    made = stored(
        tmp_path,
        "run.json",
        training(accuracies=accuracies),
        training(execution="compile", device=device, accuracies=accuracies),
    )
    assert _EVERY_DEVICE not in titles([made])


@pytest.mark.parametrize("other", [{"size": 100}, {"dtype": "bfloat16"}], ids=["size", "dtype"])
def test_every_training_is_set_beside_the_others(tmp_path: Path, other: dict[str, Any]) -> None:
    """Those in two batch sizes, or in two dtypes, on two devices are four."""
    entries = [
        training(device=device, **facts) for device in ("cpu", "gpu:0") for facts in ({}, other)
    ]
    found = part([stored(tmp_path, "run.json", *entries)], _EVERY_DEVICE)
    assert len(found.rows) == 4
    assert len({row["case"] for row in rows(found)}) == 4


def test_models_are_not_mixed(tmp_path: Path) -> None:
    """Each has its own comparison of batches, and of devices."""
    entries = [training(size=size, device=device) for size in (1, 2) for device in ("cpu", "gpu:0")]
    others = [training(size=size, device=device) for size in (1, 2) for device in ("cpu", "gpu:0")]
    for one in others:
        one["extra_info"]["fwbench"]["workload"] = "resnet"
    found = titles([stored(tmp_path, "run.json", *entries, *others)])
    for model in ("lenet", "resnet"):
        assert len([one for one in found if one.startswith(f"training {model}: time of")]) == 1
        assert f"training {model}: time against accuracy on every device" in found


# What a machine can do at most

#: 100 GFLOP/s and 10 GB/s: from 10 operations a byte on, work is bound by computing.
_CEILING = Ceiling({"float32": 1e11}, 1e10, {"float32": "torch 2.9", "copy": "numpy 1.26"})

_CEILINGS = ceilings.to_json({"Fake CPU": _CEILING})

_ROOFLINE = "roofline Fake CPU float32"


def work(
    workload: str = "gemm",
    seconds: float = 0.04,
    flops: float = 2e9,
    moved_bytes: float = 1e8,
    **facts: Any,
) -> dict[str, Any]:
    """An operation of which is known what was attainable."""
    made = case(
        workload, values_s=(seconds,) * 5, **{"flops": flops, "bytes": moved_bytes, **facts}
    )
    made["stats"]["median"] = seconds
    ceilings.annotate([made], {"Fake CPU": _CEILING, "Fake GPU": _CEILING})
    return made


def _on_the_roof() -> list[dict[str, Any]]:
    """One bound by computing, one by memory, one that does not compute."""
    return [
        work("gemm", 0.04, 2e9, 1e8, size=1000),
        work("dot", 0.001, 2e6, 8e6, size=10**6),
        work("copy", 0.002, 0, 1.2e7, size=10**6),
    ]


def test_work_is_shown_under_its_ceilings(tmp_path: Path) -> None:
    """Intensity, rates, and which share of what is attainable; the ceilings in words."""
    made = stored(tmp_path, "run.json", *_on_the_roof(), ceilings=_CEILINGS)
    found = part([made], _ROOFLINE)
    common = {"case": "numpy eager", "FLOP a byte": "20", "size": "1,000"}
    rates = {"GFLOP/s": "50", "GB/s": "2.5", "of attainable": "50%"}
    by_operation = {row["operation"]: row for row in rows(found)}
    assert by_operation["gemm forward"] == {"operation": "gemm forward", **common, **rates}
    assert by_operation["dot forward"]["FLOP a byte"] == "0.25"
    assert by_operation["dot forward"]["of attainable"] == "80%"
    (note,) = found.notes
    assert "100 GFLOP/s" in note
    assert "10 GB/s" in note
    (section,) = shown(made).all("section", id="part-roofline-Fake-CPU-float32")
    assert note in section.text
    assert note in text.markdown([made])


def test_the_share_is_in_the_table_of_the_operation(tmp_path: Path) -> None:
    """Also without ceilings in the run: it is the record's."""
    for session in ({}, {"ceilings": _CEILINGS}):
        made = stored(tmp_path, "run.json", work(), **session)
        assert column(part([made], "gemm"), "of attainable")["numpy eager"].text == "50%"


def roofline(of_run: Run) -> tuple[Chart, Chart]:
    """Operations a second, and bytes a second."""
    computed, moved = part([of_run], _ROOFLINE).charts
    return computed, moved


def test_work_that_does_not_compute_is_among_what_moves(tmp_path: Path) -> None:
    """It has bytes a second, and no rate of operations that could be drawn."""
    made = stored(tmp_path, "run.json", *_on_the_roof(), ceilings=_CEILINGS)
    (copied,) = [one for one in rows(part([made], _ROOFLINE)) if one["operation"] == "copy forward"]
    assert (copied["GFLOP/s"], copied["GB/s"], copied["of attainable"]) == ("", "6", "60%")
    computed, moved = (
        [one.text for one in parsed(chart.svg).of_class("dots")] for chart in roofline(made)
    )
    assert (len(computed), len(moved)) == (2, 3)
    assert [one for one in computed if "copy" in one] == []
    assert [one for one in moved if "copy" in one] != []
    alone = stored(tmp_path, "other.json", _on_the_roof()[2], ceilings=_CEILINGS)
    (chart,) = part([alone], _ROOFLINE).charts
    assert "bytes a second" in chart.title


def test_points_under_the_roof_say_their_rates(tmp_path: Path) -> None:
    """Which operation in which size, how many operations, and how many bytes, a second."""
    made = stored(tmp_path, "run.json", *_on_the_roof(), ceilings=_CEILINGS)
    computed, moved = roofline(made)
    dot, gemm = (one.text for one in parsed(computed.svg).of_class("dots"))
    assert "2 GFLOP/s" in dot
    assert "dot forward 1,000,000" in dot
    assert "50 GFLOP/s" in gemm
    assert "gemm forward 1,000" in gemm
    assert "numpy eager 2 GFLOP/s to 50 GFLOP/s" in computed.text
    dot, copy, gemm = (one.text for one in parsed(moved.svg).of_class("dots"))
    assert "8 GB/s" in dot
    assert "6 GB/s" in copy
    assert "copy forward 1,000,000" in copy
    assert "2.5 GB/s" in gemm
    assert "numpy eager 2.5 GB/s to 8 GB/s" in moved.text


def test_points_of_other_operations_are_not_joined(tmp_path: Path) -> None:
    """Between two operations there is nothing that a line could tell: the ceilings are lines."""
    made = stored(tmp_path, "run.json", *_on_the_roof(), ceilings=_CEILINGS)
    assert [len(_lines(parsed(chart.svg))) for chart in roofline(made)] == [1, 1]


def _ceiling(chart: Chart, xs: tuple[float, float], ys: tuple[float, float]) -> list[Any]:
    """The ends of the dashed line, read off by the first and the last point.

    Args:
        chart: with a ceiling.
        xs: what is known to be across at these points.
        ys: what is known to be up.
    """
    picture = parsed(chart.svg)
    first, *_, last = (_places(dot)[0] for dot in picture.all("circle"))
    (ceiling,) = _lines(picture)

    def read_off(at: float, axis: int, ends: tuple[float, float]) -> float:
        share = (at - first[axis]) / (last[axis] - first[axis])
        return ends[0] * math.exp(share * math.log(ends[1] / ends[0]))

    return [
        pytest.approx((read_off(x, 0, xs), read_off(y, 1, ys)), rel=1e-3)
        for x, y in _places(ceiling)
    ]


def test_the_roof_is_the_smaller_ceiling(tmp_path: Path) -> None:
    """As many operations as the bytes allow, up to the ridge; from there what can be computed."""
    made = stored(tmp_path, "run.json", *_on_the_roof(), ceilings=_CEILINGS)
    computed, moved = roofline(made)
    assert _ceiling(computed, (0.25, 20.0), (2e9, 5e10)) == [
        (0.25, 2.5e9),
        (10.0, 1e11),
        (20.0, 1e11),
    ]
    assert _ceiling(moved, (8e6, 1e8), (8e9, 2.5e9)) == [(8e6, 1e10), (1e8, 1e10)]


_SIDES = {
    "both sides": _on_the_roof(),
    "below the ridge": [work("dot", 0.001, 2e6, 8e6)],
    "above the ridge": [work("gemm", 0.04, 2e9, 1e7)],
    "below the ridge, several": [work("dot", 0.001, 2e6, 8e6), work("gemm", 0.04, 4e7, 8e6)],
}


@pytest.mark.parametrize("entries", _SIDES.values(), ids=_SIDES)
def test_the_roof_is_inside_the_picture(tmp_path: Path, entries: list[dict[str, Any]]) -> None:
    """Also where all work is on one side of the ridge."""
    for chart in roofline(stored(tmp_path, "run.json", *entries, ceilings=_CEILINGS)):
        assert outside(chart) == []


def test_the_ceilings_are_told_in_words(tmp_path: Path) -> None:
    """Who does not see the pictures hears of every entry of their legends."""
    made = stored(tmp_path, "run.json", *_on_the_roof(), ceilings=_CEILINGS)
    computed, moved = roofline(made)
    assert legends(computed) == ["numpy eager", "attainable"]
    assert legends(moved) == ["numpy eager", "the best copy"]
    for chart in (computed, moved):
        for legend in legends(chart):
            assert legend in chart.text


@pytest.mark.parametrize("value", [1.5, 3.0, 7.0, 0.03, 1200.0])
def test_both_ends_of_an_axis_are_marked(value: float) -> None:
    """One mark on a logarithmic axis says nothing of how far it is to any other value."""
    chart = charts.lines("t", {"a": [Point(1, value, value, value)]}, "size", "y", "{:g}x".format)
    picture = parsed(chart.svg)
    axis = next(one for one in picture.of_class("axis") if "y" in one.attributes["class"].split())
    marks = [float(one.text.removesuffix("x")) for one in axis.all("text")]
    assert marks[0] <= value <= marks[-1]


def test_work_is_shown_where_it_comes_nearest(tmp_path: Path) -> None:
    """Of several sizes the one with the largest share; directions and frameworks are apart."""
    made = stored(
        tmp_path,
        "run.json",
        work(seconds=0.08, size=10),
        work(seconds=0.04, size=20),
        work(seconds=0.05, size=30),
        work(seconds=0.08, size=10, direction="both"),
        work(seconds=0.08, size=10, framework="torch"),
        ceilings=_CEILINGS,
    )
    found = part([made], _ROOFLINE)
    assert sorted((r["case"], r["operation"], r["size"]) for r in rows(found)) == [
        ("numpy eager", "gemm both", "10"),
        ("numpy eager", "gemm forward", "20"),
        ("torch eager", "gemm forward", "10"),
    ]


def test_more_than_what_is_attainable_is_shown(tmp_path: Path) -> None:
    """A cache is faster than memory: the point lies above the roof, and in the picture."""
    made = stored(tmp_path, "run.json", work("dot", 0.0002, 2e6, 8e6), ceilings=_CEILINGS)
    found = part([made], _ROOFLINE)
    assert [row["of attainable"] for row in rows(found)] == ["400%"]
    for chart in found.charts:
        dots = [_places(dot)[0] for dot in parsed(chart.svg).all("circle")]
        assert len(dots) == 1
        assert dots[0][1] >= 0


def test_work_that_moves_nothing_is_shown(tmp_path: Path) -> None:
    """What it needs is computing alone: that has a share, and is no reason to end."""
    made = stored(tmp_path, "run.json", work(moved_bytes=0), ceilings=_CEILINGS)
    assert [row["of attainable"] for row in rows(part([made], _ROOFLINE))] == ["50%"]


_WITHOUT: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "no ceilings": (work(), {}),
    "those of another device": (work(), {"ceilings": ceilings.to_json({"Fast CPU": _CEILING})}),
    "no share": (case(flops=2e9, bytes=1e8), {"ceilings": _CEILINGS}),
    "no rate of copies": (
        work(),
        {"ceilings": ceilings.to_json({"Fake CPU": Ceiling({"float32": 1e11})})},
    ),
    # By hand, or by a newer version: what is not understood is as if it were not there.
    "ceilings that are text": (work(), {"ceilings": "high"}),
    "ceilings that are a list": (work(), {"ceilings": [1]}),
    "a ceiling with another fact": (work(), {"ceilings": {"Fake CPU": {"colour": "red"}}}),
    "rates that are none": (
        work(),
        {"ceilings": {"Fake CPU": {"flops_per_s": None, "bytes_per_s": 1e10}}},
    ),
    "a rate that is text": (
        work(),
        {"ceilings": {"Fake CPU": {"flops_per_s": {"float32": 1e11}, "bytes_per_s": "fast"}}},
    ),
    "a product that is text": (
        work(),
        {"ceilings": {"Fake CPU": {"flops_per_s": {"float32": "fast"}, "bytes_per_s": 1e10}}},
    ),
}


@pytest.mark.parametrize(("made", "session"), _WITHOUT.values(), ids=_WITHOUT)
def test_no_roofline_without_ceilings(
    tmp_path: Path, made: dict[str, Any], session: dict[str, Any]
) -> None:
    """The rest is shown."""
    assert titles([stored(tmp_path, "run.json", made, **session)]) == ["gemm cpu forward float32"]


def test_a_dtype_without_a_known_rate_has_no_roof(tmp_path: Path) -> None:
    """Copies in it are in the table, and the note says what is not known."""
    made = stored(
        tmp_path, "run.json", work("copy", 0.002, 0, 1.2e7, dtype="float64"), ceilings=_CEILINGS
    )
    found = part([made], "roofline Fake CPU float64")
    assert [row["of attainable"] for row in rows(found)] == ["60%"]
    assert [chart.title for chart in found.charts] == [f"{found.title}: bytes a second"]
    assert "no known rate" in found.notes[0]


def test_each_device_has_its_roofline(tmp_path: Path) -> None:
    """Under its own ceilings; of those without any there is none."""
    faster = Ceiling({"float32": 1e13}, 1e12)
    made = stored(
        tmp_path,
        "run.json",
        work(),
        work(device="gpu:0", device_name="Fake GPU"),
        work(device="gpu:1", device_name="Other GPU", attainable_share=0.5),
        ceilings=ceilings.to_json({"Fake CPU": _CEILING, "Fake GPU": faster}),
    )
    assert [title for title in titles([made]) if title.startswith("roofline")] == [
        "roofline Fake CPU float32",
        "roofline Fake GPU float32",
    ]
    assert "10,000 GFLOP/s" in part([made], "roofline Fake GPU").notes[0].replace("1e+04", "10,000")
    assert "100 GFLOP/s" in part([made], "roofline Fake CPU").notes[0]


def test_each_run_has_its_roofline(tmp_path: Path) -> None:
    """Under the ceilings that it was stored with, and not under another run's."""
    higher = ceilings.to_json({"Fake CPU": Ceiling({"float32": 2e11}, 2e10)})
    sessions: list[dict[str, Any]] = [{"ceilings": _CEILINGS}, {}, {"ceilings": higher}]
    runs = [
        read(write(tmp_path / f"{number}.json", work(), **session), number)
        for number, session in enumerate(sessions)
    ]
    found = [title for title in titles(runs) if title.startswith("roofline")]
    assert found == [f"{_ROOFLINE} (0.json)", f"{_ROOFLINE} (2.json)"]
    first, second = (part(runs, title) for title in found)
    assert "10 GB/s" in first.notes[0]
    assert "20 GB/s" in second.notes[0]
    assert [row["case"] for row in rows(second)] == ["numpy eager (2.json)"]


# Comparisons


def compared(*, notes: Sequence[str] = (), **changes: Any) -> Comparison:
    """One of each verdict."""
    quiet = times(1.0, 8)
    base = run(
        *(sample(name, quiet, name=name) for name in ("slow", "fast", "same", "busy")),
        sample("lost", quiet, name="lost"),
        name="base.json",
    )
    contender = run(
        sample("slow", times(2.0, 8), name="slow"),
        sample("fast", times(0.5, 8), name="fast"),
        sample("same", quiet, name="same"),
        sample("busy", quiet, name="busy", contended=True),
        sample("added", quiet, name="added", framework="torch"),
        name="head.json",
    )
    return compare(base, contender, Rules(margin=0.01, **changes), notes)


def as_run(comparison: Mapping[str, Any]) -> dict[str, Any]:
    """What is stored after ``--fw-gate``."""
    return output([case()], gate={"base": "b", "verdicts": {}, "comparison": comparison})


def as_file(comparison: Mapping[str, Any]) -> dict[str, Any]:
    """What ``--json`` of ``fwbench ab`` and ``gate`` writes."""
    return dict(comparison)


def _keep(path: Path, values: Any) -> Path:
    path.write_text(json.dumps(values), encoding="utf-8")
    return path


def judged(
    name: str, ratio: float, verdict: Verdict = Verdict.REGRESSED, **facts: Any
) -> Judgement:
    """A case of which is known what became of its time."""
    what = {
        "ratio": ratio,
        "low": 0.9 * ratio,
        "high": 1.1 * ratio,
        "base_s": (1.0,),
        "contender_s": (ratio,),
        **facts,
    }
    return Judgement(what.pop("key", name), name, "numpy", verdict, **what)


def of(folder: Path, *judgements: Judgement, **changes: Any) -> Part:
    """The part of a comparison with these cases."""
    rules = {"confidence": 0.99}
    made = Comparison("base", "head", judgements, rules, **changes).to_json()
    return part([read(_keep(folder / "verdicts.json", made))], "head against base")


@pytest.mark.parametrize("around", [as_run, as_file])
def test_verdicts_are_shown(
    tmp_path: Path, around: Callable[[Mapping[str, Any]], dict[str, Any]]
) -> None:
    """Of a run after its gate, and of what a comparison wrote: every case, the worst first."""
    made = compared(notes=["the driver differs"])
    found = read(_keep(tmp_path / "run.json", around(made.to_json())))
    one = part([found], "head.json against base.json")
    assert [(row["verdict"], row["case"]) for row in rows(one)] == [
        ("regressed", "slow"),
        ("missing", "lost"),
        ("inconclusive", "busy"),
        ("new", "added"),
        ("improved", "fast"),
        ("unchanged", "same"),
    ]
    slow, lost = rows(one)[:2]
    assert (slow["base"], slow["contender"], slow["ratio"]) == ("1 s", "2 s", "+100.0%")
    assert re.fullmatch(r"\+\d+\.\d% to \+\d+\.\d%", slow["99 % interval"])
    assert (lost["base"], lost["ratio"], lost["why"]) == ("", "", "not collected")
    assert one.notes == ["the driver differs"]
    (section,) = shown(found).all("section", id="part-head-json-against-base-json")
    assert "the driver differs" in section.text
    assert len(section.of_class("chart")) == 2
    assert "the driver differs" in text.markdown([found])
    assert "| regressed | slow |" in text.markdown([found])


def test_verdicts_are_counted_in_a_chart(tmp_path: Path) -> None:
    """A bar for each verdict that there is."""
    found = of(
        tmp_path,
        *(judged("a", 2.0), judged("b", 3.0), judged("c", 1.0, Verdict.UNCHANGED)),
    )
    chart = chart_of(found, "verdicts")
    assert chart.text.endswith("cases, regressed: 2; cases, unchanged: 1")
    assert len(parsed(chart.svg).of_class("bar")) == 2


def test_counts_are_marked_once(tmp_path: Path) -> None:
    """An axis of whole cases has no mark between two of them that is called like one."""
    picture = parsed(chart_of(of(tmp_path, judged("a", 2.0)), "verdicts").svg)
    axis = next(one for one in picture.of_class("axis") if "x" in one.attributes["class"].split())
    marks = [one.text for one in axis.all("text")]
    assert marks[-1] == "1"
    assert len({*marks}) == len(marks)


def test_changes_are_drawn_with_their_intervals(tmp_path: Path) -> None:
    """In per cent, in the colour of the verdict; cases without a ratio are not drawn."""
    found = of(
        tmp_path,
        judged("slow", 2.0),
        judged("fast", 0.5, Verdict.IMPROVED),
        judged("same", 1.0, Verdict.UNCHANGED, low=1.0, high=1.0),
        Judgement("lost", "lost", "", Verdict.MISSING, "not collected"),
    )
    chart = chart_of(found, "change of the time")
    assert chart.text.endswith("slow regressed, +100 %; fast improved, -50 %; same unchanged, +0 %")
    assert legends(chart) == ["regressed", "improved", "unchanged"]
    picture = parsed(chart.svg)
    told = [
        {node.attributes["class"]: node.text for node in bar.all("desc")}
        for bar in picture.of_class("bar")
    ]
    found_at = {(one["x_label"], one["value"]) for one in told}
    assert {("slow", "+100 %"), ("fast", "-50 %"), ("same", "+0 %")} <= found_at
    assert not {("slow", "-50 %"), ("fast", "+100 %")} & found_at
    assert len(picture.of_class("ci")) == 2
    assert "+80 % to +120 %" in picture.text
    assert "-55 % to -45 %" in picture.text
    assert "lost" not in picture.text


def test_changes_lead_to_the_right_and_to_the_left(tmp_path: Path) -> None:
    """Slower is right of nothing, faster is left of it, by as much; so are the intervals."""
    found = of(
        tmp_path,
        judged("slow", 1.5, low=1.25, high=1.75),
        judged("fast", 0.5, Verdict.IMPROVED, low=0.25, high=0.75),
    )
    picture = parsed(chart_of(found, "change of the time").svg)
    # Each case has a bar of no width in the colour of every other verdict.
    ends = [_places(one) for one in picture.of_class("rect")]
    faster, slower = sorted((left, right) for (left, _), (right, _) in ends if right > left + 1)
    zero = faster[1]
    half = zero - faster[0]
    assert slower == pytest.approx((zero, zero + half))
    spreads = [
        [x for path in one.all("path") for x, _ in _places(path)] for one in picture.of_class("ci")
    ]
    assert [(min(xs), max(xs)) for xs in spreads] == [
        pytest.approx((zero + half / 2, zero + 1.5 * half)),
        pytest.approx((zero - 1.5 * half, zero - half / 2)),
    ]


def test_intervals_of_changes_are_inside_the_picture(tmp_path: Path) -> None:
    """Also where one is far wider than any change."""
    found = of(tmp_path, judged("wide", 1.05, Verdict.INCONCLUSIVE, low=0.5, high=4.0))
    assert outside(chart_of(found, "change of the time")) == []


def test_intervals_of_gains_are_inside_the_picture(tmp_path: Path) -> None:
    """Also in columns, which begin at 0."""
    made = stored(tmp_path, "run.json", taking(training(), 4.0), training(execution="compile"))
    chart = chart_of(part([made], "training lenet"), "times as fast as eager")
    assert len(parsed(chart.svg).of_class("ci")) == 1
    assert outside(chart) == []


def test_cases_that_are_called_alike_are_both_drawn(tmp_path: Path) -> None:
    """Two tests may have the same case: neither stands for the other."""
    found = of(
        tmp_path,
        judged("gemm", 2.0, key="test_a.py::test[gemm]"),
        judged("gemm", 1.5, key="test_b.py::test[gemm]"),
        judged("gemm", 0.5, Verdict.IMPROVED, key="test_c.py::test[gemm]"),
    )
    assert [row["ratio"] for row in rows(found)] == ["+100.0%", "+50.0%", "-50.0%"]
    chart = chart_of(found, "change of the time")
    for change in ("+100 %", "+50 %", "-50 %"):
        assert change in chart.text
    assert len(parsed(chart.svg).of_class("ci")) == 3


def test_the_worst_changes_are_drawn(tmp_path: Path) -> None:
    """Forty of fifty; all are in the table, also those that a terminal leaves out."""
    cases = [judged(f"case{i:02}", 1 + i / 100, Verdict.UNCHANGED) for i in range(50)]
    found = of(tmp_path, *cases, judged("slow", 1.2))
    assert len(found.rows) == 51
    assert rows(found)[0]["case"] == "slow"
    chart = chart_of(found, "change of the time")
    assert len(parsed(chart.svg).of_class("ci")) == 40
    assert "slow" in chart.text
    assert "case49" in chart.text
    assert "case10" not in chart.text


def test_a_comparison_without_a_ratio_has_no_changes(tmp_path: Path) -> None:
    """Cases were lost, and that is counted."""
    found = of(tmp_path, Judgement("lost", "lost", "", Verdict.MISSING, "not collected"))
    assert [chart.text for chart in found.charts] == [
        "head against base: verdicts: cases, missing: 1"
    ]


def test_a_comparison_of_nothing_is_a_part(tmp_path: Path) -> None:
    """Without a case, without a chart, with its notes."""
    found = of(tmp_path, notes=["nothing was measured"])
    assert (found.rows, list(found.charts), found.notes) == ([], [], ["nothing was measured"])
    assert "nothing was measured" in shown(read(tmp_path / "verdicts.json")).text


def test_the_confidence_is_that_of_the_comparison(tmp_path: Path) -> None:
    """The heading of the interval says it."""
    made = compared(confidence=0.95).to_json()
    found = part([read(_keep(tmp_path / "verdicts.json", made))], "head.json")
    assert "95 % interval" in found.columns


def test_ratios_are_sorted_by_value(tmp_path: Path) -> None:
    """And rows can be chosen by framework."""
    found = of(tmp_path, judged("a", 10.0), judged("b", 2.0))
    assert [row.cells[4].value for row in found.rows] == [10.0, 2.0]
    assert [row.keys for row in found.rows] == [{"framework": "numpy"}] * 2


def test_verdicts_of_several_runs_are_apart(tmp_path: Path) -> None:
    """Each says which run's they are; a run without a gate has none."""
    made = compared().to_json()
    _keep(tmp_path / "one.json", as_run(made))
    _keep(tmp_path / "two.json", as_file(made))
    write(tmp_path / "plain.json", case())
    names = ("one.json", "plain.json", "two.json")
    runs = [read(tmp_path / name, number) for number, name in enumerate(names)]
    found = [title for title in titles(runs) if "against" in title]
    assert found == [
        "head.json against base.json (one.json)",
        "head.json against base.json (two.json)",
    ]


@pytest.mark.parametrize(
    "gate", [None, {}, {"base": "base.json", "problem": "too few launches", "verdicts": {}}]
)
def test_a_run_that_was_not_judged_has_no_verdicts(
    tmp_path: Path, gate: dict[str, Any] | None
) -> None:
    """No gate, or one that could not tell."""
    assert titles([stored(tmp_path, "run.json", case(), gate=gate)]) == ["gemm cpu forward float32"]


def test_what_fwbench_gate_wrote_is_shown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """From the command to the page."""
    monkeypatch.chdir(tmp_path)
    write(Path("base.json"), entry("gemm", times(1.0)), entry("dot", times(1.0)))
    write(Path("head.json"), entry("gemm", times(2.0)), entry("dot", times(1.0)))
    compared_with = ["gate", "base.json", "head.json", "--json", "verdicts.json"]
    assert cli.main(compared_with) == 1, "there is a regression"
    assert cli.main(["report", "verdicts.json", "-o", "report.html"]) == 0
    assert capsys.readouterr().err == ""
    found = parsed(Path("report.html").read_text(encoding="utf-8"))
    (section,) = found.all("section", id="part-head-json-against-base-json")
    assert [one.text for one in section.all("th", scope="row")] == ["regressed", "unchanged"]


def test_a_comparison_is_not_said_to_be_of_pytest_benchmark(tmp_path: Path) -> None:
    """fwbench wrote it."""
    found = shown(read(_keep(tmp_path / "verdicts.json", compared().to_json())))
    (section,) = found.all("section", **{"aria-labelledby": "provenance"})
    assert "pytest-benchmark" not in section.text


def _first(**facts: Any) -> Callable[[dict[str, Any]], None]:
    return lambda made: made["judgements"][0].update(facts)


_DAMAGE: dict[str, Callable[[dict[str, Any]], Any]] = {
    "a verdict that is none": _first(verdict="worse"),
    "a verdict that is a list": _first(verdict=[]),
    "no verdict": lambda made: made["judgements"][0].pop("verdict"),
    "no name": lambda made: made["judgements"][0].pop("name"),
    "a fact that none has": _first(colour="red"),
    "a case that is text": lambda made: made["judgements"].append("gemm"),
    "cases that are a number": lambda made: made.update(judgements=3),
    "no base": lambda made: made.pop("base"),
    "no rules": lambda made: made.pop("rules"),
    "no notes": lambda made: made.pop("notes"),
    "rules that are text": lambda made: made.update(rules="hard"),
    "rules without a confidence": lambda made: made["rules"].pop("confidence"),
    "a confidence that is text": lambda made: made["rules"].update(confidence="high"),
    "notes that are a number": lambda made: made.update(notes=3),
    "a name that is a number": _first(name=3),
    "a reason that is a number": _first(ratio=None, reason=3),
    "a ratio that is text": _first(ratio="2"),
    "a ratio below 0": _first(ratio=-1.0),
    "an end that is text": _first(low="1"),
    "a ratio without launches": _first(base_s=[]),
    "a launch that is text": _first(base_s=["1", "2"]),
    "a visible change that is text": _first(visible="much"),
}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with one run, ``run.json``."""
    monkeypatch.chdir(tmp_path)
    write(tmp_path / "run.json", case(), case("dot", "torch"))
    return tmp_path


@pytest.mark.parametrize("around", [as_run, as_file])
@pytest.mark.parametrize("damage", _DAMAGE.values(), ids=_DAMAGE)
def test_a_damaged_comparison_is_named(
    folder: Path,
    capsys: pytest.CaptureFixture[str],
    damage: Callable[[dict[str, Any]], Any],
    around: Callable[[Mapping[str, Any]], dict[str, Any]],
) -> None:
    """With the reason, also in the report; the others are rendered, and the status is 1."""
    made = json.loads(json.dumps(compared().to_json()))
    damage(made)
    _keep(folder / "bad.json", around(made))
    arguments = ["-o", "report.html", "--markdown", "report.md"]
    assert cli.main(["report", "bad.json", "run.json", *arguments]) == _SOME_UNREADABLE
    problem = capsys.readouterr().err
    assert problem.startswith("fwbench: bad.json is no run")
    found = parsed((folder / "report.html").read_text(encoding="utf-8"))
    (section,) = found.all("section", **{"aria-labelledby": "problems"})
    assert "bad.json" in section.text
    assert found.all("section", id="part-gemm-cpu-forward-float32")
    assert "bad.json" in (folder / "report.md").read_text(encoding="utf-8")


_DAMAGED_WORK: dict[str, dict[str, Any]] = {
    "a share that is text": {"attainable_share": "half"},
    "a share without bytes": {"bytes": None, "attainable_share": 0.5},
    "a share without operations": {"flops": None, "attainable_share": 0.5},
    "operations that are text": {"flops": "many"},
    "bytes that are text": {"bytes": "many"},
}


@pytest.mark.parametrize("facts", _DAMAGED_WORK.values(), ids=_DAMAGED_WORK)
def test_damaged_work_is_named(
    folder: Path, capsys: pytest.CaptureFixture[str], facts: dict[str, Any]
) -> None:
    """A record that was changed by hand makes its run unreadable, and no report unwritten."""
    made = work()
    made["extra_info"]["fwbench"].update(facts)
    write(folder / "bad.json", made, ceilings=_CEILINGS)
    assert cli.main(["report", "bad.json", "run.json", "-o", "report.html"]) == _SOME_UNREADABLE
    assert capsys.readouterr().err.startswith("fwbench: bad.json is no run")
    assert (folder / "report.html").exists()


# Cases that are chosen


def test_cases_are_chosen_by_their_names(folder: Path) -> None:
    """In every output; what is left out is not counted either."""
    arguments = ["-o", "report.html", "--markdown", "report.md", "--csv", "report.csv"]
    assert cli.main(["report", "run.json", "-k", "gemm", *arguments]) == 0
    found = parsed((folder / "report.html").read_text(encoding="utf-8"))
    assert [one.attributes["id"] for one in found.of_class("detail")] == [
        "part-gemm-cpu-forward-float32"
    ]
    assert "1 case of 1 run" in found.text
    written = (folder / "report.md").read_text(encoding="utf-8")
    assert "gemm" in written
    assert "dot" not in written
    with (folder / "report.csv").open(newline="", encoding="utf-8") as file:
        assert [row["workload"] for row in csv.DictReader(file)] == ["gemm"]


@pytest.mark.parametrize("name", ["torch", "dot-torch-eager", "float32-100"])
def test_any_part_of_a_name_chooses(folder: Path, name: str) -> None:
    """Framework, size, or all of it."""
    assert cli.main(["report", "run.json", "-k", name, "--csv", "report.csv"]) == 0
    with (folder / "report.csv").open(newline="", encoding="utf-8") as file:
        assert {row["framework"] for row in csv.DictReader(file)} >= {"torch"}


def test_trainings_and_plain_benchmarks_are_chosen(folder: Path) -> None:
    """By their names as well."""
    write(folder / "run.json", case(), training(), plain("test_lenet"), plain("test_other"))
    assert cli.main(["report", "run.json", "-k", "lenet", "--csv", "report.csv"]) == 0
    with (folder / "report.csv").open(newline="", encoding="utf-8") as file:
        found = [row["case"] for row in csv.DictReader(file)]
    assert found == ["lenet-torch-eager-cpu-train-float32-200", "test_lenet"]


def test_a_name_that_nothing_has_is_said(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Of each run in which there is none; the others are rendered, and the status is 1."""
    write(folder / "other.json", case("relu"))
    arguments = ["report", "run.json", "other.json", "-k", "relu", "-o", "report.html"]
    assert cli.main(arguments) == _SOME_UNREADABLE
    said = capsys.readouterr().err
    assert "run.json: no case has 'relu' in its name" in said
    assert "other.json" not in said
    found = parsed((folder / "report.html").read_text(encoding="utf-8"))
    assert found.all("section", id="part-relu-cpu-forward-float32")
    assert "no case has 'relu'" in found.text


def test_verdicts_are_chosen_by_the_names_of_cases(folder: Path) -> None:
    """Only cases with this in their names: those that were judged, too."""
    _keep(folder / "run.json", as_run(compared().to_json()))
    _keep(folder / "verdicts.json", compared().to_json())
    for name in ("run.json", "verdicts.json"):
        cli.main(["report", name, "-k", "slow", "--markdown", "report.md"])
        written = (folder / "report.md").read_text(encoding="utf-8")
        assert "| regressed | slow |" in written
        assert "| improved | fast |" not in written


# What is asked for


@pytest.mark.parametrize(
    "arguments",
    [
        ["-o", "x", "--csv", "x"],
        ["-o", "x", "--markdown", "./x"],
        ["--markdown", "x", "--csv", "taken/../x"],
        ["--markdown", "x", "--csv", "link"],
    ],
)
def test_two_outputs_are_not_one_file(
    folder: Path, capsys: pytest.CaptureFixture[str], arguments: list[str]
) -> None:
    """However it is called; nothing is written."""
    (folder / "taken").mkdir()
    (folder / "link").symlink_to("x")
    assert cli.main(["report", "run.json", *arguments]) == _USAGE_ERROR
    captured = capsys.readouterr()
    assert "two reports would be written to one file" in captured.err
    assert captured.out == ""
    assert not (folder / "x").exists()


@pytest.mark.parametrize("option", ["-o", "--markdown", "--csv"])
def test_a_report_does_not_replace_a_run(
    folder: Path, capsys: pytest.CaptureFixture[str], option: str
) -> None:
    """The run stays as it is, byte for byte."""
    before = (folder / "run.json").read_bytes()
    assert cli.main(["report", "run.json", option, "./run.json"]) == _USAGE_ERROR
    assert "would replace a run" in capsys.readouterr().err
    assert (folder / "run.json").read_bytes() == before


@pytest.mark.parametrize("option", ["-o", "--markdown", "--csv", "--png"])
def test_what_to_show_must_be_said(
    folder: Path, capsys: pytest.CaptureFixture[str], option: str
) -> None:
    """Neither runs nor a history: a usage error that names both, and nothing is made."""
    assert cli.main(["report", option, "x"]) == _USAGE_ERROR
    captured = capsys.readouterr()
    assert "--benchmark-json" in captured.err
    assert "--history" in captured.err
    assert not (folder / "x").exists()


# Charts as pictures


def _pixels(picture: bytes) -> tuple[int, int, bytes]:
    """Width, height and the filtered rows of a picture, whose check sums are right."""
    assert picture.startswith(b"\x89PNG\r\n\x1a\n")
    at, data, width, height = 8, b"", 0, 0
    while at < len(picture):
        (length,) = struct.unpack(">I", picture[at : at + 4])
        kind, body = picture[at + 4 : at + 8], picture[at + 8 : at + 8 + length]
        (summed,) = struct.unpack(">I", picture[at + 8 + length : at + 12 + length])
        assert zlib.crc32(kind + body) == summed
        if kind == b"IHDR":
            width, height = struct.unpack(">II", body[:8])
        data += body if kind == b"IDAT" else b""
        at += 12 + length
    return width, height, zlib.decompress(data)


def test_every_chart_is_a_picture(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """One file for each, in a folder that is made, named by its part; each is said."""
    made = [*_on_the_roof(), case("gemm", "torch", size=1000), training()]
    gate = as_run(compared().to_json())["fwbench"]["gate"]
    write(folder / "run.json", *made, ceilings=_CEILINGS, gate=gate)
    assert cli.main(["report", "run.json", "--png", "new/charts"]) == 0
    captured = capsys.readouterr()
    assert captured.err == ""
    found = sections.details([read(folder / "run.json")])
    drawn = [chart for one in found for chart in one.charts]
    files = sorted((folder / "new" / "charts").iterdir())
    assert len(files) == len(drawn) >= 9
    names = {file.name for file in files}
    assert {"gemm-cpu-forward-float32-1.png", "roofline-Fake-CPU-float32-1.png"} <= names
    assert {"head-json-against-base-json-1.png", "head-json-against-base-json-2.png"} <= names
    for file in files:
        assert f"written: {file.relative_to(folder)}" in captured.out
        width, height, pixels = _pixels(file.read_bytes())
        assert width == 1640
        assert height >= 800
        assert len(set(pixels)) > 50, "something is drawn in it"


def test_pictures_have_all_colours(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The page's style sheet says some of them, and the converter does not see it."""
    given: list[bytes] = []

    def convert(svg: bytes, **_: Any) -> bytes:
        given.append(svg)
        return b""

    monkeypatch.setitem(sys.modules, "cairosvg", SimpleNamespace(svg2png=convert))
    made = stored(tmp_path, "run.json", *_on_the_roof(), training(), ceilings=_CEILINGS)
    for one in sections.details([made]):
        for chart in one.charts:
            assert "var(--" in chart.svg
            charts.png(chart)
    assert len(given) >= 9
    assert [svg for svg in given if b"var(" in svg] == []


def test_pictures_are_of_the_chosen_cases(folder: Path) -> None:
    """-k leaves out the charts of others; beside other outputs, in a folder that is there."""
    (folder / "charts").mkdir()
    arguments = ["-k", "dot", "--png", "charts", "--csv", "report.csv"]
    assert cli.main(["report", "run.json", *arguments]) == 0
    assert [file.name for file in (folder / "charts").iterdir()] == [
        "dot-cpu-forward-float32-1.png"
    ]
    assert (folder / "report.csv").exists()


def test_a_report_without_a_chart_has_no_picture(folder: Path) -> None:
    """Plain benchmarks are listed, and that is all."""
    write(folder / "plain.json", plain())
    assert cli.main(["report", "plain.json", "--png", "charts"]) == 0
    assert [*(folder / "charts").iterdir()] == []


@pytest.mark.parametrize("where", ["taken", "taken/charts", "/proc/charts"])
def test_a_folder_that_cannot_be_made_is_said_first(
    folder: Path, capsys: pytest.CaptureFixture[str], where: str
) -> None:
    """Before a run is read; no other output is written."""
    (folder / "taken").write_text("a file", encoding="utf-8")
    assert cli.main(["report", "unread.json", "-o", "x.html", "--png", where]) == _FAILED
    captured = capsys.readouterr()
    assert where in captured.err
    assert "unread.json" not in captured.err
    assert captured.out == ""
    assert not (folder / "x.html").exists()
    assert (folder / "taken").read_text(encoding="utf-8") == "a file"


@pytest.mark.skipif(sys.platform != "linux", reason="root, too, cannot write to /proc on Linux")
def test_a_folder_that_cannot_be_written_to_is_said_first(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """One that is there, and in which nobody can make a file."""
    arguments = ["report", "unread.json", "-o", "x.html", "--png", "/proc/self"]
    assert cli.main(arguments) == _FAILED
    captured = capsys.readouterr()
    assert "cannot write" in captured.err
    assert "unread.json" not in captured.err
    assert not (folder / "x.html").exists()


def test_a_picture_that_cannot_be_written_is_said(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A folder is in its place."""
    (folder / "charts" / "gemm-cpu-forward-float32-1.png").mkdir(parents=True)
    assert cli.main(["report", "run.json", "--png", "charts"]) == _FAILED
    assert "cannot write charts/gemm-cpu-forward-float32-1.png" in capsys.readouterr().err


@pytest.mark.parametrize("lacks", ["CairoSVG", "cairo"])
def test_without_the_converter_it_is_said_how_to_get_it(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, lacks: str
) -> None:
    """The package is not there, or the library that it needs: a usage error, and no picture."""
    monkeypatch.delitem(sys.modules, "cairosvg", raising=False)
    if lacks == "CairoSVG":
        monkeypatch.setitem(sys.modules, "cairosvg", None)
    else:
        (folder / "cairosvg.py").write_text(
            'raise OSError("no library called cairo was found")', encoding="utf-8"
        )
        monkeypatch.syspath_prepend(folder)
    assert cli.main(["report", "run.json", "--png", "charts"]) == _USAGE_ERROR
    said = capsys.readouterr().err
    assert "--png needs CairoSVG" in said
    assert "pip install 'fwbench[png]'" in said
    assert "cairo itself" in said
    assert not (folder / "charts").exists()
