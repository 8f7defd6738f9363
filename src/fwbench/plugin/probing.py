"""Runs cases that were timed once more, each in a process of its own, to find out other things.

What a profiler leaves behind in its process, and what memory was held before, then disturbs no
other case. In a session for profiles, whose times are not read, the worker that times a case also
profiles it.
"""

from __future__ import annotations

import functools
import math
import os
import tempfile
import time
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from fwbench.errors import FwbenchError, ProbeError, UsageError
from fwbench.frameworks import probes
from fwbench.options.options import Options
from fwbench.plugin.session import CELL
from fwbench.project import make_own_folder
from fwbench.records.facts import CaseFacts, Memory, Profile
from fwbench.workloads.grid import Cell
from fwbench.workloads.imports import Import
from fwbench.workloads.training import Checkpointing, Loading, Trains

if TYPE_CHECKING:
    from fwbench.cases.case import Case, Probe
    from fwbench.measure.clock import Clock

#: The kind of the message by which a worker sends what a probe has found.
FOUND = "probed"

#: How much of an error's text a gap has.
_REASON_CHARACTERS = 300


#: Runs a case in a worker that runs nothing else, with further variables; gives its messages.
RunAlone = Callable[[pytest.Item, Mapping[str, str]], Generator[list[Any]]]


class Probes:
    """The probes of a session, in the process that the user has started."""

    def __init__(self, options: Options, traces: Path, run_alone: RunAlone) -> None:
        self._options = options
        self._traces = traces
        self._run_alone = run_alone
        self._found: dict[str, Mapping[str, Any]] = {}

    def prepare(self) -> None:
        """Create the folder of traces, before anything is measured."""
        if not self._options.profile:
            return
        try:
            if self._options.traces is None:
                make_own_folder(self._traces)
            self._traces.mkdir(parents=True, exist_ok=True)
            with tempfile.TemporaryFile(dir=self._traces):
                pass
        except OSError as error:
            raise UsageError(
                f"traces of profiles cannot be written to {self._traces}: {error.strerror}; name "
                "another directory with fw_traces"
            ) from None

    def keep(self, item: pytest.Item, facts: Mapping[str, Any]) -> None:
        """Keep what a worker has found of a case whose record is still to come."""
        self._found[item.nodeid] = facts

    def complete(
        self, item: pytest.Item, reports: Iterable[pytest.TestReport]
    ) -> Iterator[pytest.TestReport]:
        """Reports of a case, with what probes have found in the one that has its record."""
        for report in reports:
            measured = getattr(report, "fwbench", None)
            if measured is not None:
                facts = measured["entry"]["extra_info"]["fwbench"]
                for probe in self._requested(item.stash[CELL]):
                    facts |= self._found.pop(item.nodeid, None) or self._probed(item, probe)
            yield report

    def _requested(self, cell: Cell) -> Iterator[str]:
        if isinstance(cell.workload, Import):  # another process does it: its record has the parts
            return
        if self._options.profile:
            yield probes.PROFILE
        if self._options.memory:
            yield probes.MEMORY
            if isinstance(cell.workload, Trains) and not isinstance(
                cell.workload, Loading | Checkpointing
            ):
                yield probes.FORWARD_MEMORY

    def _probed(self, item: pytest.Item, probe: str) -> Mapping[str, Any]:
        """Result of a probe, or the reason why there is none."""
        reason = "its worker ended without an answer"
        try:
            with closing(self._run_alone(item, {probes.VARIABLE: probe})) as messages:
                for kind, values in messages:
                    if kind == FOUND:
                        return values
                    if kind == "report" and values["outcome"] == "failed":
                        reason = _reason(values["longrepr"])
        except FwbenchError as error:
            reason = str(error)
        return GAPS[probe](reason)


def _reason(longrepr: Any) -> str:
    """Why a test has failed, from its serialised report."""
    crash = longrepr.get("reprcrash") if isinstance(longrepr, dict) else None
    return str(crash["message"] if crash else longrepr)


def _first_line(reason: str) -> str:
    return reason.strip().partition("\n")[0][:_REASON_CHARACTERS]


#: By probe, the facts that stand for a gap.
GAPS: Mapping[str, Callable[[str], CaseFacts]] = {
    probes.PROFILE: lambda reason: CaseFacts(profile=Profile(gap=_first_line(reason))),
    probes.MEMORY: lambda reason: CaseFacts(memory=Memory(gap=_first_line(reason))),
    probes.FORWARD_MEMORY: lambda reason: CaseFacts(forward_memory=Memory(gap=_first_line(reason))),
}


@functools.cache  # a worker has one, which knows how long it has taken
def probe_of_worker(traces: Path, send: Callable[[str, Any], Any]) -> Probe | None:
    """The probe for which this process was started; None if it measures times."""
    requested = probes.requested()
    if requested not in GAPS:
        return None
    from fwbench.cases.probes import forward_memory, memory, profile  # those that time do without

    finds: Mapping[str, Callable[[Case, Clock], CaseFacts]] = {
        probes.PROFILE: partial(profile, folder=traces),
        probes.MEMORY: memory,
        probes.FORWARD_MEMORY: forward_memory,
    }
    until_s, longest_s = float(os.environ.get(probes.UNTIL_VARIABLE, math.inf)), 0.0

    def found(case: Case, clock: Clock) -> CaseFacts:
        if longest_s and time.monotonic() + longest_s > until_s:
            return GAPS[requested]("the time for it was over")
        try:
            _check_single(case.cell)
            return finds[requested](case, clock)
        except FwbenchError as error:
            return GAPS[requested](str(error))
        except Exception as error:  # noqa: BLE001 (profilers may raise anything, and times stand)
            return GAPS[requested](f"{type(error).__name__}: {error}")

    def probe(case: Case, clock: Clock) -> None:
        nonlocal longest_s
        start_s = time.monotonic()
        facts = found(case, clock)
        longest_s = max(longest_s, time.monotonic() - start_s)
        send(FOUND, dict(facts))

    return probe


def _check_single(cell: Cell) -> None:
    """Refuse a case of several processes.

    Raises:
        ProbeError: a probe would see one of them.
    """
    if cell.gang:
        raise ProbeError(
            f"a case of {cell.replicas} replicas cannot be profiled, nor its memory measured: that "
            "looks into one process"
        )
