"""The clock waits before it is read, and knows how its rounds came about."""

import itertools
from collections.abc import Callable

import pytest

from fwbench.measure.clock import Clock
from fwbench.measure.resources import CpuUse
from fwbench.testing import HandClock
from support.tables import tabled

DISPATCH_S = 2.0**-10
WORK_S = 2.0**-4


@pytest.fixture
def hand() -> HandClock:
    """A clock at rest."""
    return HandClock()


def call(hand: HandClock) -> Callable[[], str]:
    """A call that returns before its work is done."""

    def run() -> str:
        hand.spend(DISPATCH_S)
        hand.enqueue(WORK_S)
        return "result"

    return run


def rounds(clock: Clock, run: Callable[[], object], count: int, iterations: int) -> list[float]:
    """Seconds per iteration of each round; calls before the last are waited for by the round."""
    rounds_s = []
    for _ in range(count):
        start = clock()
        for left in reversed(range(iterations)):
            if clock.wait is not None and left == 0 < iterations - 1:
                clock.mark_last()
            run()
            if clock.wait is not None and left:
                clock.wait()
        rounds_s.append((clock() - start) / iterations)
    return rounds_s


@pytest.mark.parametrize("waits", [True, False])
def test_a_call_is_timed_until_its_result_exists(hand: HandClock, waits: bool) -> None:
    """Without a waiter, until it returned; earlier work does not count."""
    hand.enqueue(100.0 if waits else 0.0)
    clock = Clock(hand, hand.wait) if waits else Clock(hand)
    assert clock.time(call(hand)) == (DISPATCH_S + WORK_S * waits, "result")


@pytest.mark.parametrize("iterations", [1, 2, 8])
def test_dispatch_is_that_of_the_measured_rounds(hand: HandClock, iterations: int) -> None:
    clock = Clock(hand, hand.wait)
    rounds_s = rounds(clock, call(hand), 3, iterations)
    assert rounds_s == [DISPATCH_S + WORK_S] * 3
    facts = clock.facts(rounds_s, iterations)
    assert facts["dispatch_s"] == DISPATCH_S
    assert facts["completion_s"] == rounds_s[0]


def test_work_before_the_rounds_is_in_no_dispatch_time(hand: HandClock) -> None:
    """Neither that of the first call, warm-up and calibration, nor what is pending at its start."""
    clock = Clock(hand, hand.wait)
    for earlier_s in (8.0, 16.0, 32.0):
        clock.time(lambda seconds=earlier_s: hand.enqueue(seconds))
    hand.enqueue(64.0)
    rounds_s = rounds(clock, call(hand), 2, 1)
    assert rounds_s == [DISPATCH_S + WORK_S] * 2
    assert clock.facts(rounds_s, 1)["dispatch_s"] == DISPATCH_S


def test_dispatch_and_completion_are_medians_of_the_rounds(hand: HandClock) -> None:
    costs = iter([0.25, 4.0, 0.25])

    def run() -> None:
        hand.spend(next(costs))
        hand.enqueue(1.0)

    clock = Clock(hand, hand.wait)
    facts = clock.facts(rounds(clock, run, 3, 1), 1)
    assert (facts["dispatch_s"], facts["completion_s"]) == (0.25, 1.25)


@pytest.mark.parametrize("iterations", [1, 2])
def test_dispatch_is_completion_where_calls_return_when_done(
    hand: HandClock, iterations: int
) -> None:
    costs = itertools.chain.from_iterable([cost] * iterations for cost in (3.0, 1.0, 2.0))
    clock = Clock(hand)
    facts = clock.facts(rounds(clock, lambda: hand.spend(next(costs)), 3, iterations), iterations)
    assert (facts["dispatch_s"], facts["completion_s"]) == (2.0, 2.0)


def test_dispatch_is_no_longer_than_completion_by_a_rounding_error(hand: HandClock) -> None:
    """The median of an even number of rounds is a mean, which is rounded."""
    clock, calls = Clock(hand), 7
    for number in range(1, 51):
        rounds_s = [clock.time(lambda n=n: hand.spend(0.1 / n))[0] for n in (number, number + 1)]
        facts = clock.facts([round_s / calls for round_s in rounds_s], calls)
        assert facts["dispatch_s"] == facts["completion_s"]


def test_a_last_call_that_is_slow_by_chance_returns_no_later_than_calls_are_done(
    hand: HandClock,
) -> None:
    clock = Clock(hand, hand.wait)
    start = clock()
    hand.spend(1.0)
    clock.mark_last()
    hand.spend(3.0)
    facts = clock.facts([(clock() - start) / 2], 2)
    assert (facts["dispatch_s"], facts["completion_s"]) == (2.0, 2.0)


def test_every_measurement_has_facts_of_its_own(hand: HandClock) -> None:
    clock = Clock(hand, hand.wait)
    clock.facts(rounds(clock, lambda: hand.spend(8.0), 3, 1), 1)
    facts = clock.facts(rounds(clock, call(hand), 3, 1), 1)
    assert facts["dispatch_s"] == DISPATCH_S
    assert facts["wall_s"] == 3 * (DISPATCH_S + WORK_S)


def test_facts_need_whole_rounds(hand: HandClock) -> None:
    """Beginnings and ends are distinguished by counting."""
    clock = Clock(hand)
    rounds_s = rounds(clock, call(hand), 1, 1)
    clock()
    with pytest.raises(AssertionError, match="odd number"):
        clock.facts(rounds_s, 1)


class Kernel:
    """An account of a process's use of its processors, moved by hand."""

    def __init__(self, hand: HandClock) -> None:
        self._hand = hand
        self.cpu_s = 0.0
        self.preempted = 0

    def __call__(self) -> CpuUse:
        """The account; asking for it takes time, too."""
        self._hand.spend(1.0)
        return CpuUse(self.cpu_s, self.preempted)

    def run(self, seconds: float, cpu_s: float = 0.0, preempted: int = 0) -> None:
        """Let time pass in which the process has had this much."""
        self._hand.spend(seconds)
        self.cpu_s += cpu_s
        self.preempted += preempted


def test_processor_time_is_that_of_the_rounds(hand: HandClock) -> None:
    """Time of threads counts while the clock waits, and does not between rounds.

    Nor is it part of a round to ask for it.
    """
    kernel = Kernel(hand)
    clock = Clock(hand, lambda: kernel.run(0.5, cpu_s=2.0), kernel)
    rounds_s = []
    for _ in range(3):
        kernel.run(8.0, cpu_s=16.0)
        rounds_s += rounds(clock, lambda: kernel.run(0.25, cpu_s=0.125), 1, 2)
    assert rounds_s == [0.5 + 0.25] * 3
    facts = clock.facts(rounds_s, 2)
    assert facts["cpu_s"] == 3 * 2 * (2.0 + 0.125)
    assert facts["wall_s"] == 3 * 2 * (0.5 + 0.25)


@tabled
def test_rounds_in_which_the_process_was_preempted(
    hand: HandClock,
    call_s: float,
    iterations: int,
    threads: float,
    switches: tuple[int, ...],
    share: float,
) -> None:
    """Once in 10 ms of a round is sharing, for any number of calls; less is not.

    Of a round in which it got a quarter of a processor, once in 10 ms of that.
    """
    kernel = Kernel(hand)
    left = [count if i == 0 else 0 for count in switches for i in range(iterations)]
    clock = Clock(hand, None, kernel)
    rounds_s = rounds(
        clock,
        lambda: kernel.run(call_s, cpu_s=threads * call_s, preempted=left.pop(0)),
        4,
        iterations,
    )
    assert clock.facts(rounds_s, iterations)["preempted"] == share


#: Four of them are over within a millisecond, the fifth is not.
TINY_S = 2.0**-12


def test_short_rounds_share_a_stretch(hand: HandClock) -> None:
    """Asking takes longer than they do: it is done once in a millisecond."""
    requested = []

    def use() -> CpuUse:
        requested.append(hand())
        return CpuUse(hand(), len(requested))

    clock = Clock(hand, None, use)
    rounds_s = rounds(clock, lambda: hand.spend(TINY_S), 10, 1)
    assert rounds_s == [TINY_S] * 10
    facts = clock.facts(rounds_s, 1)
    assert requested == pytest.approx([0.0, 5 * TINY_S, 5 * TINY_S, 10 * TINY_S])
    assert facts["cpu_s"] == pytest.approx(10 * TINY_S)
    assert facts["preempted"] == 0.2, "one of the five rounds of each stretch"


def test_a_stretch_that_is_not_over_ends_with_the_rounds(hand: HandClock) -> None:
    """And no stretch has more rounds that were preempted than it has rounds."""
    kernel = Kernel(hand)
    clock = Clock(hand, None, kernel)
    rounds_s = rounds(clock, lambda: kernel.run(TINY_S, cpu_s=TINY_S, preempted=3), 2, 1)
    facts = clock.facts(rounds_s, 1)
    assert (facts["cpu_s"], facts["preempted"]) == (2 * TINY_S, 1.0)


def test_work_between_stretches_is_in_no_stretch_of_rounds(hand: HandClock) -> None:
    """A short call is timed, then something else is done for long, then rounds are made."""
    kernel = Kernel(hand)
    clock = Clock(hand, None, kernel)
    clock.time(lambda: kernel.run(TINY_S))
    kernel.run(100.0, cpu_s=100.0, preempted=1_000)
    rounds_s = rounds(clock, lambda: kernel.run(TINY_S, cpu_s=TINY_S), 3, 1)
    facts = clock.facts(rounds_s, 1)
    assert (facts["cpu_s"], facts["preempted"]) == (3 * TINY_S, 0.0)


def test_the_clock_is_named_after_what_it_reads() -> None:
    assert Clock(wait=lambda: None).__name__ == "waiting(perf_counter)"
