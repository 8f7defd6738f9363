"""Cases are clean, drifting or contended by rules that noise alone does not meet."""

import random
from collections.abc import Sequence
from dataclasses import dataclass

import pytest

from fwbench.measure import condition
from fwbench.measure.condition import CLEAN, CONTENDED, DRIFTING
from support.tables import tabled


def rounds(number: int, slope: float = 0.0, noise: float = 0.0, seed: int = 0) -> list[float]:
    """Rounds that become longer by a share from the first to the last, with normal noise."""
    draw = random.Random(seed)  # noqa: S311 (no secret)
    return [
        (1.0 + slope * place / max(1, number - 1)) * max(0.1, draw.gauss(1.0, noise))
        for place in range(number)
    ]


@pytest.mark.parametrize(
    ("rounds_s", "share"),
    [
        ([1.0] * 5 + [9.0] * 10 + [1.5] * 5, 0.5 / 1.0),
        ([2.0, 2.0, 50.0, 7.0, 7.0, 7.0, 7.0, 7.0, 7.0, 7.0, 7.0, 7.0, 9.0, 1.0, 1.0], -0.5),
        ([4.0, 3.0], -0.25),
        ([4.0], None),
    ],
)
def test_drift_is_the_last_fifth_over_the_first(
    rounds_s: Sequence[float], share: float | None
) -> None:
    """Medians, so that an outlier in a fifth does not count; a single round has none."""
    result = condition.drift(rounds_s)
    assert result == (None if share is None else pytest.approx(share))


@pytest.mark.parametrize("slope", [0.3, -0.3])
@pytest.mark.parametrize("number", [6, 30, 1000])
def test_a_lasting_trend_is_a_drift(number: int, slope: float) -> None:
    assert condition.is_drifting(rounds(number, slope, noise=0.01))


def test_a_change_of_level_is_a_drift() -> None:
    assert condition.is_drifting(rounds(500, noise=0.05) + [1.3 * x for x in rounds(500, seed=1)])


def test_a_small_trend_is_not_a_drift() -> None:
    assert not condition.is_drifting(rounds(1000, 0.09))


@pytest.mark.parametrize("rounds_s", [[1.0, 1.5, 2.0, 2.5, 3.0], [1.0, 3.0], [1.0]])
def test_a_few_rounds_do_not_show_a_drift(rounds_s: list[float]) -> None:
    """Five rounds in order are chance once in sixty times."""
    assert not condition.is_drifting(rounds_s)


def test_noise_is_rarely_a_drift() -> None:
    """Few rounds with noise of 30 % differ by 10 % from end to end all the same."""
    noisy = [rounds(30, noise=0.3, seed=seed) for seed in range(300)]
    large = [rounds_s for rounds_s in noisy if abs(condition.drift(rounds_s) or 0.0) > 0.1]
    assert len(large) > 100
    assert sum(map(condition.is_drifting, noisy)) <= 6


@dataclass
class Seen:
    """Evidence as records have it."""

    preempted: float | None = 0.0
    others_cpus: float | None = 0.0
    queued_cpus: float | None = None
    idle_cpus: float | None = None
    others_on_gpu: int | None = None
    full_speed: float | None = None


@tabled
def test_contended_if_others_are_busy_and_it_shows(
    seen: Seen, slowed: float | None, contended: bool
) -> None:
    """Preempted in many rounds, slow in half of them, or waiting, while others were busy.

    Also where no processor was left for them. Where it is not known whether others were busy, it
    takes preemptions and slow rounds.
    """
    evidence = Seen(**{"preempted": None, "others_cpus": None, **seen})
    assert condition.is_contended(evidence, slowed) is contended


def test_a_slowdown_is_of_the_median_round() -> None:
    assert condition.slowdown([9.0, 2.0, 3.0, 99.0, 2.0]) == 1.5


def test_contention_is_said_before_drift() -> None:
    """Rounds drift because they are contended: the cause is the condition."""
    drifting = rounds(100, 0.25)
    assert condition.of_rounds(drifting, Seen(1.0, 1.0)) == CONTENDED
    assert condition.of_rounds(drifting, Seen(0.0, 1.0)) == DRIFTING
    assert condition.of_rounds(rounds(100), Seen(0.0, 1.0)) == CLEAN


@pytest.mark.parametrize(
    ("launches", "case"),
    [
        ([CLEAN, CLEAN, CONTENDED], CLEAN),
        ([CONTENDED, CLEAN], CONTENDED),
        ([CLEAN, DRIFTING, CONTENDED], DRIFTING),
        ([DRIFTING, CLEAN, CLEAN, CLEAN], CLEAN),
    ],
)
def test_a_case_has_the_condition_of_its_middle_launch(launches: list[str], case: str) -> None:
    """Half of the launches must have been as bad, since the median launch stands for the case."""
    assert condition.of_launches(launches) == case


@tabled
def test_spinning_takes_processor_time(
    slow_s: float, cpu_s: float, threads: int | None, spins: bool
) -> None:
    """Slow rounds of threads that wait actively cost more processor time than the fastest round.

    The fastest of these rounds took 13 ms: at most 26 ms of processor time on two threads.
    """
    assert condition.is_spinning([0.013, *[slow_s] * 9], cpu_s, threads) is spins


def test_a_few_slow_rounds_are_not_spinning() -> None:
    """The median stands for the case, and it is as fast as the fastest."""
    assert not condition.is_spinning([0.013] * 9 + [4.0], 0.8, 2)


@pytest.mark.parametrize(
    ("others", "slowed", "contended"), [(1, 1.3, True), (1, 1.29, False), (0, 9.0, False)]
)
def test_others_on_a_gpu_contend_if_it_shows(
    others: int, slowed: float, *, contended: bool
) -> None:
    """They may be idle, and rounds may be slow for other reasons."""
    assert condition.is_contended(Seen(others_on_gpu=others), slowed) is contended


@pytest.mark.parametrize(
    ("full_speed", "contended"), [(None, False), (1.0, False), (0.5, False), (0.4, True)]
)
def test_slow_cpus_contend_whoever_slows_them(full_speed: float | None, *, contended: bool) -> None:
    assert condition.is_contended(Seen(full_speed=full_speed)) is contended
