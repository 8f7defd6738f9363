"""Verdicts: what is said of sessions, and what a job exits with."""

import itertools
import re
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from fwbench.errors import UsageError
from fwbench.gate.samples import SampleSet, together
from fwbench.gate.stored import SessionRatio, compare, judge
from fwbench.gate.verdicts import (
    EXIT_STATUS,
    FAIL_ON,
    Comparison,
    FailOn,
    Judgement,
    Rules,
    Verdict,
)
from fwbench.records.measurement import MINIMUM, Measurement
from support.gangs import gang
from support.launched_runs import run, sample, times
from support.tables import tabled

RULES = Rules()


def _judged(base: Sequence[float], contender: Sequence[float], **changes: Any) -> Judgement:
    """The verdict on the minimum of these sessions at a level of .05."""
    rules = Rules(**changes)
    return _first(sample("a", base), sample("a", contender), rules)


def _first(
    base: Measurement, contender: Measurement, rules: Rules, level: float = 0.05
) -> Judgement:
    """The judgement on the minimum, at a level of its own."""
    result = judge(base, contender, rules, level / _WEIGHT)[0]
    assert result.metric == MINIMUM
    return result


#: The minimum's part of the level.
_WEIGHT = 0.4


# One case


@tabled
def test_a_change_needs_the_test_and_the_threshold(center: float, verdict: str) -> None:
    judgement = _judged(times(1.0), times(center))
    assert judgement.verdict is Verdict(verdict)
    assert judgement.ratio == pytest.approx(center)
    assert judgement.reason == ""
    assert judgement.base == times(1.0)
    assert judgement.contender == times(center)


def test_a_ratio_alone_is_no_change() -> None:
    """Sessions that overlap too much are not beyond chance, whatever their means."""
    base = (1.0, 1.01, 1.02, 1.2, 1.21)
    contender = (1.0, 1.01, 1.2, 1.25, 1.3)
    judgement = _judged(base, contender, resolution=0.9)
    assert judgement.ratio is not None
    assert judgement.ratio > 1.03
    assert judgement.p is not None
    assert judgement.p > 0.05
    assert judgement.verdict is Verdict.INCONCLUSIVE
    assert "looks changed" in judgement.reason


def test_the_figures_are_those_of_the_statistics() -> None:
    base, contender = times(1.0, 8, 0.02, seed=1), times(1.2, 8, 0.02, seed=2)
    judgement = _judged(base, contender)
    shift = SessionRatio.between(base, contender, 0.0)
    assert judgement.p == shift.p
    assert (judgement.low, judgement.high) == shift.interval(0.9)
    assert judgement.visible == shift.detectable(0.03, 0.025)
    faster = _judged(contender, base)
    assert faster.verdict is Verdict.IMPROVED
    assert faster.p == pytest.approx(judgement.p)


@pytest.mark.parametrize("side", [0, 1])
@pytest.mark.parametrize("busy", [{"contended": True}, {"condition": "contended"}])
def test_contended_cases_are_inconclusive(side: int, busy: dict[str, Any]) -> None:
    """Sessions of one launch say it by their condition."""
    pair = [sample("a", times(1.0)), sample("a", times(2.0))]
    pair[side] = sample("a", pair[side].times_s, **busy)
    judgement = _first(*pair, RULES)
    assert judgement.verdict is Verdict.INCONCLUSIVE
    assert "processors" in judgement.reason
    assert judgement.ratio == pytest.approx(2.0)


#: Sessions that spread over a factor of 3.
_WILD = (1.0, 1.5, 2.0, 2.5, 3.0)


def test_spread_is_inconclusive() -> None:
    """Where not even a change of the resolution would have shown, its absence is not claimed."""
    judgement = _judged(_WILD, _WILD)
    assert judgement.verdict is Verdict.INCONCLUSIVE
    assert judgement.reason == "its sessions are too far apart"
    assert judgement.visible is None or judgement.visible > 0.1


def test_the_resolution_is_what_unchanged_must_have_been_able_to_show() -> None:
    """The same sessions are unchanged at a coarse resolution, and inconclusive at a fine one."""
    base = times(1.0, 8, 0.05, seed=1)
    contender = [1.001 * time_s for time_s in base]
    visible = _judged(base, contender).visible
    assert visible is not None
    assert _judged(base, contender, resolution=visible + 0.01).verdict is Verdict.UNCHANGED
    assert _judged(base, contender, resolution=visible - 0.01).verdict is Verdict.INCONCLUSIVE


def test_a_change_beyond_all_spread_is_found() -> None:
    """Wide intervals do not hide what the test is sure of."""
    judgement = _judged(_WILD, [10 * time for time in _WILD])
    assert judgement.verdict is Verdict.REGRESSED


@pytest.mark.parametrize(
    ("threshold", "verdict"),
    [(None, Verdict.REGRESSED), (0.5, Verdict.UNCHANGED), (0.02, Verdict.REGRESSED)],
)
def test_the_threshold_of_the_bases_marker_wins(threshold: float | None, verdict: Verdict) -> None:
    """Over the one of the comparison; the contender's would let a change excuse itself."""
    base = sample("a", times(1.0), threshold=threshold)
    contender = sample("a", times(1.2), threshold=0.9)
    judgement = _first(base, contender, RULES)
    assert judgement.verdict is verdict
    assert judgement.threshold == (0.03 if threshold is None else threshold)
    assert judgement.visible is not None
    assert judgement.visible >= judgement.threshold


@tabled
def test_thresholds_of_markers_are_noted(
    base: float | None, contender: float | None, note: str
) -> None:
    """In every output, where they differ or allow more than the comparison."""
    sides = [sample("a", times(1.0), threshold=share) for share in (base, contender)]
    comparison = compare(run(sides[0]), run(sides[1]), RULES)
    assert [text for text in comparison.notes if "threshold" in text] == [note] * bool(note)


def test_a_small_marker_finds_what_the_threshold_would_not() -> None:
    """A test may care for less than others do."""
    base, contender = sample("a", times(1.0), threshold=0.015), sample("a", times(1.02))
    assert _first(base, contender, RULES).verdict is Verdict.REGRESSED


# Several metrics


def test_a_case_regresses_by_either_statistic() -> None:
    """Most rounds slower and the fastest not: the median says so, and the case has regressed."""
    base = sample("a", times(1.0))
    contender = sample("a", times(1.0), median=times(1.5))
    comparison = compare(run(base), run(contender), RULES)
    by_metric = {judgement.metric: judgement.verdict for judgement in comparison.judgements}
    assert by_metric == {"minimum": Verdict.UNCHANGED, "median": Verdict.REGRESSED}
    assert comparison.verdicts == {"a": Verdict.REGRESSED}
    assert comparison.exit_status(FAIL_ON) == 1


@pytest.mark.parametrize(
    "metric", ["dispatch", "first call", "compilation", "memory", "memory before"]
)
def test_what_grows_tenfold_is_not_passed_over(metric: str) -> None:
    """Whatever the times are: each has a verdict, and a threshold that noise does not reach."""
    size = 100 * 2**20 if metric.startswith("memory") else 0.1
    base_values, contender_values = (
        [scale * size * time for time in times(1.0, 8)] for scale in (1, 10)
    )
    base = sample("a", times(1.0, 8), **{metric: base_values})
    slow = sample("a", times(1.0, 8), **{metric: contender_values})
    result = compare(run(base), run(slow), RULES)
    assert result.counts == {"regressed": 1}
    assert {judgement.metric: judgement.verdict for judgement in result.judgements}[
        metric
    ] is Verdict.REGRESSED
    assert compare(run(base), run(base), RULES).counts == {"unchanged": 1}
    lax = Rules(thresholds=dict.fromkeys(RULES.thresholds, 20.0))
    assert compare(run(base), run(slow), lax).counts == {"unchanged": 1}


def test_thresholds_are_given_by_name() -> None:
    given = Rules.given({"time": 0.2, "first-call": 3.0})
    assert given.threshold == 0.2
    assert given.thresholds == {**RULES.thresholds, "first call": 3.0}
    assert Rules.given({}) == RULES
    with pytest.raises(UsageError, match=r"'memroy'.*Did you mean 'memory'\?"):
        Rules.given({"memroy": 1.0})


def test_what_shrinks_keeps_nothing_open() -> None:
    """Nobody proves that dispatch is faster, and need not: the time has improved."""
    base = sample("a", times(1.0), dispatch=times(1.0))
    contender = sample("a", times(0.5), dispatch=times(0.5))
    assert compare(run(base), run(contender), RULES).counts == {"improved": 1}
    assert compare(run(contender), run(base), RULES).counts == {"regressed": 1}


def test_next_to_nothing_may_grow() -> None:
    """A tenth of a microsecond of dispatch and a page of memory are no change."""
    few, more = times(1e-8), times(1e-7)
    base = sample("a", times(1.0), dispatch=few, memory=[4096.0] * 5)
    contender = sample("a", times(1.0), dispatch=more, memory=[65536.0] * 5)
    assert compare(run(base), run(contender), RULES).counts == {"unchanged": 1}


@pytest.mark.parametrize(
    ("ours", "theirs", "message"),
    [
        ({"result_is_view": True}, {"result_is_view": False}, "is a view, the contender's a copy"),
        ({"precision_bits": 23}, {"precision_bits": 10}, "in 23 bits, the contender in 10"),
        ({"precision_bits": 23}, {"precision_bits": 23}, ""),
        ({"precision_bits": 23}, {}, ""),
        ({"inputs_digest": 1}, {"inputs_digest": 2}, "the inputs of the function differ"),
        ({"inputs_digest": 1}, {"inputs_digest": 1}, ""),
        (
            {"gang": gang()},
            {"gang": gang(equal_work=False)},
            "workers wait for each other, the other's do not wait",
        ),
        ({"gang": gang(equal_work=False)}, {"gang": gang(equal_work=False)}, ""),
    ],
)
def test_unequal_work_is_not_judged(
    ours: dict[str, Any], theirs: dict[str, Any], message: str
) -> None:
    """A view against a copy, or fewer bits against more, says nothing about speed."""
    base, contender = sample("a", times(1.0), **ours), sample("a", times(2.0), **theirs)
    comparison = compare(run(base), run(contender), RULES)
    expected = Verdict.INCONCLUSIVE if message else Verdict.REGRESSED
    assert comparison.verdicts == {"a": expected}
    assert message in comparison.judgements[0].reason


# Whole runs


def _verdicts(comparison: Comparison) -> dict[str, tuple[Verdict, str]]:
    return {
        judgement.key: (judgement.verdict, judgement.reason) for judgement in comparison.judgements
    }


def test_every_case_has_a_verdict() -> None:
    base = run(*(sample(key, times(1.0)) for key in ("slow", "fast", "same", "lost", "bad")))
    contender = run(
        sample("slow", times(2.0)),
        sample("fast", times(0.5)),
        sample("same", times(1.0)),
        sample("bad", times(1.0), contended=1),
        sample("result", times(1.0)),
    )
    comparison = compare(base, contender, RULES)
    assert {key: verdict for key, (verdict, _) in _verdicts(comparison).items()} == {
        "slow": Verdict.REGRESSED,
        "fast": Verdict.IMPROVED,
        "same": Verdict.UNCHANGED,
        "bad": Verdict.INCONCLUSIVE,
        "lost": Verdict.MISSING,
        "result": Verdict.NEW,
    }
    assert [*comparison.counts] == [
        "regressed",
        "missing",
        "inconclusive",
        "new",
        "improved",
        "unchanged",
    ]
    assert sum(comparison.counts.values()) == 6


def test_missing_cases_have_a_reason() -> None:
    base = run(
        sample("deselected"), sample("skipped"), sample("gone"), sample("old", work="the work")
    )
    contender = run(
        sample("new", work="the work"),
        unmeasured={"deselected": "deselected", "skipped": "skipped: no GPU", "other": "failed"},
    )
    assert _verdicts(compare(base, contender, RULES)) == {
        "other": (Verdict.NEW, "failed"),
        "deselected": (Verdict.MISSING, "deselected"),
        "skipped": (Verdict.MISSING, "skipped: no GPU"),
        "gone": (Verdict.MISSING, "not collected"),
        "old": (Verdict.MISSING, "renamed to new?"),
        "new": (Verdict.NEW, "not in the base"),
    }


@tabled
def test_a_test_with_another_id_is_named(base: str, contender: str, reason: str) -> None:
    """Whatever each side alone has, unless nothing says that it is the same."""
    before, after = (
        run(*(sample(each, framework="") for each in ids.split(" and ")))
        for ids in (base, contender)
    )
    verdict, why = _verdicts(compare(before, after, RULES))[base.partition(" and ")[0]]
    assert verdict is Verdict.MISSING
    assert re.search(reason, why)


def test_a_new_case_without_a_figure_has_a_reason() -> None:
    """One that fails; one that is skipped, or that nobody wanted, is nobody's concern."""
    base = run(sample("a", times(1.0)), unmeasured={"b": "deselected"})
    whys = {"c": "call failed", "d": "deselected", "e": "skipped: no GPU", "b": "call failed"}
    whys["expected"] = "skipped"  # xfail
    contender = run(sample("a", times(1.0)), unmeasured=whys)
    comparison = compare(base, contender, RULES)
    new = {name: why for name, why in _verdicts(comparison).items() if why[0] is Verdict.NEW}
    assert new == {"c": (Verdict.NEW, "call failed")}


def test_an_expected_failure_on_both_sides_is_nobodys_concern() -> None:
    sides = (run(sample("a", times(1.0)), unmeasured={"expected": "skipped"}) for _ in range(2))
    assert _verdicts(compare(*sides, RULES)).keys() == {"a"}


def test_a_level_is_that_of_all_cases() -> None:
    """The more cases, the surer each must be: what is found alone is not among many."""
    base, contender = (1.0, 1.1, 1.2, 1.3, 1.4), (1.25, 1.35, 1.5, 1.6, 1.7)
    p = SessionRatio.between(base, contender, 0.0).p
    rules = Rules(level=4 * p / _WEIGHT)
    alone = compare(run(sample("a", base)), run(sample("a", contender)), rules)
    assert alone.counts == {"regressed": 1}
    others = [sample(f"b{i}") for i in range(2)]
    among = compare(run(sample("a", base), *others), run(sample("a", contender), *others), rules)
    assert among.counts == {"inconclusive": 1, "unchanged": 2}


def test_a_case_of_one_session_is_inconclusive() -> None:
    """Whatever the others have."""
    single = sample("single", times(1.0, 1)), sample("single", times(9.0))
    base, contender = (run(each, sample("enough", times(1.0))) for each in single)
    result = _verdicts(compare(base, contender, RULES))
    assert result["single"] == (Verdict.INCONCLUSIVE, "the base has one session")
    assert result["enough"][0] is Verdict.UNCHANGED


def test_a_case_that_fewer_sessions_have_is_named() -> None:
    """Five sessions a side tell more than one; the screen says five."""
    base, contender = (
        run(sample("a", times(1.0, 5)), sample("b", times(1.0, number)), name=name)
        for name, number in (("base", 5), ("now", 1))
    )
    notes = compare(base, contender, RULES).notes
    assert "now has 5 sessions, and not each case in all: b in 1" in notes
    assert not any(note.startswith("base has") for note in notes)


def _sessions(*each: Sequence[Measurement], **changes: Any) -> SampleSet:
    """Sessions of these cases, each a process."""
    return together("sessions", [run(*samples, **changes) for samples in each])


def _apart(number: int, **changes: Any) -> list[Sequence[Measurement]]:
    """A case in sessions that hardly differ."""
    return [[sample("a", [time_s], **changes)] for time_s in times(1.0, number)]


@pytest.mark.parametrize("place", [0, 3])
def test_no_session_of_either_side_did_other_work(place: int) -> None:
    """The name of the first one must not decide."""
    mixed = [*_apart(4, result_is_view=False)]
    mixed[place] = [sample("a", [0.5], result_is_view=True)]
    comparison = compare(_sessions(*_apart(4, result_is_view=False)), _sessions(*mixed), RULES)
    verdict, reason = _verdicts(comparison)["a"]
    assert (verdict, reason[:14]) == (Verdict.INCONCLUSIVE, "not equal work")


def test_sessions_of_one_launch_are_not_compared_with_those_of_many() -> None:
    """Medians of ten scatter a third as far as one, so that the one would look changed."""
    base = _sessions(*([sample("a", times(1.0, 10))] for _ in range(5)))
    comparison = compare(base, _sessions([sample("a", [1.2])]), RULES)
    verdict, reason = _verdicts(comparison)["a"]
    assert verdict is Verdict.INCONCLUSIVE
    assert reason.startswith("sessions of 1 and of 10 launches: ")


@pytest.mark.parametrize("metric", ["first call", "memory", "memory before"])
def test_what_depends_on_earlier_cases_is_compared_behind_the_same_ones(metric: str) -> None:
    """Without its first test a suite has another one that starts threads."""

    def measured(value: float, *before: str) -> SampleSet:
        case = sample("a", [1.0], **{metric: [value]})
        return _sessions(*([*map(sample, before), case] for _ in range(5)))

    alike = compare(measured(1e8, "b"), measured(1e9, "b"), RULES)
    assert _verdicts(alike)["a"][0] is Verdict.REGRESSED
    apart = compare(measured(1e8, "b"), measured(1e9), RULES)
    assert _verdicts(apart)["a"][0] is Verdict.UNCHANGED
    note = "first calls and memory are not compared in 1 of 1 case: sessions had measured other"
    assert any(each.startswith(note) for each in apart.notes)


def test_a_figure_that_one_session_lacks_is_compared_by_the_others() -> None:
    base = [*_apart(4, memory=[5e7]), [sample("a", [1.0])]]
    comparison = compare(_sessions(*base), _sessions(*_apart(5, memory=[5e8])), RULES)
    assert comparison.counts == {"regressed": 1}
    grown = next(each for each in comparison.judgements if each.metric == "memory")
    assert len(grown.base) == 4


def test_a_case_that_failed_in_a_session_is_missing() -> None:
    """The others do not make up for it: it may fail at random."""
    broken = run(unmeasured={"a": "call failed"})
    contender = together("now", [run(sample("a", [1.0])), broken])
    comparison = compare(_sessions(*_apart(5)), contender, RULES)
    assert _verdicts(comparison) == {"a": (Verdict.MISSING, "call failed")}


def test_upper_bounds_have_neither_bounds_nor_a_mean() -> None:
    busy = _sessions(*_apart(5), [sample("a", [2.0], condition="contended")])
    comparison = compare(_sessions(*_apart(5)), busy, RULES)
    (judgement,) = (each for each in comparison.judgements if each.metric == MINIMUM)
    assert (judgement.low, judgement.high, judgement.visible) == (None, None, None)
    assert comparison.means == {}
    assert not any("would have shown" in note for note in comparison.notes)


@pytest.mark.parametrize(("base", "contender"), [(5, 5), (10, 3), (5, 1), (2, 2)])
def test_a_detectable_change_is_found_by_nine_of_ten(base: int, contender: int) -> None:
    """Beyond chance and beyond the threshold."""
    draw = np.random.default_rng(0)
    found = []
    for _ in range(300):
        unchanged, changed = (np.exp(draw.normal(0, 0.01, (2, n))) for n in (base, contender))
        shift = SessionRatio.between(unchanged[0], changed[0], 0.0)
        visible = shift.detectable(0.03, 0.05)
        assert visible is not None
        after = SessionRatio.between(unchanged[1], (1 + visible) * changed[1], 0.0)
        found.append(after.p <= 0.05 and after.is_beyond(0.03))
    assert np.mean(found) >= 0.8


def test_runs_without_a_common_case_have_verdicts_too() -> None:
    comparison = compare(run(sample("a", (1.0,))), run(sample("b", (1.0,))), RULES)
    assert comparison.counts == {"missing": 1, "new": 1}


def test_an_interrupted_run_says_so() -> None:
    base = run(sample("a", times(1.0)), sample("b", times(1.0)))
    contender = run(
        sample("a", times(1.0)), name="now.json", unmeasured={"b": "interrupted"}, interrupted=True
    )
    comparison = compare(base, contender, RULES)
    assert "now.json was interrupted: 1 of 2 cases measured; lost: b" in comparison.notes
    assert _verdicts(comparison)["b"] == (Verdict.MISSING, "interrupted")


# Exit statuses


_OF: dict[Verdict, Measurement] = {
    Verdict.REGRESSED: sample("slow", times(2.0)),
    Verdict.INCONCLUSIVE: sample("bad", times(1.0), contended=1),
    Verdict.IMPROVED: sample("fast", times(0.5)),
    Verdict.UNCHANGED: sample("same", times(1.0)),
}


def _comparison(*result: Verdict) -> Comparison:
    contender = [_OF[verdict] for verdict in result if verdict in _OF]
    base = [sample(their.key, times(1.0)) for their in contender]
    if Verdict.MISSING in result:
        base.append(sample("lost"))
    if Verdict.NEW in result:
        contender.append(sample("result"))
    comparison = compare(run(*base, name="base"), run(*contender, name="contender"), RULES)
    assert {judgement.verdict for judgement in comparison.judgements} == {*result}
    return comparison


@tabled
def test_exit_status_by_default(result: tuple[str, ...], status: int) -> None:
    """Regressed before missing; inconclusive fails if nothing could be judged at all."""
    assert _comparison(*map(Verdict, result)).exit_status(FAIL_ON) == status


@pytest.mark.parametrize(
    "failing",
    [
        names
        for number in range(4)
        for names in itertools.combinations(("regressed", "missing", "inconclusive"), number)
    ],
)
def test_exit_status_is_of_what_is_failed_on(failing: tuple[str, ...]) -> None:
    """The worst of those named and found, and nothing else; the order of names is nothing."""
    result = [Verdict.REGRESSED, Verdict.MISSING, Verdict.INCONCLUSIVE]
    statuses = {"regressed": 1, "missing": 11, "inconclusive": 10}
    for number in range(1, 4):
        for some in itertools.combinations(result, number):
            expected = [statuses[name] for name in statuses if name in failing and name in some]
            status = _comparison(*some).exit_status([*map(FailOn, failing[::-1])])
            assert status == (expected[0] if expected else 0)


def test_statuses_are_apart_from_pytests() -> None:
    """Each verdict has its own, and none is a usage error's or an interrupt's."""
    assert EXIT_STATUS == {
        FailOn.DIFFERENT: 1,
        FailOn.REGRESSED: 1,
        FailOn.MISSING: 11,
        FailOn.INCONCLUSIVE: 10,
        FailOn.ALL_INCONCLUSIVE: 10,
    }
