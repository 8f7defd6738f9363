"""Timed calls: unfinished work, skipped work and impossible rates are noticed."""

import itertools
import re
from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import pytest

from fwbench.cases import timing
from fwbench.errors import ImpossibleRate, SkippedWork, UnfinishedWork, WrongResult
from fwbench.measure.clock import Clock
from fwbench.measure.limits import Limits
from fwbench.processes.session import EXAMINED_VARIABLE
from fwbench.records.facts import CaseFacts
from fwbench.testing import FakeFramework, HandClock
from fwbench.workloads import from_numpy
from fwbench.workloads.workload import Cost
from support.fakes import (
    NEVER_WAITS,
    SAYS_IT_IS_DONE,
    Immutable,
    case_of,
    cell,
    fails,
    operation,
    recorded,
    square,
    variant,
)
from support.tables import tabled

#: A call of the fake framework takes 65 / 1024 s.
_S = 65 / 1024

both_directions = pytest.mark.parametrize("direction", ["forward", "backward"])


def reading(delays_s: Iterable[float]) -> Any:
    """A framework whose first readings are delayed."""
    left_s = iter(delays_s)

    class Slow(FakeFramework):
        def read_element(self, array: Any) -> Any:
            self.clock.spend(next(left_s, 0.0))
            return self.to_numpy(array)

    return Slow()


@both_directions
@pytest.mark.parametrize(
    "framework", [NEVER_WAITS, SAYS_IT_IS_DONE], ids=["never waits", "no waiter"]
)
def test_work_that_remains_when_the_clock_stops(
    framework: type[FakeFramework], direction: str
) -> None:
    """Reading the result back takes longer than reading alone: the case fails before its rounds."""
    case = square(direction, framework())
    message = (
        "^calls return before their work is done, and the framework's `waiter` does not wait: "
    )
    fails(case, UnfinishedWork, message)
    assert case.benchmark.stats is None


def test_a_creation_that_is_not_waited_for() -> None:
    fails(case_of(cell(from_numpy), NEVER_WAITS()), UnfinishedWork, "does not wait")


@pytest.mark.parametrize(
    "delays_s",
    [itertools.repeat(8.0), [1.0, 0.0, 0.0, 0.0] * 3],
    ids=["reading is slow", "disturbed a few times"],
)
def test_a_slow_reading_is_not_work(delays_s: Iterable[float]) -> None:
    """Neither where reading always takes long, nor where the process is preempted meanwhile."""
    recorded(square("forward", reading(delays_s)))


class _Blocks(np.ndarray):
    """An array in blocks, which reading undoes in nine tenths of the time of a call."""


class _Blocked(FakeFramework):
    def read_element(self, array: Any) -> Any:
        self.clock.spend(0.9 * _S if isinstance(array, _Blocks) else 0.0)
        return self.to_numpy(array)


@pytest.mark.parametrize("alike", [True, False])
@pytest.mark.parametrize("waits", [True, False])
def test_a_layout_that_is_undone_is_no_work(alike: bool, waits: bool) -> None:
    """Where reading a copy undoes the same layout."""
    framework: Any = _Blocked(asynchronous=True)
    framework.copy_in_layout = lambda array: array if alike else None
    framework.waiter = lambda _: framework.clock.wait if waits else None
    case = case_of(cell(operation(lambda x: (2.0 * x).view(_Blocks))), framework)
    recorded(case) if alike and waits else fails(case, UnfinishedWork, "does not wait")


class _Fresh(np.ndarray):
    """An array that is read for the first time."""


class _SlowAtFirst(FakeFramework):
    """Calls take 1 ms, and reading an array 0.2 ms, but more for the first time."""

    def __init__(self, first_s: float) -> None:
        super().__init__(asynchronous=True, work_s=2.0**-10)
        self._first_s = first_s

    def read_element(self, array: Any) -> Any:
        self.clock.spend(self._first_s if isinstance(array, _Fresh) else 2e-4)
        return self.to_numpy(array)


@pytest.mark.parametrize(("first_s", "is_work"), [(3.9e-4, False), (5e-4, True)])
def test_first_readings_take_longer_by_array(first_s: float, is_work: bool) -> None:
    """They may take as much again as later ones, and 0.2 ms at most for each array."""
    work = operation(
        lambda x: tuple((2.0 * x).view(_Fresh) for _ in range(3)),
        reference=lambda x: (2.0 * x,) * 3,
    )
    case = case_of(cell(work), _SlowAtFirst(first_s))
    fails(case, UnfinishedWork, "does not wait") if is_work else recorded(case)


def test_one_long_reading_of_what_is_there_hides_no_work() -> None:
    class Disturbed(NEVER_WAITS):  # type: ignore[misc,valid-type]
        delays_s = iter([8.0])

        def read_element(self, array: Any) -> Any:
            if self.clock.idle_s <= self.clock.now_s:
                self.clock.spend(next(self.delays_s, 0.0))
            return self.to_numpy(array)

    fails(square("forward", Disturbed()), UnfinishedWork, "does not wait")


def test_one_long_call_hides_no_work() -> None:
    delays_s, framework = iter([0.0] * 11 + [0.09]), NEVER_WAITS()

    def value(x: Any) -> Any:
        framework.clock.spend(next(delays_s, 0.0))
        return 2.0 * x

    fails(case_of(cell(operation(value)), framework), UnfinishedWork, "does not wait")


def test_a_waiter_may_take_a_while() -> None:
    """Waiting by way of a small computation costs something each time, and is no work of a call."""

    slow = variant(waiter=lambda by, _: lambda: (by.clock.wait(), by.clock.spend(2.0**-13)))
    recorded(case_of(cell(), slow(work_s=2.0**-10)))


class _Slower(FakeFramework):
    """Takes longer where inputs have changed: by ``more_s``, for the first ``slow`` such calls."""

    slow = 1_000
    more_s = 2.0**-4

    def forward(self, implementation: Any, inputs: Any, execution: str) -> Any:
        return self._slower(super().forward(implementation, inputs, execution), inputs)

    def backward(self, implementation: Any, inputs: Any, *arguments: Any) -> Any:
        return self._slower(super().backward(implementation, inputs, *arguments), inputs)

    def _slower(self, run: Callable[[], Any], inputs: Any) -> Callable[[], Any]:
        seen = np.array(inputs[0])

        def call() -> Any:
            if not np.array_equal(seen, inputs[0]) and self.slow:
                self.slow -= 1
                self.clock.spend(self.more_s)
            seen[...] = inputs[0]
            return run()

        return call


#: Work of half a millisecond.
_SHORT = {"work_s": 2.0**-12, "dispatch_s": 2.0**-12}


@both_directions
def test_right_results_that_are_kept(direction: str) -> None:
    message = "^calls took 63 ms at least on new data, 488 us when they were repeated on the first,"
    case = case_of(cell(direction=direction), _Slower(**_SHORT))
    fails(case, SkippedWork, message)


def test_a_later_launch_of_a_comparison_is_not_examined_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Kept results have failed in the first one; values are verified in each. A few are, too."""
    monkeypatch.setattr(timing, "IS_EXAMINED", True)
    monkeypatch.setattr(timing, "_EXAMINED_AGAIN", 1)
    fails(case_of(cell(), _Slower(**_SHORT)), SkippedWork)
    monkeypatch.setattr(timing, "_EXAMINED_AGAIN", 10**9)
    recorded(case_of(cell(), _Slower(**_SHORT)))
    fails(case_of(cell(operation(lambda x: 1.5 * x)), _Slower(**_SHORT)), WrongResult)


def test_code_that_says_that_it_was_examined_is_examined(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(EXAMINED_VARIABLE, "1")
    fails(case_of(cell(), _Slower(**_SHORT)), SkippedWork)


class _Hot(FakeFramework):
    """Does nothing once it was called on the same inputs for so often."""

    def forward(self, implementation: Any, inputs: Any, execution: str) -> Any:
        run, seen, calls = super().forward(implementation, inputs, execution), None, 0

        def call() -> Any:
            nonlocal seen, calls
            calls = calls + 1 if np.array_equal(seen, inputs[0]) else 0
            seen = np.array(inputs[0])
            self.clock.spend(2.0**-10 if calls < 30 else 0.0)
            return run()

        return call


def test_results_that_are_kept_once_they_were_asked_for_often() -> None:
    """Calls are repeated more and more often as long as new data take longer."""
    work = {"work_s": 2.0**-20, "dispatch_s": 2.0**-20}
    fails(case_of(cell(), _Hot(**work)), SkippedWork, "^calls took 9.. us at least on new data")


class _PutOff(FakeFramework):
    """Has work done in time unless nobody has read so many results in a row."""

    ignored = 1

    def forward(self, implementation: Any, inputs: Any, execution: str) -> Any:
        run, self.unread, self.late_s = super().forward(implementation, inputs, execution), 0, 0.0

        def call() -> Any:
            is_late = self.unread >= self.ignored
            self.unread += 1
            self.late_s = 2.0**-4 if is_late else 0.0
            self.clock.spend(0.0 if is_late else 2.0**-4)
            return run()

        return call

    def read_element(self, array: Any) -> Any:
        self.clock.spend(self.late_s)
        self.unread, self.late_s = 0, 0.0
        return self.to_numpy(array)


@pytest.mark.parametrize("ignored", [1, 3])
def test_work_that_is_put_off_where_nobody_reads_results(ignored: int) -> None:
    """Such as in rounds, and in calls before those whose results are read."""
    framework = _PutOff(work_s=2.0**-20, dispatch_s=2.0**-20)
    framework.ignored = ignored
    fails(case_of(cell(), framework), UnfinishedWork, "only where its result is read")


@pytest.mark.parametrize("waits", [True, False])
def test_updates_that_nobody_waits_for(waits: bool) -> None:
    """They are what steps change; their losses are there before."""
    hand = HandClock()
    clock = Clock(hand, hand.wait if waits else None)

    def read() -> None:
        hand.wait()
        hand.spend(2.0**-10)

    check = partial(timing.check_settled, read, partial(hand.enqueue, 2.0**-6), clock, 2.0**-6)
    if waits:
        check()
        return
    with pytest.raises(UnfinishedWork, match="before what they change is there"):
        check()


class _Keeping(Immutable):
    """Takes longer on data that it has not seen."""

    def forward(self, *arguments: Any) -> Any:
        run, known = super().forward(*arguments), set()

        def call(*arrays: Any) -> Any:
            self.clock.spend(0.0 if arrays[0].tobytes() in known else 2.0**-4)
            known.add(arrays[0].tobytes())
            return run.func(*arrays)

        return partial(call, *run.args)


def test_right_results_that_are_kept_of_all_sets_of_operands() -> None:
    """They are data that come again: calls on others take longer than timed ones did."""
    case = case_of(cell(operation(branching=True)), _Keeping(**_SHORT))
    fails(case, SkippedWork, "^calls took 63 ms at least on new data, .* when they were timed, so")


@both_directions
@pytest.mark.parametrize("slow", [1, 3, 4])
def test_some_calls_take_long_on_a_busy_machine(direction: str, slow: int) -> None:
    """One of ten that does not shows that the work takes no longer."""
    framework = _Slower(**_SHORT)
    framework.slow = slow
    recorded(case_of(cell(direction=direction), framework))


def test_memory_is_cold_where_inputs_have_just_changed() -> None:
    """Some microseconds more are no work that was skipped."""
    framework = _Slower(work_s=2.0**-16, dispatch_s=2.0**-16)
    framework.more_s = 2.0**-16
    recorded(case_of(cell(), framework))


def test_nothing_is_compared_where_nothing_was_timed() -> None:
    case_of(cell(), _Slower(), disabled=True).measure()


_LIMITS = Limits({"float32": 1e9}, 1e10, {"float32": "2 CPUs", "bytes": "2 CPUs"})


def _facts(**changes: Any) -> CaseFacts:
    """A billion operations on ten billion bytes in a second, which is just possible."""
    possible = CaseFacts.unchecked(
        {"dtype": "float32", "flops": 1e9, "bytes": 1e10, "completion_s": 1.0}
    )
    return possible | CaseFacts.unchecked({"result_is_view": False, **changes})


def test_what_is_possible_is_recorded_with_its_limits() -> None:
    held = timing.check_rates(_facts(), _LIMITS)
    assert dict(held) == {"limit_flops_per_s": 1e9, "limit_bytes_per_s": 1e10}


@tabled
def test_what_is_impossible_is_refused(changes: dict[str, float], message: str) -> None:
    with pytest.raises(ImpossibleRate, match=re.escape(f"{message} are possible here (2 CPUs)")):
        timing.check_rates(_facts(**changes), _LIMITS)


@tabled
def test_where_nothing_is_known_nothing_is_claimed(
    changes: dict[str, Any], recorded_limits: dict[str, float], has_limits: bool
) -> None:
    limits = _LIMITS if has_limits else Limits()
    assert dict(timing.check_rates(_facts(**changes), limits)) == recorded_limits


def test_products_in_tf32_have_a_limit_of_their_own() -> None:
    limits = replace(_LIMITS, flops_per_s={"float32": 1e9, "tf32": 8e9})
    fast = {"flops": 8e9, "toggles": {"tf32": "on"}}
    assert timing.check_rates(_facts(**fast), limits).limit_flops_per_s == 8e9
    with pytest.raises(ImpossibleRate):
        timing.check_rates(_facts(**{**fast, "toggles": {"tf32": "off"}}), limits)


@pytest.mark.parametrize("limit_flops_per_s", [1.9e9, 2.1e9], ids=["too fast", "possible"])
def test_a_case_that_is_too_fast_has_no_record(limit_flops_per_s: float) -> None:
    workload = operation(cost=lambda _: Cost(flops=2e9 * _S, elements=0.0))
    case = case_of(cell(workload), FakeFramework())
    case._limits = replace(_LIMITS, flops_per_s={"float32": limit_flops_per_s})
    if limit_flops_per_s < 2e9:
        fails(case, ImpossibleRate, "are possible here")
    else:
        assert recorded(case)["limit_flops_per_s"] == limit_flops_per_s
