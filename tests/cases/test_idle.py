"""Waiting for a device without work takes no time: what is done then is in no round."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from fwbench.errors import UnfinishedWork
from fwbench.plugin import host
from fwbench.testing import FakeFramework
from support.fakes import case_of, cell, operation

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
