"""A row of versions: which are measured next, and since which one a case has changed."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fwbench.errors import ComparisonError, InstallationError, UsageError
from fwbench.gate.patience import BudgetIsOver
from fwbench.gate.releases import Releases, index_url
from fwbench.gate.since import AT_ONCE, RowOfVersions, Search
from fwbench.gate.verdicts import Rules, Verdict
from fwbench.records.session_facts import StoredRow
from fwbench.report import since
from support.versions import Versions, measured


def _steps(row: RowOfVersions, case: str) -> list[tuple[tuple[int, int], Verdict]]:
    changes = row.search.changes(row.search.rows[case])
    return [(change.step, change.verdict) for change in changes]


@pytest.mark.parametrize("number", [2, 8, 20, 41])
@pytest.mark.parametrize("share", [0.01, 0.5, 1.0])
def test_the_version_that_brought_a_change_is_found(number: int, share: float) -> None:
    """By halves where there are more than take turns together; others are flat."""
    since = max(1, round(share * (number - 1)))
    slow: Callable[[int], float] = lambda place: 1.1 if place >= since else 1.0  # noqa: E731
    versions = Versions({"slow": slow, "flat": lambda _: 1.0})
    row = measured(versions, number)
    assert _steps(row, "slow") == [((since - 1, since), Verdict.REGRESSED)]
    assert _steps(row, "flat") == []
    flat = row.search.steps(row.search.rows["flat"])
    assert {step.verdict for step in flat} == {Verdict.UNCHANGED}
    assert all(0.94 < bound < 1.06 for step in flat for bound in step.bounds)
    assert max(len(places) for places, _ in versions.launched) <= AT_ONCE
    assert row.sessions == sum(len(places) for places, _ in versions.launched)


def test_a_change_that_is_taken_back_is_two() -> None:
    versions = Versions({"case": lambda place: 2.0 if place in (3, 4) else 1.0})
    found = [((2, 3), Verdict.REGRESSED), ((4, 5), Verdict.IMPROVED)]
    row = measured(versions, 8)
    assert _steps(row, "case") == found
    ratios = [change.ratio for change in row.search.changes(row.search.rows["case"])]
    assert ratios == pytest.approx([2.0, 0.5], rel=0.02)


def test_a_version_that_cannot_be_built_is_left_out() -> None:
    """The step spans it."""

    def prepare(place: int) -> None:
        if place in (0, 3):
            raise InstallationError("no compiler")

    row = measured(Versions({"case": lambda place: 1.2 if place >= 3 else 1.0}), 6, prepare)
    assert row.search.lost == {0: "no compiler", 3: "no compiler"}
    assert _steps(row, "case") == [((2, 4), Verdict.REGRESSED)]


def test_a_version_whose_sessions_break_down_is_left_out() -> None:
    versions = Versions({"case": lambda place: 1.2 if place >= 3 else 1.0})
    versions.failing[3] = "ImportError: no"
    row = measured(versions, 6)
    assert row.search.lost == {3: "ImportError: no"}
    assert _steps(row, "case") == [((2, 4), Verdict.REGRESSED)]


def test_others_are_tried_where_the_first_versions_break_down() -> None:
    versions = Versions({"case": lambda place: 1.2 if place >= 3 else 1.0})
    versions.failing = dict.fromkeys({*range(20)} - {0, 2, 3, 4}, "broken")
    row = measured(versions, 20)
    assert _steps(row, "case") == [((2, 3), Verdict.REGRESSED)]


def test_a_case_that_a_version_lacks_spans_it() -> None:
    versions = Versions(
        {"case": lambda place: 1.2 if place >= 3 else 1.0, "whole": lambda place: 1.0 + place}
    )
    versions.missing[3] = "case"
    row = measured(versions, 6)
    assert row.search.rows["case"].missing == {3: "failed"}
    assert _steps(row, "case") == [((2, 4), Verdict.REGRESSED)]
    assert len(_steps(row, "whole")) == 5


def test_time_that_is_over_leaves_steps_untold() -> None:
    versions = Versions({"case": lambda place: 1.2 if place >= 3 else 1.0})
    row = measured(versions, 6, budget_s=20)
    assert row.launches == 3
    assert row.took_s <= 20
    assert _steps(row, "case") == []
    assert [step.verdict for step in row.search.steps(row.search.rows["case"])] == [None] * 5


def test_a_launch_that_hangs_until_the_budget_is_over_is_left_out(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Launches before it count; without any that is an error."""
    versions = Versions({"case": lambda _: 1.0})
    launch = versions.launch

    def hang(*wanted: Any) -> Any:
        if len(versions.launched) == launches:
            raise BudgetIsOver("1.2: at case for 9 min", "case")
        return launch(*wanted)

    monkeypatch.setattr(versions, "launch", hang)
    launches = 2
    assert measured(versions, 6).launches == 2
    launches = 0
    versions.launched.clear()
    with pytest.raises(BudgetIsOver):
        measured(versions, 6)


def test_a_step_that_halves_cannot_explain_is_a_change_itself() -> None:
    """It grew a little in every version, and none of these steps can be told from noise."""
    versions = Versions({"case": lambda place: 1.012**place}, deviation=0.002)
    row = measured(versions, 17)
    steps = _steps(row, "case")
    assert steps
    assert {verdict for _, verdict in steps} == {Verdict.REGRESSED}
    assert max(last - first for (first, last), _ in steps) > 1


@pytest.mark.parametrize(
    ("failing", "missing", "message"),
    [
        (range(5), "", "fewer than two versions can be measured; the last of the others: broken"),
        (range(6), "", "no version has a benchmark .*; the last words of one: broken"),
        ((), "case", "no version has a benchmark that the arguments select"),
    ],
)
def test_a_row_that_cannot_bemeasured(failing: Sequence[int], missing: str, message: str) -> None:
    versions = Versions({} if missing else {"case": lambda _: 1.0})
    versions.failing = dict.fromkeys(failing, "broken")
    with pytest.raises(ComparisonError, match=message):
        measured(versions, 6)


@pytest.mark.parametrize("number", [8, 30])
def test_a_row_without_changes_has_none(number: int) -> None:
    """At most one job in fifty may; none of these does, with noise of 1 to 4 %."""
    for deviation in (0.01, 0.02, 0.04):
        row = measured(Versions({"a": lambda _: 1.0, "b": lambda _: 2.0}, deviation), number)
        assert _steps(row, "a") == _steps(row, "b") == []


@pytest.mark.parametrize("number", [6, 20])
def test_launches_of_an_earlier_call_are_not_measured_again(number: int) -> None:
    """Everything that they tell is known at once, also where steps have been halved."""
    versions = Versions({"case": lambda place: 1.2 if place >= 3 else 1.0})
    first = measured(versions, number)
    again = measured(versions, number, earlier=[*versions.brought])
    assert (again.reused, again.launches) == (first.launches, 0)
    assert _steps(again, "case") == _steps(first, "case") == [((2, 3), Verdict.REGRESSED)]


def test_a_version_more_is_all_that_is_measured() -> None:
    versions = Versions({"case": lambda place: 1.2 if place >= 5 else 1.0})
    first = measured(versions, 5)
    row = measured(versions, 6, earlier=[*versions.brought])
    alone = [places for places, _ in versions.launched[first.launches :] if places == [4, 5]]
    assert row.launches - len(alone) <= 1  # more versions need a little more evidence
    assert _steps(row, "case") == [((4, 5), Verdict.REGRESSED)]


def test_an_earlier_call_that_was_interrupted_is_gone_on_with() -> None:
    versions = Versions({"case": lambda place: 1.2 if place >= 3 else 1.0})
    measured(versions, 6, budget_s=20)
    row = measured(versions, 6, earlier=[*versions.brought])
    assert row.reused == 3
    assert _steps(row, "case") == [((2, 3), Verdict.REGRESSED)]


def test_the_neighbours_of_a_lost_version_have_met_before() -> None:
    """Their launches count for the step that spans it."""
    versions = Versions({"case": lambda place: 1.2 if place >= 3 else 1.0})
    row = measured(versions, 6)
    row.search.lose(3, "it has vanished")
    (step,) = [step for step in row.search.steps(row.search.rows["case"]) if step.step == (2, 4)]
    assert step.launches >= 3
    assert step.ratio == pytest.approx(1.2, rel=0.02)


def test_an_interruption_keeps_what_is_known() -> None:
    versions = Versions({"case": lambda place: 1.2 if place >= 3 else 1.0})
    versions.interrupted_after = 4
    row = measured(versions, 6)
    assert (row.launches, row.is_interrupted) == (4, True)
    assert row.stored("row", [*"abcdef"], {}, {}).interrupted
    versions.interrupted_after = 4  # before the first one of this call
    with pytest.raises(KeyboardInterrupt):
        measured(versions, 6)


@pytest.mark.parametrize(
    ("chosen", "versions", "gaps"),
    [
        ({}, ["1.0", "1.1", "1.1.1", "2.0"], ["0.9", "1.0.1", "2.1"]),
        ({"every": "minor"}, ["1.0", "1.1.1", "2.0"], ["0.9", "1.0.1", "2.1"]),
        ({"every": "minor", "good": "1.1"}, ["1.1", "1.1.1", "2.0"], ["2.1"]),
        ({"good": "1.0", "bad": "1.1.1"}, ["1.0", "1.1", "1.1.1"], ["1.0.1"]),
        ({"named": ["1.0", "2.0"]}, ["1.0", "2.0"], []),
    ],
)
def test_a_row_has_the_gaps_between_its_ends(
    chosen: dict[str, Any], versions: list[str], gaps: list[str]
) -> None:
    found = Releases(["1.0", "1.1", "1.1.1", "2.0"], dict.fromkeys(["0.9", "1.0.1", "2.1"], "no"))
    row = found.row(**{"every": "patch", "good": None, "bad": None, "named": (), **chosen})
    assert ([*row.versions], [*row.gaps]) == (versions, gaps)


def test_a_release_without_a_wheel_is_no_end_of_a_row() -> None:
    found = Releases(["1.0"], {"2.1": "no wheel for Python 3.11 on this machine"})
    with pytest.raises(UsageError, match=r"^2\.1: no wheel for Python 3\.11 .*: --python$"):
        found.row(every="patch", good="1.0", bad="2.1", named=())


def test_an_index_has_a_name_in_the_settings_of_uv(tmp_path: Path) -> None:
    """In those of the project's pyproject.toml, or in a file of their own."""
    url = "https://example.org/{}/simple"
    table = f'[[tool.uv.index]]\nname = "nightly"\nurl = "{url.format("a")}"\n'
    (tmp_path / "pyproject.toml").write_text(table, encoding="utf-8")
    file = f'[[index]]\nurl = "x"\n[[index]]\nname = "own"\nurl = "{url.format("b")}"\n'
    (tmp_path / "uv.toml").write_text(file, encoding="utf-8")
    assert index_url(tmp_path, "nightly") == url.format("a")
    assert index_url(tmp_path, "own") == url.format("b")
    assert index_url(tmp_path, "https://example.org") == "https://example.org"
    with pytest.raises(UsageError, match=r"^unknown index 'nighty'; known: nightly, own\. Did you"):
        index_url(tmp_path, "nighty")


def test_time_that_environments_have_taken_leaves_one_launch() -> None:
    versions = Versions({"case": lambda _: 1.0})

    def prepare(_: int) -> None:
        versions.now_s += 10

    row = measured(versions, 6, prepare, budget_s=20)
    assert row.launches == 1


@pytest.mark.parametrize("fitting", [2, 3, 7])
def test_fewer_versions_are_alive_where_one_has_died(fitting: int) -> None:
    """None is lost, and a change is found by halves."""
    versions = Versions({"case": lambda place: 1.2 if place >= 3 else 1.0})
    versions.fitting = fitting
    row = measured(versions, 8)
    assert row.search.lost == {}
    assert _steps(row, "case") == [((2, 3), Verdict.REGRESSED)]
    assert 2 <= row.search.at_once <= fitting


def test_a_version_that_dies_and_is_never_measured_is_a_gap() -> None:
    """After its second death; that of another is no reason to have fewer alive."""
    versions = Versions({"case": lambda _: 1.0})
    versions.dying, versions.flaking = {1}, {2}
    row = measured(versions, 5)
    stored = row.stored("row", [*"abcde"], {}, {}, {"case": "it stalls"})
    assert {*stored.cases["case"].times_s} == {*"acde"}
    assert stored.gaps == {"b": "Killed"}
    assert stored.apart == {"case": "it stalls"}
    assert row.search.at_once == AT_ONCE


def test_one_of_two_that_dies_is_lost() -> None:
    versions = Versions({"case": lambda _: 1.0})
    versions.fitting = 1
    with pytest.raises(ComparisonError, match="fewer than two versions can be measured"):
        measured(versions, 3)


def test_time_that_is_over_once_a_step_was_halved_loses_no_version() -> None:
    """Versions that were put into a step, and not measured, stay out of the row."""
    cases: dict[str, Callable[[int], float]] = {"case": lambda p: 1.5 if p >= 9 else 1.0}
    whole = Versions(cases)
    measured(whole, 20)
    first = {*whole.launched[0][0]}
    halved = next(n for n, (places, _) in enumerate(whole.launched) if not first >= {*places})
    versions = Versions(cases)
    versions.interrupted_after = halved
    row = measured(versions, 20)
    assert row.launches == halved
    stored = row.stored("row", [f"1.{place}" for place in range(20)], {}, {})
    case = stored.cases["case"]
    assert {"1.0", "1.19"} <= case.times_s.keys()
    (change,) = case.changes
    assert {change.after, change.since} <= case.times_s.keys()
    assert since.section(StoredRow.checked(dict(stored)), "").charts


def test_a_second_speed_is_one_of_a_version() -> None:
    """A row has launches and versions, and neither pairs nor a contender."""
    search = Search(2, Rules())
    search.begin([0, 1], ["case"])
    for number in range(20):
        slow = 0.4 if number % 4 == 3 else 0.001 * number
        search.rows["case"].add({0: np.zeros(3), 1: np.full(3, slow)})
    (step,) = search.steps(search.rows["case"])
    assert step.reason.startswith("in 5 of 20 launches the later version took longer by over 10%")
