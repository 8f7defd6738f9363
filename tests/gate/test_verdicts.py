"""Verdicts: what is said of launches, and what a job exits with."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import pytest

from fwbench.errors import TooFewLaunches, UsageError
from fwbench.gate import statistics, verdicts
from fwbench.gate.stored import compare, judge
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

RULES = Rules(margin=0.01)


def _judged(base: Sequence[float], contender: Sequence[float], **changes: Any) -> Judgement:
    """The verdict on the minimum of these launches at a level of .05."""
    rules = Rules(**{"margin": 0.01, **changes})
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


@pytest.mark.parametrize(
    ("center", "verdict"),
    [
        (2.0, Verdict.REGRESSED),
        (1.05, Verdict.REGRESSED),
        (1.02, Verdict.UNCHANGED),  # beyond the margin, and less than the threshold
        (1.0, Verdict.UNCHANGED),
        (1 / 1.02, Verdict.UNCHANGED),
        (1 / 1.05, Verdict.IMPROVED),
        (0.5, Verdict.IMPROVED),
    ],
)
def test_a_change_needs_the_test_and_the_threshold(center: float, verdict: Verdict) -> None:
    judgement = _judged(times(1.0), times(center))
    assert judgement.verdict is verdict
    assert judgement.ratio == pytest.approx(center)
    assert judgement.reason == ""
    assert judgement.base == times(1.0)
    assert judgement.contender == times(center)


def test_a_ratio_alone_is_no_change() -> None:
    """Launches that overlap too much are not beyond chance, whatever their medians."""
    base = (1.0, 1.01, 1.02, 1.2, 1.21)
    contender = (1.0, 1.01, 1.1, 1.2, 1.21)
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
    assert judgement.p == statistics.p_slower(base, contender, 0.01)
    assert (judgement.low, judgement.high) == statistics.interval(base, contender, 0.9, 0)
    assert judgement.visible == statistics.detectable(base, contender, 0.01, 0.03, 0.05, 0)
    faster = _judged(contender, base)
    assert faster.verdict is Verdict.IMPROVED
    assert faster.p == judgement.p


@pytest.mark.parametrize("side", [0, 1])
def test_contended_cases_are_inconclusive(side: int) -> None:
    pair = [sample("a", times(1.0)), sample("a", times(2.0))]
    pair[side] = sample("a", pair[side].times_s, contended=1)
    judgement = _first(*pair, RULES)
    assert judgement.verdict is Verdict.INCONCLUSIVE
    assert "processors" in judgement.reason
    assert judgement.ratio == pytest.approx(2.0)


#: Launches that spread over a factor of 3.
_WILD = (1.0, 1.5, 2.0, 2.5, 3.0)


def test_spread_is_inconclusive() -> None:
    """Where not even a change of the resolution would have shown, its absence is not claimed."""
    judgement = _judged(_WILD, _WILD)
    assert judgement.verdict is Verdict.INCONCLUSIVE
    assert "spread" in judgement.reason
    assert judgement.visible is None or judgement.visible > 0.1


@pytest.mark.parametrize("side", [0, 1])
def test_a_second_speed_of_one_side_is_never_unchanged(side: int) -> None:
    """Two launches of eight take half as long again; on both sides that is the machine's."""
    slow = [time_s * (1.5 if i % 4 == 3 else 1.0) for i, time_s in enumerate(times(1.0, 8))]
    pair = [times(1.0, 8), times(1.0, 8)]
    pair[side] = tuple(slow)
    judgement = _judged(*pair)
    assert judgement.verdict is Verdict.INCONCLUSIVE
    name = ("base", "contender")[side]
    assert judgement.reason == f"2 of 8 launches of the {name} took 10% longer"
    assert "launches of the" not in _judged(slow, slow).reason
    assert "launches of the" not in _judged(times(1.0, 8), [*times(1.0, 7), 1.5]).reason


def test_the_resolution_is_what_unchanged_must_have_been_able_to_show() -> None:
    """The same launches are unchanged at a coarse resolution, and inconclusive at a fine one."""
    base, contender = times(1.0, 8, 0.02, seed=1), times(1.0, 8, 0.02, seed=3)
    visible = _judged(base, contender).visible
    assert visible is not None
    assert _judged(base, contender, resolution=visible + 0.01).verdict is Verdict.UNCHANGED
    assert _judged(base, contender, resolution=visible - 0.01).verdict is Verdict.INCONCLUSIVE


def test_a_change_beyond_all_spread_is_found() -> None:
    """Wide intervals do not hide what the test is sure of."""
    judgement = _judged(_WILD, [10 * time for time in _WILD])
    assert judgement.verdict is Verdict.REGRESSED


def test_nothing_visible_is_none() -> None:
    assert _first(sample("a", _WILD), sample("a", _WILD), RULES, 1e-6).visible is None


@pytest.mark.parametrize(
    ("threshold", "verdict"),
    [(None, Verdict.REGRESSED), (0.5, Verdict.UNCHANGED), (0.02, Verdict.REGRESSED)],
)
def test_the_threshold_of_a_marker_wins(threshold: float | None, verdict: Verdict) -> None:
    """Over the one of the comparison; the contender's, which is the suite as it is now."""
    base = sample("a", times(1.0), threshold=0.9)
    contender = sample("a", times(1.2), threshold=threshold)
    judgement = _first(base, contender, RULES)
    assert judgement.verdict is verdict
    assert judgement.threshold == (0.03 if threshold is None else threshold)
    assert judgement.visible is not None
    assert judgement.visible >= judgement.threshold


def test_a_small_marker_finds_what_the_threshold_would_not() -> None:
    """A test may care for less than others do."""
    base, contender = sample("a", times(1.0)), sample("a", times(1.02), threshold=0.015)
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


@pytest.mark.parametrize("metric", ["dispatch", "first call", "compilation", "memory"])
def test_what_grows_tenfold_is_not_passed_over(metric: str) -> None:
    """Whatever the times are: each has a verdict, and a threshold that noise does not reach."""
    size = 100 * 2**20 if metric == "memory" else 0.1
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
    lax = Rules(margin=0.01, thresholds=dict.fromkeys(RULES.thresholds, 20.0))
    assert compare(run(base), run(slow), lax).counts == {"unchanged": 1}


def test_thresholds_are_given_by_name() -> None:
    given = Rules.given(0.01, {"time": 0.2, "first-call": 3.0})
    assert (given.margin, given.threshold) == (0.01, 0.2)
    assert given.thresholds == {**RULES.thresholds, "first call": 3.0}
    assert Rules.given(0.01, {}) == RULES
    with pytest.raises(UsageError, match=r"'memroy'.*Did you mean 'memory'\?"):
        Rules.given(0.01, {"memroy": 1.0})


def test_what_shrinks_keeps_nothing_open() -> None:
    """Five launches cannot prove that dispatch is faster, and need not: the time has improved."""
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
        "deselected": (Verdict.MISSING, "deselected"),
        "skipped": (Verdict.MISSING, "skipped: no GPU"),
        "gone": (Verdict.MISSING, "not collected"),
        "old": (Verdict.MISSING, "renamed to new?"),
        "new": (Verdict.NEW, ""),
    }


def test_a_level_is_that_of_all_cases() -> None:
    """The more cases, the surer each must be: what is found alone is not among many."""
    # Four of the 25 pairs lost: p is beyond .02 / 3, and within .02.
    base, contender = (1.0, 1.1, 1.2, 1.3, 1.4), (1.25, 1.35, 1.5, 1.6, 1.7)
    p = statistics.p_slower(base, contender, 0.01)
    assert 0.06 / 3 < p <= 0.06
    rules = Rules(margin=0.01, level=0.06 / _WEIGHT)
    alone = compare(run(sample("a", base)), run(sample("a", contender)), rules)
    assert alone.counts == {"regressed": 1}
    others = [sample(f"b{i}") for i in range(2)]
    among = compare(run(sample("a", base), *others), run(sample("a", contender), *others), rules)
    assert among.counts == {"inconclusive": 1, "unchanged": 2}


def test_drift_of_the_baseline_is_conceded() -> None:
    base = run(sample("a", times(1.0)), sample("b", times(1.0)), drift={"a": 0.1, "b": 0.0})
    contender = run(sample("a", times(1.08)), sample("b", times(1.08)))
    result = _verdicts(compare(base, contender, RULES))
    assert result["a"][0] is not Verdict.REGRESSED
    assert result["b"][0] is Verdict.REGRESSED


@pytest.mark.parametrize("side", [0, 1])
def test_a_case_with_few_launches_is_inconclusive(side: int) -> None:
    """Beside others that have enough; it does not count for their level."""
    pair = [sample("few", times(1.0)), sample("few", times(9.0))]
    pair[side] = sample("few", pair[side].times_s[:4])
    base, contender = (run(few, sample("enough", times(1.0))) for few in pair)
    result = _verdicts(compare(base, contender, RULES))
    assert result["few"] == (Verdict.INCONCLUSIVE, "only 4 launches")
    assert result["enough"][0] is Verdict.UNCHANGED


def test_rounds_are_no_launches() -> None:
    single = sample("few", times(1.0, 9), launched=False)
    enough = sample("enough", times(1.0))
    result = _verdicts(compare(run(single, enough), run(single, enough), RULES))
    assert result["few"] == (Verdict.INCONCLUSIVE, "only 1 launch")


def test_what_is_not_launched_is_not_replicated() -> None:
    """Plain benchmarks of the same session say so, and fail no gate."""
    plain = sample("plain", times(1.0, 9), launched=False, framework="")
    enough = sample("enough", times(1.0))
    comparison = compare(run(plain, enough), run(plain, enough), RULES)
    verdict, reason = _verdicts(comparison)["plain"]
    assert verdict is Verdict.NOT_REPLICATED
    assert "launched" in reason
    assert comparison.exit_status([*FailOn]) == 0


def test_too_few_launches_of_everything_are_refused() -> None:
    few = run(sample("a", times(1.0, 4)), sample("b", times(1.0, 3)))
    with pytest.raises(TooFewLaunches) as refused:
        compare(few, few, RULES)
    assert "4 launches of a case at most" in str(refused.value)
    assert "--fw-launches 5" in str(refused.value)


@pytest.mark.parametrize(("cases", "needed"), [(6, 6), (19, 7)])
def test_too_few_launches_for_so_many_cases_are_refused(cases: int, needed: int) -> None:
    many = [f"case-{i}" for i in range(cases)]
    few = run(*(sample(key, times(1.0, needed - 1)) for key in many))
    with pytest.raises(TooFewLaunches, match=f"{needed} launches a side are needed"):
        compare(few, few, RULES)
    enough = run(*(sample(key, times(1.0, needed)) for key in many))
    assert compare(enough, enough, RULES).counts == {"unchanged": cases}
    assert compare(few, few, Rules(margin=0.01, level=0.99)).counts == {"unchanged": cases}


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


@pytest.mark.parametrize(
    ("result", "status"),
    [
        ([Verdict.UNCHANGED, Verdict.IMPROVED, Verdict.NEW], 0),
        ([], 0),
        ([Verdict.REGRESSED], 1),
        ([Verdict.MISSING], 11),
        ([Verdict.INCONCLUSIVE], 10),
        ([Verdict.INCONCLUSIVE, Verdict.NEW], 10),
        ([Verdict.INCONCLUSIVE, Verdict.UNCHANGED], 0),
        ([Verdict.REGRESSED, Verdict.MISSING, Verdict.INCONCLUSIVE], 1),
        ([Verdict.MISSING, Verdict.INCONCLUSIVE, Verdict.UNCHANGED], 11),
    ],
)
def test_exit_status_by_default(result: list[Verdict], status: int) -> None:
    """Regressed before missing; inconclusive fails if nothing could be judged at all."""
    assert _comparison(*result).exit_status(FAIL_ON) == status


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
            status = _comparison(*some).exit_status(verdicts.fail_on(failing[::-1]))
            assert status == (expected[0] if expected else 0)


def test_statuses_are_apart_from_pytests() -> None:
    """Each verdict has its own, and none is a usage error's or an interrupt's."""
    assert EXIT_STATUS == {
        FailOn.REGRESSED: 1,
        FailOn.MISSING: 11,
        FailOn.INCONCLUSIVE: 10,
        FailOn.ALL_INCONCLUSIVE: 10,
    }


@pytest.mark.parametrize("name", ["improved", "new", "unchanged", "regresed", ""])
def test_nothing_else_can_be_failed_on(name: str) -> None:
    with pytest.raises(
        UsageError, match="regressed, missing, inconclusive, all-inconclusive"
    ) as refused:
        verdicts.fail_on(["missing", name])
    assert ("Did you mean 'regressed'?" in str(refused.value)) == (name == "regresed")
