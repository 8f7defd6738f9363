"""THE reader of stored runs: files that pytest-benchmark wrote, with or without fwbench."""

import json
import statistics
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, TypeVar

from fwbench.errors import StorageError, UnreadableRun
from fwbench.jsontext import loads
from fwbench.records import equality, files
from fwbench.records.facts import SCHEMA, CaseFacts, Launch, PlainFacts, recorded
from fwbench.records.measurement import Measurement, requested_toggles
from fwbench.records.repeatability import Revisits
from fwbench.records.session_facts import MachineFacts, SessionFacts
from fwbench.records.table import DamagedFact, shown
from fwbench.records.upstream import CommitInfo, Entry, MachineInfo, RunInfo, Statistics

T = TypeVar("T")

_UNKNOWN_MACHINE = MachineFacts()


@dataclass(frozen=True)
class StoredRun:
    """A run as it is stored: its records, and what is known of its session."""

    name: str
    records: Sequence[Measurement]
    #: What fwbench recorded of the session; empty if it did not write the run.
    session: SessionFacts = field(default_factory=SessionFacts)
    #: It was measured, as ISO 8601; empty if that is not recorded.
    when: str = ""
    machine_info: MachineInfo = field(default_factory=MachineInfo)
    commit_info: CommitInfo = field(default_factory=CommitInfo)

    @property
    def cpu(self) -> str | None:
        """Model of the CPU, as fwbench or else pytest-benchmark recorded it; None if neither."""
        return _machine(self.session, self.machine_info).cpu

    @property
    def unknown(self) -> list[str]:
        """The keys that this version of fwbench does not know."""
        tables = (self.session, *(record.facts for record in self.records))
        return list(dict.fromkeys(key for table in tables for key in table.unknown()))


def unknown_notice(runs: Collection[tuple[str, Sequence[str]]]) -> str | None:
    """The notice on keys, by file, that this version does not know; None if there are none."""
    names = dict.fromkeys(name for name, unknown in runs if unknown)
    if not names:
        return None
    keys = sorted({key for _, unknown in runs for key in unknown})
    return (
        f"{', '.join(names)}: facts that this version of fwbench does not know: {', '.join(keys)}; "
        "they are kept and shown as they are (upgrade fwbench to understand them)"
    )


def files_of(path: Path) -> list[Path]:
    """A file itself, or the runs in a folder."""
    if not path.is_dir():
        return [path]
    files = sorted(path.glob("[!.]*.json"))  # macOS puts a file ._NAME beside each on other disks
    if not files:
        raise UnreadableRun(f"{path} is a folder without a JSON file; name the runs in it")
    return files


def load(path: Path) -> StoredRun:
    """The run in a file.

    Raises:
        UnreadableRun: it cannot be read, is cut off, is not what pytest-benchmark writes, or holds
            a value that is damaged; the message names file, case and key.
    """
    return from_json(path.name, parse(path), str(path))


def parse(path: Path) -> Any:
    """The values in a JSON file."""
    try:
        text = files.read(path)
        return loads(text)
    except StorageError as error:
        raise UnreadableRun(str(error)) from error
    except json.JSONDecodeError as error:
        cut = f"is not JSON, or is cut off ({error})" if text.strip() else "is empty"
        raise UnreadableRun(f"{path} {cut}; measure again with --benchmark-json") from error
    except ValueError as error:
        raise UnreadableRun(damaged(str(path), error)) from error


def from_json(name: str, values: Any, place: str = "") -> StoredRun:
    """The run that JSON values describe."""
    place = place or name
    entries = values.get("benchmarks") if isinstance(values, dict) else None
    if not isinstance(entries, list):
        is_of_ab = isinstance(values, dict) and "judgements" in values
        advice = (
            "fwbench report shows it" if is_of_ab else "give a file that --benchmark-json wrote"
        )
        raise UnreadableRun(
            f"{place} is JSON{' of fwbench ab' * is_of_ab}, but not of pytest-benchmark: it has no "
            f"list 'benchmarks'; {advice}"
        )
    try:
        info, session = head_of(values, place)
        machine = _machine(session, info.machine_info or MachineInfo())
        records = [record_of(entry, f"benchmark {n}", machine) for n, entry in enumerate(entries)]
        _refuse_twice(record.nodeid for record in records)
        revisits = session.revisits or {}
        records = [replace(record, revisits=revisits, session=session) for record in records]
    except DamagedFact as error:
        raise UnreadableRun(damaged(place, error)) from None
    return StoredRun(
        name,
        _marked(records),
        session,
        info.datetime or "",
        info.machine_info or MachineInfo(),
        info.commit_info or CommitInfo(),
    )


def _refuse_twice(nodeids: Iterable[str]) -> None:
    """Refuse two records of one case: a comparison would take one, and nobody knows which."""
    twice = [nodeid for nodeid, number in Counter(nodeids).items() if number > 1]
    if twice:
        raise DamagedFact(
            f"{twice[0]} has several records, as where files were joined; give each session "
            "a file of its own"
        )


def _machine(session: SessionFacts, info: MachineInfo) -> MachineFacts:
    """The machine, with its CPU as pytest-benchmark recorded it if fwbench did not."""
    machine = session.machine or MachineFacts()
    if machine.cpu or info.cpu is None:
        return machine
    return machine | MachineFacts(cpu=info.cpu.brand_raw)


def head_of(values: Mapping[str, Any], place: str) -> tuple[RunInfo, SessionFacts]:
    """Head of a run: everything but its benchmarks."""
    session = _session(values.get("fwbench", {}), place)
    info = {name: values[name] for name in RunInfo.declared() if name in values}
    return RunInfo.checked(info), session


def _marked(records: Sequence[Measurement]) -> tuple[Measurement, ...]:
    """The records, and of trainings that are unequal why, whether or not that is stored."""
    unequal = equality.unequal({n: record.facts for n, record in enumerate(records)})
    return tuple(
        replace(record, facts=record.facts | CaseFacts(unequal=unequal[n]))
        if n in unequal
        else record
        for n, record in enumerate(records)
    )


def damaged(place: str, error: Exception | str) -> str:
    """The message about a run in which a value is damaged."""
    return (
        f"{place} is not a valid fwbench run: {error}; the file was changed, or is of something "
        "else: measure again with --benchmark-json"
    )


def _session(values: Any, place: str) -> SessionFacts:
    """The facts of a session, if this version can read them."""
    schema = values.get("schema", 0) if isinstance(values, dict) else 0
    if isinstance(schema, int) and schema > SCHEMA:
        raise UnreadableRun(
            f"{place} was written by a newer fwbench ({values.get('version')}): its schema is "
            f"{schema}, and this one reads up to {SCHEMA}; upgrade fwbench"
        )
    return SessionFacts.checked(values, "fwbench")


def record_of(entry: Any, place: str, machine: MachineFacts = _UNKNOWN_MACHINE) -> Measurement:
    """The record in an entry of pytest-benchmark's."""
    if not isinstance(entry, dict):
        raise DamagedFact(f"{place} is {shown(entry)}, and must be an object")
    names = (entry.get("param"), entry.get("fullname"), place)
    case = next(name for name in names if name and isinstance(name, str))
    known = _named(case, lambda: Entry.checked(entry))
    stats = _named(case, lambda: _statistics(entry.get("stats")))
    facts = _named(case, lambda: facts_of(entry))
    return Measurement(
        facts,
        _values_s(facts, stats),
        requested_toggles(known.params or {}) if facts else {},
        nodeid=known.fullname,
        test=known.name or known.fullname,
        param=known.param or "",
        group=known.group or "",
        stats=stats,
        machine=machine,
    )


def _values_s(facts: CaseFacts, stats: Statistics) -> list[float]:
    """The median of each launch, or else each round; of statistics without rounds the median.

    The smallest where not even the median is stored.
    """
    if facts.launches:
        return [*map(_median_s, facts.launches)]
    return stats.data or [value for value in (stats.median, stats.min) if value is not None][:1]


def _median_s(launch: Launch) -> float:
    """The median round of a launch, or what stands for it where only that is stored."""
    if launch.median_s is not None:
        return launch.median_s
    return statistics.median(launch.rounds_s) if launch.rounds_s else launch.value_s


def just_measured(entry: Mapping[str, Any], revisits: Revisits | None = None) -> Measurement:
    """A benchmark of this session; its entry is not checked."""
    facts = recorded(entry["extra_info"].get("fwbench", {}))
    stats = {name: entry.get("stats", {}).get(name) for name in ("q1", "q3", "rounds")}
    completion_s, toggles = facts.completion_s, facts.toggles or {}
    requested = requested_toggles(entry.get("params") or {})
    return Measurement(
        facts,
        () if completion_s is None else (completion_s,),
        # Parameters of the user's own tests are not toggles.
        {name: value for name, value in requested.items() if name in toggles},
        entry.get("fullname") or "",
        param=entry.get("param") or "",
        stats=Statistics(**stats),
        revisits=revisits or {},
    )


def facts_of(entry: Mapping[str, Any]) -> CaseFacts:
    """The facts in an entry of pytest-benchmark's; false if it is not of a case."""
    extra_info = entry.get("extra_info", {})
    if not isinstance(extra_info, dict):
        raise DamagedFact(f"extra_info is {shown(extra_info)}, and must be an object")
    facts = extra_info.get("fwbench", {})
    if not isinstance(facts, dict):
        raise DamagedFact(f"extra_info.fwbench is {shown(facts)}, and must be an object")
    kind = PlainFacts if facts.get("plain_test") is True else CaseFacts
    return kind.checked(facts) if facts else CaseFacts()


def _statistics(values: Any) -> Statistics:
    stats = Statistics.checked(values, "stats")
    if not stats.data and stats.min is None:
        raise DamagedFact("stats.min is missing")
    return stats


def _named(what: str, read: Callable[[], T]) -> T:
    """Result of ``read``; if a value is damaged, the error names its owner."""
    try:
        return read()
    except DamagedFact as error:
        raise DamagedFact(f"{what}: {error}") from None
