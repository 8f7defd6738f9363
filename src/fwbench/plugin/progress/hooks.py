"""What a session shows of its progress: which case, how far it is, how long it will still take.

The line is drawn while this process waits for a worker, and is gone before anything else happens
here. So nobody writes over it, and it costs what is measured nothing but a wait that ends five
times a second.
"""

from __future__ import annotations

import time
from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import pytest

from fwbench.grid import Cell
from fwbench.plugin.host import BenchmarkSession
from fwbench.plugin.options import from_config
from fwbench.plugin.progress.display import Display
from fwbench.plugin.progress.estimate import Estimate
from fwbench.plugin.progress.status import Status, whole
from fwbench.plugin.session import CELL, is_measured
from fwbench.records.units import count

#: In pytest's cache: seconds by node id, of the latest run of each case.
_DURATIONS = "fwbench/durations"

#: What ends a case before its time: Ctrl-C, ``pytest.exit``, and either of them between reports.
_INTERRUPTS = (KeyboardInterrupt, pytest.exit.Exception, GeneratorExit)


class Progress:
    """The hooks that show how far things are.

    Args:
        config: of the session; its terminal is written to.
    """

    def __init__(self, config: pytest.Config) -> None:
        self._config = config
        self._display = Display(config, self._begin_again)
        self._estimate = Estimate({})
        self._cases: dict[str, Cell] = {}
        self._number, self._total = 0, 0
        self._launch = ""
        self._launches: int | None = None
        self._running: pytest.Item | None = None
        self._start_s = 0.0
        self._epoch: Mapping[str, Any] = {}
        self._doing, self._doing_start_s = "", 0.0

    # What others tell it

    def tick(self, doing: str) -> None:
        """Show what is being waited for: a case, or the start of a worker."""
        if doing != self._doing:
            self._doing, self._doing_start_s = doing, time.monotonic()
        self._display.show(self._status())

    def clear(self) -> None:
        """Show nothing: something else is about to happen."""
        self._display.clear()

    @contextmanager
    def case(self, item: pytest.Item) -> Iterator[None]:
        """Count a case, and keep how long it takes, unless it is interrupted."""
        self._running, self._start_s, self._epoch = item, time.monotonic(), {}
        self._doing = ""
        self._number += 1
        finished = True  # a case that fails has taken its time, too
        try:
            yield
        except _INTERRUPTS:
            finished = False
            raise
        finally:
            self.clear()
            if finished:
                self._estimate.finish(item.nodeid, time.monotonic() - self._start_s)
            self._running = None

    # Hooks

    @pytest.hookimpl(wrapper=True)
    def pytest_runtestloop(self, session: pytest.Session) -> Generator[None, object, object]:
        """Estimate what the cases take; afterwards keep what they took."""
        measured = filter(is_measured, session.items)
        self._cases = {item.nodeid: item.stash[CELL] for item in measured}
        self._total = len(self._cases)
        cache = getattr(self._config, "cache", None)
        recorded_s = _durations(cache)
        timed = not BenchmarkSession(self._config).disabled
        self._estimate = Estimate({**self._limits_s(), **recorded_s} if timed else {})
        self._estimate.plan(dict.fromkeys(self._cases, 1))
        try:
            return (yield)
        finally:
            if cache is not None and timed and self._estimate.took_s:
                cache.set(_DURATIONS, {**recorded_s, **self._estimate.took_s})

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_call(self, item: pytest.Item) -> Generator[None]:
        """Show a case that is measured in this process, as it begins and with its epochs."""
        if item.nodeid not in self._cases:
            return (yield)
        with self.case(item):
            self.tick("")
            return (yield)

    def pytest_fwbench_launch(
        self, launch: int, launches: int | None, nodeids: Sequence[str]
    ) -> None:
        """Begin to count anew; logs say which launch it is."""
        self._launch = f"launch {launch + 1}" + ("" if launches is None else f" of {launches}")
        self._launches = launches
        self._number, self._total = 0, len(nodeids)
        # Who does not know how many there will be knows of this one.
        times = 1 if launches is None else launches - launch
        self._estimate.plan(dict.fromkeys(nodeids, times))
        self._display.announce(f"{self._launch}: {count(len(nodeids), 'case')}")

    def pytest_fwbench_epoch(self, nodeid: str, epoch: Mapping[str, Any]) -> None:
        """Show epoch, loss and rate."""
        self._epoch = epoch
        self.tick("")

    # What it says

    def _limits_s(self) -> dict[str, float | None]:
        """How long each case takes by its limits; training loops have none."""
        limit_s = from_config(self._config).warmup_s + BenchmarkSession(self._config).max_time_s
        return {nodeid: None if c.schedule else limit_s for nodeid, c in self._cases.items()}

    def _status(self) -> Status:
        now_s = time.monotonic()
        item = self._running
        if item is None:
            return Status("", self._doing, whole(now_s - self._doing_start_s))
        elapsed_s = now_s - self._start_s
        left = self._estimate.left(item.nodeid, elapsed_s, _share(self._epoch))
        if left and self._launch and self._launches is None:
            left += " in it"  # the launch: nobody knows how many will follow
        case = f"case {self._number} of {self._total}"
        launch = self._launch if self._launches != 1 else ""
        head = ", ".join(filter(None, (launch, case, left)))
        if self._doing:
            return Status(head, self._doing, whole(now_s - self._doing_start_s))
        tail = _of_epoch(self._epoch) if self._epoch else whole(elapsed_s)
        return Status(head, item.nodeid.partition("[")[2].rstrip("]") or item.nodeid, tail)

    def _begin_again(self) -> None:
        """Let pytest begin its line again; in launches, it has not begun any."""
        item = self._running
        reporter: Any = self._config.pluginmanager.get_plugin("terminalreporter")
        if item is not None and not self._launch:
            reporter.pytest_runtest_logstart(nodeid=item.nodeid, location=item.location)


def _durations(cache: Any) -> dict[str, float]:
    """The seconds of earlier runs by node id; none if somebody else has written them."""
    kept = cache.get(_DURATIONS, {}) if cache is not None else {}
    if not isinstance(kept, dict):
        return {}
    return {case: took_s for case, took_s in kept.items() if isinstance(took_s, float)}


def _share(epoch: Mapping[str, Any]) -> float:
    """How much of a training loop is done; 0 before the first epoch's end."""
    if not epoch:
        return 0.0
    done: int = (epoch["repetition"] - 1) * epoch["epochs"] + epoch["epoch"]
    return done / (epoch["repetitions"] * epoch["epochs"])


def _of_epoch(epoch: Mapping[str, Any]) -> str:
    """What a training loop has reached."""
    total = epoch["repetitions"] * epoch["epochs"]
    return (
        f"epoch {round(_share(epoch) * total)} of {total}, loss {epoch['train_loss']:.4f}, "
        f"{epoch['rate']:.0f} {epoch['unit']}/s"
    )
