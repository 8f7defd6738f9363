"""The parts of a report: a table for each operation and device, and for trainings."""

from typing import Any

import pytest

from fwbench.report import sections
from fwbench.report.section import TableCell
from support.launched_runs import QUIET
from support.reports import (
    case,
    chart_of,
    column,
    parsed,
    part,
    part_of,
    rounds_of,
    run_of,
    shown,
    training,
)
from support.section_parts import rows


def test_a_part_for_each_operation_and_device() -> None:
    run = run_of(
        *(case(), case(size=200), case(framework="torch"), case(execution="compile")),
        *(case("dot"), case(device="gpu:0"), case(direction="both"), case(dtype="float64")),
    )
    section = {
        shown_section.title: len(shown_section.rows) for shown_section in sections.details([run])
    }
    assert section == {
        "overview cpu forward float32": 2,
        "gemm cpu forward float32": 4,
        "dot cpu forward float32": 1,
        "gemm gpu:0 forward float32": 1,
        "gemm cpu both float32": 1,
        "gemm cpu forward float64": 1,
    }


def test_a_row_holds_what_was_measured() -> None:
    measured = case(
        values_s=[0.001 * i for i in (5, 3, 9, 1, 7, 2, 8, 4, 6)],
        dispatch_s=0.0005,
        completion_s=0.003,
        first_call_in_process_s=0.25,
        flops=1e7,
        bytes=5e6,
        condition="clean",
    )
    section = part_of("gemm", measured)
    assert rows(section) == [
        {
            "case": "numpy eager",
            "size": "100",
            "median": "5 ms",
            "middle half": "3 ms to 7 ms",
            "dispatch": "500 us",
            "first call in process": "250 ms",
            "GFLOP/s": "2",
            "GB/s": "1",
            "measured": "9 launches",
        }
    ]
    values = [column(section, name)["numpy eager"].value for name in ("median", "GFLOP/s", "size")]
    assert values == pytest.approx([0.005, 2e9, 100])


def test_what_stands_alone_has_no_column_of_ratios() -> None:
    section = part_of("gemm", case(size=10), case(size=100))
    assert "against fastest" not in section.columns
    assert "against fastest" in part_of("gemm", case(), case(framework="torch")).columns


def test_work_that_is_not_declared_has_no_rate() -> None:
    none = case(flops=None, bytes=None)
    section = part_of("gemm", none, case("gemm", "torch", flops=1e6))
    assert column(section, "GFLOP/s")["numpy eager"] == TableCell("")
    assert "GB/s" not in section.columns


_COUNTS = {
    "launches": (case(values_s=QUIET[:5]), "5 launches"),
    "one launch": (case(values_s=QUIET[:1]), "1 launch"),
    "rounds": (rounds_of(case(values_s=QUIET[:3])), "3 rounds"),
    "one round": (rounds_of(case(values_s=QUIET[:1])), "1 round"),
    "epochs": (training(), "4 epochs"),
}


@pytest.mark.parametrize(("made", "message"), _COUNTS.values(), ids=_COUNTS)
def test_values_are_counted_by_what_they_are(made: dict[str, Any], message: str) -> None:
    (section,) = sections.details([run_of(made)])
    assert [cell.text for cell in column(section, "measured").values()] == [message]


def test_a_training_is_told_in_a_row() -> None:
    section = part_of("training lenet", training(accuracies=(0.9, 0.8)))
    assert rows(section) == [
        {
            "case": "torch eager",
            "an epoch": "2.75 s",
            "first epoch": "4 s (+78%)",
            "all epochs": "8.5 s",
            "a second": "3,200 images",
            "last loss": "0.5000",
            "accuracy": "85.00%",
            "compiling": "0 s",
            "CPUs busy": "50% of 2",
            "peak memory": "1,024 MiB",
            "held before": "512 MiB",
            "measured": "4 epochs",
        }
    ]
    chart = chart_of(section, "training loss")
    assert len(parsed(chart.svg).all("circle")) == 3
    assert "torch eager ends at 0.5" in chart.text


def test_a_training_that_was_not_tested_has_no_accuracy() -> None:
    run = run_of(training(accuracies=()))
    section = part([run], "training lenet")
    assert "accuracy" not in section.columns
    assert [chart.title for chart in section.charts if "accuracy" in chart.title] == []
    assert shown(run).all("section", id="part-training-lenet-cpu-float32-200")


def test_every_training_has_a_row() -> None:
    first, second = training(), training()
    second["fullname"] = "test_other.py::test_other[lenet]"
    assert len(part_of("training lenet", first, second).rows) == 2


@pytest.mark.parametrize("made", [case(values_s=1.0), training()])
def test_runs_of_the_same_file_name_are_apart(made: dict[str, Any]) -> None:
    runs = [run_of(made, number=number) for number in (0, 1)]
    (section,) = sections.details(runs)
    assert len({row.cells[0].text for row in section.rows}) == 2
    picture = parsed(section.charts[0].svg)
    lines = {node.attributes["data-line"] for node in picture if "data-line" in node.attributes}
    assert len(lines | {node.text for node in picture.of_class("legend")}) >= 2


def test_dispatch_is_drawn_where_it_differs() -> None:
    early = {"framework": "torch", "dispatch_s": 0.1, "completion_s": 1.0}
    at_once = case(size=9, **{**early, "dispatch_s": 0.0})
    run = run_of(case(), case(**early), at_once, case(size=10))
    chart = chart_of(part([run], "gemm"), "until calls returned (lighter)")
    assert "torch eager, returned 1 ns to 100 ms" in chart.text
    assert "torch eager, done 1 s" in chart.text
    assert "numpy" not in chart.text
    assert len(part_of("gemm", *(case(size=size) for size in (8, 9, 10))).charts) == 1


def test_dispatch_is_part_of_a_bar() -> None:
    early = case(framework="torch", values_s=1.0, dispatch_s=0.25, completion_s=1.0)
    (chart,) = part_of("gemm", case(values_s=1.0), early).charts
    assert "torch eager 1 s done, 250 ms call returned" in chart.text
    tones = []
    for series in parsed(chart.svg).of_class("series"):
        for bar in series.of_class("bar"):
            width = float(bar.of_class("rect")[0].attributes.get("width", 0))
            if bar.attributes["data-framework"] == "torch" and width:
                tones.append((width, "opacity:0.45" in series.attributes["style"]))
    (lighter, is_lighter), (rest, is_rest_lighter) = tones
    assert rest == pytest.approx(3 * lighter, rel=0.01)
    assert (is_lighter, is_rest_lighter) == (True, False)


def test_a_first_epoch_in_a_used_process_has_no_excess() -> None:
    (row,) = rows(part_of("training lenet", training(first_epoch_excess=None)))
    assert row["first epoch"] == "4 s"
