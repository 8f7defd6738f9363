"""Trainings: gains over eager, memory, losses, batch sizes, and time against accuracy."""

from collections import Counter
from typing import Any

import pytest

from fwbench.report import sections
from fwbench.report.drawing import palette
from support.reports import chart_of, column, parsed, part, part_of, run_of, runs_of, training
from support.section_parts import legends, marks, outside, rows, taking, titles
from support.tables import tabled


def test_gains_of_trainings_are_drawn() -> None:
    section = part_of(
        "training lenet",
        *(training("mxnet"), taking(training("mxnet", "hybridize"), 2.0)),
        *(taking(training(), 4.0), taking(training(execution="compile"), 2.0)),
        training("jax", "jit"),
    )
    chart = chart_of(section, "times as fast as eager")
    assert chart.text.endswith("mxnet hybridize 0.5x; torch compile 2x")
    picture = parsed(chart.svg)
    bars = [bar.attributes["data-line"] for bar in picture.of_class("bar")]
    assert {*bars} == {"torch compile", "mxnet hybridize"}
    assert len(bars) == len(picture.of_class("ci")) == 2
    assert "4 epochs" in picture.of_class("bars")[0].text
    assert outside(chart) == []


def test_a_training_alone_gains_nothing() -> None:
    made = run_of(
        *(training(), training("mxnet")),
        training(execution="compile", size=100),
        training(execution="compile", dtype="bfloat16"),
        training(execution="compile", device="gpu:0"),
    )
    drawn = [chart.title for section in sections.details([made]) for chart in section.charts]
    assert [title for title in drawn if "as fast as" in title] == []


def test_gains_of_trainings_are_drawn_toggle_by_toggle() -> None:
    entries = [
        taking(training(execution=execution, toggles_asked={"workers": workers}), factor)
        for workers, execution, factor in (
            *(("0", "eager", 2.0), ("0", "compile", 1.0)),
            *(("4", "eager", 3.0), ("4", "compile", 1.0)),
        )
    ]
    chart = chart_of(part_of("training lenet cpu", *entries), "times as fast as eager")
    assert chart.text.endswith("torch compile workers=0 2x; torch compile workers=4 3x")


def test_gains_of_trainings_say_their_run() -> None:
    runs = runs_of(
        first=[taking(training(), 2.0), training(execution="compile")],
        second=[taking(training(), 3.0), training(execution="compile")],
    )
    chart = chart_of(part(runs, "training lenet"), "times as fast as eager")
    assert len(parsed(chart.svg).of_class("bar")) == 2
    for expected in ("first.json", "2x", "second.json", "3x"):
        assert expected in chart.text


def test_bars_of_a_training_have_the_colour_of_its_framework() -> None:
    """Its steps tell the parts, as does a legend in grey."""
    chart = chart_of(part([run_of(training(), training("mxnet"))], "training lenet"), "time of")
    picture = parsed(chart.svg)
    styles = Counter(node.attributes["style"] for node in picture.of_class("bar"))
    colours = [palette.COLOURS[name] for name in ("torch", "mxnet")]
    assert styles == {f"fill:{colour};stroke:{colour}": 3 for colour in colours}
    grey = "fill:var(--faint);stroke:var(--faint)"
    series = [picture.of_class(f"serie-{number}")[0].attributes["style"] for number in range(3)]
    assert series == [grey, f"{grey};opacity:0.6", f"{grey};opacity:0.35"]
    assert legends(chart) == ["an epoch", "the first epoch", "all epochs"]
    assert {node.attributes["style"] for node in picture.of_class("legend")} == {grey}


def test_charts_of_a_training_share_a_legend() -> None:
    section = part([run_of(training(), training("mxnet"))], "training lenet")
    assert [*section.legend] == ["mxnet eager", "torch eager"]
    for title, shares in (("training loss", True), ("against accuracy", True), ("time of", False)):
        assert chart_of(section, title).has_keys is shares


def test_memory_is_drawn() -> None:
    made = run_of(
        training(device="gpu:0", peak_device_memory_bytes=3 * 2**30),
        training("mxnet", device="gpu:0", host_memory_before_bytes=2**30),
    )
    chart = chart_of(part([made], "training lenet"), "peak memory")
    assert chart.text.endswith(
        "mxnet eager, of the process: 512 MiB; "
        "torch eager, of the process: 1,024 MiB; torch eager, of the device: 3,072 MiB"
    )
    assert legends(chart) == ["of the process", "of the device"]
    assert 2 <= len(marks(chart, "x")) <= 5  # more would lie on each other
    of_cpu = chart_of(part_of("training lenet", training()), "peak memory")
    assert of_cpu.title.endswith("peak memory of the process above what was held before")
    assert palette.COLOURS["torch"] in of_cpu.svg
    unknown = part_of("training lenet", training(peak_host_memory_bytes=None))
    assert [chart.title for chart in unknown.charts if "memory" in chart.title] == []
    assert "peak memory" not in unknown.columns


def test_data_sets_are_named_with_memory_and_accuracy() -> None:
    known = training(data_memory_bytes=188 * 2**20, tested_examples=2000)
    mxnet, torch = rows(part_of("training lenet", known, training("mxnet")))
    assert torch["peak memory"] == "1,024 MiB"
    assert torch["held before"] == "512 MiB, data set 188 MiB"
    assert mxnet["held before"] == "512 MiB"
    assert torch["accuracy"] == f"{mxnet['accuracy']} of 2,000"


def test_unequal_trainings_are_marked() -> None:
    curve = ((2.0, 1.0, 0.5), (2.0, 1.0, 0.5))
    runs = runs_of(
        first=[training(losses=curve), training("mxnet", losses=curve)],
        second=[training("jax", losses=((2.5, 1.0, 0.5), (2.0, 1.0, 0.5)))],
    )
    names = list(column(part(runs, "training lenet"), "case"))
    assert [name for name in names if "unequal" in name] == [
        "jax eager (second.json) (unequal: 0.5 nats from torch eager, 0.24 allowed)"
    ]


def test_the_largest_deviation_of_losses_is_in_the_title() -> None:
    first = training(losses=((2.0, 1.0, 0.5), (9.0, 8.0, 7.0)))
    others = [
        training("mxnet", losses=((2.0, 1.25, 0.5), (0.0, 0.0, 0.0))),
        training("jax", losses=((2.125, 1.125, 0.5), (0.0, 0.0, 0.0))),
    ]
    for entries, deviation in (
        ([first, *others], " (at most 0.25 nats apart: mxnet eager and torch eager, epoch 2)"),
        ([first], ""),
    ):
        title = chart_of(part_of("training lenet", *entries), "training loss").title
        assert title.endswith("training loss after each epoch" + deviation)


def test_curves_of_other_data_are_not_compared() -> None:
    """Losses on synthetic digits lie nowhere near those on real ones."""
    other = {"name": "mnist", "source": "synthetic", "origin": "made", "digest": "other"}
    made = run_of(training(), training("mxnet", losses=((9.0,) * 3,) * 2, data=other))
    drawn = [chart.title for section in sections.details([made]) for chart in section.charts]
    assert sum("training loss" in title for title in drawn) == 2
    assert [title for title in drawn if "apart" in title] == []


_BY_BATCH = "training lenet: time of an epoch by batch size"


def test_batch_sizes_are_compared() -> None:
    entries = [
        taking(training(size=size, toggles_asked={"workers": workers}), factor)
        for size, workers, factor in ((200, "0", 1.0), (100, "0", 2.0), (200, "4", 4.0))
    ]
    section = part_of(_BY_BATCH, *entries)
    assert section.title.endswith("by batch size and loader workers")
    assert section.columns == ["case", "batch 100", "batch 200"]
    assert rows(section) == [
        {"case": "torch eager workers=0, cpu float32", "batch 100": "5.5 s", "batch 200": "2.75 s"},
        {"case": "torch eager workers=4, cpu float32", "batch 100": "", "batch 200": "11 s"},
    ]
    (chart,) = section.charts
    assert chart.text.endswith(
        "torch eager workers=0, cpu float32 2.75 s to 5.5 s; "
        "torch eager workers=4, cpu float32 11 s to 11 s"
    )
    picture = parsed(chart.svg)
    assert len(picture.all("circle")) == len(picture.of_class("ci")) == 3
    assert "4 epochs" in picture.of_class("dots")[0].text


def test_a_training_that_was_measured_twice_has_two_rows() -> None:
    entries = [
        taking(training(size=size, device=device), factor)
        for size, device, factor in (
            *((200, "cpu", 1.0), (200, "cpu", 2.0), (100, "cpu", 4.0)),
            (200, "gpu:0", 1.0),
        )
    ]
    made = run_of(*entries)
    by_batch = {
        row["case"]: (row["batch 100"], row["batch 200"]) for row in rows(part([made], _BY_BATCH))
    }
    assert by_batch == {
        "torch eager, cpu float32": ("11 s", "2.75 s"),
        "torch eager #2, cpu float32": ("", "5.5 s"),
        "torch eager, gpu:0 float32": ("", "2.75 s"),
    }
    by_device = {row["case"]: row["all epochs"] for row in rows(part([made], _EVERY_DEVICE))}
    assert by_device == {
        "torch eager, cpu float32 200, optimisation off": "8.5 s",
        "torch eager #2, cpu float32 200, optimisation off": "17 s",
        "torch eager, cpu float32 100, optimisation off": "34 s",
        "torch eager, gpu:0 float32 200, optimisation off": "8.5 s",
    }


@tabled
def test_one_batch_size_is_compared_with_nothing(changes: dict[str, Any], compared: bool) -> None:
    made = run_of(training(), training("mxnet", **changes))
    assert [title.startswith(_BY_BATCH) for title in titles([made])].count(True) == compared


def test_batches_of_different_devices_dtypes_and_runs_are_apart() -> None:
    places = [("cpu", "float32", 1.0), ("gpu:0", "float32", 2.0), ("cpu", "bfloat16", 4.0)]
    entries = [
        taking(training(size=size, device=device, dtype=dtype), factor)
        for device, dtype, factor in places
        for size in (100, 200)
    ]
    section = part(runs_of(first=entries, second=[training()]), _BY_BATCH)
    assert {row["case"]: row["batch 200"] for row in rows(section)} == {
        "torch eager (first.json), cpu float32": "2.75 s",
        "torch eager (first.json), gpu:0 float32": "5.5 s",
        "torch eager (first.json), cpu bfloat16": "11 s",
        "torch eager (second.json), cpu float32": "2.75 s",
    }


_EVERY_DEVICE = "training lenet: time against accuracy on every device"


def test_time_against_accuracy_over_devices() -> None:
    made = run_of(
        training(accuracies=(0.9, 0.8)),
        taking(training(execution="compile", device="gpu:0", accuracies=(0.7,)), 0.5),
        training("mxnet", device="gpu:0", accuracies=()),
    )
    section = part([made], _EVERY_DEVICE)
    assert rows(section) == [
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
    (chart,) = section.charts
    assert chart.text.endswith(
        "torch eager, cpu float32 200, optimisation off 8.5 s, 85.00%; "
        "torch compile, gpu:0 float32 200, optimisation on 4.25 s, 70.00%"
    )
    assert len(parsed(chart.svg).all("circle")) == 2


@pytest.mark.parametrize(
    ("device", "accuracies"), [("cpu", (0.9, 0.8)), ("gpu:0", ())], ids=["one device", "untested"]
)
def test_one_device_is_not_set_beside_another(device: str, accuracies: tuple[float, ...]) -> None:
    made = run_of(
        training(accuracies=accuracies),
        training(execution="compile", device=device, accuracies=accuracies),
    )
    assert _EVERY_DEVICE not in titles([made])


@pytest.mark.parametrize("other", [{"size": 100}, {"dtype": "bfloat16"}], ids=["size", "dtype"])
def test_every_training_is_set_beside_the_others(other: dict[str, Any]) -> None:
    entries = [
        training(device=device, **facts) for device in ("cpu", "gpu:0") for facts in ({}, other)
    ]
    section = part_of(_EVERY_DEVICE, *entries)
    assert len(section.rows) == 4
    assert len({row["case"] for row in rows(section)}) == 4


def test_models_are_not_mixed() -> None:
    entries = [training(size=size, device=device) for size in (1, 2) for device in ("cpu", "gpu:0")]
    others = [training(size=size, device=device) for size in (1, 2) for device in ("cpu", "gpu:0")]
    for other in others:
        other["extra_info"]["fwbench"]["workload"] = "resnet"
    shown_titles = titles([run_of(*entries, *others)])
    for model in ("lenet", "resnet"):
        assert (
            len([title for title in shown_titles if title.startswith(f"training {model}: time of")])
            == 1
        )
        assert f"training {model}: time against accuracy on every device" in shown_titles
