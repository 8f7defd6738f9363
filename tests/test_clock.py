"""The clock waits before it is read, and tells dispatch from completion."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from fakes import HandClock

from fwbench.measure.clock import Clock

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
    """Seconds per iteration of each round, read as pytest-benchmark reads its timer."""
    found = []
    for _ in range(count):
        start = clock.timer()
        for _ in range(iterations):
            run()
        found.append((clock.timer() - start) / iterations)
    return found


def test_a_call_is_timed_until_its_result_exists(hand: HandClock) -> None:
    """The time of a call that returns early includes the work that it has enqueued."""
    assert Clock(hand, hand.wait).time(call(hand)) == (DISPATCH_S + WORK_S, "result")


def test_work_enqueued_before_is_not_counted(hand: HandClock) -> None:
    """The clock waits before its first reading too, so that earlier work is nobody's time."""
    hand.enqueue(100.0)
    seconds, _ = Clock(hand, hand.wait).time(call(hand))
    assert seconds == DISPATCH_S + WORK_S


def test_without_waiting_only_the_dispatch_is_seen(hand: HandClock) -> None:
    """What a clock without a waiter reads is the time until the call returned."""
    seconds, _ = Clock(hand).time(call(hand))
    assert seconds == DISPATCH_S


def test_the_bare_clock_is_handed_out_where_nothing_is_to_be_waited_for(hand: HandClock) -> None:
    """A synchronous framework's rounds are read from the bare clock, an asynchronous one's not."""
    waiting = Clock(hand, hand.wait)
    assert Clock(hand).timer is hand
    assert waiting.timer is waiting


@pytest.mark.parametrize("iterations", [1, 2, 8])
def test_dispatch_is_told_from_the_measured_rounds(hand: HandClock, iterations: int) -> None:
    """The dispatch time of a call is right however many calls a round has."""
    clock = Clock(hand, hand.wait)
    rounds_s = rounds(clock, call(hand), 3, iterations)
    assert rounds_s == [(DISPATCH_S + iterations * WORK_S) / iterations] * 3
    assert clock.dispatch_s(rounds_s, iterations) == DISPATCH_S


def test_dispatch_passes_over_what_came_before_the_rounds(hand: HandClock) -> None:
    """Waits of the first call, the warm-up and the calibration do not enter the dispatch time."""
    clock = Clock(hand, hand.wait)
    for earlier_s in (8.0, 16.0, 32.0):
        clock.time(lambda seconds=earlier_s: hand.enqueue(seconds))
    rounds_s = rounds(clock, call(hand), 2, 1)
    assert clock.dispatch_s(rounds_s, 1) == DISPATCH_S


def test_waiting_before_a_round_is_no_part_of_it(hand: HandClock) -> None:
    """Work that is pending when a round begins does not make its dispatch look shorter."""
    clock = Clock(hand, hand.wait)
    hand.enqueue(64.0)
    assert clock.dispatch_s(rounds(clock, call(hand), 1, 1), 1) == DISPATCH_S


def test_dispatch_is_the_median_of_the_rounds(hand: HandClock) -> None:
    """One slow dispatch among three does not move the dispatch time."""
    costs = iter([0.25, 4.0, 0.25])

    def run() -> None:
        hand.spend(next(costs))
        hand.enqueue(1.0)

    clock = Clock(hand, hand.wait)
    assert clock.dispatch_s(rounds(clock, run, 3, 1), 1) == 0.25


def test_dispatch_is_completion_where_calls_return_when_done(hand: HandClock) -> None:
    """Without a waiter the dispatch time is the median of the rounds themselves."""
    assert Clock(hand).dispatch_s([3.0, 1.0, 2.0], 4) == 2.0


def test_the_clock_is_named_after_what_it_reads() -> None:
    """Records, which name the timer, say which clock was read and that it waits."""
    assert Clock(wait=lambda: None).__name__ == "waiting(perf_counter)"
