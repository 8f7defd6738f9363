"""A history is collected: which runs, which lines, and what of odd files."""

import json
import os
from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from fwbench import cli
from fwbench.errors import UsageError
from fwbench.gate.verdicts import Comparison
from fwbench.report import history
from fwbench.report.history import HistoryLine, collect, shifts
from support.histories import change, day, levels, only, saved, statistics_of, when
from support.launched_runs import plain
from support.projects import Project
from support.reports import UNREADABLE, case, foreign_run, part, rounds_of, run_of, training
from support.section_parts import marks, rows
from support.tables import tabled


def medians(history_line: HistoryLine) -> list[float]:
    return [moment.median_s for moment in history_line.moments]


def test_runs_of_all_folders_are_in_the_order_of_time(tmp_path: Path) -> None:
    linux, other = "Linux-CPython-3.11-64bit", "Linux-CPython-3.12-64bit"
    files = {f"{linux}/0003_x": 1, f"{linux}/0001_x": 3, f"{other}/2_x": 0, "more/of/x": 2, "x": 4}
    for name, at in files.items():
        saved(tmp_path / f"{name}.json", case(values_s=1.0 + at), at=at)
    saved(tmp_path / "e.txt", case(values_s=6.0), at=5)
    lines, problems = collect(tmp_path)
    assert [moment.when for moment in only(lines).moments] == [when(at) for at in range(5)]
    assert medians(only(lines)) == [1.0, 2.0, 3.0, 4.0, 5.0]
    assert problems == []


def test_times_have_zones(tmp_path: Path) -> None:
    for number, at in enumerate(("2026-01-01T23:00:00+00:00", "2026-01-02T00:30:00+02:00")):
        saved(tmp_path / f"{number}.json", case(values_s=1.0 + number), at=at)
    assert medians(only(collect(tmp_path)[0])) == [2.0, 1.0]


@pytest.mark.parametrize("recorded", [{}, {"datetime": None}], ids=["missing", "null"])
def test_a_run_without_a_time_is_as_old_as_its_file(
    tmp_path: Path, recorded: dict[str, None]
) -> None:
    saved(tmp_path / "0.json", case(values_s=1.0), at=0)
    saved(tmp_path / "1.json", case(values_s=3.0), at=9)
    without = saved(tmp_path / "2.json", case(values_s=2.0), at=None)
    change(without, **recorded)
    changed = datetime.fromisoformat(when(4)).timestamp()
    os.utime(without, (changed, changed))
    history_line = only(collect(tmp_path)[0])
    assert medians(history_line) == [1.0, 2.0, 3.0]
    assert history_line.moments[1].when[:10] == day(4)


def test_what_a_moment_holds(tmp_path: Path) -> None:
    values_s = [0.001 * number for number in (5, 3, 9, 1, 7, 2, 8, 4, 6)]
    made = case(values_s=values_s, framework_version="2.9")
    saved(tmp_path / "0.json", made, at=5, revision="0123456789abcdef")
    (moment,) = only(collect(tmp_path)[0]).moments
    assert (moment.median_s, moment.low_s, moment.high_s) == pytest.approx((0.005, 0.003, 0.007))
    assert (moment.when, moment.version, moment.revision) == (when(5), "2.9", "012345678")


def test_a_line_for_each_case(tmp_path: Path) -> None:
    for number in range(3):
        entries = [case(), case("dot", "torch", execution="compile")][: 1 + number % 2]
        saved(tmp_path / f"{number}.json", *entries, at=number)
    gemm, dot = collect(tmp_path)[0]
    assert gemm.name == "gemm-numpy-eager-cpu-forward-float32-100"
    assert (gemm.group, dot.group) == ("gemm", "dot")
    assert [len(line.moments) for line in (gemm, dot)] == [3, 1]
    assert dot.keys == {
        "framework": "torch",
        "execution": "compile",
        "device": "cpu",
        "direction": "forward",
        "dtype": "float32",
    }


def test_the_same_case_of_another_test_is_another(tmp_path: Path) -> None:
    other = case(values_s=9.0)
    other["fullname"] = "test_other.py::test_other[gemm]"
    for number in range(2):
        saved(tmp_path / f"{number}.json", case(values_s=1.0), other, at=number)
    assert [medians(line) for line in collect(tmp_path)[0]] == [[1.0, 1.0], [9.0, 9.0]]


def test_as_many_processes_as_there_are_read_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(23):
        entries = [case(values_s=1.0 + number), case("dot")][: 1 + number % 2]
        saved(tmp_path / f"{number:02}.json", *entries, at=number)
    for number in (3, 12, 22):
        (tmp_path / f"{number:02}.json").write_text("{", encoding="utf-8")
    read = []
    for processes in (1, 2, 3):
        monkeypatch.setattr(history, "usable_cpus", lambda number=processes: number)
        read.append(collect(tmp_path))
    assert read[0] == read[1] == read[2]
    lines, problems = read[0]
    assert [len(line.moments) for line in lines] == [20, 10]
    files = [Path(problem.partition(" is ")[0]).name for problem in problems]
    assert files == ["03.json", "12.json", "22.json"]


@tabled
def test_machines_are_apart(tmp_path: Path, session: dict[str, Any], called: str) -> None:
    for number in range(20):
        there = number % 2
        own = {name: number for name, number in session.items() if there and name == "threads"}
        made = case(values_s=2.0 if there else 1.0, **own)
        saved(tmp_path / f"{number}.json", made, at=number, **(session if there else {}))
    lines, _ = collect(tmp_path)
    assert {line.machine: {*medians(line)} for line in lines} == {
        "Fake CPU, 2 threads": {1.0},
        called: {2.0},
    }
    section = history.sections(lines)
    assert [shown_section.title for shown_section in section] == [
        "Lasting shifts",
        "history of gemm, Fake CPU, 2 threads",
        f"history of gemm, {called}",
    ]
    assert section[0].rows == []


def test_threads_are_those_of_the_case(tmp_path: Path) -> None:
    """A framework may compute with others than the session asked for; series do not mix them."""
    for number, threads in enumerate((1, 2, 2)):
        saved(tmp_path / f"{number}.json", case(values_s=3.0 - threads, threads=threads), at=number)
    assert {line.machine: medians(line) for line in collect(tmp_path)[0]} == {
        "Fake CPU, 1 thread": [2.0],
        "Fake CPU, 2 threads": [1.0, 1.0],
    }


def test_runs_without_fwbench_are_followed(tmp_path: Path) -> None:
    for number in range(3):
        change(foreign_run(tmp_path / f"{number}.json"), datetime=when(number))
    first, second = collect(tmp_path)[0]
    assert (first.name, second.name) == ("test_a", "test_b")
    assert first.machine == "Fake CPU, unknown threads"
    assert first.group == "other benchmarks"
    assert (medians(first), medians(second)) == ([0.75] * 3, [1.5] * 3)
    assert (first.keys, first.upgrades) == ({}, {})


def test_machines_without_a_name_are_one(tmp_path: Path) -> None:
    change(foreign_run(tmp_path / "0.json"), machine_info={})
    assert {line.machine.partition(",")[0] for line in collect(tmp_path)[0]} == {"unknown CPU"}


_ENTRIES = {
    "of launches": case(values_s=(1.0, 2.0, 4.0)),
    "of launches, their statistics alone": statistics_of(case(values_s=(1.0, 2.0, 4.0)), 9.0),
    "of rounds": rounds_of(case(values_s=(1.0, 2.0, 4.0))),
    "of rounds, their statistics alone": statistics_of(rounds_of(case())),
    "of a training": statistics_of(training()),
    "of another's": statistics_of(plain()),
}


@pytest.mark.parametrize("entry", _ENTRIES.values(), ids=_ENTRIES)
def test_values_are_found_in_any_entry(tmp_path: Path, entry: dict[str, Any]) -> None:
    saved(tmp_path / "0001_x.json", entry)
    (moment,) = only(collect(tmp_path)[0]).moments
    assert (moment.low_s, moment.median_s, moment.high_s) == (1.0, 2.0, 4.0)


def test_what_pytest_benchmark_saves_is_read(
    project: Project, capsys: pytest.CaptureFixture[str]
) -> None:
    project.write("test_it.py", "def test_sum(benchmark):\n    benchmark(sum, range(10))\n")
    for name in ("first", "second"):
        project.run("--benchmark-save", name).assert_outcomes(passed=1)
    files = sorted((project.path / ".benchmarks").rglob("*.json"))
    assert [path.name for path in files] == ["0001_first.json", "0002_second.json"]
    stats = [json.loads(path.read_text())["benchmarks"][0]["stats"] for path in files]
    assert not any("data" in stat for stat in stats)
    history_line = only(collect(project.path / ".benchmarks")[0])
    assert medians(history_line) == [stat["median"] for stat in stats]
    assert [moment.low_s for moment in history_line.moments] == [stat["q1"] for stat in stats]
    assert [moment.high_s for moment in history_line.moments] == [stat["q3"] for stat in stats]
    capsys.readouterr()
    assert cli.main(["report", "--history", ".benchmarks", "-o", "history.html"]) == 0
    assert capsys.readouterr().err == ""
    assert "test_sum" in (project.path / "history.html").read_text(encoding="utf-8")


def test_only_some_cases(tmp_path: Path) -> None:
    saved(tmp_path / "0.json", case(), case("dot"), case("gemm", "torch"), plain("test_gemm"))
    names = [line.name for line in collect(tmp_path, "gemm")[0]]
    assert names == [
        "gemm-numpy-eager-cpu-forward-float32-100",
        "gemm-torch-eager-cpu-forward-float32-100",
        "test_gemm",
    ]
    with pytest.raises(UsageError, match=r"no case under .* has 'conv' in its name; give -k"):
        collect(tmp_path, "conv")


@pytest.mark.parametrize("folder", ["nowhere", "file.json"])
def test_a_history_is_a_directory(tmp_path: Path, folder: str) -> None:
    saved(tmp_path / "file.json", case())
    with pytest.raises(UsageError, match=f"{folder} is not a directory; name the one"):
        collect(tmp_path / folder)


@pytest.mark.parametrize("folder", ["empty", "of others"])
def test_without_a_run_nothing_can_be_shown(tmp_path: Path, folder: str) -> None:
    (tmp_path / "empty").mkdir()
    saved(tmp_path / "of others" / "readme.txt", case())
    with pytest.raises(UsageError) as caught:
        collect(tmp_path / folder)
    assert str(tmp_path / folder) in str(caught.value)
    assert "--benchmark-autosave" in str(caught.value)
    assert "--benchmark-save" in str(caught.value)


@pytest.mark.parametrize(
    ("make", "message"),
    [pair for name, pair in UNREADABLE.items() if name != "missing"],
    ids=[name for name in UNREADABLE if name != "missing"],
)
def test_files_that_are_no_runs_are_named(
    tmp_path: Path, make: Callable[[Path], Any], message: str
) -> None:
    for number in (0, 2):
        saved(tmp_path / f"{number}.json", case(values_s=1.0 + number), at=number)
    make(tmp_path / "1.json")
    lines, (problem,) = collect(tmp_path)
    assert medians(only(lines)) == [1.0, 3.0]
    assert "1.json" in problem
    assert message in problem


def test_verdicts_are_no_runs_and_no_problem(tmp_path: Path) -> None:
    saved(tmp_path / "0.json", case())
    verdicts = json.dumps(Comparison("base", "contender", [], {"confidence": 0.99}).to_json())
    (tmp_path / "verdicts.json").write_text(verdicts, encoding="utf-8")
    lines, problems = collect(tmp_path)
    assert len(only(lines).moments) == 1
    assert problems == []


@pytest.mark.parametrize("runs", [3, 4])
@pytest.mark.parametrize("level", [1.1, 1.5])
def test_what_lasted_less_than_five_runs_is_no_shift(runs: int, level: float) -> None:
    assert shifts(levels((15, 1.0), (runs, level), (15, 1.0))) == []


@pytest.mark.parametrize("runs", [3, 4])
def test_the_newest_runs_are_not_enough(runs: int) -> None:
    """They may be the beginning of a shift; nobody knows yet."""
    assert shifts(levels((30, 1.0), (runs, 1.5))) == []


def test_no_revision_is_none(tmp_path: Path) -> None:
    """pytest-benchmark calls that unversioned."""
    saved(tmp_path / "0.json", case(), revision="unversioned")
    assert only(collect(tmp_path)[0]).moments[0].revision == ""


@pytest.mark.parametrize("a_day", [3, 100])
def test_labels_of_runs_of_one_day(tmp_path: Path, a_day: int) -> None:
    for number in range(60):
        at = f"{day(number // a_day)}T{number % a_day % 24:02}:00:00+00:00"
        saved(tmp_path / f"{number}.json", case(), at=at)
    (chart,) = history.sections(collect(tmp_path)[0])[1].charts
    assert len(marks(chart, "x")) <= 9


def test_one_value_has_no_interval() -> None:
    run = run_of(
        statistics_of(rounds_of(case())), statistics_of(rounds_of(case(execution="compile")), 1.0)
    )
    _, other = rows(part([run], "gemm"))
    assert "2.00 to 2.00" not in other["against eager"]


def test_other_gpus_are_apart(tmp_path: Path) -> None:
    for number, gpu in enumerate(("H200", "T4")):
        saved(tmp_path / f"{number}.json", case(device="gpu:0", device_name=gpu), at=number)
    assert len(collect(tmp_path)[0]) == 2
