"""Work that remains when a call is over for the clock is noticed when its result is read."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from fwbench.errors import (
    UnfinishedWork,
)
from fwbench.testing import FakeFramework
from fwbench.workloads import from_numpy
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
