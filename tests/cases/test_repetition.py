"""Calls on changed inputs take about as long as those that were timed; what skips work does not."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from fwbench.errors import SkippedWork
from fwbench.plugin import host
from fwbench.testing import FakeFramework
from support.fakes import case_of, cell, operation

both_directions = pytest.mark.parametrize("direction", ["forward", "backward"])


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
