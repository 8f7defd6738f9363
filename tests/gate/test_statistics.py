"""The statistics of sessions keep their level, and those of launches are what they say."""

import itertools
from collections.abc import Iterable

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.stats import ttest_ind

from fwbench.gate.stored import SessionRatio, compare
from fwbench.gate.verdicts import CHANGES, Comparison, Rules, Verdict
from support.launched_runs import run, sample


def _times(random: np.random.Generator, number: int, spread: float = 0.1) -> NDArray[np.float64]:
    """Times around 1 that spread like launches, and more."""
    return np.exp(spread * random.standard_normal(number))


def _as_lists(*samples: Iterable[float]) -> list[list[float]]:
    return [list(map(float, sample)) for sample in samples]


@pytest.mark.parametrize(("n", "m"), [*itertools.product((1, 2, 3, 8), repeat=2)][1:])
def test_shift_is_scipys(n: int, m: int) -> None:
    """Probability, ratio and bounds are those of SciPy's t test of logarithms."""
    random = np.random.default_rng([n, m])
    for factor in (0.8, 1.0, 1.05):
        base, contender = _as_lists(_times(random, n), factor * _times(random, m))
        shift = SessionRatio.between(base, contender, 0.0)
        scipys = ttest_ind(np.log(contender), np.log(base))
        assert shift.p == pytest.approx(scipys.pvalue / 2)
        assert shift.ratio == pytest.approx(
            np.exp(np.mean(np.log(contender)) - np.mean(np.log(base)))
        )
        both = scipys.confidence_interval(0.9)
        assert shift.interval(0.9) == pytest.approx((np.exp(both.low), np.exp(both.high)))


def test_single_sessions_show_nothing() -> None:
    """Whatever they differ by, nobody knows how far sessions are apart."""
    shift = SessionRatio.between([1.0], [9.0], 0.0)
    assert shift.ratio == pytest.approx(9.0)
    assert shift.p == 0.5
    assert shift.interval(0.9) == (None, None)
    assert shift.detectable(0.03, 0.05) is None


def test_few_sessions_show_next_to_nothing() -> None:
    """Two that are 5 % apart, at a level of one in a thousand."""
    assert SessionRatio.between([1.0, 1.05], [1.0], 0.0).detectable(0.03, 0.001) is None


def test_equal_figures_are_taken_to_scatter() -> None:
    """Three sessions that agree to the byte say little of a fourth one."""
    same, more = [1e6] * 3, [1.8e6]
    assert SessionRatio.between(same, same, 0.1).p == 0.5
    assert 0.01 < SessionRatio.between(same, more, 0.1).p < 0.05
    assert SessionRatio.between(same * 3, more * 3, 0.1).p < 1e-4


def test_bounds_are_numbers_that_json_has() -> None:
    low, high = SessionRatio.between([1.0, 1e6], [1.0], 0.0).interval(0.999)
    assert low is not None
    assert high is not None
    assert 0 < low < 1 < high < 1e7


def test_nine_of_ten_comparisons_find_what_is_detectable() -> None:
    """A change of the size that is stated of equal sessions is found about that often."""
    random = np.random.default_rng(0)
    level, threshold, found, tried = 0.002, 0.03, 0, 400
    for _ in range(tried):
        base, same, others = _as_lists(*(_times(random, 5, 0.03) for _ in range(3)))
        visible = SessionRatio.between(base, same, 0.0).detectable(threshold, level)
        assert visible is not None
        shift = SessionRatio.between(base, [(1 + visible) * other for other in others], 0.0)
        found += shift.p <= level and shift.is_beyond(threshold)
    assert 0.8 * tried <= found <= 0.97 * tried


#: Sessions of the base and of the contender.
_SESSIONS = ((2, 1), (5, 1), (2, 2), (5, 5))

_CASES, _JOBS = 20, 50


def _job(
    random: np.random.Generator, sizes: tuple[int, int], alike: float, apart: float, slowed: float
) -> Comparison:
    """The comparison of sessions that have offsets of their own, and of each case.

    Args:
        alike: standard deviation of what all cases of a session are off by.
        apart: that of what each case of a session is off by.
        slowed: by how much the first case is slower in the contender, as a share.
    """
    sides = []
    for slower, sessions in zip((0.0, slowed), sizes, strict=True):
        offsets = alike * random.standard_normal(sessions)
        own = apart * random.standard_normal((_CASES, sessions))
        own[0] += np.log1p(slower)
        values_s = np.exp(offsets + own + 0.01 * random.standard_normal(own.shape))
        sides.append(run(*(sample(f"case-{i}", list(row)) for i, row in enumerate(values_s))))
    return compare(*sides, Rules())


@pytest.mark.parametrize("sizes", _SESSIONS, ids=lambda sizes: f"{sizes[0]} against {sizes[1]}")
@pytest.mark.parametrize("spread", [0.02, 0.03, 0.05])
@pytest.mark.parametrize("alike", [True, False], ids=["all cases alike", "each by its own"])
def test_false_alarms_are_at_most_the_level(
    sizes: tuple[int, int], spread: float, *, alike: bool
) -> None:
    """Fifty jobs of 20 unchanged cases, whose sessions differ: 2.5 are expected at a level of .05.

    More than 7 happen once in 300 such sets of jobs. A gate that takes launches as independent
    raises an alarm in 21 to 50 of them.
    """
    random = np.random.default_rng([*sizes, int(1000 * spread), alike])
    offsets = (spread, 0.0) if alike else (0.0, spread)
    alarms = sum(
        any(verdict in CHANGES for verdict in _job(random, sizes, *offsets, 0.0).verdicts.values())
        for _ in range(_JOBS)
    )
    assert alarms <= 7


def test_a_slow_down_beyond_the_spread_is_found() -> None:
    """With five sessions a side that spread by 2 %, one by 15 % is, and it is what is stated."""
    random = np.random.default_rng(1)
    jobs = [_job(random, (5, 5), 0.02, 0.0, 0.15) for _ in range(_JOBS)]
    verdicts = [job.verdicts["case-0"] for job in jobs]
    assert verdicts.count(Verdict.REGRESSED) >= 0.9 * _JOBS
    (note,) = jobs[0].notes
    assert note.startswith("5 sessions against 5 sessions: a slow-down by ")
    assert 0.08 < float(note.split("slow-down by ")[1].split("%")[0]) / 100 < 0.16
