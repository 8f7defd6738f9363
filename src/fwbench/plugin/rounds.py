"""Rounds by pytest-benchmark's fixture, and the rule that ends them.

This is a part of :mod:`fwbench.plugin.host`; no other module touches pytest-benchmark's objects.
"""

from __future__ import annotations

import gc
from collections.abc import Callable
from functools import partial
from typing import Any

from pytest_benchmark.fixture import BenchmarkFixture
from pytest_benchmark.stats import Metadata

from fwbench.measure.gpu_watch import GpuWatch
from fwbench.measure.stopping import Stopping

#: A round of one call.
_ONCE = range(1)


def stop_when_precise(
    fixture: BenchmarkFixture, precision: float, watch: GpuWatch | None = None
) -> Stopping | None:
    """Let a rule end the rounds of a fixture, unless ``--benchmark-precision`` asks for another.

    That one is of the mean, and of rounds that are normally distributed.

    Args:
        fixture: has not made any.
        precision: the width of the median's interval that is narrow enough, as a share of the
            median; 0 for no rule.
        watch: sets rounds aside that do not count; None where all do.

    Returns:
        The rule; None where there is none, and where nothing is timed.
    """
    if not precision or fixture.disabled or fixture._precision is not None:  # noqa: SLF001
        return None
    stopping = Stopping(precision, fixture._max_time, fixture._min_rounds)  # noqa: SLF001

    def make_rounds(runner: Callable[..., Any], calls: range, stats: Metadata, _: int) -> None:
        stats.options |= {"precision": None, "confidence": None}  # those of the other rule
        is_over = False
        while not is_over:
            duration_s = runner(calls)
            for counted_s in (duration_s,) if watch is None else watch.sift(duration_s):
                stats.update(counted_s)
                is_over = stopping.add(counted_s) or is_over

    fixture._precision = precision  # noqa: SLF001 (has it ask for rounds until they are enough)
    fixture._run_until_precise = make_rounds  # noqa: SLF001
    return stopping


class Rounds:
    """Makes rounds as the fixture does, and keeps what the last call of the latest returned.

    Every result but the last is gone when the next call begins, as in the fixture's own loop, so
    that a call finds the memory that its predecessor has left; the last of a round is gone when the
    next round has begun. So every round has the cost of as many results.

    Attributes:
        calls: made so far, those included that are in no statistics.
    """

    def __init__(self, fixture: BenchmarkFixture) -> None:
        self._fixture = fixture
        self._last: list[Any] = []
        self.calls = 0

    def take_last(self) -> Any:
        """Result of the last timed call, which is not stored any longer."""
        return self._last.pop()

    def make_runner(
        self, function: Callable[..., Any], args: Any, kwargs: Any
    ) -> Callable[..., Any]:
        """In place of the fixture's own, with its arguments; those of the call are bound to it.

        Returns:
            ``runner(loops_range)``, which returns seconds; with None, of one call, and its result.
        """
        call = partial(function, *args, **kwargs) if args or kwargs else function
        timer, last = self._fixture._timer, self._last  # noqa: SLF001

        def runner(loops_range: range | None) -> Any:
            calls = loops_range or _ONCE
            result = last.pop() if last else None
            collects = gc.isenabled()
            if self._fixture._disable_gc:  # noqa: SLF001
                gc.disable()
            try:
                start = timer()
                for _ in calls:
                    result = None  # before the call, which then finds its memory free
                    result = call()
                end = timer()
            finally:
                if collects:
                    gc.enable()
            last.append(result)
            self.calls += len(calls)
            return end - start if loops_range else (end - start, result)

        return runner
