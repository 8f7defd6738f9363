"""Cases over time: what all the stored runs of a folder say of each case."""

from __future__ import annotations

import gc
import itertools
import signal
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TypeAlias

from fwbench.errors import UnreadableRun, UsageError
from fwbench.machine import usable_cpus
from fwbench.records.measurement import Measurement
from fwbench.records.units import count
from fwbench.report.model import Run, read
from fwbench.report.section import row_keys

#: By what a case is, and what it was measured on.
_Cases: TypeAlias = "dict[tuple[str, str], tuple[Measurement, list[Moment]]]"

#: A process starts in the time in which another reads about this many files.
_WORTH_A_PROCESS = 5

#: More would have merging to wait for, and each has tens of megabytes of its own.
_PROCESSES = 4


@dataclass(frozen=True)
class Moment:
    """A case in one run.

    Attributes:
        when: the run was measured, as ISO 8601.
        median_s: of its values.
        low_s: where the middle half of its launches, or rounds, begins.
        high_s: where it ends.
        version: of the framework; empty if it is not recorded.
        revision: of the project, abbreviated.
    """

    when: str
    median_s: float
    low_s: float
    high_s: float
    version: str
    revision: str


@dataclass(frozen=True)
class HistoryLine:
    """One case on one machine.

    Attributes:
        name: of the case.
        machine: CPU and threads.
        group: the section of the report that it belongs to.
        keys: the facts that its row can be filtered by.
        moments: in the order of time.
    """

    name: str
    machine: str
    group: str
    keys: Mapping[str, str]
    moments: Sequence[Moment]

    @property
    def upgrades(self) -> dict[int, str]:
        """By the number of the first run with it: the framework's new version."""
        known = [
            (number, moment.version) for number, moment in enumerate(self.moments) if moment.version
        ]
        return {
            number: f"{before} -> {after}"
            for (_, before), (number, after) in itertools.pairwise(known)
            if before != after
        }


def collect(folder: Path, only: str = "") -> tuple[list[HistoryLine], list[str]]:
    """The cases of all runs in a folder and in those below.

    Args:
        folder: such as pytest-benchmark's ``.benchmarks``.
        only: a part of the names of cases; others are left out.

    Returns:
        The cases, and the files that are not valid runs, each with the reason.

    Raises:
        UsageError: there is no run.
    """
    files = sorted(folder.rglob("*.json")) if folder.is_dir() else []
    cases: _Cases = {}
    problems: list[str] = []
    for found, unreadable in _each_part(files, only):
        problems += unreadable
        for key, (record, moments) in found.items():
            cases.setdefault(key, (record, []))[1].extend(moments)
    if not cases:
        raise _no_run(folder, only, problems)
    return [
        _line(record, machine, moments) for (_, machine), (record, moments) in cases.items()
    ], problems


def _each_part(files: Sequence[Path], only: str) -> Iterable[tuple[_Cases, list[str]]]:
    """Contents of files, as many at once as there are CPUs; in their order."""
    processes = min(usable_cpus(), _PROCESSES, len(files) // _WORTH_A_PROCESS)
    if processes <= 1:
        return [_read(files, only)]
    starts = [len(files) * number // processes for number in range(processes + 1)]
    parts = [files[start:end] for start, end in itertools.pairwise(starts)]
    with ProcessPoolExecutor(processes, initializer=_leave_interrupts_to_the_parent) as pool:
        return [*pool.map(_read, parts, itertools.repeat(only))]


def _leave_interrupts_to_the_parent() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)


def _read(files: Iterable[Path], only: str) -> tuple[_Cases, list[str]]:
    """The cases in files, and why files are not valid runs."""
    cases: _Cases = {}
    problems: list[str] = []
    # What is read has no cycles, and to look for some in it takes a third of the time.
    gc.disable()
    try:
        for file in files:
            try:
                run = read(file)
            except UnreadableRun as error:
                problems.append(str(error))
                continue
            when = _when(run.when, file)
            for record in run.records:
                if only in record.name:
                    # Values are not kept: a case has thousands.
                    key = record.nodeid, _machine(run, record)
                    _, moments = cases.setdefault(key, (record.without_values(), []))
                    moments.append(_moment(record, run, when))
    finally:
        gc.enable()
    return cases, problems


def _no_run(folder: Path, only: str, problems: Iterable[str]) -> UsageError:
    what = f" of {only!r}" if only else ""
    return UsageError(
        f"--history: there is no run{what} under {folder}; --benchmark-autosave and "
        "--benchmark-save keep runs in .benchmarks"
        + "".join(f"\n  {problem}" for problem in problems)
    )


def _line(record: Measurement, machine: str, moments: Iterable[Moment]) -> HistoryLine:
    return HistoryLine(
        record.name,
        machine,
        record.facts.workload if record.facts else "other benchmarks",
        row_keys(record),
        sorted(moments, key=lambda moment: moment.when),
    )


def _when(recorded: str, file: Path) -> str:
    """When a run was measured, as UTC; when its file was written, if it does not say so."""
    try:
        when = datetime.fromisoformat(recorded)
    except ValueError:
        return datetime.fromtimestamp(file.stat().st_mtime, UTC).isoformat()
    return (when if when.tzinfo else when.replace(tzinfo=UTC)).astimezone(UTC).isoformat()


def _machine(run: Run, record: Measurement) -> str:
    """Machine and number of threads of a case."""
    threads = run.session.threads
    used = "unknown threads" if threads is None else count(threads, "thread")
    on_gpu = bool(record.facts) and record.facts.device.startswith("gpu")
    gpu = [str(record.facts.device_name)] if on_gpu else []
    return ", ".join([run.cpu or "unknown CPU", *gpu, used])


def _moment(record: Measurement, run: Run, when: str) -> Moment:
    low_s, high_s = record.quartiles_s
    version = record.facts.framework_version or ""
    revision = str(run.commit.get("id") or "")
    known = "" if revision == "unversioned" else revision[:9]
    return Moment(when, record.median_s, low_s, high_s, version, known)
