"""The warm-up ends when times have settled, or when its time is up."""

import itertools
import os
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from itertools import chain, repeat

import pytest

from fwbench import machine
from fwbench.measure import warmup
from fwbench.measure.clock import Clock
from fwbench.measure.warmup import HANDED_OVER_S, WarmUp, wait_until_idle, warm_up
from fwbench.testing import HandClock
from support import programs

#: Longer than the shortest block, so that a block is one call.
CALL_S = 2.0**-8


def warmed(costs_s: Iterable[float], limit_s: float, at_least_s: float = 0.0) -> WarmUp:
    """The warm-up of calls that cost these, one after the other; asynchronous, as the worst."""
    hand = HandClock()
    costs: Iterator[float] = iter(costs_s)
    clock = Clock(hand, hand.wait)
    warmup = warm_up(lambda: hand.enqueue(next(costs)), clock, limit_s, at_least_s)
    return replace(warmup, is_parallel=None)  # of a clock that is turned by hand


SHORT_S = 2.0**-12  # four of them are just short of a millisecond
CLOSE_S = 2.0**-10  # one is
BLOCK_S = 2.0**-9


@pytest.mark.parametrize(
    ("costs_s", "limit_s", "at_least_s", "expected"),
    [
        # Calls are steady as soon as ten blocks can be compared.
        (repeat(CALL_S), 100.0, 0.0, WarmUp(10, 10 * CALL_S, True)),
        # The scheduler moves another thread later than times seem to have settled.
        (repeat(CALL_S), 100.0, 64 * CALL_S, WarmUp(64, 64 * CALL_S, True)),
        (repeat(CALL_S), 32 * CALL_S, 64 * CALL_S, WarmUp(32, 32 * CALL_S, True)),
        # Blocks are doubled until one takes a millisecond, and all calls made are counted.
        (repeat(SHORT_S), 100.0, 0.0, WarmUp(87, 87 * SHORT_S, True)),
        # A block of two calls is compared by the call with a block of one.
        (
            chain([1.03125 * CLOSE_S], repeat(CLOSE_S)),
            4 * CLOSE_S,
            0.0,
            WarmUp(4, 4.03125 * CLOSE_S, True),
        ),
        # Of ten blocks the earlier five may have two slow ones, which the median does not see.
        (
            chain([2 * BLOCK_S] * 6, repeat(BLOCK_S)),
            100.0,
            0.0,
            WarmUp(14, (6 * 2 + 8) * BLOCK_S, True),
        ),
        # Of calls that take long four are enough, if they are alike.
        (repeat(4 * CALL_S), 100.0, 0.0, WarmUp(4, 16 * CALL_S, True)),
        (
            chain([8 * CALL_S], repeat(4 * CALL_S)),
            100.0,
            0.0,
            WarmUp(6, (8 + 5 * 4) * CALL_S, True),
        ),
        ((2.0**n for n in range(99)), 7.0, 0.0, WarmUp(3, 7.0, False)),
        # Two blocks are made even where the first outlasts the limit.
        (repeat(4.0), 1.0, 0.0, WarmUp(2, 8.0, True)),
        (chain([4.0], repeat(1.0)), 1.0, 0.0, WarmUp(2, 5.0, False)),
        (repeat(SHORT_S), SHORT_S, 0.0, WarmUp(2, 2 * SHORT_S, True)),
    ],
)
def test_calls_are_warmed_up_until_steady_or_over(
    costs_s: Iterable[float], limit_s: float, at_least_s: float, expected: WarmUp
) -> None:
    assert warmed(costs_s, limit_s, at_least_s) == expected


@pytest.mark.parametrize(
    ("call_s", "each", "calls"), [(SHORT_S, 3, 87), (SHORT_S, 1, 207), (CALL_S, 1, 10)]
)
def test_short_calls_that_lose_their_processor_are_warmed_up_for_longer(
    call_s: float, each: int, calls: int
) -> None:
    """Another thread computes them, as TensorFlow's graphs, though nothing is waited for."""
    hand, made = HandClock(), list[int]()

    def call() -> None:
        made.append(1)
        hand.spend(call_s)

    warmup = warm_up(call, Clock(hand), 100.0, switches=lambda: len(made) // each)
    assert warmup == WarmUp(calls, calls * call_s, True, is_parallel=False)
    assert (warmup.seconds >= HANDED_OVER_S) is (calls == 207)


@pytest.mark.parametrize(("share", "is_parallel"), [(0.0, False), (0.04, False), (0.06, True)])
def test_calls_are_parallel_if_other_threads_compute(share: float, is_parallel: bool) -> None:
    hand = HandClock()
    warmup = warm_up(
        lambda: hand.spend(CALL_S), Clock(hand), 100.0, of_others_s=lambda: share * hand()
    )
    assert warmup.is_parallel is is_parallel


@pytest.mark.parametrize(("later", "steady"), [(1.05, True), (1.07, False), (0.9, False)])
def test_settled_means_within_a_twentieth(later: float, steady: bool) -> None:
    """Two runs of five blocks that differ by up to 5 % are steady."""
    costs = chain([CALL_S] * 5, [CALL_S * later] * 5)
    assert warmed(costs, 9.5 * min(1.0, later) * CALL_S).steady is steady


@pytest.mark.parametrize("limit_s", [0.0, -1.0])
def test_no_warm_up_calls_nothing(limit_s: float) -> None:
    def never() -> Callable[[], object]:
        raise AssertionError("called")

    assert warm_up(never, Clock(HandClock()), limit_s) == WarmUp(0, 0.0, None)


_VARIABLE = "OPENBLAS_THREAD_TIMEOUT"


@pytest.mark.parametrize(
    ("spins_s", "waits_s"), [(0.0, 0.0), (0.0005, 0.001), (0.0995, 0.1), (9.0, 0.3)]
)
def test_spinning_threads_are_waited_for(spins_s: float, waits_s: float) -> None:
    """For as long as they spin, at most 0.3 s."""
    waited_s: list[float] = []
    wait_until_idle(lambda: sum(waited_s) < spins_s, waited_s.append)
    assert sum(waited_s) == pytest.approx(waits_s)


_COMPUTES = """
import hashlib, threading, time
from fwbench.measure.warmup import wait_until_idle

def compute():
    hashlib.sha256(data)  # without the interpreter's lock
    ends_s.append(time.perf_counter())

data, ends_s = bytes(4 * 10**7), []
threading.Thread(target=time.sleep, args=(9.0,), daemon=True).start()
threading.Thread(target=compute).start()
time.sleep(0.01)
wait_until_idle()
print(len(ends_s))
"""


def test_threads_that_compute_are_seen_at_any_moment() -> None:
    """Their processor time is known once in a tick of the kernel, of up to 10 ms."""
    assert [programs.result("-c", _COMPUTES) for _ in range(5)] == [1.0] * 5


def test_where_the_system_lists_no_threads_their_time_tells(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """On macOS, for one."""
    used_s = itertools.chain([0.0, 0.001, 0.001], itertools.repeat(0.001))
    monkeypatch.setattr(warmup, "_LISTS_THREADS", False)
    monkeypatch.setattr(warmup, "other_threads_s", used_s.__next__)
    waited_s: list[float] = []
    wait_until_idle(sleep=waited_s.append)
    assert waited_s == [0.001]


_PRODUCT = """
import time
import numpy as np

matrix = np.ones((512, 512))
matrix @ matrix
before_s = time.process_time()
time.sleep(0.05)
used_s = time.process_time() - before_s
from fwbench import machine
machine.forget_reference_variables()
print(used_s if not machine.REFERENCES_SPIN else 1.0)
"""


def test_products_of_references_leave_no_thread_spinning() -> None:
    """By default OpenBLAS' go on for 0.1 s."""
    variables = {name: value for name, value in os.environ.items() if name != _VARIABLE}
    variables |= machine.thread_variables(2) | machine.reference_variables()
    assert programs.result("-c", _PRODUCT, env=variables) < 0.01


@pytest.mark.parametrize("user_value", ["4", "20"])
def test_what_a_user_has_set_stays(monkeypatch: pytest.MonkeyPatch, user_value: str) -> None:
    """For NumPy's library, and for those of frameworks."""
    monkeypatch.setenv(_VARIABLE, user_value)
    assert machine.reference_variables() == {}
    machine.forget_reference_variables()
    assert os.environ[_VARIABLE] == user_value


def test_frameworks_do_not_see_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """MXNet has an OpenBLAS of its own, which is measured."""
    monkeypatch.delenv(_VARIABLE, raising=False)
    for name, value in machine.reference_variables().items():
        monkeypatch.setenv(name, value)
    machine.forget_reference_variables()
    assert _VARIABLE not in os.environ
