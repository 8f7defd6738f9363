"""The statistics of launches are exact, and where values tie they err towards no change."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence
from math import comb, isclose

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.stats import mannwhitneyu

from fwbench.gate import statistics

#: All sizes up to 15 a side.
_SIZES = [*itertools.product(range(1, 16), repeat=2)]


def _times(random: np.random.Generator, number: int, spread: float = 0.1) -> NDArray[np.float64]:
    """Times around 1 that spread like launches, and more."""
    return np.exp(spread * random.standard_normal(number))


def _as_lists(*samples: Iterable[float]) -> list[list[float]]:
    return [list(map(float, sample)) for sample in samples]


@pytest.mark.parametrize(("n", "m"), _SIZES)
def test_p_is_scipys(n: int, m: int) -> None:
    """Without ties every probability is that of SciPy's exact test, in both directions."""
    random = np.random.default_rng([n, m])
    for shift in (0.8, 0.95, 1.0, 1.0, 1.05, 1.2):
        base, contender = _as_lists(_times(random, n), shift * _times(random, m))
        assert len({*base, *contender}) == n + m
        slower = mannwhitneyu(contender, base, alternative="greater", method="exact").pvalue
        faster = mannwhitneyu(contender, base, alternative="less", method="exact").pvalue
        assert abs(statistics.p_slower(base, contender, 0.0) - slower) <= 1e-12
        assert abs(statistics.p_slower(contender, base, 0.0) - faster) <= 1e-12


@pytest.mark.parametrize(("n", "m"), [*itertools.product((2, 5, 10), repeat=2)])
@pytest.mark.parametrize("margin", [0.01, 0.03, 0.5])
def test_the_margin_multiplies_the_base(n: int, m: int, margin: float) -> None:
    """A margin is conceded by testing against base x (1 + margin), and nothing else."""
    random = np.random.default_rng([n, m])
    for shift in (1.0, 1.02, 1.1, 1.6):
        base, contender = _as_lists(_times(random, n, 0.02), shift * _times(random, m, 0.02))
        conceded = [time * (1 + margin) for time in base]
        scipys = mannwhitneyu(contender, conceded, alternative="greater", method="exact").pvalue
        assert abs(statistics.p_slower(base, contender, margin) - scipys) <= 1e-12


def test_a_tie_at_the_margin_is_no_win() -> None:
    """A contender slower by the margin itself is not slower than the margin."""
    assert statistics.p_slower([1.0] * 5, [1.5] * 5, 0.5) == 1.0
    assert statistics.p_slower([1.0] * 5, [1.5] * 5, 0.25) == 1 / comb(10, 5)


def _wins(base: Sequence[float], contender: Sequence[float]) -> int:
    return sum(contender_value > base_value for contender_value in contender for base_value in base)


def _enumerated(base: Sequence[float], contender: Sequence[float]) -> float:
    """The share of all arrangements of the values with at least so many pairs won."""
    values = [*base, *contender]
    won, arrangements = _wins(base, contender), 0
    for chosen in itertools.combinations(range(len(values)), len(contender)):
        contender_values = [values[i] for i in chosen]
        base_values = [value for i, value in enumerate(values) if i not in chosen]
        arrangements += _wins(base_values, contender_values) >= won
    return arrangements / comb(len(values), len(contender))


@pytest.mark.parametrize(("n", "m"), [*itertools.product(range(1, 5), repeat=2)])
def test_ties_make_no_p_too_small(n: int, m: int) -> None:
    """Whatever ties, no probability is below the share of arrangements that look so slow."""
    tied = 0
    for base in itertools.combinations_with_replacement((1.0, 2.0, 3.0), n):
        for contender in itertools.combinations_with_replacement((1.0, 2.0, 3.0), m):
            p = statistics.p_slower(base, contender, 0.0)
            exact = _enumerated(base, contender)
            assert p >= exact or isclose(p, exact, rel_tol=1e-12), (base, contender)
            tied += len({*base, *contender}) < n + m
    assert tied


@pytest.mark.parametrize("seed", range(20))
def test_enumeration_agrees_without_ties(seed: int) -> None:
    """The enumeration that ties are held against counts what the test counts."""
    random = np.random.default_rng(seed)
    base, contender = _as_lists(_times(random, 4), _times(random, 5))
    assert statistics.p_slower(base, contender, 0.0) == pytest.approx(
        _enumerated(base, contender), rel=1e-12
    )


@pytest.mark.parametrize("seed", range(100))
def test_ties_are_broken_against_the_finding(seed: int) -> None:
    """With ties the probability is SciPy's of values in which the contender lost each tie."""
    random = np.random.default_rng(seed)
    n, m = random.integers(1, 16, 2)
    base, contender = _as_lists(random.integers(10, 16, n), random.integers(10, 16, m))
    assert len({*base, *contender}) < n + m or n + m < 7
    # Everyone is a little apart from his like; the contender a little below the base.
    base_values = [value + 1e-3 * i for i, value in enumerate(sorted(base))]
    contender_values = [value - 0.1 + 1e-3 * i for i, value in enumerate(sorted(contender))]
    assert len({*base_values, *contender_values}) == n + m
    scipys = mannwhitneyu(
        contender_values, base_values, alternative="greater", method="exact"
    ).pvalue
    assert abs(statistics.p_slower(base, contender, 0.0) - scipys) <= 1e-12


def test_p_of_equal_values_is_one() -> None:
    assert statistics.p_slower([1.0] * 5, [1.0] * 7, 0.0) == 1.0
    assert statistics.p_slower([1.0] * 7, [1.0] * 5, 0.0) == 1.0


@pytest.mark.parametrize(("n", "m"), [*itertools.product(range(1, 9), repeat=2)])
def test_smallest_p_is_that_of_all_pairs_won(n: int, m: int) -> None:
    """It is what the test gives where every launch of one side is above every one of the other."""
    base, contender = [1.0 + i for i in range(n)], [100.0 + i for i in range(m)]
    assert statistics.smallest_p(n, m) == statistics.p_slower(base, contender, 0.0)


#: Level of each test, and the launches on each side that it needs.
_NEEDED = {
    "20 cases at .05": (0.05 / 20, 6),
    "1 case at .05": (0.05, 3),
    "exactly reached": (1 / 252, 5),
    "just not reached": (1 / 253, 6),
    "5 cases at .02": (0.02 / 5, 5),
    "6 cases at .02": (0.02 / 6, 6),
    "18 cases at .02": (0.02 / 18, 6),
    "19 cases at .02": (0.02 / 19, 7),
    "68 cases at .02": (0.02 / 68, 7),
    "69 cases at .02": (0.02 / 69, 8),
    "257 cases at .02": (0.02 / 257, 8),
    "258 cases at .02": (0.02 / 258, 9),
}


@pytest.mark.parametrize(("level", "needed"), _NEEDED.values(), ids=_NEEDED)
def test_launches_needed(level: float, needed: int) -> None:
    """The fewest launches whose smallest probability is within the level, as the docs say."""
    assert statistics.launches_needed(level) == needed
    assert statistics.smallest_p(needed, needed) <= level
    assert statistics.smallest_p(needed - 1, needed - 1) > level


def test_ratio_is_of_medians() -> None:
    assert statistics.ratio([1.0, 2.0, 900.0], [3.0, 1.0, 500.0]) == 1.5
    assert statistics.ratio([1.0, 3.0], [4.0, 4.0]) == 2.0


def test_interval_is_repeatable() -> None:
    random = np.random.default_rng(0)
    base, contender = _as_lists(_times(random, 10), _times(random, 10))
    result = [statistics.interval(base, contender, 0.9, seed) for seed in (0, 0, 1, 2, 3)]
    assert result[0] == result[1]
    assert len({*result}) > 1


@pytest.mark.parametrize("seed", range(20))
def test_interval_is_around_the_ratio(seed: int) -> None:
    random = np.random.default_rng(seed)
    n, m = random.integers(3, 12, 2)
    base, contender = _as_lists(_times(random, n), 1.3 * _times(random, m))
    low, high = statistics.interval(base, contender, 0.99, seed)
    assert low < statistics.ratio(base, contender) < high
    assert min(contender) / max(base) <= low
    assert high <= max(contender) / min(base)


def test_interval_grows_with_its_confidence() -> None:
    random = np.random.default_rng(0)
    base, contender = _as_lists(_times(random, 15), _times(random, 15))
    low, high = statistics.interval(base, contender, 0.99, 0)
    inner_low, inner_high = statistics.interval(base, contender, 0.5, 0)
    assert low < inner_low < inner_high < high


def test_interval_covers_the_true_ratio() -> None:
    """Nearly all 99 % intervals contain a true ratio of 1.25, and not all 20 % intervals."""
    random = np.random.default_rng(0)
    covered = {0.99: 0, 0.2: 0}
    for _ in range(40):
        base, contender = _as_lists(_times(random, 12), 1.25 * _times(random, 12))
        for confidence in covered:
            low, high = statistics.interval(base, contender, confidence, 0)
            covered[confidence] += low <= 1.25 <= high
    assert covered[0.99] >= 36
    assert covered[0.2] <= 25


def test_interval_of_constant_times_is_a_point() -> None:
    assert statistics.interval([2.0] * 5, [3.0] * 7, 0.99, 0) == (1.5, 1.5)


def test_four_of_five_comparisons_find_what_is_detectable() -> None:
    """A change of the stated detectable size is found at least that often."""
    random = np.random.default_rng(0)
    margin, threshold, level, result, tried = 0.01, 0.03, 0.002, 0, 0
    for seed in range(150):
        base, same = _as_lists(_times(random, 8, 0.03), _times(random, 8, 0.03))
        visible = statistics.detectable(base, same, margin, threshold, level, seed)
        assert visible is not None
        others, slowed = _as_lists(_times(random, 8, 0.03), (1 + visible) * _times(random, 8, 0.03))
        tried += 1
        result += (
            statistics.p_slower(others, slowed, margin) <= level
            and statistics.ratio(others, slowed) >= 1 + threshold
        )
    assert result >= 0.8 * tried


def test_detectable_does_not_depend_on_the_change() -> None:
    """Only how far launches spread counts, not how slow they were."""
    random = np.random.default_rng(1)
    base, contender = _as_lists(_times(random, 8), _times(random, 8))
    twice = [2 * time for time in contender]
    visible = statistics.detectable(base, contender, 0.01, 0.03, 0.01, 0)
    assert statistics.detectable(base, twice, 0.01, 0.03, 0.01, 0) == pytest.approx(visible)


def test_constant_times_show_whatever_is_beyond_margin_and_threshold() -> None:
    """Launches that do not spread hide nothing else."""
    constant = [1.0] * 5
    assert statistics.detectable(constant, constant, 0.03, 0.01, 0.05, 0) == pytest.approx(0.03)
    assert statistics.detectable(constant, constant, 0.01, 0.05, 0.05, 0) == pytest.approx(0.05)


def test_nothing_is_visible_with_too_few_launches() -> None:
    assert statistics.detectable([1.0] * 4, [1.0] * 4, 0.01, 0.03, 0.01, 0) is None
    assert statistics.detectable([1.0] * 5, [1.0] * 5, 0.01, 0.03, 0.01, 0) is not None


@pytest.mark.parametrize("number", [101, 400, 1001])
def test_intervals_of_many_values_are_those_of_the_bootstrap(
    number: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Drawn without drawing every value: the same, but for what chance does to 10,000 medians."""
    random = np.random.default_rng(number)
    base, contender = random.lognormal(0.0, 0.2, number), random.lognormal(0.05, 0.2, number)
    short = statistics.interval(base, contender, 0.99, 0)
    monkeypatch.setattr(statistics, "_MANY", number)
    assert short == pytest.approx(statistics.interval(base, contender, 0.99, 0), rel=0.01)
