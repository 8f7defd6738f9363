"""``fwbench report``: what a report holds, whom it serves, and what it makes of bad input."""

from __future__ import annotations

import csv
import io
import itertools
import json
import math
import re
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from fwbench import cli
from fwbench.report import charts, sections, summary
from fwbench.report.charts import Point
from fwbench.report.model import Run, read
from fwbench.report.sections import Cell
from fwbench.report.writers import html, text
from support.launched_runs import QUIET, output, plain, write
from support.reports import (
    _USAGE_ERROR,
    HOSTILE,
    UNREADABLE,
    Node,
    _cut,
    _text,
    case,
    chart_of,
    column,
    foreign_run,
    markdown_cells,
    named,
    parsed,
    part,
    rounds_of,
    runs_of,
    shown,
    stored,
    training,
)

_FAILED = 3
_SOME_UNREADABLE = 1


# What is made up


# What is read


# The command


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with one run, ``run.json``."""
    monkeypatch.chdir(tmp_path)
    write(tmp_path / "run.json", case())
    return tmp_path


def test_what_to_write_must_be_said(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Without an output there is nothing to do: a usage error that names the options."""
    assert cli.main(["report", "run.json"]) == _USAGE_ERROR
    captured = capsys.readouterr()
    for option in ("-o", "--markdown", "--csv"):
        assert option in captured.err
    assert [path.name for path in folder.iterdir()] == ["run.json"]


def test_all_outputs_are_written(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Each where it was asked for, each named, with status 0 and no complaint."""
    arguments = ["-o", "report.html", "--markdown", "report.md", "--csv", "report.csv"]
    assert cli.main(["report", "run.json", *arguments]) == 0
    captured = capsys.readouterr()
    assert captured.err == ""
    for name in ("report.html", "report.md", "report.csv"):
        assert f"written: {name}" in captured.out
        assert "numpy" in (folder / name).read_text(encoding="utf-8")


@pytest.mark.parametrize("option", ["-o", "--markdown", "--csv"])
@pytest.mark.parametrize("output_path", ["taken", "nowhere/report"])
@pytest.mark.usefixtures("folder")
def test_unwritable_outputs_are_said_first(
    capsys: pytest.CaptureFixture[str], option: str, output_path: str
) -> None:
    """A folder, or a file in none: said before a run is read, and no other output is written."""
    Path("taken").mkdir()
    arguments = ["report", "unread.json", "-o", "other.html", "--csv", "other.csv"]
    assert cli.main([*arguments, option, output_path]) == _FAILED
    captured = capsys.readouterr()
    assert "cannot write" in captured.err
    assert Path(output_path).name in captured.err
    assert "unread.json" not in captured.err
    assert captured.out == ""
    assert sorted(path.name for path in Path().iterdir()) == ["run.json", "taken"]
    assert not [*Path("taken").iterdir()]


@pytest.mark.parametrize(("make", "said"), UNREADABLE.values(), ids=UNREADABLE)
def test_the_others_are_rendered(
    folder: Path, capsys: pytest.CaptureFixture[str], make: Callable[[Path], Any], said: str
) -> None:
    """A file that is no run is named with the reason, also in the report; status 1."""
    make(folder / "bad.json")
    arguments = ["-o", "report.html", "--markdown", "report.md", "--csv", "report.csv"]
    assert cli.main(["report", "bad.json", "run.json", *arguments]) == _SOME_UNREADABLE
    problem = capsys.readouterr().err
    assert problem.startswith("fwbench: ")
    assert "bad.json" in problem
    assert said in problem
    shown_page = parsed((folder / "report.html").read_text(encoding="utf-8"))
    (section,) = shown_page.all("section", **{"aria-labelledby": "problems"})
    assert "bad.json" in section.text
    assert said in section.text
    assert shown_page.all("section", id="part-gemm-cpu-forward-float32")
    assert said in (folder / "report.md").read_text(encoding="utf-8")
    with (folder / "report.csv").open(newline="", encoding="utf-8") as file:
        assert [row["run"] for row in csv.DictReader(file)] == ["run.json"]


def test_without_a_run_nothing_is_written(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Each bad file is named, and an earlier report stays as it was, byte for byte."""
    _text("")(folder / "empty.json")
    _cut(folder / "cut.json")
    earlier = b"earlier\r\n\xff"
    (folder / "report.html").write_bytes(earlier)
    arguments = ["-o", "report.html", "--csv", "report.csv"]
    assert cli.main(["report", "empty.json", "cut.json", *arguments]) == _USAGE_ERROR
    captured = capsys.readouterr()
    assert captured.out == ""
    assert "empty.json is empty" in captured.err
    assert "cut.json is no JSON, or cut off" in captured.err
    assert (folder / "report.html").read_bytes() == earlier
    assert not (folder / "report.csv").exists()


def test_an_earlier_report_is_replaced(folder: Path) -> None:
    """As a whole; nothing else is left beside it."""
    (folder / "report.html").write_text("earlier " * 1_000_000, encoding="utf-8")
    assert cli.main(["report", "run.json", "-o", "report.html"]) == 0
    assert "earlier" not in (folder / "report.html").read_text(encoding="utf-8")
    assert sorted(path.name for path in folder.iterdir()) == ["report.html", "run.json"]


def test_several_runs_are_in_one_report(folder: Path) -> None:
    """Counted, each with where it comes from, each case told by its run."""
    write(folder / "other.json", case(), case("dot"))
    assert cli.main(["report", "run.json", "other.json", "-o", "report.html"]) == 0
    found = parsed((folder / "report.html").read_text(encoding="utf-8"))
    assert "3 cases of 2 runs" in found.text
    (provenance,) = found.all("section", **{"aria-labelledby": "provenance"})
    assert [one.text for one in provenance.all("h3")] == ["run.json", "other.json"]
    (gemm,) = found.all("section", id="part-gemm-cpu-forward-float32")
    names = [one.text for one in gemm.all("th", scope="row")]
    assert names == ["numpy eager (run.json)", "numpy eager (other.json)"]


def test_a_run_without_a_case_is_a_report(tmp_path: Path) -> None:
    """Nothing was measured, and that is what it says."""
    run = stored(tmp_path, "run.json", missing=[{"why": "skipped"}])
    found = shown(run)
    assert "0 cases of 1 run" in found.text
    assert "skipped" in found.text
    assert text.table([run]).count("\n") == 1


# Runs that fwbench did not write


def test_plain_pytest_benchmark_is_shown(tmp_path: Path) -> None:
    """Its benchmarks with their times; what is not recorded is said to be missing."""
    run = read(foreign_run(tmp_path / "plain.json"))
    found = shown(run)
    (section,) = found.all("section", id="part-other-benchmarks")
    assert [one.text for one in section.all("th", scope="row")] == ["test_a", "test_b"]
    assert "750 ms" in section.text
    assert "fwbench did not write these" in section.text
    assert [one.title for one in summary.parts([run])] == []
    (provenance,) = found.all("section", **{"aria-labelledby": "provenance"})
    assert "pytest-benchmark" in provenance.text
    assert "not recorded" in provenance.text
    assert "Fake CPU" in provenance.text


def test_markdown_says_what_fwbench_did_not_write(tmp_path: Path) -> None:
    """Who reads only the tables must know it, too."""
    written = text.markdown([read(foreign_run(tmp_path / "plain.json"))])
    assert "### other benchmarks" in written
    assert "| test_a | 750 ms |" in written
    assert "fwbench did not write these" in written


def test_plain_and_own_records_are_apart(tmp_path: Path) -> None:
    """A session has both: neither is taken for the other."""
    run = stored(tmp_path, "run.json", case(), plain("test_c"))
    titles = [one.title for one in sections.details([run])]
    assert titles == ["gemm cpu forward float32", "other benchmarks"]
    assert [*column(part([run], "other benchmarks"), "median")] == ["test_c"]


# Names that would be markup


@pytest.mark.parametrize("name", HOSTILE)
def test_names_are_no_markup(tmp_path: Path, name: str) -> None:
    """A page has the same elements and attributes, whatever things in it are called."""
    # As long as the other: pygal adds a title where it shortens a label.
    harmless = parsed(html.html(*named(tmp_path, "x" * len(name))))
    hostile = parsed(html.html(*named(tmp_path, name)))
    assert Counter(node.tag for node in hostile) == Counter(node.tag for node in harmless)
    for node in hostile:
        assert not [one for one in node.attributes if one.startswith("on")]
    assert name in hostile.text


@pytest.mark.parametrize("name", HOSTILE)
def test_names_are_no_markup_in_charts(name: str) -> None:
    """A title of a line, in the picture, its script and its text alternative, is text."""
    point = Point(10, 1.0, 0.5, 2.0, name)
    drawn = [
        charts.lines(name, {name: [point]}, name),
        charts.curves(name, {name: [1.0, 2.0]}, name),
        charts.bars(name, {name: {name: 1.0}}, str),
        charts.scatter(name, {name: (1.0, 0.5)}, name, name),
    ]
    for chart in drawn:
        picture = parsed(chart.svg)
        assert name in picture.text
        assert not picture.all("img", "i")
        assert len(picture.all("script")) == 1
        assert len(picture.all("svg")) == 1
        assert not [a for node in picture for a in node.attributes if a.startswith("on")]
        assert "alert" not in "".join(one.text.partition("{")[0] for one in picture.all("script"))


@pytest.mark.parametrize("name", HOSTILE)
def test_names_are_no_markup_in_markdown(tmp_path: Path, name: str) -> None:
    """Headings, notes, problems and tables hold no tag."""
    written = text.markdown(*named(tmp_path, name))
    assert "<" not in written
    assert "x" in written


# Nothing is asked for from anywhere

_ADDRESSES = ("src", "href", "xlink:href", "srcset", "action", "formaction", "data", "poster")


def test_nothing_is_asked_for(tmp_path: Path) -> None:
    """What a page could load, it has in itself; links lead to places in it."""
    run = stored(tmp_path, "run.json", case(), training(), plain())
    found = shown(run)
    assert found.of_class("pygal-chart"), "there are charts"
    asked = [
        node.attributes[name] for node in found for name in _ADDRESSES if name in node.attributes
    ]
    assert asked
    assert [address for address in asked if not address.startswith("#")] == []
    assert not found.all("link", "iframe", "object", "embed", "base")
    styles = [node.text for node in found.all("style")]
    styles += [node.attributes.get("style", "") for node in found]
    for style in styles:
        assert "@import" not in style
        assert "url(" not in style
        assert "//" not in style


# The summary


def _contest(folder: Path) -> list[Run]:
    """Torch is 2 times as fast at gemm, TensorFlow 8 times as fast at dot."""
    return [
        stored(
            folder,
            "run.json",
            case("gemm", "torch", (1.0,) * 5),
            case("gemm", "tensorflow", (2.0,) * 5),
            case("dot", "torch", (8.0,) * 5),
            case("dot", "tensorflow", (1.0,) * 5),
            case("noop", "torch", (1.0,) * 5),
            case("noop", "tensorflow", (1000.0,) * 5),
        )
    ]


def test_geometric_means(tmp_path: Path) -> None:
    """Of the ratios to the fastest: the fastest on average first; noop is no contestant."""
    found = part(_contest(tmp_path), "Geometric mean")
    means = column(found, "times as long")
    assert {name: cell.value for name, cell in means.items()} == pytest.approx(
        {"tensorflow eager": math.sqrt(2), "torch eager": math.sqrt(8)}
    )
    assert [*means] == ["tensorflow eager", "torch eager"]
    assert [cell.text for cell in means.values()] == ["1.41x", "2.83x"]
    assert {cell.text for cell in column(found, "cases").values()} == {"2"}


def test_largest_differences(tmp_path: Path) -> None:
    """The largest first, with both sides and their times; noop is no contestant."""
    first, second = part(_contest(tmp_path), "Largest differences").rows
    assert [cell.text for cell in first.cells] == [
        *("dot cpu forward float32 100", "tensorflow eager", "1 s", "torch eager", "8 s", "8.0x")
    ]
    assert [cell.text for cell in second.cells] == [
        *("gemm cpu forward float32 100", "torch eager", "1 s", "tensorflow eager", "2 s", "2.0x")
    ]


def test_only_the_largest_differences_are_named(tmp_path: Path) -> None:
    """Ten of eleven: the smallest is left out."""
    entries = [
        case("gemm", framework, (seconds,) * 5, size=size)
        for size in range(1, 12)
        for framework, seconds in (("torch", 1.0), ("numpy", 1.0 + size))
    ]
    ratios = [
        row.cells[-1].text
        for row in part([stored(tmp_path, "run.json", *entries)], "Largest differences").rows
    ]
    assert ratios == [f"{1.0 + size:.1f}x" for size in range(11, 1, -1)]


def test_a_case_without_a_rival_is_no_difference(tmp_path: Path) -> None:
    """A framework that is alone differs from nothing, and has won nothing."""
    assert summary.parts([stored(tmp_path, "run.json", case(), case("dot"))]) == []


def test_the_same_work_is_compared(tmp_path: Path) -> None:
    """Whatever the tables of the session were grouped by."""
    entries = [case("gemm", "torch", (2.0,) * 5), case("gemm", "numpy"), case("dot", "numpy")]
    entries = [{**one, "group": one["params"]["framework"]} for one in entries]
    run = stored(tmp_path, "run.json", *entries)
    means = column(part([run], "Geometric mean"), "cases")
    assert {name: cell.text for name, cell in means.items()} == {
        "numpy eager": "1",
        "torch eager": "1",
    }


def test_what_is_missing_is_said(tmp_path: Path) -> None:
    """Cases counted by their reason, and frameworks that are not there with theirs."""
    reasons = ["deselected", "gpu: no GPU", "deselected"]
    run = stored(
        tmp_path,
        "run.json",
        case(),
        missing=[{"nodeid": "x", "framework": "torch", "why": why} for why in reasons],
        absent={"jax": "not installed"},
    )
    found = {name: cell.text for name, cell in column(part([run], "Not measured"), "cases").items()}
    assert found == {"deselected": "2 cases", "gpu: no GPU": "1 case", "jax: not installed": "all"}


def test_summaries_are_of_one_run_each(tmp_path: Path) -> None:
    """No mean and no difference is formed over runs."""
    runs = runs_of(
        tmp_path,
        slow=[case("gemm", "torch", (100.0,) * 5), case("gemm", "mxnet", (200.0,) * 5)],
        fast=[case("gemm", "torch", (1.0,) * 5), case("gemm", "numpy", (2.0,) * 5)],
    )
    titles = [one.title for one in summary.parts(runs)]
    assert titles == [
        f"{what} ({run}.json)"
        for run in ("slow", "fast")
        for what in ("Geometric mean of time against the fastest", "Largest differences")
    ]
    means = column(part(runs, titles[0]), "times as long")
    assert {name: cell.text for name, cell in means.items()} == {
        "torch eager": "1.00x",
        "mxnet eager": "2.00x",
    }


_NOTES: dict[str, tuple[dict[str, Any], str]] = {
    "synthetic": ({"data": {"name": "mnist", "source": "synthetic"}}, "synthetic"),
    "contended": ({"contended": True}, "contended"),
}


@pytest.mark.parametrize(("facts", "said"), _NOTES.values(), ids=_NOTES)
def test_what_must_be_known_first_is_noted(
    tmp_path: Path, facts: dict[str, Any], said: str
) -> None:
    """One such case is enough, the note is on the page and in Markdown; none is too few."""
    run = stored(tmp_path, "noted.json", case(), training(**facts))
    (note,) = summary.notes([run])
    assert said in note
    assert [one.text for one in shown(run).of_class("note")] == [note]
    assert note in text.markdown([run])
    assert summary.notes([stored(tmp_path, "run.json", case(), training())]) == []


def test_different_machines_are_noted(tmp_path: Path) -> None:
    """Two of them are; a machine and itself are not."""
    here = stored(tmp_path, "here.json", case())
    there = stored(tmp_path, "there.json", case(), machine={"cpu": "Other CPU"})
    (note,) = summary.notes([here, there])
    assert "different machines" in note
    assert summary.notes([here, stored(tmp_path, "again.json", case())]) == []


@pytest.mark.parametrize(("brand", "noted"), [("Fake CPU", 0), ("Other CPU", 1)])
def test_machines_of_plain_runs_are_compared(tmp_path: Path, brand: str, noted: int) -> None:
    """By what pytest-benchmark says of them: with fwbench's runs, and with each other."""
    own = stored(tmp_path, "own.json", case())
    plain_here = read(foreign_run(tmp_path / "here.json"))
    other = read(foreign_run(tmp_path / "there.json", brand))
    assert len(summary.notes([own, other])) == noted
    assert len(summary.notes([plain_here, other])) == noted


# The parts


def test_a_part_for_each_operation_and_device(tmp_path: Path) -> None:
    """Workload, device, direction and dtype each tell parts apart; size and framework do not."""
    run = stored(
        tmp_path,
        "run.json",
        *(case(), case(size=200), case(framework="torch"), case(execution="compile")),
        *(case("dot"), case(device="gpu:0"), case(direction="both"), case(dtype="float64")),
    )
    found = {one.title: len(one.rows) for one in sections.details([run])}
    assert found == {
        "gemm cpu forward float32": 4,
        "dot cpu forward float32": 1,
        "gemm gpu:0 forward float32": 1,
        "gemm cpu both float32": 1,
        "gemm cpu forward float64": 1,
    }


def test_a_row_holds_what_was_measured(tmp_path: Path) -> None:
    """Median, spread, dispatch, first call, rates from the median, and how many launches."""
    measured = case(
        values_s=(0.004, 0.001, 0.002, 0.003, 0.005),
        dispatch_s=0.0005,
        completion_s=0.003,
        first_call_s=0.25,
        flops=6e6,
        bytes=3e6,
    )
    found = part([stored(tmp_path, "run.json", measured)], "gemm")
    (row,) = found.rows
    assert {name: cell.text for name, cell in zip(found.columns, row.cells, strict=True)} == {
        "case": "numpy eager",
        "size": "100",
        "median": "3 ms",
        "half of them": "1 ms to 5 ms",
        "dispatch": "500 us",
        "first call": "250 ms",
        "against eager": "",
        "GFLOP/s": "2",
        "GB/s": "1",
        "of attainable": "",
        "measured": "5 launches",
    }
    values = {name: cell.value for name, cell in zip(found.columns, row.cells, strict=True)}
    assert values["median"] == 0.003
    assert values["GFLOP/s"] == pytest.approx(2e9)
    assert values["size"] == 100


def test_spread_is_between_quartiles(tmp_path: Path) -> None:
    """Half of nine values lie between the third and the seventh."""
    measured = case(values_s=[0.001 * i for i in (5, 3, 9, 1, 7, 2, 8, 4, 6)])
    (cell,) = column(
        part([stored(tmp_path, "run.json", measured)], "gemm"), "half of them"
    ).values()
    assert cell.text == "3 ms to 7 ms"


def test_work_that_is_not_declared_has_no_rate(tmp_path: Path) -> None:
    """None, not 0."""
    found = part([stored(tmp_path, "run.json", case(flops=None, bytes=None))], "gemm")
    for name in ("GFLOP/s", "GB/s"):
        assert column(found, name) == {"numpy eager": Cell("")}


_COUNTS = {
    "launches": (case(values_s=QUIET[:5]), "5 launches"),
    "one launch": (case(values_s=QUIET[:1]), "1 launch"),
    "rounds": (rounds_of(case(values_s=QUIET[:3])), "3 rounds"),
    "one round": (rounds_of(case(values_s=QUIET[:1])), "1 round"),
    "epochs": (training(), "4 epochs"),
}


@pytest.mark.parametrize(("made", "said"), _COUNTS.values(), ids=_COUNTS)
def test_values_are_counted_by_what_they_are(
    tmp_path: Path, made: dict[str, Any], said: str
) -> None:
    """Launches, rounds, or epochs; one is one."""
    (found,) = sections.details([stored(tmp_path, "run.json", made)])
    assert [cell.text for cell in column(found, "measured").values()] == [said]


def test_speed_up_over_eager(tmp_path: Path) -> None:
    """Of the same framework in the same size, with an interval that holds it."""
    run = stored(
        tmp_path,
        "run.json",
        case("gemm", "torch", (4.0,) * 5),
        case("gemm", "torch", (2.0,) * 5, "compile"),
        case("gemm", "tensorflow", (1.0,) * 5),
        case("gemm", "tensorflow", (2.0,) * 5, "xla"),
        case("gemm", "jax", (1.0,) * 5, "jit"),
        case("gemm", "mxnet", (1.0,) * 5, size=10),
        case("gemm", "mxnet", (1.0,) * 5, "hybridize", size=20),
    )
    found = [
        (row.cells[0].text, row.cells[6].text)
        for row in part([run], "gemm").rows
        if row.cells[6].text
    ]
    assert found == [
        ("torch compile", "2.00x"),
        ("tensorflow xla", "0.50x"),
    ]


def test_speed_up_is_never_over_another_run(tmp_path: Path) -> None:
    """A run without eager has nothing to be faster than; one with it is compared with its own."""
    runs = runs_of(
        tmp_path,
        first=[case(values_s=(100.0,) * 5)],
        second=[case(values_s=(1.0,) * 5, execution="compile")],
        third=[case(values_s=(3.0,) * 5), case(values_s=(1.0,) * 5, execution="compile")],
    )
    found = {
        name: cell.text
        for name, cell in column(part(runs, "gemm"), "against eager").items()
        if cell.text
    }
    assert found == {"numpy compile (third.json)": "3.00x"}


def test_speed_up_is_over_eager_with_the_same_toggles(tmp_path: Path) -> None:
    """What a toggle gains is not said of an execution."""
    entries = [
        case("gemm", "tensorflow", (seconds,) * 5, execution, toggles_asked={"onednn": onednn})
        for onednn, eager_s in (("off", 8.0), ("on", 2.0))
        for execution, seconds in (("eager", eager_s), ("graph", 1.0))
    ]
    found = column(part([stored(tmp_path, "run.json", *entries)], "gemm"), "against eager")
    assert {name: cell.text.partition(" ")[0] for name, cell in found.items() if cell.text} == {
        "tensorflow graph onednn=off": "8.00x",
        "tensorflow graph onednn=on": "2.00x",
    }


def test_a_training_is_told_in_a_row(tmp_path: Path) -> None:
    """Epochs of the first repetition, the accuracy at the end: the median of the repetitions."""
    run = stored(tmp_path, "run.json", training(accuracies=(0.9, 0.8)))
    found = part([run], "training lenet")
    names = [name for name in found.columns if name != "last loss"]
    cells = {name: column(found, name)["torch eager"].text for name in names}
    assert cells == {
        "case": "torch eager",
        "an epoch": "2.75 s",
        "first epoch": "4 s (+78%)",
        "all epochs": "8.5 s",
        "a second": "3,200",
        "accuracy": "85.00%",
        "compiling": "0 s",
        "CPUs busy": "50% of 2",
        "peak memory": "1.00 GiB",
        "measured": "4 epochs",
    }


def test_loss_curves_are_of_the_first_repetition(tmp_path: Path) -> None:
    """Three epochs are three points, and the curve ends where the first training ended."""
    run = stored(tmp_path, "run.json", training())
    chart = chart_of(part([run], "training lenet"), "training loss")
    assert len(parsed(chart.svg).all("circle")) == 3
    assert "torch eager ends at 0.5" in chart.text


def test_the_last_loss_is_where_the_curve_ends(tmp_path: Path) -> None:
    """Chart and table are of the same training."""
    found = part([stored(tmp_path, "run.json", training())], "training lenet")
    assert column(found, "last loss")["torch eager"] == Cell("0.5000", 0.5)


def test_a_training_that_was_not_tested_has_no_accuracy(tmp_path: Path) -> None:
    """Its times are shown, its accuracy is neither 0 nor drawn."""
    run = stored(tmp_path, "run.json", training(accuracies=()))
    found = part([run], "training lenet")
    assert column(found, "accuracy")["torch eager"] == Cell("")
    assert [chart.title for chart in found.charts if "accuracy" in chart.title] == []
    assert shown(run).all("section", id="part-training-lenet-cpu-float32-200")


@pytest.mark.parametrize("loss", [math.nan, math.inf])
def test_a_training_that_diverged_is_shown(tmp_path: Path, loss: float) -> None:
    """Its loss is not a number, and that is what its row says; no point is drawn nowhere."""
    diverged = training(losses=((2.0, loss, loss),) * 2)
    run = stored(tmp_path, "run.json", diverged, training("mxnet"))
    cells = column(part([run], "training lenet"), "last loss")
    assert cells["torch eager"].text == str(loss)
    dots = shown(run).all("circle")
    assert dots
    assert {dot.attributes[name] for dot in dots for name in ("cx", "cy")}.isdisjoint(
        {"nan", "inf", "-inf"}
    )


def test_every_training_has_a_row(tmp_path: Path) -> None:
    """Also the second of the same case in one session, of another test."""
    first, second = training(), training()
    second["fullname"] = "test_other.py::test_other[lenet]"
    assert len(part([stored(tmp_path, "run.json", first, second)], "training lenet").rows) == 2


@pytest.mark.parametrize("made", [case(values_s=(1.0,) * 5), training()])
def test_runs_of_the_same_file_name_are_apart(tmp_path: Path, made: dict[str, Any]) -> None:
    """``base/run.json`` and ``head/run.json`` are two lines in charts, and two rows by name."""
    runs = [
        read(write(tmp_path / name / "run.json", made), number)
        for number, name in enumerate(("base", "head"))
    ]
    (found,) = sections.details(runs)
    assert len({row.cells[0].text for row in found.rows}) == 2
    assert len(parsed(found.charts[0].svg).of_class("legend")) >= 2


def test_dispatch_is_drawn_where_it_differs(tmp_path: Path) -> None:
    """A call that returned long before it was done has a chart of both; one that did not, none."""
    asynchronous = case(framework="torch", dispatch_s=0.1, completion_s=1.0)
    run = stored(tmp_path, "run.json", case(), asynchronous)
    chart = chart_of(part([run], "gemm"), "returned, and done")
    assert "torch eager, returned 100 ms" in chart.text
    assert "torch eager, done 1 s" in chart.text
    assert "numpy" not in chart.text
    assert len(part([stored(tmp_path, "other.json", case())], "gemm").charts) == 1


# The page


def _full(folder: Path) -> list[Run]:
    """Runs with something of everything."""
    first = [
        *(case("gemm", "numpy", size=size) for size in (10, 100)),
        case("gemm", "torch", (1.0, 2.0), dispatch_s=0.1, completion_s=1.5),
        case("gemm", "torch", (1.0, 2.0), "compile"),
        case("dot", device="gpu:0"),
        training(),
        training("mxnet", data={"name": "mnist", "source": "synthetic", "origin": "made"}),
        plain(),
    ]
    missing = [{"nodeid": "x", "framework": "jax", "why": "deselected"}]
    return [
        read(write(folder / "first.json", *first, missing=missing, absent={"jax": "absent"}), 0),
        read(write(folder / "second.json", case()), 1),
    ]


@pytest.fixture
def full(tmp_path: Path) -> Node:
    """A page with something of everything."""
    return shown(*_full(tmp_path), problems=["bad.json is empty"])


def test_one_heading_is_the_first(full: Node) -> None:
    """One h1; no level is skipped on the way down."""
    levels = [int(node.tag[1]) for node in full if re.fullmatch("h[1-6]", node.tag)]
    assert levels[0] == 1
    assert levels.count(1) == 1
    assert max(levels) == 3
    assert all(here <= before + 1 for before, here in itertools.pairwise(levels))
    assert all(node.text for node in full if re.fullmatch("h[1-6]", node.tag))


def test_tables_say_what_they_are(full: Node) -> None:
    """Each has a caption, a scope at each heading cell, and as many cells in a row as columns."""
    tables = full.all("table")
    assert len(tables) >= 7
    for table in tables:
        (caption,) = table.all("caption")
        assert caption.text
        assert {node.attributes.get("scope") for node in table.all("th")} == {"col", "row"}
        width = len(table.all("th", scope="col"))
        assert {len(row.all("th", "td")) for row in table.all("tr")} == {width}


def test_fields_have_labels(full: Node) -> None:
    """Each can be found by its name."""
    fields = full.all("select", "input", "textarea")
    assert [one.tag for one in fields] == ["select"] * 4 + ["input"]
    for one in fields:
        label = one.within("label")
        assert label is not None
        assert label.text


def test_buttons_and_links_have_names(full: Node) -> None:
    """A screen reader says what each does."""
    found = full.all("button", "a")
    assert found
    nameless = [one for one in found if not one.text and "aria-label" not in one.attributes]
    tables = [one.within("table") for one in nameless]
    assert [one.all("caption")[0].text for one in tables if one] == []
    assert nameless == []


def test_the_page_says_its_language_and_title(full: Node) -> None:
    """And that it fits a phone."""
    (html,) = full.all("html")
    assert html.attributes["lang"] == "en"
    (head,) = full.all("head")
    assert head.all("title")[0].text
    (viewport,) = full.all("meta", name="viewport")
    assert "width=device-width" in viewport.attributes["content"]


def test_ids_are_unique(full: Node) -> None:
    """Over the whole document, pictures included."""
    assert [name for name, number in Counter(full.ids).items() if number > 1] == []


def test_ids_of_parts_are_unique(tmp_path: Path) -> None:
    """Whatever the names of operations are made of."""
    names = ("conv relu", "conv-relu", "conv+relu", "conv_relu", "*", "+")
    found = sections.linkable(sections.details([stored(tmp_path, "run.json", *map(case, names))]))
    ids = [one.id for one in found]
    assert len({*ids}) == len(names)
    assert all(re.fullmatch(r"[A-Za-z][\w-]*", one) for one in ids)


def test_what_is_referred_to_is_there(full: Node) -> None:
    """Links lead somewhere, labels are headings, entries of the index belong to a part."""
    ids = {*full.ids}
    links = [node.attributes["href"].removeprefix("#") for node in full.all("a")]
    (nav,) = full.all("nav")
    sections = [node.attributes["id"] for node in full.of_class("detail")]
    assert [node.attributes["data-for"] for node in nav.all("li")] == sections
    assert [node.attributes["href"] for node in nav.all("a")] == [f"#{one}" for one in sections]
    named_by = [
        node.attributes["aria-labelledby"] for node in full if "aria-labelledby" in node.attributes
    ]
    assert {*links, *named_by} <= ids


def test_where_numbers_come_from(tmp_path: Path) -> None:
    """Command, revision, machine, versions, threads, toggles, data, launches."""
    session = {
        "arguments": ["benchmarks", "--fw-launches=5"],
        "threads": 2,
        "launches": {"launches": 5, "seed": 7},
        "machine": {"cpu": "Fake CPU", "usable_cpus": 3, "os": "Fake OS", "python": "3.99"},
        "frameworks": {"torch": {"version": "2.9", "build": {"blas": "mkl"}}},
        "absent": {"jax": "not installed"},
    }
    made = output([case(), training()], **session)
    made["commit_info"] = {"id": "abc123", "branch": "topic", "dirty": True}
    made["datetime"] = "2026-11-21T10:00:00"
    path = tmp_path / "run.json"
    path.write_text(json.dumps(made), encoding="utf-8")
    (section,) = shown(read(path)).all("section", **{"aria-labelledby": "provenance"})
    names, values = ([node.text for node in section.all(tag)] for tag in ("dt", "dd"))
    found = dict(zip(names, values, strict=True))
    assert found == {
        "measured": "2026-11-21T10:00:00",
        "command": "benchmarks --fw-launches=5",
        "revision": "abc123 (topic), with uncommitted changes",
        "cpu": "Fake CPU",
        "usable cpus": "3",
        "system": "Fake OS",
        "python": "3.99",
        "threads": "2",
        "launches": "5, seed 7",
        "written by": "fwbench 0.1.0",
        "torch": "2.9; blas mkl",
        "jax, absent": "not installed",
        "numpy blas": "openblas",
        "torch blas": "openblas",
        "data set mnist": "real: its authors",
    }


def test_rows_carry_what_they_are_chosen_by(full: Node) -> None:
    """Each value of a row is an option of its filter."""
    options = {
        select.attributes["data-filter"]: {one.text for one in select.all("option")}
        for select in full.all("select")
    }
    assert options["framework"] == {"all", "numpy", "torch", "mxnet"}
    assert options["device"] == {"all", "cpu", "gpu:0"}
    rows = [row for row in full.all("tr") if "data-framework" in row.attributes]
    assert len(rows) == 8
    for row in rows:
        for name, found in options.items():
            assert row.attributes[f"data-{name}"] in found


def test_colours_can_be_read() -> None:
    """Text against what is behind it: 4.5 to 1 at least (WCAG 2.1, 1.4.3), light and dark."""
    css = (Path(html.__file__).parents[1] / "templates" / "report.css").read_text(encoding="utf-8")
    schemes = [dict(re.findall(r"--(\w+): (#\w{6})", line)) for line in css.splitlines()]
    light, dark = [one for one in schemes if one]
    for scheme in (light, dark):
        for ink in ("ink", "link", "warn"):
            for paper in ("paper", "shade"):
                assert _contrast(scheme[ink], scheme[paper]) >= 4.5


def _contrast(one: str, other: str) -> float:
    low, high = sorted(map(_luminance, (one, other)))
    return (high + 0.05) / (low + 0.05)


def _luminance(colour: str) -> float:
    shares = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [s / 12.92 if s <= 0.04045 else ((s + 0.055) / 1.055) ** 2.4 for s in shares]
    return sum(s * weight for s, weight in zip(linear, (0.2126, 0.7152, 0.0722), strict=True))


def test_a_thousand_cases_are_below_three_megabytes(tmp_path: Path) -> None:
    """Ten operations in twenty sizes by five frameworks, each with a row."""
    entries = [
        case(f"workload{i}", framework, [seconds * 1e-4 * size for seconds in QUIET], size=size)
        for i in range(10)
        for size in (2**power for power in range(20))
        for framework in ("numpy", "torch", "tensorflow", "mxnet", "jax")
    ]
    made = html.html([stored(tmp_path, "run.json", *entries)])
    found = parsed(made)
    rows = [row for row in found.all("tr") if "data-framework" in row.attributes]
    assert len(rows) == 1000
    assert len(found.all("svg")) == 10
    assert len(made.encode()) < 3_000_000


# The charts


def test_charts_are_told_in_words(full: Node, tmp_path: Path) -> None:
    """Each picture has a text that names every line of its legend."""
    pictures = full.of_class("chart")
    of_parts = [chart for one in sections.details(_full(tmp_path)) for chart in one.charts]
    assert len(pictures) == len(of_parts) >= 6
    for picture in pictures:
        assert picture.attributes["role"] == "img"
        told = picture.attributes["aria-label"]
        legends = [one.text for one in picture.of_class("legend")]
        assert legends
        for legend in legends:
            assert legend in told


def test_pictures_have_no_title_of_the_library(full: Node) -> None:
    """Browsers show it where a pointer rests."""
    pictures = full.all("svg")
    assert pictures
    assert "Pygal" not in {title.text for one in pictures for title in one.all("title")}


@pytest.mark.parametrize("size", [1, 2, 100])
def test_one_size_is_a_point(tmp_path: Path, size: int) -> None:
    """A line needs two; one size has a dot for each framework, inside the picture."""
    entries = [case(size=size), case(framework="torch", values_s=(3.0, 4.0), size=size)]
    (chart,) = part([stored(tmp_path, "run.json", *entries)], "gemm").charts
    dots = parsed(chart.svg).all("circle")
    assert len(dots) == 2
    for dot in dots:
        assert 0 <= float(dot.attributes["cx"]) <= 820
        assert 0 <= float(dot.attributes["cy"]) <= 430


@pytest.mark.parametrize("smallest", [1, 2, 10])
def test_every_size_is_a_point(tmp_path: Path, smallest: int) -> None:
    """In the order of sizes, whatever order they were measured in; from a single element on."""
    sizes = [smallest * factor for factor in (100, 1, 10)]
    entries = [case(size=size, values_s=(size * 1e-3,) * 5) for size in sizes]
    (chart,) = part([stored(tmp_path, "run.json", *entries)], "gemm").charts
    places = [float(dot.attributes["cx"]) for dot in parsed(chart.svg).all("circle")]
    assert len(places) == 3
    assert places == sorted(places)
    first, second, third = places
    assert 0 <= first < third <= 820
    assert second - first == pytest.approx(third - second), "the axis is logarithmic"


def test_points_say_value_and_spread(tmp_path: Path) -> None:
    """What is shown where a pointer is: time, how many launches, between what half of them lie."""
    run = stored(tmp_path, "run.json", case(values_s=(0.001, 0.002, 0.003)))
    (dot,) = parsed(part([run], "gemm").charts[0].svg).of_class("dots")
    assert "2 ms" in dot.text
    assert "3 launches, 1 ms to 3 ms" in dot.text


@pytest.mark.parametrize("number", [1, 3, 8, 9, 12])
def test_every_point_has_its_spread(number: int) -> None:
    """However many lines there are; each has a name and one of the colours."""
    points = {f"line {i}": [Point(10, 1.0 + i, 0.5 + i, 2.0 + i)] for i in range(number)}
    picture = parsed(charts.lines("title", points, "size").svg)
    assert len(picture.of_class("ci")) == len(picture.of_class("legend")) == number
    found = {
        node.attributes["class"].split("color-")[1].split()[0]
        for node in picture.of_class("series")
    }
    assert len(found) == number


def test_a_point_without_spread_has_none() -> None:
    """A single value spreads over nothing."""
    picture = parsed(charts.lines("title", {"line": [Point(10, 1.0, 1.0, 1.0)]}, "size").svg)
    assert picture.of_class("ci") == []


def test_bars_are_told_one_by_one() -> None:
    """Values in the words that the picture uses; a value that is not there is not told."""
    chart = charts.bars("t", {"first": {"a": 1.0, "b": 2.0}, "all": {"a": 3.0}}, "{} s".format)
    assert chart.text == "t: a, first: 1.0 s; a, all: 3.0 s; b, first: 2.0 s"


def test_accuracy_is_drawn_over_time(tmp_path: Path) -> None:
    """A point for each training, at all of its epochs and its median accuracy."""
    run = stored(tmp_path, "run.json", training(), training("mxnet", accuracies=(0.5,)))
    chart = chart_of(part([run], "training"), "time against accuracy")
    assert chart.text.endswith("torch eager 8.5 s, 85.00%; mxnet eager 8.5 s, 50.00%")
    assert len(parsed(chart.svg).all("circle")) == 2


# CSV and Markdown


def test_csv_has_a_line_for_each_case(tmp_path: Path) -> None:
    """Times are seconds, as numbers, without rounding; what is not known is empty."""
    tricky = {**plain('a, "quoted"\nname', 0.1), "group": None}
    run = stored(tmp_path, "run.json", case(values_s=(1 / 3, 2 / 3, 1.0)), training(), tricky)
    first, second, third = csv.DictReader(io.StringIO(text.table([run])))
    assert first["case"] == "gemm-numpy-eager-cpu-forward-float32-100"
    assert (first["workload"], first["framework"], first["size"]) == ("gemm", "numpy", "100")
    assert (float(first["median_s"]), float(first["low_s"])) == (2 / 3, 1 / 3)
    assert (float(first["high_s"]), float(first["first_call_s"])) == (1.0, 10 * (1 / 3))
    assert (first["values"], first["of"]) == ("3", "launches")
    assert (second["workload"], second["of"], second["values"]) == ("lenet", "epochs", "4")
    assert third["case"] == 'a, "quoted"\nname'
    assert (third["framework"], third["dispatch_s"]) == ("", "")
    assert float(third["median_s"]) == pytest.approx(0.15)
    for row in (first, second, third):
        assert None not in row
        assert None not in row.values()


def test_csv_of_several_runs_says_which(tmp_path: Path) -> None:
    """By the name of the file."""
    runs = runs_of(tmp_path, first=[case()], second=[case(), case("dot")])
    found = [row["run"] for row in csv.DictReader(io.StringIO(text.table(runs)))]
    assert found == ["first.json", "second.json", "second.json"]


def test_markdown_tables_are_whole(tmp_path: Path) -> None:
    """A row has as many cells as the header, whatever names hold; each table has a heading."""
    names = ("a|b", "a\\|b", "a\\", "a\nb", "a | b ||")
    entries = [
        *(case(framework=name, execution=name, group=name) for name in names),
        *(plain(name) for name in names),
    ]
    missing = [{"nodeid": "x", "framework": "x", "why": name} for name in names]
    run = stored(tmp_path, "run.json", *entries, missing=missing)
    blocks = text.markdown([run]).split("\n### ")
    tables = [block for block in blocks if "\n| " in block]
    assert len(tables) == 5
    for block in tables:
        lines = [line for line in block.split("\n")[1:] if line.startswith("|")]
        assert all(line.endswith(" |") for line in lines)
        assert len({markdown_cells(line) for line in lines}) == 1
        assert re.fullmatch(r"\| ---( \| ---:)+ \|", lines[1])
    assert r"a\|b" in text.markdown([run])


def test_markdown_holds_every_part(tmp_path: Path) -> None:
    """The tables of the page, in the order of the page, and what could not be read."""
    runs = _full(tmp_path)
    written = text.markdown(runs, ["bad.json is empty"])
    titles = [one.title for one in (*summary.parts(runs), *sections.details(runs))]
    assert re.findall(r"^### (.+)$", written, re.MULTILINE) == titles
    assert "bad.json is empty" in written
    assert written.endswith("|\n")
