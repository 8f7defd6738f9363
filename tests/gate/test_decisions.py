"""What pairs allow to be said: changed, unchanged, or neither."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from fwbench.gate import decisions
from fwbench.gate.samples import Sample
from fwbench.gate.verdicts import Judgement, Rules, Verdict
from support.launched_runs import sample

RULES = Rules(margin=0.01, level=0.02)

_CASES = 20


def _pairs(
    change: float, spread: float, pairs: int, seed: int = 0, **changes: Any
) -> tuple[Sample, Sample]:
    """Launches of both sides around times that differ by a share."""
    draw = np.random.default_rng(seed)
    ours, theirs = (map(float, np.exp(draw.normal(0, spread, pairs))) for _ in range(2))
    return (
        sample("a", list(ours), **changes),
        sample("a", [(1 + change) * time_s for time_s in theirs], **changes),
    )


def _minimum(judgements: Sequence[Judgement]) -> Judgement:
    return next(one for one in judgements if one.metric == "minimum")


def test_a_quiet_case_is_unchanged_after_five_pairs() -> None:
    """With a bound well within the resolution."""
    pair = _pairs(0.0, 0.005, 5)
    assert decisions.now(*pair, RULES, _CASES) is Verdict.UNCHANGED
    found = _minimum(decisions.judge(*pair, RULES, _CASES))
    assert found.verdict is Verdict.UNCHANGED
    assert found.visible == pytest.approx(0.03)
    assert found.high is not None
    assert found.high < 1.05


@pytest.mark.parametrize(("change", "verdict"), [(0.05, "regressed"), (-0.05, "improved")])
def test_a_change_takes_as_many_pairs_as_its_evidence(change: float, verdict: str) -> None:
    """Five look changed and are open; with fourteen it is found, in either direction."""
    few, enough = _pairs(change, 0.005, 5), _pairs(change, 0.005, 15)
    assert decisions.now(*few, RULES, _CASES) is None
    assert decisions.looks_changed(*few, RULES, _CASES)
    open_ = _minimum(decisions.judge(*few, RULES, _CASES))
    assert (open_.verdict, open_.visible) == (Verdict.INCONCLUSIVE, None)
    assert "looks changed" in open_.reason
    assert decisions.now(*enough, RULES, _CASES) == verdict


def test_a_change_below_the_threshold_is_none() -> None:
    """However sure: two per cent are not worth a verdict."""
    pair = _pairs(0.02, 0.001, 30)
    assert decisions.now(*pair, RULES, _CASES) is Verdict.UNCHANGED


def test_the_bound_that_is_shown_is_what_could_have_been_missed() -> None:
    """At the end of the budget: within the resolution it is unchanged, else inconclusive."""
    pair = _pairs(0.0, 0.1, 40, seed=1)
    found = _minimum(decisions.judge(*pair, RULES, _CASES))
    assert found.verdict is Verdict.INCONCLUSIVE
    assert "spread" in found.reason
    assert found.visible is not None
    coarse = Rules(margin=0.01, level=0.02, resolution=found.visible + 0.01)
    assert _minimum(decisions.judge(*pair, coarse, _CASES)).verdict is Verdict.UNCHANGED


@pytest.mark.parametrize("pairs", [5, 8, 20, 40])
def test_a_second_speed_of_one_side_is_never_unchanged(pairs: int) -> None:
    """One launch of four takes half as long again: at least inconclusive, with the reason."""
    base, contender = _pairs(0.0, 0.003, pairs)
    slow = [time_s * (1.5 if i % 4 == 3 else 1.0) for i, time_s in enumerate(contender.times_s)]
    judgements = decisions.judge(base, sample("a", slow), RULES, _CASES)
    assert {one.verdict for one in judgements} == {Verdict.INCONCLUSIVE}
    assert f"in {pairs // 4} of {pairs} pairs the contender took longer" in judgements[0].reason
    assert decisions.now(base, sample("a", slow), RULES, _CASES) is None


def test_two_speeds_of_the_machine_are_unchanged_in_the_end() -> None:
    """Launches of both sides that are slow as often hide nothing from enough pairs."""
    draw = np.random.default_rng(1)
    speeds = 1 + 0.4 * (draw.random((2, 80)) < 0.1)
    ours, theirs = (
        [float(s * t) for s, t in zip(row, np.exp(draw.normal(0, 0.003, 80)), strict=True)]
        for row in speeds
    )
    found = decisions.now(sample("a", ours), sample("a", theirs), RULES, _CASES)
    assert found in (Verdict.UNCHANGED, None)
    changed = [1.05 * time_s for time_s in theirs]
    assert decisions.now(sample("a", ours), sample("a", changed), RULES, _CASES) == "regressed"


def test_most_rounds_slower_is_a_regression() -> None:
    """The fastest round has not changed; the median has."""
    base, contender = _pairs(0.0, 0.003, 15)
    slower = sample("a", contender.times_s, median=[1.5 * time_s for time_s in contender.times_s])
    assert decisions.now(base, slower, RULES, _CASES) is Verdict.REGRESSED
    verdicts = {one.metric: one.verdict for one in decisions.judge(base, slower, RULES, _CASES)}
    assert verdicts == {"minimum": Verdict.UNCHANGED, "median": Verdict.REGRESSED}


@pytest.mark.parametrize("metric", ["dispatch", "first call", "compilation", "memory"])
def test_what_grows_tenfold_keeps_a_case_open(metric: str) -> None:
    """Until it is proven; noise below its threshold costs no pair."""
    size = 100 * 2**20 if metric == "memory" else 0.1
    draw = np.random.default_rng(2)
    for pairs, expected in ((5, None), (18, Verdict.REGRESSED)):
        base, contender = _pairs(0.0, 0.003, pairs)
        ours, theirs = (size * np.exp(draw.normal(0, 0.2, pairs)) for _ in range(2))
        ours_of = {metric: list(map(float, ours))}
        same = sample("a", contender.times_s, **{metric: list(map(float, theirs))})
        more = sample("a", contender.times_s, **{metric: [10 * float(one) for one in theirs]})
        before = sample("a", base.times_s, **ours_of)
        assert decisions.now(before, same, RULES, _CASES) is Verdict.UNCHANGED
        assert decisions.now(before, more, RULES, _CASES) is expected
        last = {one.metric: one.verdict for one in decisions.judge(before, more, RULES, _CASES)}
        assert last[metric] is (expected or Verdict.INCONCLUSIVE)


def test_metrics_that_one_side_lacks_are_not_compared() -> None:
    """Judgements are of the metrics that both sides have."""
    base, contender = _pairs(0.0, 0.003, 5)
    assert {one.metric for one in decisions.judge(base, contender, RULES, 1)} == {
        "minimum",
        "median",
    }


def test_more_cases_need_more_evidence() -> None:
    """They share the level, and so do the metrics and the two directions."""
    pairs = [decisions.pairs_needed(RULES, cases) for cases in (1, 20, 400)]
    assert pairs == sorted(pairs)
    assert pairs[0] < pairs[1] < pairs[2] <= pairs[0] + 10


def test_a_threshold_of_a_marker_decides() -> None:
    """A case that may be half as slow again is not changed by a fifth."""
    base, contender = _pairs(0.2, 0.003, 15)
    lax = sample("a", contender.times_s, threshold=0.5)
    assert decisions.now(base, contender, RULES, _CASES) is Verdict.REGRESSED
    assert decisions.now(base, lax, RULES, _CASES) is Verdict.UNCHANGED


def test_figures_are_numbers() -> None:
    """Bounds that exclude nothing are absent, not infinite."""
    found = _minimum(decisions.judge(*_pairs(0.0, 0.5, 3), RULES, _CASES))
    assert found.low is None
    assert found.high is None
    assert found.ratio is not None
    assert math.isfinite(found.ratio)
