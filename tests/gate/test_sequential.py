"""Evidence from pairs keeps its level after every pair, and finds the changes that are there."""

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from fwbench.gate import sequential
from fwbench.gate.samples import METRICS
from fwbench.gate.verdicts import Judgement, Rules, Verdict
from fwbench.records.measurement import Measurement
from support.launched_runs import sample

Floats = NDArray[np.float64]

_PAIRS = 60


def _noise(kind: str, jobs: int, seed: int) -> Floats:
    """Differences of pairs in which nothing changed, in a random order of both launches."""
    draw = np.random.default_rng(seed)
    shape = (jobs, 2 * _PAIRS)
    if kind == "normal":
        logs = draw.normal(0, 0.02, shape)
    elif kind == "heavy":
        logs = 0.02 * draw.standard_t(1.5, shape)
    elif kind == "outliers":
        logs = draw.normal(0, 0.01, shape) + (draw.random(shape) < 0.25) * draw.uniform(0, 1, shape)
    elif kind == "drift":
        logs = draw.normal(0, 0.002, shape) + np.linspace(0, math.log(1.3), 2 * _PAIRS)
    elif kind == "two speeds":
        logs = math.log(1.4) * (np.cumsum(draw.random(shape) < 0.2, axis=1) % 2)
        logs = logs + draw.normal(0, 1e-3, shape)
    else:
        # Every second launch is slow, as if the order were known.
        logs = np.tile([0.0, 0.1], (jobs, _PAIRS)) + draw.normal(0, 1e-3, shape)
    signs = draw.choice((-1.0, 1.0), (jobs, _PAIRS))
    return signs * (logs[:, 1::2] - logs[:, ::2])


@pytest.mark.parametrize(
    "kind", ["normal", "heavy", "outliers", "drift", "two speeds", "alternating"]
)
@pytest.mark.parametrize("margin", [0.0, 0.01])
def test_evidence_of_nothing_is_rare(kind: str, margin: float) -> None:
    """In any noise, and at whichever of sixty looks: at most a tenth reach ten, a 50th fifty."""
    result = sequential.evidence(_noise(kind, 4_000, 1) - margin)[:, -1]
    for level in (0.1, 0.02):
        share = float(np.mean(result >= -math.log(level)))
        assert share <= level + 3 * math.sqrt(level / 4_000)


def test_evidence_of_what_is_there_grows() -> None:
    """A clear change is found by all pairs that it takes, in noise that would hide it later."""
    needed = math.log(4_000)
    draw = np.random.default_rng(0)
    clear = 0.04 + draw.normal(0, 0.01, (500, _PAIRS))
    pairs = sequential.pairs_to_reach(needed)
    assert pairs == 14
    assert np.mean(sequential.evidence(clear)[:, pairs + 1] >= needed) > 0.9
    hidden = 0.04 + draw.normal(0, 0.04, (500, _PAIRS))
    assert np.mean(sequential.evidence(hidden)[:, -1] >= needed) > 0.9


def test_evidence_does_not_depend_on_the_unit() -> None:
    noise = _noise("normal", 5, 3)
    assert sequential.evidence(1_000 * noise) == pytest.approx(sequential.evidence(noise))


def test_evidence_stays() -> None:
    differences = np.array([1.0] * 20 + [-1.0] * 40)
    result = sequential.evidence(differences)
    assert result[-1] == result[19]
    assert sequential.shows(differences, result[19])
    assert not sequential.shows(-differences[:20], 1.0)


def test_one_wild_pair_decides_nothing() -> None:
    few = np.array([0.01, -0.01, 0.012, -0.011, 0.01])
    wild = np.append(few, 50.0)
    assert sequential.evidence(wild)[-1] - sequential.evidence(few)[-1] <= math.log(2)


@pytest.mark.parametrize("number", [5, 20, 60])
def test_bounds_hold(number: int) -> None:
    noise = _noise("normal", 150, number)[:, :number]
    bounds = [sequential.interval(differences + 0.1, 0.9) for differences in noise]
    assert np.mean([low <= 0.1 for low, _ in bounds]) >= 0.85
    assert np.mean([high >= 0.1 for _, high in bounds]) >= 0.85


def test_signs_alone_are_fair_where_sizes_are_not() -> None:
    """Half of the differences are far above 0, and half a little below it: bets on sizes win."""
    draw = np.random.default_rng(7)
    is_above = draw.random((2_000, _PAIRS)) < 0.5
    skewed = np.where(is_above, 1.0, -1e-3)
    signs = sequential.evidence_of_sign(skewed)[:, -1] >= -math.log(0.02)
    assert np.mean(signs) <= 0.02 + 3 * math.sqrt(0.02 / 2_000)
    assert np.mean(sequential.evidence(skewed)[:, -1] >= -math.log(0.02)) > 0.2
    low, high = sequential.interval(skewed[0], 0.99, sequential.evidence_of_sign)
    assert low <= -1e-3
    assert high >= 1.0


def test_bounds_close_in() -> None:
    """Five pairs say about how far they spread; four exclude nothing at this confidence."""
    draw = np.random.default_rng(0)
    noise = draw.normal(0, 0.01, 60)
    widths = [
        high - low for low, high in (sequential.interval(noise[:n], 0.9) for n in (5, 15, 60))
    ]
    assert widths == sorted(widths, reverse=True)
    assert widths[0] < 0.1
    assert widths[-1] < 0.01
    assert sequential.interval(noise[:3], 0.9) == (-math.inf, math.inf)


def test_what_is_detectable_is_found_by_four_of_five() -> None:
    needed, threshold, margin = math.log(4_000), math.log(1.03), math.log(1.01)
    draw = np.random.default_rng(5)
    result = []
    for seed in range(60):
        seen, other = draw.normal(0, 0.05, (2, 40))
        change = sequential.detectable(seen, margin, threshold, needed, seed)
        assert change is not None
        changed = other + change
        result.append(
            sequential.shows(changed - margin, needed) and float(np.median(changed)) >= threshold
        )
    assert np.mean(result) >= 0.75


def test_nothing_is_detectable_with_too_few_pairs() -> None:
    needed = math.log(4_000)
    few = np.zeros(sequential.pairs_to_reach(needed) - 1)
    assert sequential.detectable(few, 0.01, 0.03, needed, 0) is None
    assert sequential.detectable(np.append(few, 0.0), 0.01, 0.03, needed, 0) == pytest.approx(
        0.03, abs=1e-3
    )


def test_differences_are_logarithms_of_ratios() -> None:
    result = sequential.differences([1.0, 2.0], [math.e, 1.0])
    assert result == pytest.approx([1.0, -math.log(2)])


RULES = Rules(margin=0.01, level=0.02)

_CASES = 20


def _pairs(
    change: float, spread: float, pairs: int, seed: int = 0, **changes: Any
) -> tuple[Measurement, Measurement]:
    """Launches of both sides around times that differ by a share."""
    draw = np.random.default_rng(seed)
    base, contender = (map(float, np.exp(draw.normal(0, spread, pairs))) for _ in range(2))
    return (
        sample("a", list(base), **changes),
        sample("a", [(1 + change) * time_s for time_s in contender], **changes),
    )


def _minimum(judgements: Sequence[Judgement]) -> Judgement:
    return next(judgement for judgement in judgements if judgement.metric == "minimum")


def test_a_quiet_case_is_unchanged_after_five_pairs() -> None:
    pair = _pairs(0.0, 0.005, 5)
    assert sequential.verdict_so_far(*pair, RULES, _CASES) is Verdict.UNCHANGED
    result = _minimum(sequential.judge(*pair, RULES, _CASES))
    assert result.verdict is Verdict.UNCHANGED
    assert result.visible is not None
    assert 0.03 < result.visible < 0.045
    assert result.high is not None
    assert result.high < 1.05


@pytest.mark.parametrize("spread", [0.002, 0.01])
def test_a_slow_down_that_would_have_shown_is_found(spread: float) -> None:
    """By four of five jobs, which go on until they have a verdict."""
    metric = next(metric for metric in METRICS if metric.name == "minimum")
    test = sequential.MetricTest.create(metric, RULES, _CASES, sample())
    draw = np.random.default_rng(0)
    found = []
    for few in draw.normal(0, spread, (60, 5)):
        verdict, _, visible = test.final_verdict(few)
        assert verdict is Verdict.UNCHANGED
        slower = draw.normal(visible, spread, _PAIRS)
        every = (test.verdict(slower[:pairs]) for pairs in range(5, _PAIRS))
        found.append(next(filter(None, every), None) is Verdict.REGRESSED)
    assert np.mean(found) >= 0.8


@pytest.mark.parametrize(("change", "verdict"), [(0.05, "regressed"), (-0.05, "improved")])
def test_a_change_takes_as_many_pairs_as_its_evidence(change: float, verdict: str) -> None:
    """Five look changed and are open; with fourteen it is found, in either direction."""
    few, enough = _pairs(change, 0.005, 5), _pairs(change, 0.005, 15)
    assert sequential.verdict_so_far(*few, RULES, _CASES) is None
    assert 5 <= sequential.more_pairs(*few, RULES, _CASES) <= 20
    assert sequential.more_pairs(*enough, RULES, _CASES) == 0
    open_ = _minimum(sequential.judge(*few, RULES, _CASES))
    assert (open_.verdict, open_.visible) == (Verdict.INCONCLUSIVE, None)
    assert open_.reason == "looks changed, but chance alone could explain it"
    assert sequential.verdict_so_far(*enough, RULES, _CASES) == verdict


@pytest.mark.parametrize("sign", [-1, 1])
def test_a_second_speed_of_some_pairs_is_named_where_most_look_changed(sign: int) -> None:
    """Three of ten pairs go the other way, as far; bounds alone would be a riddle."""
    contender = [math.exp(sign * log) for log in [0.3] * 5 + [-0.5] * 3 + [0.3] * 2]
    pair = sample(values_s=[1.0] * 10), sample(values_s=contender)
    result = _minimum(sequential.judge(*pair, RULES, _CASES))
    assert result.verdict is Verdict.INCONCLUSIVE
    assert result.reason.endswith("could explain it: 3 of 10 pairs say the opposite")


def test_a_verdict_with_luck_takes_fewer_pairs_than_usual() -> None:
    """So a case with pairs that lie badly goes on, as long as its verdict may come in time."""
    differences = np.random.default_rng(0).normal(0.02, 0.03, 10)

    def decided(future: sequential.Floats) -> sequential.Bools:
        return sequential.evidence(future) >= 6

    usual = sequential.until_decided(differences, decided)
    lucky = sequential.until_decided(differences, decided, sequential.WITH_LUCK)
    assert 1 < lucky < usual < sequential.FARTHEST


def test_a_change_below_the_threshold_is_none() -> None:
    pair = _pairs(0.02, 0.001, 30)
    assert sequential.verdict_so_far(*pair, RULES, _CASES) is Verdict.UNCHANGED


@pytest.mark.parametrize(("change", "pairs"), [(0.01, 50), (0.02, 15)])
def test_a_small_threshold_is_enough_for_a_small_change(change: float, pairs: int) -> None:
    """A share of it is conceded to chance, and unchanged cases must exclude a multiple of it."""
    pair = _pairs(change, 0.007, pairs, seed=2)
    small = Rules(level=0.02, threshold=0.4 * change)
    assert sequential.verdict_so_far(*pair, small, 1) is Verdict.REGRESSED
    assert sequential.verdict_so_far(*pair, replace(small, margin=0.01), 1) is not Verdict.REGRESSED
    assert small.limit(small.threshold) == pytest.approx(1.4 * change)
    assert Rules().limit(Rules.threshold) == pytest.approx(0.1)


def test_the_bound_that_is_shown_is_what_could_have_been_missed() -> None:
    """At the end of the budget: within the resolution it is unchanged, else inconclusive."""
    pair = _pairs(0.0, 0.1, 40, seed=1)
    result = _minimum(sequential.judge(*pair, RULES, _CASES))
    assert result.verdict is Verdict.INCONCLUSIVE
    assert "spread" in result.reason
    assert result.visible is not None
    coarse = Rules(margin=0.01, level=0.02, resolution=result.visible + 0.01)
    assert _minimum(sequential.judge(*pair, coarse, _CASES)).verdict is Verdict.UNCHANGED


@pytest.mark.parametrize("pairs", [5, 8, 20, 40])
def test_a_second_speed_of_one_side_is_never_unchanged(pairs: int) -> None:
    """One launch of four takes half as long again: at least inconclusive, with the reason."""
    base, contender = _pairs(0.0, 0.003, pairs)
    slow = [time_s * (1.5 if i % 4 == 3 else 1.0) for i, time_s in enumerate(contender.times_s)]
    judgements = sequential.judge(base, sample("a", slow), RULES, _CASES)
    assert {judgement.verdict for judgement in judgements} == {Verdict.INCONCLUSIVE}
    assert f"in {pairs // 4} of {pairs} pairs the contender took longer" in judgements[0].reason
    assert sequential.verdict_so_far(base, sample("a", slow), RULES, _CASES) is None


def test_two_speeds_of_the_machine_are_unchanged_in_the_end() -> None:
    """Launches of both sides that are slow as often hide nothing from enough pairs."""
    draw = np.random.default_rng(1)
    speeds = 1 + 0.4 * (draw.random((2, 80)) < 0.1)
    base, contender = (
        [float(s * t) for s, t in zip(row, np.exp(draw.normal(0, 0.003, 80)), strict=True)]
        for row in speeds
    )
    result = sequential.verdict_so_far(sample("a", base), sample("a", contender), RULES, _CASES)
    assert result in (Verdict.UNCHANGED, None)
    changed = [1.05 * time_s for time_s in contender]
    assert (
        sequential.verdict_so_far(sample("a", base), sample("a", changed), RULES, _CASES)
        == "regressed"
    )


def test_most_rounds_slower_is_a_regression() -> None:
    base, contender = _pairs(0.0, 0.003, 15)
    slower = sample("a", contender.times_s, median=[1.5 * time_s for time_s in contender.times_s])
    assert sequential.verdict_so_far(base, slower, RULES, _CASES) is Verdict.REGRESSED
    verdicts = {
        judgement.metric: judgement.verdict
        for judgement in sequential.judge(base, slower, RULES, _CASES)
    }
    assert verdicts == {"minimum": Verdict.UNCHANGED, "median": Verdict.REGRESSED}


@pytest.mark.parametrize(
    "metric", ["dispatch", "first call", "compilation", "memory", "memory before"]
)
def test_what_grows_tenfold_keeps_a_case_open(metric: str) -> None:
    """Until it is proven; noise below its threshold costs no pair."""
    size = 100 * 2**20 if metric.startswith("memory") else 0.1
    draw = np.random.default_rng(2)
    for pairs, expected in ((5, None), (18, Verdict.REGRESSED)):
        base, contender = _pairs(0.0, 0.003, pairs)
        base_values, contender_values = (
            size * np.exp(draw.normal(0, 0.2, pairs)) for _ in range(2)
        )
        ours_of = {metric: list(map(float, base_values))}
        same = sample("a", contender.times_s, **{metric: list(map(float, contender_values))})
        more = sample(
            "a", contender.times_s, **{metric: [10 * float(value) for value in contender_values]}
        )
        before = sample("a", base.times_s, **ours_of)
        assert sequential.verdict_so_far(before, same, RULES, _CASES) is Verdict.UNCHANGED
        assert sequential.verdict_so_far(before, more, RULES, _CASES) is expected
        last = {
            judgement.metric: judgement.verdict
            for judgement in sequential.judge(before, more, RULES, _CASES)
        }
        assert last[metric] is (expected or Verdict.INCONCLUSIVE)


def test_metrics_that_one_side_lacks_are_not_compared() -> None:
    base, contender = _pairs(0.0, 0.003, 5)
    assert {judgement.metric for judgement in sequential.judge(base, contender, RULES, 1)} == {
        "minimum",
        "median",
    }


def test_more_cases_need_more_evidence() -> None:
    needed = [sequential.evidence_needed(METRICS[1], RULES, cases) for cases in (1, 20, 400)]
    pairs = [sequential.pairs_to_reach(each) for each in needed]
    assert pairs == sorted(pairs)
    assert pairs[0] < pairs[1] < pairs[2] <= pairs[0] + 10


def test_a_threshold_of_a_marker_decides() -> None:
    """A case that may be half as slow again is not changed by a fifth."""
    base, contender = _pairs(0.2, 0.003, 15)
    lax = [sample("a", side.times_s, threshold=0.5) for side in (base, contender)]
    assert sequential.verdict_so_far(base, contender, RULES, _CASES) is Verdict.REGRESSED
    assert sequential.verdict_so_far(lax[0], contender, RULES, _CASES) is Verdict.UNCHANGED
    assert sequential.verdict_so_far(base, lax[1], RULES, _CASES) is Verdict.REGRESSED


def test_figures_are_numbers() -> None:
    """Bounds that exclude nothing are absent, not infinite."""
    result = _minimum(sequential.judge(*_pairs(0.0, 0.5, 3), RULES, _CASES))
    assert result.low is None
    assert result.high is None
    assert result.ratio is not None
    assert math.isfinite(result.ratio)
