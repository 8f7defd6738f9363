"""History in a report: tables, charts, and statistics without values."""

import csv
import io
import re
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from fwbench.report import history, sections, writers
from fwbench.report.drawing import lines, palette
from fwbench.report.drawing.chart import Chart, Point
from fwbench.report.history import collect
from fwbench.report.section import Section
from support.histories import day, dots, levels, line, saved, statistics_of
from support.launched_runs import plain
from support.reports import (
    HOSTILE,
    case,
    chart_of,
    column,
    handlers,
    parsed,
    part_of,
    rounds_of,
    run_of,
    training,
)
from support.section_parts import marks, rows


def heights_of(chart: Chart, series: int) -> list[float]:
    """Heights of the ends of a line in a picture, from left to right; 0 is above."""
    (path,) = [
        path
        for node in parsed(chart.svg).of_class(f"serie-{series}")
        for path in node.all("path")
        if "line" in path.attributes["class"]
    ]
    matches = re.findall(r"-?[\d.]+ (-?[\d.]+)", path.attributes["d"])
    return [float(height) for height in matches]


def test_a_row_tells_first_and_last() -> None:
    times_s = levels((10, 0.001), (10, 0.002), (10, 0.0015), noise=0.0)
    _, section = history.sections([line(times_s, versions=((0, "1.0"), (20, "2.0")))])
    assert section.title == "history of gemm, Fake CPU, 2 threads"
    assert rows(section) == [
        {
            "case": "gemm-numpy",
            "runs": "30",
            "first": "1 ms",
            "last": "1.5 ms",
            "change": "+50.0%",
            "since": day(0),
            "upgrades": "1.0 -> 2.0",
            "shifts": f"{day(10)} +100.0%; {day(20)} -25.0%",
        }
    ]
    (row,) = section.rows
    assert [cell.value for cell in row.cells[1:5]] == pytest.approx([30, 0.001, 0.0015, 0.5])
    assert row.keys["framework"] == "numpy"


def test_cases_are_in_the_part_of_their_workload(tmp_path: Path) -> None:
    larger = {**case(size=200), "fullname": "test_it.py::test_it[200]"}
    entries = [case(), case("dot"), case("gemm", "torch"), larger, plain()]
    for number in range(2):
        saved(tmp_path / f"{number}.json", *entries, at=number)
    section = history.sections(collect(tmp_path)[0])
    assert {
        shown_section.title.partition(",")[0]: len(shown_section.rows) for shown_section in section
    } == {
        "Lasting shifts": 0,
        "history of gemm": 3,
        "history of dot": 1,
        "history of other benchmarks": 1,
    }


def drawn(runs: int, events: Mapping[int, str] = {}) -> Chart:
    """A chart of a run a day, with what happened at some of them."""
    points = [Point(i, 1.0 + i, 0.5 + i, 1.5 + i, f"label {i}") for i in range(runs)]
    return lines.draw_over_time("gemm", [day(i) for i in range(runs)], points, events)


@pytest.mark.parametrize("runs", [2, 10, 59, 60])
def test_a_dot_for_each_run(runs: int) -> None:
    result = dots(drawn(runs))
    assert len(result) == runs
    places = [float(dot.attributes["cx"]) for dot in result]
    assert places == sorted({*places})
    heights = [float(dot.attributes["cy"]) for dot in result]
    assert heights == sorted({*heights}, reverse=True)
    assert 0 <= places[0] < places[-1] <= 440
    labels = parsed(drawn(runs).svg).of_class("dots")
    assert all(f"label {number}" in label.text for number, label in enumerate(labels))


@pytest.mark.parametrize("runs", [61, 300])
def test_many_runs_have_no_dots(runs: int) -> None:
    assert dots(drawn(runs)) == []
    chart = drawn(runs, {40: "an event", 50: "another"})
    assert len(dots(chart)) == 2
    first, second = (node.text for node in parsed(chart.svg).of_class("dots"))
    assert ("an event" in first, "another" in second) == (True, True)
    assert len(heights_of(chart, 0)) == runs


def test_events_are_marked_on_the_dots_of_their_runs() -> None:
    result = dots(drawn(10, {3: "an event", 7: "another"}))
    places = [(dot.attributes["cx"], dot.attributes["cy"]) for dot in result]
    assert places[10:] == [places[3], places[7]]


@pytest.mark.parametrize("label", ["+6.5%", "+12,621.9%"])
def test_what_is_printed_beside_the_last_dot_has_room(label: str) -> None:
    points = [Point(i, 1.0 + i, 1.0 + i, 1.0 + i) for i in range(3)]
    chart = lines.draw_over_time("gemm", ["1", "2", "3"], points, {2: label}, are_printed=True)
    axis = int(re.findall(r"translate\((\d+), \d+\)", chart.svg)[0])
    label_ends = axis + float(dots(chart)[2].attributes["cx"]) + 12 + 6 * len(label)
    assert 420 < label_ends < 440


def test_the_median_is_between_its_quartiles() -> None:
    chart = drawn(5)
    for median, lower, upper in zip(*(heights_of(chart, i) for i in range(3)), strict=True):
        assert lower - median == pytest.approx(median - upper)
        assert lower > median


def test_lines_of_a_history_have_names_and_colours() -> None:
    names = ["median", "lower quartile", "upper quartile"]
    for events, expected in (({}, names), ({1: "x"}, [*names, "upgrade or lasting shift"])):
        legends = parsed(drawn(5, events).svg).of_class("legend")
        assert [legend.text for legend in legends] == expected
        median, lower, upper, *marked = [node.attributes["style"] for node in legends]
        assert median == lower == upper
        assert median not in marked
        opacities = [node.all("rect")[0].attributes["style"] for node in legends]
        assert len({*opacities[:3]}) == 2, "quartiles are paler than medians"


def test_a_history_has_the_colour_of_its_framework() -> None:
    *_, section = history.sections([line([1.0, 1.1], "gemm", framework="mxnet")])
    assert palette.COLOURS["mxnet"] in section.charts[0].svg


@pytest.mark.parametrize("step", [1e-9, 1e-6, 0.01, 3.0])
def test_no_two_heights_have_one_label(step: float) -> None:
    points = [Point(i, 1.02 + i * step, 1.02 + i * step, 1.02 + i * step) for i in range(9)]
    labels = marks(lines.draw_over_time("gemm", [day(i) for i in range(9)], points, {}), "y")
    assert 2 <= len({*labels}) == len(labels) <= 7


def test_times_that_are_all_the_same_are_drawn() -> None:
    points = [Point(i, 1.02, 1.02, 1.02) for i in range(9)]
    assert len(dots(lines.draw_over_time("gemm", [day(i) for i in range(9)], points, {}))) == 9


def test_charts_of_a_history_share_a_legend() -> None:
    """The one of several frameworks is in the page's ink, that of one in its colour."""
    upgraded = line([1.0, 1.1], "gemm", versions=((0, "1.0"), (1, "1.1")))
    *_, section = history.sections([upgraded, line([1.0, 1.1], "gemm", framework="mxnet")])
    assert [*section.legend] == [*section.charts[0].legends]
    assert [len(chart.legends) for chart in section.charts] == [4, 3]
    assert all(chart.has_keys for chart in section.charts)
    assert section.legend["median"].colour == "var(--ink)"
    *_, alone = history.sections([line([1.0, 1.1], "gemm", framework="mxnet")])
    assert [*alone.legend] == [*alone.charts[0].legends]
    assert alone.legend["median"].colour == palette.COLOURS["mxnet"]


def test_a_history_has_a_text() -> None:
    begin = f"gemm: 1 s ({day(0)}), "
    assert drawn(3).text == f"{begin}3 s ({day(2)}); no upgrade or lasting shift"
    chart = drawn(9, {7: "another", 2: "an event"})
    assert chart.text == f"{begin}9 s ({day(8)}); {day(2)}: an event; {day(7)}: another"


@pytest.mark.parametrize("runs", [2, 8, 9, 60, 365])
def test_labels_have_room(runs: int) -> None:
    result = marks(drawn(runs), "x")
    assert result[0] == day(0)
    assert min(runs, 3) <= len(result) <= 4


def test_a_case_of_one_run_has_no_chart() -> None:
    _, section = history.sections([line([1.0], "once"), line([1.0, 2.0], "twice")])
    assert [*column(section, "case")] == ["once", "twice"]
    assert [chart.title for chart in section.charts] == ["twice"]
    assert section.page_notes == []


def test_only_300_cases_are_drawn(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lines, "draw_over_time", lambda title, *_, **_more: Chart(title, "", ""))
    still = [line([1.0, 1.0], f"still {number}") for number in range(303)]
    other = [
        line([1.0] * 10 + [2.0] * 10, f"shifted {number}", machine="Other CPU, 2 threads")
        for number in range(2)
    ]
    once = [line([1.0], f"once {number}") for number in range(5)]
    _, here, there = history.sections([*once, *still, *other])
    assert [chart.title for chart in there.charts] == ["shifted 0", "shifted 1"]
    assert [chart.title for chart in here.charts] == [f"still {number}" for number in range(298)]
    assert len(here.rows) == 308
    assert here.page_notes == ["5 more cases without a chart: -k NAME selects fewer cases."]
    assert there.page_notes == []
    _, section = history.sections([*once, *still[:300]])
    assert (len(section.charts), section.page_notes) == (300, [])


def named(folder: Path, name: str) -> list[Section]:
    """The history of cases with a shift and an upgrade, in which this is the name of everything."""
    everywhere: dict[str, Any] = dict.fromkeys(("device", "direction", "dtype"), name)
    for number in range(20):
        facts = {**everywhere, "framework_version": f"{name}{number // 10}"}
        time_s = 1.0 + number // 10
        saved(
            folder / f"{number}.json",
            case(name, name, (time_s,) * 3, name, **facts),
            {**plain(name, time_s), "group": name},
            at=number,
            revision=name,
            machine={"cpu": name},
        )
    return history.sections(collect(folder)[0])


@pytest.mark.parametrize("name", HOSTILE)
def test_names_are_no_markup_in_a_history(tmp_path: Path, name: str) -> None:
    # As long as the other: what is shortened is so in both.
    harmless = parsed(writers.html([], before=named(tmp_path / "harmless", "x" * len(name))))
    result = named(tmp_path / "hostile", name)
    hostile = parsed(writers.html([], before=result))
    assert Counter(node.tag for node in hostile) == Counter(node.tag for node in harmless)
    assert handlers(hostile) == []
    assert len(hostile.of_class("chart")) == 2
    assert name in hostile.text
    assert f"{name}0 -> {name}1" in hostile.text
    written = writers.markdown([], before=result)
    assert "<" not in written
    assert len([row for row in written.splitlines() if row.startswith("| ---")]) == 3


_KEPT: dict[str, tuple[dict[str, Any], tuple[str, str, str]]] = {
    "rounds": (statistics_of(rounds_of(case())), ("2 s", "1 s to 4 s", "137 rounds")),
    "one round": (statistics_of(rounds_of(case()), rounds=1), ("2 s", "1 s to 4 s", "1 round")),
    "launches": (
        statistics_of(case(values_s=(3.0, 5.0, 6.0))),
        ("5 s", "3 s to 6 s", "3 launches"),
    ),
    "another's": (statistics_of(plain()), ("2 s", "1 s to 4 s", "137 rounds")),
}


@pytest.mark.parametrize(("made", "expected"), _KEPT.values(), ids=_KEPT)
def test_statistics_are_shown_where_values_were_not_kept(
    made: dict[str, Any], expected: tuple[str, str, str]
) -> None:
    (section,) = sections.details([run_of(made)])
    (row,) = rows(section)
    assert (row["median"], row["middle half"], row["measured"]) == expected


def test_statistics_of_a_training() -> None:
    (row,) = rows(part_of("training lenet", statistics_of(training(), rounds=4)))
    assert (row["an epoch"], row["measured"]) == ("2 s", "4 epochs")


def test_statistics_are_drawn() -> None:
    made = statistics_of(rounds_of(case()))
    chart = chart_of(part_of("gemm", made), "time at size 100")
    (bar,) = parsed(chart.svg).of_class("bar")
    assert "2 s" in bar.text
    assert "137 rounds, 1 s to 4 s" in bar.text
    assert len(parsed(chart.svg).of_class("ci")) == 1


def test_a_median_without_quartiles_has_no_spread() -> None:
    first, other = rounds_of(case()), rounds_of(case("dot"))
    first["stats"] = {"min": 1.0, "median": 2.0}
    other["stats"] = {"min": 1.0}
    run = run_of(first, other)
    shown = [rows(section)[0] for section in sections.details([run])]
    assert [row["median"] for row in shown] == ["2 s", "1 s"]
    assert [row["middle half"] for row in shown] == ["2 s to 2 s", "1 s to 1 s"]
    assert [row["measured"] for row in shown] == ["1 round"] * 2


def test_statistics_in_csv() -> None:
    run = run_of(
        statistics_of(rounds_of(case())),
        statistics_of(rounds_of(case("dot")), rounds=1),
        statistics_of(case("conv", values_s=(3.0, 5.0, 6.0))),
        statistics_of(training(), rounds=4),
        statistics_of(plain()),
    )
    results = [
        (row["median_s"], row["low_s"], row["high_s"], row["values"], row["of"])
        for row in csv.DictReader(io.StringIO(writers.comma_separated([run])))
    ]
    assert results == [
        ("2.0", "1.0", "4.0", "137", "rounds"),
        ("2.0", "1.0", "4.0", "1", "round"),
        ("5.0", "3.0", "6.0", "3", "launches"),
        ("2.0", "1.0", "4.0", "4", "epochs"),
        ("2.0", "1.0", "4.0", "137", "rounds"),
    ]


def test_a_record_without_its_values() -> None:
    """A history has thousands of records, and keeps of each what it is called alone."""
    (record,) = run_of(case()).records
    bare = record.without_values()
    assert ([*bare.values_s], bare.stats) == ([], {})
    assert (bare.name, bare.nodeid, bare.facts) == (record.name, record.nodeid, record.facts)


def test_values_are_before_statistics() -> None:
    made = rounds_of(case(values_s=[0.001 * i for i in (5, 3, 9, 1, 7, 2, 8, 4, 6)]))
    made["stats"] |= {"median": 9.0, "q1": 9.0, "q3": 9.0, "rounds": 99}
    (row,) = rows(part_of("gemm", made))
    assert (row["median"], row["middle half"]) == ("5 ms", "3 ms to 7 ms")
    assert row["measured"] == "9 rounds"


def test_one_run_is_no_change() -> None:
    """Nothing is +0.0 %, and a shift needs more runs than there are."""
    lasting, section = history.sections([line([1.0], name) for name in ("gemm", "dot")])
    assert [*lasting.notes] == [
        f"2 cases in up to 1 run, {day(0)}, on Fake CPU, 2 threads.",
        "Shifts of 3% and more that lasted for 5 runs at least (PELT).",
        "2 cases had fewer than 10 runs: too few to tell.",
    ]
    assert [*section.columns] == ["case", "runs", "first", "since"]
    page = parsed(writers.html([], before=[lasting, section]))
    assert page.all("title")[0].text == "fwbench history"


def test_contended_runs_are_marked(tmp_path: Path) -> None:
    for number, condition in enumerate(("clean", "contended")):
        saved(tmp_path / f"{number}.json", case(condition=condition), at=number)
    _, section = history.sections(collect(tmp_path)[0])
    assert rows(section)[0]["contended"] == "1 of 2"
    clean, contended = dots(section.charts[0])
    assert [dot.attributes.get("opacity") for dot in (clean, contended)] == [None, ".3"]
