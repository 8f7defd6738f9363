"""Work that remains when a call is over for the clock is noticed when its result is read."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from fwbench.cases import timing
from fwbench.errors import (
    ImpossibleRate,
    SkippedWork,
    UnfinishedWork,
)
from fwbench.measure.limits import Limits
from fwbench.plugin import host
from fwbench.records.facts import CaseFacts
from fwbench.testing import FakeFramework
from fwbench.workloads import from_numpy
from fwbench.workloads.workload import Cost
from support.fakes import case_of, cell, fails, operation, square

both_directions = pytest.mark.parametrize("direction", ["forward", "backward"])


class NeverWaits(FakeFramework):
    """Has a waiter that returns at once."""

    def waiter(self, device: str) -> Callable[[], Any]:
        return lambda: None


class SaysItIsDone(FakeFramework):
    """Is asynchronous, and says that there is nothing to wait for."""

    def waiter(self, device: str) -> None:
        return None


class Lazy(FakeFramework):
    """Computes a result when it is read."""

    def waiter(self, device: str) -> None:
        return None

    def read_element(self, array: Any) -> Any:
        self.clock.spend(0.0 if array.flags.owndata else self.work_s)
        return array

    def _cost(self) -> None:
        self.clock.spend(self.dispatch_s)

    def _rounded(self, result: Any) -> Any:
        return np.asarray(result).view()


@both_directions
@pytest.mark.parametrize("framework", [NeverWaits, SaysItIsDone, Lazy])
def test_work_that_remains_when_the_clock_stops(
    framework: type[FakeFramework], direction: str
) -> None:
    """Reading the result back takes longer than reading alone: the case fails before its rounds."""
    case = square(direction, framework())
    said = "^calls return before their work is done, and the framework's `waiter` does not wait: "
    fails(case, UnfinishedWork, said)
    assert case.benchmark.stats is None


def test_a_creation_that_is_not_waited_for() -> None:
    """The same of arrays from host data."""
    fails(case_of(cell(from_numpy), NeverWaits()), UnfinishedWork, "does not wait")


def test_a_slow_reading_is_not_work() -> None:
    """What reading alone takes is no sign of work that remains."""

    class Slow(FakeFramework):
        def read_element(self, array: Any) -> Any:
            self.clock.spend(8.0)
            return self.to_numpy(array)

    case = square("forward", Slow())
    case.measure()
    assert case.benchmark.stats is not None


@pytest.mark.parametrize("disturbed", ["call", "reading of what is there"])
def test_a_disturbance_hides_no_work(disturbed: str) -> None:
    """One long call, or one long reading of an array that was there, excuses nothing."""

    class Disturbed(NeverWaits):
        placed_reading = iter([8.0])

        def read_element(self, array: Any) -> Any:
            is_there = self.clock.idle_s <= self.clock.now_s
            if is_there and disturbed != "call":
                self.clock.spend(next(self.placed_reading, 0.0))
            return self.to_numpy(array)

    slow = iter([0.0] * 11 + [0.09])  # in the first call after the warm-up, if it is disturbed
    framework = Disturbed()

    def value(x: Any) -> Any:
        framework.clock.spend(next(slow, 0.0) if disturbed == "call" else 0.0)
        return 2.0 * x

    fails(case_of(cell(operation(value)), framework), UnfinishedWork, "does not wait")


def test_a_disturbance_is_not_work() -> None:
    """Preempted while it reads, once or twice or thrice, the case is measured all the same."""

    class Disturbed(FakeFramework):
        disturbances = iter([1.0, 0.0, 0.0, 0.0] * 3)

        def read_element(self, array: Any) -> Any:
            self.clock.spend(next(self.disturbances, 0.0))
            return self.to_numpy(array)

    case = square("forward", Disturbed())
    case.measure()
    assert case.benchmark.stats is not None


# Waiting for nothing


_WORK_S = 2.0**-4


class _WorksWhileWaiting(FakeFramework):
    """Does nothing in calls, and a call's work when it is waited for a second time after one."""

    def forward(self, *arguments: Any) -> Any:
        run = super().forward(*arguments)

        def call() -> Any:
            self.waits = 0
            return run()

        return call

    def waiter(self, device: str) -> Callable[[], Any]:
        def wait() -> None:
            self.waits = getattr(self, "waits", 0) + 1
            if self.waits == 2:
                self.clock.spend(_WORK_S)

        return wait


def test_work_that_moved_to_where_the_clock_waits() -> None:
    """The case fails before anything is timed; the message names both times."""
    case = case_of(cell(operation()), _WorksWhileWaiting(work_s=0.0))
    said = "^work is done while fwbench waits .* took at least 62.5 ms, and a call 977 us"
    with pytest.raises(UnfinishedWork, match=said):
        case.measure()
    assert case.benchmark.extra_info == {}
    assert host.record(case.benchmark) is None


def test_a_waiter_may_take_a_while() -> None:
    """Waiting by way of a small computation costs something each time, and is no work of a call."""

    class Slow(FakeFramework):
        def waiter(self, device: str) -> Callable[[], Any]:
            def wait() -> None:
                self.clock.wait()
                self.clock.spend(2.0**-13)

            return wait

    case = case_of(cell(operation()), Slow(work_s=2.0**-10))
    case.measure()
    assert host.record(case.benchmark) is not None


# Changed inputs


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


def _case(framework: FakeFramework, direction: str, **settings: Any) -> Any:
    return case_of(cell(operation(), direction=direction), framework, **settings)


@both_directions
def test_right_results_that_are_kept(direction: str) -> None:
    """The case fails, and the message names both times; nothing is recorded."""
    case = _case(_Slower(work_s=2.0**-12, dispatch_s=2.0**-12), direction)
    said = "^calls on changed inputs took 63 ms at least, and most others 488 us at most, so"
    with pytest.raises(SkippedWork, match=said):
        case.measure()
    assert case.benchmark.extra_info == {}
    assert host.record(case.benchmark) is None


def test_every_single_call_takes_long_on_a_busy_machine() -> None:
    """Those on inputs that have not changed do so, too: nothing is kept."""

    class Busy(FakeFramework):
        def forward(self, *arguments: Any) -> Any:
            run = super().forward(*arguments)

            def call() -> Any:
                if self.single:
                    self.clock.spend(2.0**-4)
                return run()

            return call

        single = False

        def write(self, array: Any, source: Any) -> bool:
            self.single = True
            return super().write(array, source)

    case = _case(Busy(work_s=2.0**-12, dispatch_s=2.0**-12), "forward")
    case.measure()
    assert host.record(case.benchmark) is not None


@both_directions
@pytest.mark.parametrize("slow", [1, 3, 4])
def test_some_calls_take_long_on_a_busy_machine(direction: str, slow: int) -> None:
    """One of ten that does not shows that the work takes no longer."""
    framework = _Slower(work_s=2.0**-12, dispatch_s=2.0**-12)
    framework.slow = slow
    case = _case(framework, direction)
    case.measure()
    assert host.record(case.benchmark) is not None


def test_work_of_less_than_a_millisecond_may_take_longer() -> None:
    """Memory is cold and threads sleep when inputs have just changed."""
    framework = _Slower(work_s=2.0**-14, dispatch_s=2.0**-14)
    framework.more_s = 2.0**-10
    case = _case(framework, "forward")
    case.measure()
    assert host.record(case.benchmark) is not None


def test_nothing_is_compared_where_nothing_was_timed() -> None:
    """With --benchmark-disable results are verified, and times are not."""
    case = _case(_Slower(), "forward", disabled=True)
    case.measure()
    assert case.benchmark.stats is None


# Rates


#: A call of the fake framework takes 65 / 1024 s.
_S = 65 / 1024

_LIMITS = Limits({"float32": 1e9}, 1e10, {"float32": "2 CPUs", "bytes": "2 CPUs"})


def _facts(**changes: Any) -> CaseFacts:
    """A billion operations on ten billion bytes in a second, which is just possible."""
    possible = CaseFacts.unchecked(
        {"dtype": "float32", "flops": 1e9, "bytes": 1e10, "completion_s": 1.0}
    )
    return possible | CaseFacts.unchecked({"result_is_view": False, **changes})


def test_what_is_possible_is_recorded_with_its_limits() -> None:
    """Both, where both are known."""
    held = timing.check_rates(_facts(), _LIMITS)
    assert dict(held) == {"limit_flops_per_s": 1e9, "limit_bytes_per_s": 1e10}


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        (
            {"flops": 6.253e12},
            "6,253 GFLOP in 1 s are 6,253 GFLOP/s, and no more than 1 are possible here (2 CPUs)",
        ),
        (
            {"bytes": 2e10},
            "20 GB in 1 s are 20 GB/s, and no more than 10 are possible here (2 CPUs)",
        ),
    ],
)
def test_what_is_impossible_is_refused(changes: dict[str, float], said: str) -> None:
    """The message has the work, the time, the rate, the limit and where it is from."""
    with pytest.raises(ImpossibleRate, match=re.escape(said)):
        timing.check_rates(_facts(**changes), _LIMITS)


def test_tf32_is_held_against_products_in_tf32() -> None:
    """They are many times as fast as those of float32, and that is no mistake."""
    limits = replace(_LIMITS, flops_per_s={"float32": 1e9, "tf32": 8e9})
    fast = {"flops": 8e9, "toggles": {"tf32": "on"}}
    assert timing.check_rates(_facts(**fast), limits).limit_flops_per_s == 8e9
    with pytest.raises(ImpossibleRate):
        timing.check_rates(_facts(**{**fast, "toggles": {"tf32": "off"}}), limits)


@pytest.mark.parametrize("is_view", [True, None])
def test_views_move_no_bytes(is_view: bool | None) -> None:
    """Nor does what may be one."""
    held = timing.check_rates(_facts(bytes=1e15, result_is_view=is_view), _LIMITS)
    assert dict(held) == {"limit_flops_per_s": 1e9}


@pytest.mark.parametrize(
    ("changes", "limits"),
    [
        ({"flops": None, "bytes": None}, _LIMITS),
        ({"flops": 0.0, "bytes": 0.0}, _LIMITS),
        ({"dtype": "float16", "flops": 1e20, "bytes": None}, _LIMITS),
        ({"flops": 1e20, "bytes": 1e20}, Limits()),
    ],
    ids=["no cost is declared", "no work is declared", "another dtype", "no limit is known"],
)
def test_where_nothing_is_known_nothing_is_claimed(changes: dict[str, Any], limits: Limits) -> None:
    """Neither a failure nor a fact."""
    assert dict(timing.check_rates(_facts(**changes), limits)) == {}


def test_a_case_that_is_too_fast_has_no_record() -> None:
    """Its rounds are not kept, and the session goes on."""
    of = operation(cost=lambda _: Cost(flops=2e9 * _S, elements=0.0))
    case = case_of(cell(of), FakeFramework())
    case._limits = replace(_LIMITS, flops_per_s={"float32": 1.9e9})
    with pytest.raises(ImpossibleRate):
        case.measure()
    assert case.benchmark.extra_info == {}
    assert host.record(case.benchmark) is None


def test_a_case_that_is_fast_enough_has_one() -> None:
    """With the limit that it was held against."""
    of = operation(cost=lambda _: Cost(flops=2e9 * _S, elements=0.0))
    case = case_of(cell(of), FakeFramework())
    case._limits = replace(_LIMITS, flops_per_s={"float32": 2.1e9})
    case.measure()
    assert case.benchmark.extra_info["fwbench"]["limit_flops_per_s"] == 2.1e9
