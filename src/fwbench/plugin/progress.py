"""Progress of a session: the case, its stage, and the remaining time.

The line is drawn while this process waits for a worker, and is gone before anything else happens
here. So nothing writes over it, and it costs what is measured nothing but a wait that ends five
times a second.
"""

import os
import time
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path
from typing import Any

import pytest

from fwbench.plugin.host import BenchmarkSession
from fwbench.plugin.lines import (
    Line,
    LogLines,
    Status,
    StatusFile,
    TerminalLine,
    draws_in_place,
    whole,
)
from fwbench.plugin.options import from_config
from fwbench.plugin.session import CELL, cached, is_measured
from fwbench.processes.session import STATUS_VARIABLE
from fwbench.records.units import count
from fwbench.workers.inventory import Watch
from fwbench.workloads.grid import Cell

#: In pytest's cache: seconds by node id, of the latest run of each case.
_DURATIONS = "fwbench/durations"

#: What ends a case before its time: Ctrl-C, ``pytest.exit``, and either of them between reports.
_INTERRUPTS = (KeyboardInterrupt, pytest.exit.Exception, GeneratorExit)


class Progress(Watch):
    """The hooks that show how far things are."""

    def __init__(self, config: pytest.Config) -> None:
        self._config = config
        self._display = Display(config, self._begin_again)
        self._estimate = Estimate({})
        self._cases: dict[str, Cell] = {}
        self._number, self._total = 0, 0
        self._launch = ""
        self._launches: int | None = 0
        self._running: pytest.Item | None = None
        self._start_s = 0.0
        self._epoch: Mapping[str, Any] = {}
        self._doing, self._doing_start_s = "", 0.0
        self._ahead: tuple[str, pytest.Item | None] = "", None

    # What others tell it

    def tick(self, doing: str) -> None:
        """Show what is being waited for: a case, or the start of a worker."""
        if doing != self._doing:
            self._doing, self._doing_start_s = doing, time.monotonic()
        self._display.show(self._status())

    def clear(self) -> None:
        """Show nothing: something else is about to happen."""
        self._display.clear()

    def begin(self, part: str, nodeids: Sequence[str], times: int = 1) -> None:
        """Begin to count again, in a part of the session."""
        self._launch = part
        self._number, self._total = 0, len(nodeids)
        self._estimate.plan(dict.fromkeys(nodeids, times))

    @contextmanager
    def ahead(self, part: str, item: pytest.Item) -> Iterator[None]:
        """Show what is done for a case before any is measured."""
        self._ahead, self._doing, self._doing_start_s = (part, item), "", time.monotonic()
        try:
            yield
        finally:
            self.clear()
            self._ahead = "", None

    def announce(self, text: str) -> None:
        """Say what logs are to have."""
        self._display.announce(text)

    @contextmanager
    def case(self, item: pytest.Item, *others: pytest.Item) -> Iterator[None]:
        """Count cases that are measured together; keep how long they take if that ends."""
        self._running, self._start_s, self._epoch = item, time.monotonic(), {}
        self._doing = ""
        self._number += 1 + len(others)
        finished = True  # a case that fails has taken its time, too
        try:
            yield
        except _INTERRUPTS:
            finished = False
            raise
        finally:
            self.clear()
            took_s = (time.monotonic() - self._start_s) / (1 + len(others))
            for each in (item, *others) if finished else ():
                self._estimate.finish(each.nodeid, took_s)
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
        """Count the cases of a launch."""
        self._launches = launches
        # Who does not know how many there will be knows of this one.
        times = 1 if launches is None else launches - launch
        of_all = "" if launches is None else f" of {launches}"
        self.begin(f"launch {launch + 1}{of_all}", nodeids, times)
        self._display.announce(f"{self._launch}: {count(len(nodeids), 'case')}")

    def pytest_fwbench_epoch(self, nodeid: str, epoch: Mapping[str, Any]) -> None:
        """Show epoch, loss and rate."""
        self._epoch = epoch
        self.tick("")

    # What it says

    def _limits_s(self) -> dict[str, float | None]:
        """Time of each case by its limits; training loops have none."""
        limit_s = from_config(self._config).warmup_s + BenchmarkSession(self._config).max_time_s
        return {nodeid: None if c.schedule else limit_s for nodeid, c in self._cases.items()}

    def _status(self) -> Status:
        now_s = time.monotonic()
        item = self._running
        if item is None:
            part, ahead = self._ahead
            doing = self._doing or _name(ahead)
            return Status(part, doing, whole(now_s - self._doing_start_s))
        elapsed_s = now_s - self._start_s
        left = self._estimate.left(item.nodeid, elapsed_s, _share(self._epoch))
        if left and self._launch and self._launches is None:
            left += " in it"  # the launch: how many will follow is unknown
        case = f"case {self._number} of {self._total}"
        launch = self._launch if self._launches != 1 else ""
        head = ", ".join(filter(None, (launch, case, left)))
        if self._doing:
            return Status(head, self._doing, whole(now_s - self._doing_start_s))
        tail = _of_epoch(self._epoch) if self._epoch else whole(elapsed_s)
        return Status(head, _name(item), tail)

    def _begin_again(self) -> None:
        """Let pytest begin its line again; in launches, it has not begun any."""
        item = self._running
        reporter: Any = self._config.pluginmanager.get_plugin("terminalreporter")
        if item is not None and not self._launch:
            reporter.pytest_runtest_logstart(nodeid=item.nodeid, location=item.location)


def _name(item: pytest.Item | None) -> str:
    """A case id, or the node id of what has none."""
    return "" if item is None else item.nodeid.partition("[")[2].rstrip("]") or item.nodeid


def _durations(cache: Any) -> dict[str, float]:
    """The seconds of earlier runs by node id; none if somebody else has written them."""
    kept = cached(cache, _DURATIONS)
    return {case: took_s for case, took_s in kept.items() if isinstance(took_s, float)}


def _share(epoch: Mapping[str, Any]) -> float:
    """Share of a training loop that is done; 0 before the first epoch's end."""
    if not epoch:
        return 0.0
    done: int = (epoch["repetition"] - 1) * epoch["epochs"] + epoch["epoch"]
    return done / (epoch["repetitions"] * epoch["epochs"])


def _of_epoch(epoch: Mapping[str, Any]) -> str:
    """Stage of a training loop."""
    total = epoch["repetitions"] * epoch["epochs"]
    return (
        f"epoch {round(_share(epoch) * total)} of {total}, loss {epoch['train_loss']:.4f}, "
        f"{epoch['rate']:.0f} {epoch['unit']}/s"
    )


class Display:
    """The line of progress of a session.

    A terminal has it in place; a log (a pipe, CI, ``TERM=dumb``, ``-s``) a line a minute, and none
    with ``-q``. A session that another process has started tells that process.
    """

    def __init__(self, config: pytest.Config, begin_again: Callable[[], Any]) -> None:
        self._config = config
        self._begin_again = begin_again
        self._chosen: Line | None = None

    def show(self, status: Status) -> None:
        """Show what is being done."""
        if not self._at_edge():
            with self._uncaptured():
                self._line.show(status)

    def clear(self) -> None:
        """Show nothing: pytest or another plugin is about to write."""
        if self._chosen is not None:
            with self._uncaptured():
                self._chosen.clear()

    def announce(self, text: str) -> None:
        """Say what logs are to have, whenever it comes."""
        with self._uncaptured():
            self._line.announce(text)

    @property
    def _line(self) -> Line:
        if self._chosen is None:
            self._chosen = self._choice()
        return self._chosen

    def _choice(self) -> Line:
        file = os.environ.get(STATUS_VARIABLE)
        if file:
            return StatusFile(Path(file))
        reporter = self._reporter
        if reporter is None:
            return Line()
        stream = reporter._tw._file  # noqa: SLF001 (pytest offers no stream)
        # With -s workers write to the terminal themselves, whenever they like.
        if draws_in_place(stream, os.environ) and self._config.option.capture != "no":
            return TerminalLine(stream, below=True)
        return LogLines(self._log) if self._config.get_verbosity() >= 0 else Line()

    def _log(self, text: str) -> None:
        self._reporter.ensure_newline()
        self._reporter.write_line(f"fwbench: {text}")
        self._begin_again()

    @property
    def _reporter(self) -> Any:
        return self._config.pluginmanager.get_plugin("terminalreporter")

    def _at_edge(self) -> bool:
        """True if pytest's line has just filled the terminal: there the cursor cannot return to."""
        if self._reporter is None:
            return False
        writer = self._config.get_terminal_writer()
        width = writer.width_of_current_line
        return width > 0 and width % writer.fullwidth == 0

    def _uncaptured(self) -> AbstractContextManager[None]:
        """Context in which output reaches the terminal, also while pytest captures it."""
        capture = self._config.pluginmanager.get_plugin("capturemanager")
        return nullcontext() if capture is None else capture.global_and_fixture_disabled()


#: The times of this many finished cases correct the estimate of the others.
_ENOUGH = 3

#: A case that goes on for so much longer than was expected of it has no known end.
_LATE_S = 1.0


class Estimate:
    """The time that is left, while cases finish one after the other.

    What finished cases took, in proportion to what was expected of them, is expected of the others
    as well: a limit is seldom reached, and an earlier run may have had other settings.

    Args:
        expected_s: of each case, by its node id; None where nothing is known.
    """

    def __init__(self, expected_s: Mapping[str, float | None]) -> None:
        #: Of the cases that have finished, how long they took at last.
        self.took_s: dict[str, float] = {}
        self._expected_s = expected_s
        self._finished = 0
        self._finished_s = self._finished_expected_s = 0.0
        self.plan({})

    def plan(self, cases: Mapping[str, int]) -> None:
        """Set how often each case will still be measured."""
        expected = [(self._expected_s.get(case), number) for case, number in cases.items()]
        self._known_s = sum(number * seconds for seconds, number in expected if seconds)
        self._unknown = sum(number for seconds, number in expected if not seconds)

    def finish(self, case: str, took_s: float) -> None:
        """Note what a case took, once more."""
        self.took_s[case] = took_s
        expected_s = self._expected_s.get(case)
        if not expected_s:
            self._unknown -= 1
            return
        self._known_s -= expected_s
        self._finished += 1
        self._finished_s += took_s
        self._finished_expected_s += expected_s

    def left(self, running: str, elapsed_s: float, share: float = 0.0) -> str:
        """The time left, for people, with ``share`` known to be done; empty if nothing is known."""
        factor = self._factor()
        others_s, unknown = self._known_s, self._unknown
        expected_s = self._expected_s.get(running)
        if expected_s:
            others_s -= expected_s
        else:
            unknown -= 1
        running_s = elapsed_s / share if share else factor * (expected_s or 0.0)
        if expected_s and not share and elapsed_s > running_s + _LATE_S:
            return ", ".join(filter(None, ["longer than expected", _more_than(factor * others_s)]))
        left_s = factor * max(0.0, others_s) + max(0.0, running_s - elapsed_s)
        return _more_than(left_s) if unknown or not running_s else f"{whole(left_s)} left"

    def _factor(self) -> float:
        if self._finished < _ENOUGH:
            return 1.0
        return self._finished_s / self._finished_expected_s


def _more_than(left_s: float) -> str:
    """``more than 20 s left``; empty for less than a second, which says nothing."""
    return f"more than {whole(left_s)} left" if left_s >= 1 else ""
