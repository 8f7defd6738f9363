"""Shifts that last are found in a history, and upgrades of frameworks."""

import math
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from fwbench import cli
from fwbench.errors import UsageError
from fwbench.report import history
from fwbench.report.history import Shift, collect, shifts
from support.histories import day, dots, levels, line, nightly, only, when
from support.reports import column, parsed
from support.section_parts import rows

_USAGE_ERROR = 2

#: How far from its place a shift may be found, in runs.
_NEAR = 2


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("noise", [0.002, 0.01, 0.02])
@pytest.mark.parametrize("change", [0.1, -0.1, 0.5, -0.5])
@pytest.mark.parametrize("at", [10, 20, 30])
def test_a_shift_is_found(at: int, change: float, noise: float, seed: int) -> None:
    times_s = levels((at, 1.0), (40 - at, 1.0 + change), noise=noise, seed=seed)
    (shift,) = shifts(times_s)
    assert abs(shift.at - at) <= _NEAR
    assert shift.change == pytest.approx(change, abs=2 * noise)
    assert shift.before_s == pytest.approx(1.0, rel=noise)
    assert shift.after_s == pytest.approx(1.0 + change, rel=noise)


def test_the_change_of_a_shift() -> None:
    assert Shift(1, 2.0, 3.0).change == 0.5
    assert Shift(1, 2.0, 1.0).change == -0.5


@pytest.mark.parametrize("second", [0.8, 1.0, 1.5])
def test_two_shifts_are_found(second: float) -> None:
    first, other = shifts(levels((20, 1.0), (20, 1.2), (20, second)))
    assert abs(first.at - 20) <= _NEAR
    assert abs(other.at - 40) <= _NEAR
    assert first.change == pytest.approx(0.2, abs=0.02)
    assert other.change == pytest.approx(second / 1.2 - 1, abs=0.02)


@pytest.mark.parametrize("factor", [0.3, 1.5, 3.0, 1000.0])
@pytest.mark.parametrize("at", [0, 1, 2, 15, 27, 28, 29])
@pytest.mark.parametrize("outliers", [1, 2])
def test_outliers_are_no_shift(at: int, factor: float, outliers: int) -> None:
    times_s = levels((30, 1.0))
    times_s[at : at + outliers] = [factor * time_s for time_s in times_s[at : at + outliers]]
    assert shifts(times_s) == []


def test_outliers_do_not_hide_a_shift() -> None:
    times_s = [
        3.0 * time_s if number % 10 == 3 else time_s
        for number, time_s in enumerate(levels((25, 1.0), (25, 1.1)))
    ]
    (shift,) = shifts(times_s)
    assert abs(shift.at - 25) <= _NEAR
    assert shift.change == pytest.approx(0.1, abs=0.02)


@pytest.mark.parametrize("seed", range(10))
def test_small_changes_are_no_shifts(seed: int) -> None:
    noise = 0.002
    assert shifts(levels((20, 1.0), (20, 1.02), noise=noise, seed=seed)) == []
    assert shifts(levels((20, 1.0), (20, 0.98), noise=noise, seed=seed)) == []
    assert len(shifts(levels((20, 1.0), (20, 1.04), noise=noise, seed=seed))) == 1
    assert len(shifts(levels((20, 1.0), (20, 0.96), noise=noise, seed=seed))) == 1


@pytest.mark.parametrize("runs", range(10))
def test_too_few_runs_say_nothing(runs: int) -> None:
    assert shifts(levels((runs // 2, 1.0), (runs - runs // 2, 9.0))) == []


def test_ten_runs_are_enough() -> None:
    (shift,) = shifts(levels((5, 1.0), (5, 1.5)))
    assert shift.at == 5
    assert shift.change == pytest.approx(0.5, abs=0.03)


def test_constant_times_have_no_noise() -> None:
    assert shifts([1.0] * 40) == []
    assert shifts([1e-9] * 10) == []
    assert shifts([1.0] * 20 + [1.1] * 20) == [Shift(20, 1.0, 1.1)]
    assert shifts([1.0] * 20 + [1.02] * 20) == []


@pytest.mark.parametrize("unit", [1e-9, 1e-3, 1e4])
def test_shifts_are_the_same_in_every_unit(unit: float) -> None:
    times_s = levels((20, 1.0), (20, 1.2))
    (shift,), (other,) = shifts(times_s), shifts([unit * time_s for time_s in times_s])
    assert shift.at == other.at
    assert shift.change == pytest.approx(other.change)


@pytest.mark.parametrize("noise", [0.002, 0.02, 0.1])
def test_noise_is_no_shift(noise: float) -> None:
    """In 200 histories of 30 runs without a shift, at most 4 % are flagged."""
    flagged = sum(bool(shifts(levels((30, 1.0), noise=noise, seed=seed))) for seed in range(200))
    assert flagged <= 8


def test_noise_hides_few_shifts() -> None:
    """With noise of 5 %, a shift of 10 % is found in three quarters of 100 histories."""
    times_s = (levels((20, 1.0), (20, 1.1), noise=0.05, seed=seed) for seed in range(100))
    detected = sum(any(abs(shift.at - 20) <= _NEAR for shift in shifts(times)) for times in times_s)
    assert detected >= 75


@pytest.mark.parametrize("grows", [True, False])
def test_noise_that_changes_is_no_shift(grows: bool) -> None:
    """Noise of 0.5 % becomes one of 3 %, or the other way round, around the same time."""
    sizes = np.linspace(*((0.005, 0.03) if grows else (0.03, 0.005)), 60)

    def flagged(seed: int) -> bool:
        random = np.random.default_rng(seed)
        return bool(
            shifts([float(time_s) for time_s in np.exp(sizes * random.standard_normal(60))])
        )

    assert sum(map(flagged, range(100))) <= 8


def test_runs_that_alternate_are_no_shift() -> None:
    """A machine with two kinds of cores has two levels in turn."""
    assert shifts([1.0, 1.2] * 20) == []


def test_two_speeds_by_chance_are_no_shift() -> None:
    """One of each run: where fewer than half of the steps switch, noise seems to be that of one."""

    def flagged(seed: int) -> bool:
        random = np.random.default_rng(seed)
        logs = random.normal(0, 0.01, 100) + math.log(1.1) * (random.random(100) < 0.3)
        return bool(shifts([float(time_s) for time_s in np.exp(logs)]))

    assert sum(map(flagged, range(50))) <= 6


def test_contended_runs_make_no_shift() -> None:
    """Their times are upper bounds; a shift of the others is placed among all runs."""
    case = line(levels((10, 1.0), (6, 1.3), (10, 1.0)))
    busy = range(10, 16)
    moments = [replace(each, is_contended=at in busy) for at, each in enumerate(case.moments)]
    section, *_ = history.sections([replace(case, moments=moments)])
    assert not section.rows
    assert "Contended runs, whose times are upper bounds, are left out of these." in section.notes
    slower = [*moments[:21], *(replace(moment, median_s=2.0) for moment in moments[21:])]
    section, *_ = history.sections([replace(case, moments=slower)])
    assert [row["since"] for row in rows(section)] == [day(21)]


@pytest.fixture
def without_ruptures(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ruptures", None)


@pytest.mark.usefixtures("without_ruptures")
def test_the_library_may_be_missing() -> None:
    with pytest.raises(UsageError, match=r"ruptures.*fwbench\[history\]"):
        shifts(levels((10, 1.0)))
    assert shifts(levels((9, 1.0))) == []


@pytest.mark.usefixtures("without_ruptures")
def test_without_the_library_nothing_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    nightly(tmp_path / ".benchmarks", levels((10, 1.0)))
    Path("history.html").write_text("earlier", encoding="utf-8")
    assert cli.main(["report", "--history", ".benchmarks", "-o", "history.html"]) == _USAGE_ERROR
    captured = capsys.readouterr()
    assert "fwbench[history]" in captured.err
    assert captured.out == ""
    assert Path("history.html").read_text(encoding="utf-8") == "earlier"


def test_shifts_are_listed_first() -> None:
    lines = [
        line(levels((20, 0.001))),
        line(levels((10, 1.0), (10, 0.5)), "faster"),
        line(levels((10, 0.002), (10, 0.0022), noise=0.0), "slower", machine="Other CPU, 1 thread"),
        line(levels((10, 1.0), (10, 2.0)), "far slower"),
    ]
    section, *_ = history.sections(lines)
    assert section.title == "Lasting shifts"
    assert [*column(section, "case")] == ["far slower", "slower", "faster"]
    assert rows(section)[1] == {
        "case": "slower",
        "machine": "Other CPU, 1 thread",
        "since": day(10),
        "revision": "revision10",
        "change": "+10.0%",
        "before": "2 ms",
        "after": "2.2 ms",
        "with it": "",
    }
    row = section.rows[1]
    assert row.keys == lines[2].keys
    assert [cell.value for cell in row.cells[4:7]] == pytest.approx([0.1, 0.002, 0.0022])
    assert "PELT" in section.notes[1]
    assert not [note for note in section.notes if "No shift was found" in note]


def test_no_shift_is_said() -> None:
    few = [line(levels((9, 1.0)), name) for name in ("a", "b")]
    section, *_ = history.sections([*few, line(levels((10, 1.0)))])
    assert section.rows == []
    too_few = "cases had fewer than 10 runs: too few to tell."
    assert section.notes[2:] == [f"2 {too_few}", "No shift was found."]
    section, *_ = history.sections([few[0]])
    assert section.notes[2:] == ["1 case had fewer than 10 runs: too few to tell."]
    section, *_ = history.sections([line(levels((10, 1.0)))])
    assert section.notes[2:] == ["No shift was found."]


def test_upgrades_are_where_versions_change() -> None:
    versions = ((0, "1.0"), (2, "1.1"), (3, "2.0"), (6, "1.1"))
    assert line([1.0] * 8, versions=versions).upgrades == {
        2: "1.0 -> 1.1",
        3: "1.1 -> 2.0",
        6: "2.0 -> 1.1",
    }
    assert line([1.0] * 8).upgrades == {}
    assert line([1.0]).upgrades == {}


def test_a_version_that_is_not_recorded_is_no_upgrade() -> None:
    assert line([1.0] * 4, versions=((0, ""), (2, "1.0"))).upgrades == {}
    assert line([1.0] * 4, versions=((0, "1.0"), (2, ""))).upgrades == {}
    assert line([1.0] * 6, versions=((0, "1.0"), (2, ""), (3, "2.0"))).upgrades


def test_upgrades_are_collected(tmp_path: Path) -> None:
    history_line = only(collect(nightly(tmp_path, [1.0] * 4, upgraded=2))[0])
    assert history_line.upgrades == {2: "1.0 -> 2.0"}


def test_upgrades_are_shown() -> None:
    versions = ((0, "1.0"), (2, "1.1"), (3, "2.0"))
    _, section = history.sections([line([1.0] * 5, versions=versions)])
    assert rows(section)[0]["upgrades"] == "1.0 -> 1.1; 1.1 -> 2.0"
    (chart,) = section.charts
    assert f"{day(2)}: upgrade 1.0 -> 1.1; {day(3)}: upgrade 1.1 -> 2.0" in chart.text
    labels = [node.text for node in parsed(chart.svg).of_class("dots")]
    for number, change in ((2, "1.0 -> 1.1"), (3, "1.1 -> 2.0")):
        assert [text for text in labels if f"upgrade {change}" in text]
        assert [
            text for text in labels if when(number)[:16] in text and f"revision{number}" in text
        ]


@pytest.mark.parametrize("upgraded", [19, 20, 21])
def test_an_upgrade_beside_a_shift_is_named(upgraded: int) -> None:
    """Its place is not known to the run."""
    times_s = levels((20, 1.0), (20, 1.2), noise=0.001)
    versions = ((0, "1.0"), (upgraded, "2.0"))
    section, _ = history.sections([line(times_s, versions=versions, framework="torch")])
    assert [row["with it"] for row in rows(section)] == ["torch 1.0 -> 2.0"]


@pytest.mark.parametrize("upgraded", [5, 17, 23])
def test_another_upgrade_is_not_named(upgraded: int) -> None:
    times_s = levels((20, 1.0), (20, 1.2), noise=0.001)
    section, shown = history.sections([line(times_s, versions=((0, "1.0"), (upgraded, "2.0")))])
    assert [row["with it"] for row in rows(section)] == [""]
    assert f"{day(upgraded)}: upgrade 1.0 -> 2.0" in shown.charts[0].text


def test_an_upgrade_at_a_shift_is_one_mark() -> None:
    times_s = levels((20, 1.0), (20, 1.2), noise=0.0)
    _, section = history.sections([line(times_s, versions=((0, "1.0"), (20, "2.0")))])
    (chart,) = section.charts
    assert chart.text.endswith(f"; {day(20)}: upgrade 1.0 -> 2.0, +20.0% (1 s -> 1.2 s)")
    assert len(dots(chart)) == 40 + 1
