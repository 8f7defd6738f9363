"""Rounds end when their median is known precisely, or when their time is over."""

import random
from collections.abc import Iterable, Iterator
from itertools import cycle, repeat

import pytest
from scipy.stats import binom

from fwbench.measure.stopping import (
    CONFIDENCE,
    PRECISE,
    TIME_OVER,
    Stopping,
    ranks_outside,
    relative_interval,
)

#: A power of two, so that sums are exact; 64 of them are the default max_time_s of `stopped`.
ROUND_S = 2.0**-8


def stopped(
    rounds_s: Iterable[float],
    precision: float = 0.02,
    max_time_s: float = 0.25,
    min_rounds: int = 5,
) -> tuple[int, Stopping]:
    """The number of rounds that were made of these, and the rule that ended them."""
    rule = Stopping(precision, max_time_s, min_rounds)
    made = next(made for made, round_s in enumerate(rounds_s, 1) if rule.add(round_s))
    return made, rule


def scattered(number: int) -> Iterator[float]:
    """Rounds without a trend, without end; half of them lie within 20 % of their median."""
    rounds_s = [ROUND_S * (0.6 + 0.8 * place / number) for place in range(number)]
    random.Random(1).shuffle(rounds_s)  # noqa: S311 (no secret)
    return cycle(rounds_s)


def test_rounds_without_noise_are_enough_at_twenty() -> None:
    """Their interval has no width, and is first looked at then."""
    made, rule = stopped(repeat(ROUND_S))
    assert made == 20
    assert rule.facts() == {"precision": 0.02, "median_interval": 0.0, "stopped": PRECISE}


def test_short_rounds_last_twenty_milliseconds() -> None:
    made, rule = stopped(repeat(2.0**-14))
    assert (made - 1) * 2.0**-14 < 20e-3 <= made * 2.0**-14
    assert rule.facts()["stopped"] == PRECISE


def test_noisy_rounds_end_with_their_time() -> None:
    made, rule = stopped(scattered(64))
    assert made > 20
    facts = rule.facts()
    assert facts["stopped"] == TIME_OVER
    assert 0.02 < (facts["median_interval"] or 0.0) < 0.8


def test_a_lower_precision_takes_fewer_rounds() -> None:
    made = [stopped(scattered(4096), precision, max_time_s=20.0)[0] for precision in (0.1, 0.2)]
    assert 20 < made[1] < made[0] < 4096


@pytest.mark.parametrize("min_rounds", [1, 5, 30])
def test_as_many_rounds_as_the_user_wants_are_made(min_rounds: int) -> None:
    """Even if their time was over, or their median known, long before."""
    assert stopped(repeat(1.0), min_rounds=min_rounds)[0] == min_rounds
    assert stopped(repeat(ROUND_S), min_rounds=min_rounds)[0] == max(20, min_rounds)


def test_few_rounds_are_never_called_precise() -> None:
    _, few = stopped(repeat(2.0**-5))
    assert few.facts() == {"precision": 0.02, "median_interval": None, "stopped": TIME_OVER}
    _, more = stopped(repeat(2.0**-6))
    assert more.facts() == {"precision": 0.02, "median_interval": 0.0, "stopped": TIME_OVER}
    _, short = stopped(repeat(2.0**-14), max_time_s=2.0**-8)
    assert short.facts()["stopped"] == TIME_OVER


def test_looks_grow_by_half(monkeypatch: pytest.MonkeyPatch) -> None:
    """And each has less error than the one before, all of them together what is allowed."""
    looks: list[tuple[int, float]] = []

    def look(rounds_s: list[float], error: float) -> float:
        looks.append((len(rounds_s), error))
        return 1.0

    monkeypatch.setattr("fwbench.measure.stopping.relative_interval", look)
    stopped(repeat(ROUND_S))
    assert [rounds for rounds, _ in looks] == [20, 30, 45, 64]
    errors = [error for _, error in looks]
    assert errors == pytest.approx([(1 - CONFIDENCE) / n for n in (2, 6, 12, 20)])


@pytest.mark.parametrize("error", [0.01, 0.005, 0.01 / 6, 0.01 / 90])
@pytest.mark.parametrize("number", [1, 7, 8, 9, 20, 30, 45, 333, 1000])
def test_ranks_are_those_of_the_binomial_distribution(number: int, error: float) -> None:
    """The true median is outside with the probability that is allowed, and one rank on with more.

    So often has a fair coin fewer heads than the rank says.
    """
    rank = ranks_outside(number, error)
    assert 2 * binom.cdf(rank - 1, number, 0.5) <= error
    assert 2 * binom.cdf(rank, number, 0.5) > error


@pytest.mark.parametrize("number", [1001, 1500, 10_000, 40_000])
def test_ranks_of_many_values_are_exact_but_for_one(number: int) -> None:
    """The normal distribution stands for the binomial."""
    exact = next(
        rank
        for rank in range(number // 2 - int(2 * number**0.5), number)
        if 2 * binom.cdf(rank, number, 0.5) > 0.01
    )
    assert abs(ranks_outside(number, 0.01) - exact) <= 1


def test_the_interval_is_of_two_of_the_values() -> None:
    """The fourth of twenty from either end, so three disturbed ones do not widen it.

    The median is above all of seven, or below, in one of 64 samples.
    """
    values = [float(value) for value in range(1, 21)]
    random.Random(1).shuffle(values)  # noqa: S311 (no secret)
    assert ranks_outside(20, 0.01) == 4
    assert relative_interval(values, 0.01) == (17 - 4) / 10.5
    assert relative_interval([1.0] * 17 + [100.0] * 3, 0.01) == 0.0
    assert relative_interval([1.0] * 7, 0.01) is None
    assert relative_interval([1.0] * 8, 0.01) == 0.0


def test_two_speeds_are_not_precise() -> None:
    _, rule = stopped(cycle([ROUND_S, 2 * ROUND_S]))
    assert rule.facts()["stopped"] == TIME_OVER
    assert rule.facts()["median_interval"] == pytest.approx(2 / 3, abs=0.4)
