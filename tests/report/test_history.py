"""``fwbench report --history``: cases over time, upgrades of frameworks, and shifts that last."""

from __future__ import annotations

import csv
import io
import json
import os
import re
import sys
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fwbench import cli
from fwbench.errors import UsageError
from fwbench.gate.verdicts import Comparison
from fwbench.report import charts, history, sections
from fwbench.report.charts import Chart, Point
from fwbench.report.history import Line, Moment, Shift, collect, shifts
from fwbench.report.sections import Part
from fwbench.report.writers import html, text
from support.launched_runs import output, plain
from support.projects import Project
from support.reports import (
    HOSTILE,
    UNREADABLE,
    Node,
    case,
    chart_of,
    column,
    foreign_run,
    markdown_cells,
    parsed,
    part,
    rounds_of,
    stored,
    training,
)

_USAGE_ERROR = 2
_FAILED = 3
_SOME_UNREADABLE = 1

#: How far from its place a shift may be found, in runs.
_NEAR = 2


# What is made up


def when(number: int) -> str:
    """The noon so many days after the first of January."""
    return (datetime(2026, 1, 1, 12, tzinfo=UTC) + timedelta(days=number)).isoformat()


def day(number: int) -> str:
    """As a report writes it."""
    return when(number)[:10]


def kept(
    path: Path,
    *entries: Mapping[str, Any],
    at: int | None = 0,
    revision: str = "",
    **session: Any,
) -> Path:
    """A run as pytest-benchmark keeps it.

    Args:
        path: of the file.
        entries: its benchmarks.
        at: the day; None leaves out when it was measured.
        revision: of the project.
        session: what fwbench says of it.
    """
    made = output(entries, **{"threads": 2, **session})
    if at is not None:
        made["datetime"] = when(at)
    if revision:
        made["commit_info"] = {"id": revision, "branch": "main"}
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(made), encoding="utf-8")
    return path


def statistics_of(made: dict[str, Any], median_s: float = 2.0, rounds: int = 137) -> dict[str, Any]:
    """The same entry as ``--benchmark-save`` keeps it: values are counted, and not there."""
    made["stats"] = {
        "min": median_s / 4,
        "q1": median_s / 2,
        "median": median_s,
        "q3": 2 * median_s,
        "max": 9 * median_s,
        "mean": 3 * median_s,
        "rounds": rounds,
        "iterations": 1,
    }
    return made


def levels(*of: tuple[int, float], noise: float = 0.01, seed: int = 0) -> list[float]:
    """Seconds, run by run: so many around each time, with log-normal noise."""
    centers = np.concatenate([np.full(runs, seconds) for runs, seconds in of])
    random = np.random.default_rng(seed)
    return [float(one) for one in centers * np.exp(noise * random.standard_normal(len(centers)))]


def line(
    times_s: Sequence[float],
    name: str = "gemm-numpy",
    versions: Sequence[tuple[int, str]] = ((0, "1.0"),),
    framework: str = "numpy",
    machine: str = "Fake CPU, 2 threads",
) -> Line:
    """A case with a run a day.

    Args:
        times_s: of its runs.
        name: of the case.
        versions: of the framework, each with the first run that has it, in their order.
        framework: that it is of.
        machine: that it was measured on.
    """
    moments = [
        Moment(
            when(number),
            time_s,
            time_s / 1.1,
            time_s * 1.1,
            [version for first, version in versions if first <= number][-1],
            f"revision{number}",
        )
        for number, time_s in enumerate(times_s)
    ]
    keys = {"workload": "gemm", "framework": framework, "device": "cpu", "execution": "eager"}
    return Line(name, machine, "gemm", keys, moments)


def nightly(folder: Path, times_s: Sequence[float], upgraded: int | None = None) -> Path:
    """A folder of runs of one case, whose files are named against the order of time."""
    for number, time_s in enumerate(times_s):
        new = upgraded is not None and number >= upgraded
        version = "2.0" if new else "1.0"
        made = case(values_s=(time_s, time_s, time_s * 1.01), framework_version=version)
        path = folder / "Linux-CPython-3.11-64bit" / f"{9999 - number}_nightly.json"
        kept(path, made, at=number, revision=f"{number:040x}"[::-1])
    return folder


# What is read


def only(lines: Sequence[Line]) -> Line:
    """The one that there is."""
    (found,) = lines
    return found


def medians(of: Line) -> list[float]:
    """In the order of the runs."""
    return [moment.median_s for moment in of.moments]


def part_of(found: Sequence[Part], title: str) -> Part:
    """The part with that at the beginning of its title."""
    (one,) = [one for one in found if one.title.startswith(title)]
    return one


def texts(of: Part) -> list[dict[str, str]]:
    """The rows of a table, by the columns."""
    return [
        {name: cell.text for name, cell in zip(of.columns, row.cells, strict=True)}
        for row in of.rows
    ]


def dots(chart: Chart) -> list[Node]:
    """The dots of a picture."""
    return parsed(chart.svg).all("circle")


def heights_of(chart: Chart, series: int) -> list[float]:
    """Of the ends of a line in a picture, from left to right; 0 is above."""
    (path,) = [
        path
        for one in parsed(chart.svg).of_class(f"serie-{series}")
        for path in one.all("path")
        if "line" in path.attributes["class"]
    ]
    found = re.findall(r"-?[\d.]+ (-?[\d.]+)", path.attributes["d"])
    return [float(height) for height in found]


# What is collected


def test_nested_folders_are_read(tmp_path: Path) -> None:
    """Whatever folders pytest-benchmark made for machines, and runs beside these."""
    kept(tmp_path / "Linux-CPython-3.11-64bit" / "0001_a.json", case(values_s=(1.0,)), at=0)
    kept(tmp_path / "Linux-CPython-3.12-64bit" / "0001_b.json", case(values_s=(2.0,)), at=1)
    kept(tmp_path / "more" / "of" / "them" / "c.json", case(values_s=(3.0,)), at=2)
    kept(tmp_path / "d.json", case(values_s=(4.0,)), at=3)
    kept(tmp_path / "e.txt", case(values_s=(5.0,)), at=4)
    lines, problems = collect(tmp_path)
    assert medians(only(lines)) == [1.0, 2.0, 3.0, 4.0]
    assert problems == []


def test_the_order_is_that_of_time(tmp_path: Path) -> None:
    """Not of names, nor of folders, nor of files."""
    for name, at in (("a/0003_x", 1), ("a/0001_x", 3), ("b/0002_x", 0), ("0004_x", 2)):
        kept(tmp_path / f"{name}.json", case(values_s=(1.0 + at,)), at=at)
    found = only(collect(tmp_path)[0])
    assert [moment.when for moment in found.moments] == [when(at) for at in range(4)]
    assert medians(found) == [1.0, 2.0, 3.0, 4.0]


def test_a_run_without_a_time_is_as_old_as_its_file(tmp_path: Path) -> None:
    """Between an older and a newer run, as the time of the file says."""
    kept(tmp_path / "0.json", case(values_s=(1.0,)), at=0)
    kept(tmp_path / "1.json", case(values_s=(3.0,)), at=9)
    without = kept(tmp_path / "2.json", case(values_s=(2.0,)), at=None)
    changed = datetime.fromisoformat(when(4)).timestamp()
    os.utime(without, (changed, changed))
    found = only(collect(tmp_path)[0])
    assert medians(found) == [1.0, 2.0, 3.0]
    assert found.moments[1].when[:10] == day(4)


def test_what_a_moment_holds(tmp_path: Path) -> None:
    """Median and quartiles, version, and the revision so short that it can be read."""
    values_s = [0.001 * number for number in (5, 3, 9, 1, 7, 2, 8, 4, 6)]
    made = case(values_s=values_s, framework_version="2.9")
    kept(tmp_path / "0.json", made, at=5, revision="0123456789abcdef")
    (moment,) = only(collect(tmp_path)[0]).moments
    assert (moment.median_s, moment.low_s, moment.high_s) == pytest.approx((0.005, 0.003, 0.007))
    assert (moment.when, moment.version, moment.revision) == (when(5), "2.9", "012345678")


def test_a_line_for_each_case(tmp_path: Path) -> None:
    """A case that some runs lack has the others; its row can be chosen by what it is."""
    for number in range(3):
        entries = [case(), case("dot", "torch", execution="compile")][: 1 + number % 2]
        kept(tmp_path / f"{number}.json", *entries, at=number)
    gemm, dot = collect(tmp_path)[0]
    assert gemm.name == "gemm-numpy-eager-cpu-forward-float32-100"
    assert (gemm.group, dot.group) == ("gemm", "dot")
    assert [len(one.moments) for one in (gemm, dot)] == [3, 1]
    assert dot.keys == {
        "workload": "dot",
        "framework": "torch",
        "device": "cpu",
        "execution": "compile",
    }


def test_the_same_case_of_another_test_is_another(tmp_path: Path) -> None:
    """Two tests measure what has one name: neither's times are the other's."""
    other = case(values_s=(9.0,))
    other["fullname"] = "test_other.py::test_other[gemm]"
    for number in range(2):
        kept(tmp_path / f"{number}.json", case(values_s=(1.0,)), other, at=number)
    assert [medians(one) for one in collect(tmp_path)[0]] == [[1.0, 1.0], [9.0, 9.0]]


@pytest.mark.parametrize(
    ("session", "called"),
    [
        ({"machine": {"cpu": "Other CPU"}}, "Other CPU, 2 threads"),
        ({"threads": 1}, "Fake CPU, 1 thread"),
        ({"threads": 8}, "Fake CPU, 8 threads"),
        ({"threads": None}, "Fake CPU, unknown threads"),
        ({"threads": "many"}, "Fake CPU, unknown threads"),
    ],
)
def test_machines_are_apart(tmp_path: Path, session: dict[str, Any], called: str) -> None:
    """Another CPU, or other threads: other lines, in other parts, and no shift between them."""
    for number in range(20):
        there = number % 2
        made = case(values_s=(2.0 if there else 1.0,))
        kept(tmp_path / f"{number}.json", made, at=number, **(session if there else {}))
    lines, _ = collect(tmp_path)
    assert {one.machine: {*medians(one)} for one in lines} == {
        "Fake CPU, 2 threads": {1.0},
        called: {2.0},
    }
    found = history.parts(lines)
    assert [one.title for one in found] == [
        "Lasting shifts",
        "history of gemm, Fake CPU, 2 threads",
        f"history of gemm, {called}",
    ]
    assert found[0].rows == []


def test_runs_without_fwbench_are_followed(tmp_path: Path) -> None:
    """Plain pytest-benchmark: machine and tests as it names them, no version, no upgrade."""
    for number in range(3):
        path = foreign_run(tmp_path / f"{number}.json")
        made = json.loads(path.read_text(encoding="utf-8"))
        path.write_text(json.dumps({**made, "datetime": when(number)}), encoding="utf-8")
    first, second = collect(tmp_path)[0]
    assert (first.name, second.name) == ("test_a", "test_b")
    assert first.machine == "Fake CPU, unknown threads"
    assert first.group == "other benchmarks"
    assert (medians(first), medians(second)) == ([0.75] * 3, [1.5] * 3)
    assert (first.keys, first.upgrades) == ({}, {})


def test_machines_without_a_name_are_one(tmp_path: Path) -> None:
    """What is not recorded is said, and is no reason to leave a run out."""
    path = foreign_run(tmp_path / "0.json")
    made = json.loads(path.read_text(encoding="utf-8"))
    path.write_text(json.dumps({**made, "machine_info": {}}), encoding="utf-8")
    assert {one.machine.partition(",")[0] for one in collect(tmp_path)[0]} == {"unknown CPU"}


_ENTRIES: dict[str, tuple[dict[str, Any], tuple[float, float, float]]] = {
    "of launches": (case(values_s=(1.0, 2.0, 4.0)), (1.0, 2.0, 4.0)),
    "of launches, their statistics alone": (
        statistics_of(case(values_s=(1.0, 2.0, 4.0)), 9.0),
        (1.0, 2.0, 4.0),
    ),
    "of rounds": (rounds_of(case(values_s=(1.0, 2.0, 4.0))), (1.0, 2.0, 4.0)),
    "of rounds, their statistics alone": (statistics_of(rounds_of(case())), (1.0, 2.0, 4.0)),
    "of a training": (statistics_of(training()), (1.0, 2.0, 4.0)),
    "of another's": (statistics_of(plain()), (1.0, 2.0, 4.0)),
}


@pytest.mark.parametrize(("made", "expected"), _ENTRIES.values(), ids=_ENTRIES)
def test_values_are_found_wherever_they_are(
    tmp_path: Path, made: dict[str, Any], expected: tuple[float, float, float]
) -> None:
    """Launches before statistics, values before statistics, statistics where there is no more."""
    kept(tmp_path / "0001_x.json", made)
    (moment,) = only(collect(tmp_path)[0]).moments
    assert (moment.low_s, moment.median_s, moment.high_s) == expected


def test_what_pytest_benchmark_saves_is_read(
    project: Project, capsys: pytest.CaptureFixture[str]
) -> None:
    """From a session with ``--benchmark-save`` to a page, with nothing in between made up."""
    project.write("test_it.py", "def test_sum(benchmark):\n    benchmark(sum, range(10))\n")
    for name in ("first", "second"):
        project.run("--benchmark-save", name).assert_outcomes(passed=1)
    files = sorted((project.path / ".benchmarks").rglob("*.json"))
    assert [path.name for path in files] == ["0001_first.json", "0002_second.json"]
    stats = [json.loads(path.read_text())["benchmarks"][0]["stats"] for path in files]
    assert not any("data" in one for one in stats)
    found = only(collect(project.path / ".benchmarks")[0])
    assert medians(found) == [one["median"] for one in stats]
    assert [one.low_s for one in found.moments] == [one["q1"] for one in stats]
    assert [one.high_s for one in found.moments] == [one["q3"] for one in stats]
    capsys.readouterr()
    assert cli.main(["report", "--history", ".benchmarks", "-o", "history.html"]) == 0
    assert capsys.readouterr().err == ""
    assert "test_sum" in (project.path / "history.html").read_text(encoding="utf-8")


def test_only_some_cases(tmp_path: Path) -> None:
    """Those with the text in their names, of fwbench's and of others'."""
    kept(tmp_path / "0.json", case(), case("dot"), case("gemm", "torch"), plain("test_gemm"))
    names = [one.name for one in collect(tmp_path, "gemm")[0]]
    assert names == [
        "gemm-numpy-eager-cpu-forward-float32-100",
        "gemm-torch-eager-cpu-forward-float32-100",
        "test_gemm",
    ]
    with pytest.raises(UsageError, match="no run of 'conv' under"):
        collect(tmp_path, "conv")


@pytest.mark.parametrize("folder", ["empty", "nowhere", "file.json", "of others"])
def test_without_a_run_nothing_can_be_shown(tmp_path: Path, folder: str) -> None:
    """An empty folder, none, a file, a folder of other files: what makes runs is named."""
    (tmp_path / "empty").mkdir()
    kept(tmp_path / "file.json", case())
    kept(tmp_path / "of others" / "readme.txt", case())
    with pytest.raises(UsageError) as caught:
        collect(tmp_path / folder)
    assert str(tmp_path / folder) in str(caught.value)
    assert "--benchmark-autosave" in str(caught.value)
    assert "--benchmark-save" in str(caught.value)


@pytest.mark.parametrize(
    ("make", "said"),
    [pair for name, pair in UNREADABLE.items() if name != "missing"],
    ids=[name for name in UNREADABLE if name != "missing"],
)
def test_files_that_are_no_runs_are_named(
    tmp_path: Path, make: Callable[[Path], Any], said: str
) -> None:
    """Unreadable, of something else, of a newer fwbench; the others are used."""
    for number in (0, 2):
        kept(tmp_path / f"{number}.json", case(values_s=(1.0 + number,)), at=number)
    make(tmp_path / "1.json")
    lines, (problem,) = collect(tmp_path)
    assert medians(only(lines)) == [1.0, 3.0]
    assert "1.json" in problem
    assert said in problem


def test_verdicts_are_no_runs_and_no_problem(tmp_path: Path) -> None:
    """What ``fwbench gate --json`` wrote lies beside runs; it holds no times."""
    kept(tmp_path / "0.json", case())
    verdicts = json.dumps(Comparison("base", "contender", [], {"confidence": 0.99}).to_json())
    (tmp_path / "verdicts.json").write_text(verdicts, encoding="utf-8")
    lines, problems = collect(tmp_path)
    assert len(only(lines).moments) == 1
    assert problems == []


# Shifts


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("noise", [0.002, 0.01, 0.02])
@pytest.mark.parametrize("change", [0.1, -0.1, 0.5, -0.5])
@pytest.mark.parametrize("at", [10, 20, 30])
def test_a_shift_is_found(at: int, change: float, noise: float, seed: int) -> None:
    """At its place, with its size and both levels, upward and downward."""
    times_s = levels((at, 1.0), (40 - at, 1.0 + change), noise=noise, seed=seed)
    (found,) = shifts(times_s)
    assert abs(found.at - at) <= _NEAR
    assert found.change == pytest.approx(change, abs=2 * noise)
    assert found.before_s == pytest.approx(1.0, rel=noise)
    assert found.after_s == pytest.approx(1.0 + change, rel=noise)


def test_the_change_of_a_shift() -> None:
    """As a share of the level before."""
    assert Shift(1, 2.0, 3.0).change == 0.5
    assert Shift(1, 2.0, 1.0).change == -0.5


@pytest.mark.parametrize("second", [0.8, 1.0, 1.5])
def test_two_shifts_are_found(second: float) -> None:
    """Down again, back to where it was, or further up: each is measured from the level before."""
    first, other = shifts(levels((20, 1.0), (20, 1.2), (20, second)))
    assert abs(first.at - 20) <= _NEAR
    assert abs(other.at - 40) <= _NEAR
    assert first.change == pytest.approx(0.2, abs=0.02)
    assert other.change == pytest.approx(second / 1.2 - 1, abs=0.02)


@pytest.mark.parametrize("factor", [0.3, 1.5, 3.0, 1000.0])
@pytest.mark.parametrize("at", [0, 1, 2, 15, 27, 28, 29])
def test_an_outlier_is_no_shift(at: int, factor: float) -> None:
    """A single run, however far away, wherever it is."""
    times_s = levels((30, 1.0))
    times_s[at] *= factor
    assert shifts(times_s) == []


@pytest.mark.parametrize("at", [0, 14, 28])
def test_two_outliers_are_no_shift(at: int) -> None:
    """One behind the other: two bad nights."""
    times_s = levels((30, 1.0))
    times_s[at] *= 2.0
    times_s[at + 1] *= 2.0
    assert shifts(times_s) == []


def test_outliers_do_not_hide_a_shift() -> None:
    """One run in ten is three times as slow."""
    times_s = [
        3.0 * time_s if number % 10 == 3 else time_s
        for number, time_s in enumerate(levels((25, 1.0), (25, 1.1)))
    ]
    (found,) = shifts(times_s)
    assert abs(found.at - 25) <= _NEAR
    assert found.change == pytest.approx(0.1, abs=0.02)


@pytest.mark.parametrize("seed", range(10))
def test_small_changes_are_no_shifts(seed: int) -> None:
    """2 % is none, however plain; 4 % is one."""
    noise = 0.002
    assert shifts(levels((20, 1.0), (20, 1.02), noise=noise, seed=seed)) == []
    assert shifts(levels((20, 1.0), (20, 0.98), noise=noise, seed=seed)) == []
    assert len(shifts(levels((20, 1.0), (20, 1.04), noise=noise, seed=seed))) == 1
    assert len(shifts(levels((20, 1.0), (20, 0.96), noise=noise, seed=seed))) == 1


@pytest.mark.parametrize("runs", range(10))
def test_too_few_runs_say_nothing(runs: int) -> None:
    """Nine are too few, whatever they are."""
    assert shifts(levels((runs // 2, 1.0), (runs - runs // 2, 9.0))) == []


def test_ten_runs_are_enough() -> None:
    """Five of either level."""
    (found,) = shifts(levels((5, 1.0), (5, 1.5)))
    assert found.at == 5
    assert found.change == pytest.approx(0.5, abs=0.03)


def test_constant_times_have_no_noise() -> None:
    """Nothing is divided by zero; a level that changes is found at its very place."""
    assert shifts([1.0] * 40) == []
    assert shifts([1e-9] * 10) == []
    assert shifts([1.0] * 20 + [1.1] * 20) == [Shift(20, 1.0, 1.1)]
    assert shifts([1.0] * 20 + [1.02] * 20) == []


@pytest.mark.parametrize("unit", [1e-9, 1e-3, 1e4])
def test_shifts_are_the_same_in_every_unit(unit: float) -> None:
    """Of nanoseconds and of hours: what counts are ratios."""
    times_s = levels((20, 1.0), (20, 1.2))
    (one,), (other,) = shifts(times_s), shifts([unit * time_s for time_s in times_s])
    assert one.at == other.at
    assert one.change == pytest.approx(other.change)


@pytest.mark.parametrize("noise", [0.002, 0.02, 0.1])
def test_noise_is_no_shift(noise: float) -> None:
    """Of 200 histories of 30 runs in which nothing happened, a few per cent at most."""
    flagged = sum(bool(shifts(levels((30, 1.0), noise=noise, seed=seed))) for seed in range(200))
    assert flagged <= 8


def test_noise_hides_few_shifts() -> None:
    """Of 100 histories with noise of 5 %, a shift of 10 % is found in three quarters at least."""
    times_s = (levels((20, 1.0), (20, 1.1), noise=0.05, seed=seed) for seed in range(100))
    found = sum(any(abs(one.at - 20) <= _NEAR for one in shifts(times)) for times in times_s)
    assert found >= 75


@pytest.mark.parametrize("grows", [True, False])
def test_noise_that_changes_is_no_shift(grows: bool) -> None:
    """Noise of 0.5 % becomes one of 3 %, or the other way round, around the same time."""
    sizes = np.linspace(*((0.005, 0.03) if grows else (0.03, 0.005)), 60)

    def flagged(seed: int) -> bool:
        random = np.random.default_rng(seed)
        return bool(shifts([float(one) for one in np.exp(sizes * random.standard_normal(60))]))

    assert sum(map(flagged, range(100))) <= 8


def test_runs_that_alternate_are_no_shift() -> None:
    """Two levels in turn, as of a machine with two kinds of cores."""
    assert shifts([1.0, 1.2] * 20) == []


@pytest.fixture
def without_ruptures(monkeypatch: pytest.MonkeyPatch) -> None:
    """As where the extra is not installed."""
    monkeypatch.setitem(sys.modules, "ruptures", None)


@pytest.mark.usefixtures("without_ruptures")
def test_the_library_may_be_missing() -> None:
    """What is missing, and the extra that has it; it is not needed where runs are too few."""
    with pytest.raises(UsageError, match=r"ruptures.*fwbench\[history\]"):
        shifts(levels((10, 1.0)))
    assert shifts(levels((9, 1.0))) == []


@pytest.mark.usefixtures("without_ruptures")
def test_without_the_library_nothing_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A usage error; an earlier page stays."""
    monkeypatch.chdir(tmp_path)
    nightly(tmp_path / ".benchmarks", levels((10, 1.0)))
    Path("history.html").write_text("earlier", encoding="utf-8")
    assert cli.main(["report", "--history", ".benchmarks", "-o", "history.html"]) == _USAGE_ERROR
    captured = capsys.readouterr()
    assert "fwbench[history]" in captured.err
    assert captured.out == ""
    assert Path("history.html").read_text(encoding="utf-8") == "earlier"


def test_shifts_are_listed_first() -> None:
    """The worst first: when, at which revision, what it was, what it is, and on what machine."""
    lines = [
        line(levels((20, 0.001))),
        line(levels((10, 1.0), (10, 0.5)), "faster"),
        line(levels((10, 0.002), (10, 0.0022), noise=0.0), "slower", machine="Other CPU, 1 thread"),
        line(levels((10, 1.0), (10, 2.0)), "far slower"),
    ]
    found, *_ = history.parts(lines)
    assert found.title == "Lasting shifts"
    assert [*column(found, "case")] == ["far slower", "slower", "faster"]
    slower = texts(found)[1]
    assert slower == {
        "case": "slower",
        "machine": "Other CPU, 1 thread",
        "since": day(10),
        "revision": "revision10",
        "change": "+10.0%",
        "before": "2 ms",
        "after": "2.2 ms",
        "with it": "",
    }
    row = found.rows[1]
    assert row.keys == lines[2].keys
    assert [cell.value for cell in row.cells[4:7]] == pytest.approx([0.1, 0.002, 0.0022])
    assert "PELT" in found.notes[0]
    assert not [note for note in found.notes if "None was found" in note]


def test_no_shift_is_said() -> None:
    """Also of how many cases nothing can be said."""
    few = [line(levels((9, 1.0)), name) for name in ("a", "b")]
    found, *_ = history.parts([*few, line(levels((10, 1.0)))])
    assert found.rows == []
    assert found.notes[1:] == [
        "2 cases had fewer than 10 runs: too few to tell.",
        "None was found.",
    ]
    found, *_ = history.parts([few[0]])
    assert found.notes[1] == "1 case had fewer than 10 runs: too few to tell."
    found, *_ = history.parts([line(levels((10, 1.0)))])
    assert found.notes[1:] == ["None was found."]


# Upgrades


def test_upgrades_are_where_versions_change() -> None:
    """Each at the first run with the new version, also back to an earlier one."""
    versions = ((0, "1.0"), (2, "1.1"), (3, "2.0"), (6, "1.1"))
    assert line([1.0] * 8, versions=versions).upgrades == {
        2: "1.0 -> 1.1",
        3: "1.1 -> 2.0",
        6: "2.0 -> 1.1",
    }
    assert line([1.0] * 8).upgrades == {}
    assert line([1.0]).upgrades == {}


def test_a_version_that_is_not_recorded_is_no_upgrade() -> None:
    """Neither the first that is, nor the first that is not."""
    assert line([1.0] * 4, versions=((0, ""), (2, "1.0"))).upgrades == {}
    assert line([1.0] * 4, versions=((0, "1.0"), (2, ""))).upgrades == {}


def test_upgrades_are_collected(tmp_path: Path) -> None:
    """From what the records say of the framework, in the order of time."""
    found = only(collect(nightly(tmp_path, [1.0] * 4, upgraded=2))[0])
    assert found.upgrades == {2: "1.0 -> 2.0"}


def test_upgrades_are_shown() -> None:
    """In the row, in the words of the chart, and in what its dots say."""
    versions = ((0, "1.0"), (2, "1.1"), (3, "2.0"))
    _, found = history.parts([line([1.0] * 5, versions=versions)])
    assert texts(found)[0]["upgrades"] == "1.0 -> 1.1; 1.1 -> 2.0"
    (chart,) = found.charts
    assert f"{day(2)}: upgrade 1.0 -> 1.1; {day(3)}: upgrade 1.1 -> 2.0" in chart.text
    told = [one.text for one in parsed(chart.svg).of_class("dots")]
    for number, what in ((2, "1.0 -> 1.1"), (3, "1.1 -> 2.0")):
        assert [one for one in told if f"upgrade {what}" in one]
        assert [one for one in told if when(number)[:16] in one and f"revision{number}" in one]


@pytest.mark.parametrize("upgraded", [19, 20, 21])
def test_an_upgrade_beside_a_shift_is_named(upgraded: int) -> None:
    """Its place is not known to the run."""
    times_s = levels((20, 1.0), (20, 1.2), noise=0.001)
    versions = ((0, "1.0"), (upgraded, "2.0"))
    found, _ = history.parts([line(times_s, versions=versions, framework="torch")])
    assert [row["with it"] for row in texts(found)] == ["torch 1.0 -> 2.0"]


@pytest.mark.parametrize("upgraded", [5, 17, 23])
def test_another_upgrade_is_not_named(upgraded: int) -> None:
    """One that was at another time has nothing to do with the shift, and is marked by itself."""
    times_s = levels((20, 1.0), (20, 1.2), noise=0.001)
    found, shown = history.parts([line(times_s, versions=((0, "1.0"), (upgraded, "2.0")))])
    assert [row["with it"] for row in texts(found)] == [""]
    assert f"{day(upgraded)}: upgrade 1.0 -> 2.0" in shown.charts[0].text


def test_an_upgrade_at_a_shift_is_one_mark() -> None:
    """Both are said of the same run."""
    times_s = levels((20, 1.0), (20, 1.2), noise=0.0)
    _, found = history.parts([line(times_s, versions=((0, "1.0"), (20, "2.0")))])
    (chart,) = found.charts
    assert chart.text.endswith(f"; {day(20)}: upgrade 1.0 -> 2.0, +20.0% (1 s -> 1.2 s)")
    assert len(dots(chart)) == 40 + 1


# The table of a case


def test_a_row_tells_first_and_last() -> None:
    """How many runs, the first and the last time, since when, upgrades, shifts."""
    times_s = levels((10, 0.001), (10, 0.002), (10, 0.0015), noise=0.0)
    _, found = history.parts([line(times_s, versions=((0, "1.0"), (20, "2.0")))])
    assert found.title == "history of gemm, Fake CPU, 2 threads"
    assert texts(found) == [
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
    (row,) = found.rows
    assert [cell.value for cell in row.cells[1:5]] == pytest.approx([30, 0.001, 0.0015, 0.5])
    assert row.keys["framework"] == "numpy"


def test_cases_are_in_the_part_of_their_workload(tmp_path: Path) -> None:
    """All sizes and frameworks of it, one part for each, and one for what is not fwbench's."""
    larger = {**case(size=200), "fullname": "test_it.py::test_it[200]"}
    entries = [case(), case("dot"), case("gemm", "torch"), larger, plain()]
    for number in range(2):
        kept(tmp_path / f"{number}.json", *entries, at=number)
    found = history.parts(collect(tmp_path)[0])
    assert {one.title.partition(",")[0]: len(one.rows) for one in found} == {
        "Lasting shifts": 0,
        "history of gemm": 3,
        "history of dot": 1,
        "history of other benchmarks": 1,
    }


# Charts


def drawn(runs: int, marks: Mapping[int, str] | None = None) -> Chart:
    """A chart of so many runs, a day each."""
    points = [Point(i, 1.0 + i, 0.5 + i, 1.5 + i, f"label {i}") for i in range(runs)]
    return charts.over_time("gemm", [day(i) for i in range(runs)], points, marks or {})


@pytest.mark.parametrize("runs", [2, 10, 59, 60])
def test_a_dot_for_each_run(runs: int) -> None:
    """In the picture, one behind the other, with the words of the run."""
    found = dots(drawn(runs))
    assert len(found) == runs
    places = [float(dot.attributes["cx"]) for dot in found]
    assert places == sorted({*places})
    heights = [float(dot.attributes["cy"]) for dot in found]
    assert heights == sorted({*heights}, reverse=True)
    assert 0 <= places[0] < places[-1] <= 820
    told = parsed(drawn(runs).svg).of_class("dots")
    assert all(f"label {number}" in one.text for number, one in enumerate(told))


@pytest.mark.parametrize("runs", [61, 300])
def test_many_runs_have_no_dots(runs: int) -> None:
    """But what happened has; the line is drawn all the same."""
    assert dots(drawn(runs)) == []
    chart = drawn(runs, {40: "what happened", 50: "and then"})
    assert len(dots(chart)) == 2
    told = [one.text for one in parsed(chart.svg).of_class("dots")]
    assert [("what happened" in one, "and then" in one) for one in told] == [
        (True, False),
        (False, True),
    ]
    assert len(heights_of(chart, 0)) == runs


def test_marks_are_where_it_happened() -> None:
    """On the dots of these runs."""
    found = dots(drawn(10, {3: "what happened", 7: "and then"}))
    places = [(dot.attributes["cx"], dot.attributes["cy"]) for dot in found]
    assert places[10:] == [places[3], places[7]]


def test_the_median_is_between_its_quartiles() -> None:
    """The lower below it, the upper above it, run by run."""
    chart = drawn(5)
    for median, lower, upper in zip(*(heights_of(chart, i) for i in range(3)), strict=True):
        assert lower - median == pytest.approx(median - upper)
        assert lower > median


def test_lines_of_a_history_have_colours() -> None:
    """Each its own, also the marks."""
    for marks, number in (({}, 3), ({1: "x"}, 4)):
        found = re.findall(r"\.color-\d[^{]*{stroke:(#\w+)", drawn(5, marks).svg)
        assert len({*found} & {*charts._COLOURS}) == len(found) == number


def test_lines_of_a_history_have_names() -> None:
    """The median and its quartiles; marks where there are any."""
    legends = ["median", "lower quartile", "upper quartile"]
    assert [one.text for one in parsed(drawn(5).svg).of_class("legend")] == legends
    marked = parsed(drawn(5, {1: "x"}).svg).of_class("legend")
    assert [one.text for one in marked] == [*legends, "upgrade or lasting shift"]


def test_a_history_is_told_in_words() -> None:
    """From when and what to when and what; and what happened, in the order of time."""
    assert drawn(3).text == (
        f"gemm: 1 s on {day(0)}, 3 s on {day(2)}; no upgrade, no lasting shift"
    )
    chart = drawn(9, {7: "and then", 2: "what happened"})
    assert chart.text == (
        f"gemm: 1 s on {day(0)}, 9 s on {day(8)}; {day(2)}: what happened; {day(7)}: and then"
    )


@pytest.mark.parametrize("runs", [2, 8, 9, 60, 365])
def test_labels_have_room(runs: int) -> None:
    """Of many days, eight or nine are written below the axis, the first among them."""
    (axis,) = [
        one
        for one in parsed(drawn(runs).svg).of_class("axis")
        if "x" in one.attributes["class"].split()
    ]
    found = [one.text for one in axis.all("text")]
    assert found[0] == day(0)
    assert min(runs, 5) <= len(found) <= 9


def test_a_case_of_one_run_has_no_chart() -> None:
    """A row it has; two runs are a chart."""
    _, found = history.parts([line([1.0], "once"), line([1.0, 2.0], "twice")])
    assert [*column(found, "case")] == ["once", "twice"]
    assert [chart.title for chart in found.charts] == ["twice"]
    assert found.notes == []


def _quickly(title: str, *_: Any) -> Chart:
    return Chart(title, "", "")


def test_only_so_many_are_drawn(monkeypatch: pytest.MonkeyPatch) -> None:
    """300, those with shifts before others; how many more there are is said where they are."""
    monkeypatch.setattr(charts, "over_time", _quickly)
    still = [line([1.0, 1.0], f"still {number}") for number in range(303)]
    other = [
        line([1.0] * 10 + [2.0] * 10, f"shifted {number}", machine="Other CPU, 2 threads")
        for number in range(2)
    ]
    once = [line([1.0], "once")]
    _, here, there = history.parts([*once, *still, *other])
    assert [chart.title for chart in there.charts] == ["shifted 0", "shifted 1"]
    assert [chart.title for chart in here.charts] == [f"still {number}" for number in range(298)]
    assert len(here.rows) == 304
    assert here.notes == ["5 cases more than are drawn: -k NAME draws less."]
    assert there.notes == []


def test_as_many_as_may_be_are_drawn(monkeypatch: pytest.MonkeyPatch) -> None:
    """300 of 300, without a note; cases of one run are none of them."""
    monkeypatch.setattr(charts, "over_time", _quickly)
    lines = [line([1.0, 1.0], f"case {number}") for number in range(300)]
    _, found = history.parts([*(line([1.0], f"once {number}") for number in range(5)), *lines])
    assert len(found.charts) == 300
    assert found.notes == []


# The command


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a history in ``.benchmarks`` of an upgrade that made a case slower."""
    monkeypatch.chdir(tmp_path)
    nightly(tmp_path / ".benchmarks", levels((12, 0.001), (12, 0.0012)), upgraded=12)
    return tmp_path


def test_a_history_is_a_page(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Without any RUN: shifts, then every case with its chart, as HTML and as Markdown."""
    arguments = ["-o", "history.html", "--markdown", "history.md"]
    assert cli.main(["report", "--history", ".benchmarks", *arguments]) == 0
    captured = capsys.readouterr()
    assert captured.err == ""
    assert captured.out == "written: history.html\nwritten: history.md\n"
    found = parsed((folder / "history.html").read_text(encoding="utf-8"))
    sections = found.of_class("detail")
    assert [one.attributes["id"] for one in sections] == [
        "part-Lasting-shifts",
        "part-history-of-gemm-Fake-CPU-2-threads",
    ]
    assert "numpy 1.0 -> 2.0" in sections[0].text
    assert day(12) in sections[0].text
    (picture,) = found.of_class("chart")
    assert "upgrade 1.0 -> 2.0" in picture.attributes["aria-label"]
    assert len(picture.all("circle")) == 24 + 1
    assert [name for name, number in Counter(found.ids).items() if number > 1] == []
    written = (folder / "history.md").read_text(encoding="utf-8")
    assert re.findall(r"^### (.+)$", written, re.MULTILINE) == [
        "Lasting shifts",
        "history of gemm, Fake CPU, 2 threads",
    ]
    rows = [one for one in written.splitlines() if one.startswith("| gemm-numpy")]
    assert len(rows) == 2
    assert all("1.0 -> 2.0" in row for row in rows)


def test_a_history_stands_before_runs(folder: Path) -> None:
    """Of the runs that are named, all that there is without it."""
    kept(folder / "run.json", case("dot"))
    arguments = ["-o", "report.html", "--markdown", "report.md", "--csv", "report.csv"]
    assert cli.main(["report", "run.json", "--history", ".benchmarks", *arguments]) == 0
    found = parsed((folder / "report.html").read_text(encoding="utf-8"))
    assert [one.attributes["id"] for one in found.of_class("detail")] == [
        "part-Lasting-shifts",
        "part-history-of-gemm-Fake-CPU-2-threads",
        "part-dot-cpu-forward-float32",
    ]
    assert "1 case of 1 run" in found.text
    written = (folder / "report.md").read_text(encoding="utf-8")
    assert written.index("### history of gemm") < written.index("### dot cpu")
    with (folder / "report.csv").open(newline="", encoding="utf-8") as file:
        assert [row["workload"] for row in csv.DictReader(file)] == ["dot"]


def test_markdown_tables_of_a_history_are_whole(folder: Path) -> None:
    """A row has as many cells as the header."""
    assert cli.main(["report", "--history", ".benchmarks", "--markdown", "history.md"]) == 0
    blocks = (folder / "history.md").read_text(encoding="utf-8").split("### ")[1:]
    assert len(blocks) == 2
    for block in blocks:
        table = [one for one in block.splitlines() if one.startswith("|")]
        assert len(table) == 3
        assert len({markdown_cells(one) for one in table}) == 1


def test_a_history_of_some_cases(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """``-k`` chooses them by name; of none nothing is written."""
    kept(folder / ".benchmarks" / "more.json", case("dot"), case("conv"))
    arguments = ["report", "--history", ".benchmarks", "--markdown", "history.md", "-k"]
    assert cli.main([*arguments, "dot"]) == 0
    written = (folder / "history.md").read_text(encoding="utf-8")
    assert "history of dot" in written
    assert "gemm" not in written
    assert "conv" not in written
    (folder / "history.md").unlink()
    capsys.readouterr()
    assert cli.main([*arguments, "none of them"]) == _USAGE_ERROR
    assert "no run of 'none of them'" in capsys.readouterr().err
    assert not (folder / "history.md").exists()


def test_bad_files_of_a_history_are_named(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """On the terminal, in the page and in Markdown, with status 1; the others are shown."""
    (folder / ".benchmarks" / "cut.json").write_text('{"benchmarks": [', encoding="utf-8")
    kept(folder / ".benchmarks" / "newer.json", case(), schema=2, version="7.8")
    (folder / ".benchmarks" / "other.json").write_text('{"tests": []}', encoding="utf-8")
    arguments = ["-o", "history.html", "--markdown", "history.md"]
    assert cli.main(["report", "--history", ".benchmarks", *arguments]) == _SOME_UNREADABLE
    told = capsys.readouterr().err.splitlines()
    assert len(told) == 3
    assert all(one.startswith("fwbench: ") for one in told)
    found = parsed((folder / "history.html").read_text(encoding="utf-8"))
    (section,) = found.all("section", **{"aria-labelledby": "problems"})
    written = (folder / "history.md").read_text(encoding="utf-8")
    for name, said in (
        ("cut.json", "is no JSON, or cut off"),
        ("newer.json", "newer fwbench (7.8)"),
        ("other.json", "not of pytest-benchmark"),
    ):
        assert [one for one in told if name in one and said in one]
        assert name in section.text
        assert said in section.text
        assert name in written
    assert len(found.of_class("chart")) == 1
    assert "history of gemm" in written


def test_bad_runs_beside_a_history(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A RUN that is none is named, too; where none of them is one, no page is made."""
    (folder / "bad.json").write_text("", encoding="utf-8")
    (folder / ".benchmarks" / "cut.json").write_text("{", encoding="utf-8")
    kept(folder / "run.json", case("dot"))
    arguments = ["report", "--history", ".benchmarks", "-o", "report.html", "bad.json"]
    assert cli.main(arguments) == _USAGE_ERROR
    assert "bad.json is empty" in capsys.readouterr().err
    assert not (folder / "report.html").exists()
    assert cli.main([*arguments, "run.json"]) == _SOME_UNREADABLE
    told = capsys.readouterr().err
    assert "bad.json is empty" in told
    assert "cut.json is no JSON" in told
    assert (folder / "report.html").exists()


@pytest.mark.parametrize("name", ["empty", "nowhere"])
def test_a_history_of_nothing(folder: Path, capsys: pytest.CaptureFixture[str], name: str) -> None:
    """A usage error that names the folder, and an earlier page stays as it was."""
    (folder / "empty").mkdir()
    (folder / "history.html").write_text("earlier", encoding="utf-8")
    assert cli.main(["report", "--history", name, "-o", "history.html"]) == _USAGE_ERROR
    captured = capsys.readouterr()
    assert f"no run under {name}" in captured.err
    assert captured.out == ""
    assert (folder / "history.html").read_text(encoding="utf-8") == "earlier"


@pytest.mark.parametrize("option", ["-o", "--markdown"])
@pytest.mark.parametrize("output_path", ["taken", "nowhere/history"])
def test_unwritable_outputs_are_said_before_a_history_is_read(
    folder: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    option: str,
    output_path: str,
) -> None:
    """A folder, or a file in none; thousands of files would be read for nothing."""
    (folder / "taken").mkdir()
    monkeypatch.setattr(history, "collect", lambda *_: pytest.fail("it was read"))
    arguments = ["report", "--history", ".benchmarks"]
    assert cli.main([*arguments, option, output_path]) == _FAILED
    captured = capsys.readouterr()
    assert "cannot write" in captured.err
    assert captured.out == ""
    assert sorted(path.name for path in folder.iterdir()) == [".benchmarks", "taken"]
    assert [*(folder / "taken").iterdir()] == []


def test_what_to_write_must_be_said(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A history alone says what to show, and not where."""
    assert cli.main(["report", "--history", ".benchmarks"]) == _USAGE_ERROR
    assert "say what to write" in capsys.readouterr().err
    assert cli.main(["report", "-o", "report.html"]) == _USAGE_ERROR
    assert "--history FOLDER" in capsys.readouterr().err
    assert [path.name for path in folder.iterdir()] == [".benchmarks"]


# Names that would be markup


def named(folder: Path, name: str) -> list[Part]:
    """The history of cases of which all that has a name is called so, with a shift and upgrades."""
    everywhere: dict[str, Any] = dict.fromkeys(("device", "direction", "dtype"), name)
    for number in range(20):
        facts = {**everywhere, "framework_version": f"{name}{number // 10}"}
        time_s = 1.0 + number // 10
        kept(
            folder / f"{number}.json",
            case(name, name, (time_s,) * 3, name, **facts),
            {**plain(name, time_s), "group": name},
            at=number,
            revision=name,
            machine={"cpu": name},
        )
    return history.parts(collect(folder)[0])


@pytest.mark.parametrize("name", HOSTILE)
def test_names_are_no_markup_in_a_history(tmp_path: Path, name: str) -> None:
    """A page has the same elements and attributes, whatever things in it are called."""
    # As long as the other: what is shortened is so in both.
    harmless = parsed(html.html([], before=named(tmp_path / "harmless", "x" * len(name))))
    hostile = parsed(html.html([], before=named(tmp_path / "hostile", name)))
    assert Counter(node.tag for node in hostile) == Counter(node.tag for node in harmless)
    for node in hostile:
        assert not [one for one in node.attributes if one.startswith("on")]
    assert len(hostile.of_class("chart")) == 2
    assert name in hostile.text
    assert f"{name}0 -> {name}1" in hostile.text


@pytest.mark.parametrize("name", HOSTILE)
def test_names_are_no_markup_in_a_picture(name: str) -> None:
    """Title, days, points and marks are text."""
    points = [Point(i, 1.0, 0.5, 2.0, name) for i in range(3)]
    chart = charts.over_time(name, [name] * 3, points, {1: name})
    picture = parsed(chart.svg)
    assert name in picture.text
    assert not picture.all("img", "i")
    assert len(picture.all("script")) == 1
    assert not [a for node in picture for a in node.attributes if a.startswith("on")]
    assert "alert" not in "".join(one.text.partition("{")[0] for one in picture.all("script"))


@pytest.mark.parametrize("name", HOSTILE)
def test_names_are_no_markup_in_the_markdown_of_a_history(tmp_path: Path, name: str) -> None:
    """Headings and tables hold no tag."""
    written = text.markdown([], before=named(tmp_path, name))
    assert "<" not in written
    assert len([one for one in written.splitlines() if one.startswith("| ---")]) == 3


# Entries of which only the statistics were kept


_KEPT: dict[str, tuple[dict[str, Any], tuple[str, str, str]]] = {
    "rounds": (statistics_of(rounds_of(case())), ("2 s", "1 s to 4 s", "137 rounds")),
    "one round": (
        statistics_of(rounds_of(case()), rounds=1),
        ("2 s", "1 s to 4 s", "1 round"),
    ),
    "launches": (
        statistics_of(case(values_s=(3.0, 5.0, 6.0))),
        ("5 s", "3 s to 6 s", "3 launches"),
    ),
    "another's": (statistics_of(plain()), ("2 s", "1 s to 4 s", "137 rounds")),
}


@pytest.mark.parametrize(("made", "expected"), _KEPT.values(), ids=_KEPT)
def test_statistics_are_shown_where_values_were_not_kept(
    tmp_path: Path, made: dict[str, Any], expected: tuple[str, str, str]
) -> None:
    """Median, quartiles and number of rounds are pytest-benchmark's; launches are counted."""
    (found,) = sections.details([stored(tmp_path, "run.json", made)])
    (row,) = texts(found)
    assert (row["median"], row["half of them"], row["measured"]) == expected


def test_statistics_of_a_training(tmp_path: Path) -> None:
    """Its values are epochs, also where they were not kept."""
    made = statistics_of(training(), rounds=4)
    found = part([stored(tmp_path, "run.json", made)], "training lenet")
    row = texts(found)[0]
    assert (row["an epoch"], row["measured"]) == ("2 s", "4 epochs")


def test_statistics_are_drawn(tmp_path: Path) -> None:
    """The point has the spread that the table has."""
    made = statistics_of(rounds_of(case()))
    chart = chart_of(part([stored(tmp_path, "run.json", made)], "gemm"), "time against size")
    (dot,) = parsed(chart.svg).of_class("dots")
    assert "2 s" in dot.text
    assert "137 rounds, 1 s to 4 s" in dot.text
    assert len(parsed(chart.svg).of_class("ci")) == 1


def test_a_median_without_quartiles_has_no_spread(tmp_path: Path) -> None:
    """Of what was written by hand: the median alone, and below it the fastest."""
    one, other = rounds_of(case()), rounds_of(case("dot"))
    one["stats"] = {"min": 1.0, "median": 2.0}
    other["stats"] = {"min": 1.0}
    run = stored(tmp_path, "run.json", one, other)
    rows = [texts(found)[0] for found in sections.details([run])]
    assert [row["median"] for row in rows] == ["2 s", "1 s"]
    assert [row["half of them"] for row in rows] == ["2 s to 2 s", "1 s to 1 s"]
    assert [row["measured"] for row in rows] == ["1 round"] * 2


def test_statistics_in_csv(tmp_path: Path) -> None:
    """Numbers as they were stored, with how many values they are of."""
    run = stored(
        tmp_path,
        "run.json",
        statistics_of(rounds_of(case())),
        statistics_of(rounds_of(case("dot")), rounds=1),
        statistics_of(case("conv", values_s=(3.0, 5.0, 6.0))),
        statistics_of(training(), rounds=4),
        statistics_of(plain()),
    )
    found = [
        (row["median_s"], row["low_s"], row["high_s"], row["values"], row["of"])
        for row in csv.DictReader(io.StringIO(text.table([run])))
    ]
    assert found == [
        ("2.0", "1.0", "4.0", "137", "rounds"),
        ("2.0", "1.0", "4.0", "1", "round"),
        ("5.0", "3.0", "6.0", "3", "launches"),
        ("2.0", "1.0", "4.0", "4", "epochs"),
        ("2.0", "1.0", "4.0", "137", "rounds"),
    ]


def test_a_record_without_its_values(tmp_path: Path) -> None:
    """A history has thousands of records, and keeps of each what it is called alone."""
    (record,) = stored(tmp_path, "run.json", case()).records
    bare = record.bare()
    assert ([*bare.values_s], bare.stats) == ([], {})
    assert (bare.name, bare.identity, bare.facts) == (record.name, record.identity, record.facts)


def test_values_are_before_statistics(tmp_path: Path) -> None:
    """Where both were stored, the quartiles are of the values."""
    made = rounds_of(case(values_s=[0.001 * i for i in (5, 3, 9, 1, 7, 2, 8, 4, 6)]))
    made["stats"] |= {"median": 9.0, "q1": 9.0, "q3": 9.0, "rounds": 99}
    (row,) = texts(part([stored(tmp_path, "run.json", made)], "gemm"))
    assert (row["median"], row["half of them"]) == ("5 ms", "3 ms to 7 ms")
    assert row["measured"] == "9 rounds"


# What was changed by hand, and other odd files


def change(path: Path, **facts: Any) -> None:
    """Change a stored run by hand."""
    made = json.loads(path.read_text(encoding="utf-8"))
    path.write_text(json.dumps({**made, **facts}), encoding="utf-8")


@pytest.mark.parametrize("runs", [3, 4])
@pytest.mark.parametrize("level", [1.1, 1.5])
def test_what_lasted_less_than_five_runs_is_no_shift(runs: int, level: float) -> None:
    """Whatever the running median makes of it."""
    assert shifts(levels((15, 1.0), (runs, level), (15, 1.0))) == []


@pytest.mark.parametrize("runs", [3, 4])
def test_the_newest_runs_are_not_enough(runs: int) -> None:
    """They may be the beginning of a shift; nobody knows yet."""
    assert shifts(levels((30, 1.0), (runs, 1.5))) == []


def test_why_there_is_no_run_is_said(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Files that cannot be read are named, with the reason."""
    kept(folder / "all" / "a.json", case(), schema=2, version="7.8")
    assert cli.main(["report", "--history", "all", "-o", "h.html"]) == _USAGE_ERROR
    assert "newer fwbench (7.8)" in capsys.readouterr().err


def test_a_stored_run_is_not_replaced(folder: Path) -> None:
    """A report among the runs would be taken for one."""
    path = next((folder / ".benchmarks").rglob("*.json"))
    before = path.read_bytes()
    assert cli.main(["report", "--history", ".benchmarks", "-o", str(path)]) == _USAGE_ERROR
    assert path.read_bytes() == before


_TOP: dict[str, dict[str, Any]] = {
    "threads": {"fwbench": {"schema": 1, "threads": "many"}},
    "cpu": {"machine_info": {"cpu": "x"}, "fwbench": {}},
    "commit": {"commit_info": "abc"},
}


@pytest.mark.parametrize("facts", _TOP.values(), ids=_TOP)
def test_changed_files_are_named(folder: Path, facts: dict[str, Any]) -> None:
    """What was changed by hand is read or named, and costs nothing else."""
    change(kept(folder / ".benchmarks" / "x.json", case()), **facts)
    assert cli.main(["report", "--history", ".benchmarks", "-o", "h.html"]) in (0, _SOME_UNREADABLE)


def test_a_case_without_a_framework(folder: Path) -> None:
    """It is shown as far as it is known."""
    made = case("dot")
    del made["extra_info"]["fwbench"]["framework"]
    kept(folder / ".benchmarks" / "x.json", made)
    assert cli.main(["report", "--history", ".benchmarks", "-o", "h.html"]) in (0, _SOME_UNREADABLE)


@pytest.mark.parametrize(
    ("name", "value"),
    [("q1", None), ("q1", "x"), ("q3", float("nan")), ("rounds", None), ("median", float("inf"))],
)
@pytest.mark.parametrize("option", ["run", "history"])
def test_changed_statistics_are_named(folder: Path, name: str, value: Any, option: str) -> None:
    """Times that are none make a file unreadable, as a run and in a history."""
    made = statistics_of(rounds_of(case("dot")))
    made["stats"][name] = value
    for number in range(2):
        kept(folder / ".benchmarks" / f"x{number}.json", made, at=number)
    kept(folder / "run.json", case())
    what = [".benchmarks/x0.json", "run.json"] if option == "run" else ["--history", ".benchmarks"]
    assert cli.main(["report", *what, "-o", "h.html"]) == _SOME_UNREADABLE


def test_no_revision_is_none(tmp_path: Path) -> None:
    """pytest-benchmark calls that unversioned."""
    kept(tmp_path / "0.json", case(), revision="unversioned")
    assert only(collect(tmp_path)[0]).moments[0].revision == ""


def test_threads_that_are_not_recorded(tmp_path: Path) -> None:
    """Nobody measured with none."""
    foreign_run(tmp_path / "0.json")
    assert "0 threads" not in collect(tmp_path)[0][0].machine


@pytest.mark.parametrize("a_day", [3, 100])
def test_labels_of_runs_of_one_day(tmp_path: Path, a_day: int) -> None:
    """Days that are told apart by their time, and few enough to be read."""
    for number in range(60):
        change(
            kept(tmp_path / f"{number}.json", case(), at=number),
            datetime=f"{day(number // a_day)}T{number % a_day % 24:02}:00:00+00:00",
        )
    (chart,) = history.parts(collect(tmp_path)[0])[1].charts
    (axis,) = [
        one for one in parsed(chart.svg).of_class("axis") if "x" in one.attributes["class"].split()
    ]
    assert len(axis.all("text")) <= 9


def test_a_run_without_a_version_hides_no_upgrade() -> None:
    """The version before it counts."""
    assert line([1.0] * 6, versions=((0, "1.0"), (2, ""), (3, "2.0"))).upgrades


def test_null_is_no_time(tmp_path: Path) -> None:
    """The file's own time counts then."""
    change(kept(tmp_path / "0.json", case()), datetime=None)
    assert only(collect(tmp_path)[0]).moments[0].when != "None"


def test_times_of_other_zones(tmp_path: Path) -> None:
    """The second was first."""
    for number, at in enumerate(("2026-01-01T23:00:00+00:00", "2026-01-02T00:30:00+02:00")):
        change(kept(tmp_path / f"{number}.json", case(values_s=(1.0 + number,))), datetime=at)
    assert medians(only(collect(tmp_path)[0])) == [2.0, 1.0]


def test_one_value_has_no_interval(tmp_path: Path) -> None:
    """One median each says nothing of their spread."""
    run = stored(
        tmp_path,
        "r.json",
        statistics_of(rounds_of(case())),
        statistics_of(rounds_of(case(execution="compile")), 1.0),
    )
    rows = texts(part([run], "gemm"))
    assert "2.00 to 2.00" not in rows[1]["against eager"]


def test_other_gpus_are_apart(tmp_path: Path) -> None:
    """Another GPU is no shift."""
    for number, gpu in enumerate(("H200", "T4")):
        kept(tmp_path / f"{number}.json", case(device="gpu:0", device_name=gpu), at=number)
    assert len(collect(tmp_path)[0]) == 2
