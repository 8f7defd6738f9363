"""The journal of a session: its records as they finish, so that a crash loses none."""

import os
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fwbench import project
from fwbench.errors import StorageError, UnreadableRun
from fwbench.jsontext import dumps, loads
from fwbench.records import files, launches
from fwbench.records.session_facts import SessionOutcome
from fwbench.records.stored import head_of, record_of
from fwbench.records.table import DamagedFact
from fwbench.records.upstream import LaunchEntry

#: How many journals of finished sessions are kept; a session that begins one deletes older ones.
_JOURNALS = 10

#: Prefix of what a journal has and a run has not; in the first line the digest of what the session
#: was asked for, in the last one of an interrupted session its outcome, and in others the node id
#: of a test that did not pass although it had been measured.
_OWN = "fwbench_journal"
KEY, _OUTCOME, _NOT_PASSED = f"{_OWN}_key", f"{_OWN}_outcome", f"{_OWN}_not_passed"

#: The last line of the journal of a session that is over, and whose records are safe elsewhere: of
#: one that ran to its end or that another one has gone on with, and of one to go on with.
_END, _END_TO_RESUME = {f"{_OWN}_end": True}, {f"{_OWN}_end": "resumable"}


def journal_folder(root: Path) -> Path:
    """Where the journals of a project are."""
    return project.own_folder(root, "journal")


class Journal:
    """The records of a session, appended as they finish, so that a crash loses none.

    The first line is what surrounds the records in pytest-benchmark's JSON, every other one is an
    entry, but for those that the methods below write. A line is complete or it is the last one.
    While it is written, its process holds a lock on it (:func:`is_running`).

    A new journal deletes old ones, and never that of a session that is alive, was interrupted or
    has crashed: it may be all that is left of hours of measuring.
    """

    def __init__(self, folder: Path, name: str) -> None:
        self.path = folder / name
        try:
            project.make_own_folder(folder)
            finished = [path for path in sorted(folder.glob("*.jsonl")) if is_finished(path)]
            for old in finished[: 1 - _JOURNALS]:
                old.unlink(missing_ok=True)
            self._file = self.path.open("x", encoding="utf-8")
        except OSError as error:
            raise StorageError(
                f"cannot write a journal under {folder}: {error.strerror}"
            ) from error
        import fcntl  # Windows, where reports are read, has none

        with suppress(OSError):  # of a file system without locks
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        # A lock is held until the last copy of its file is closed, and tests may fork.
        os.register_at_fork(after_in_child=self._file.close)

    def append(self, values: Mapping[str, Any]) -> None:
        """Append one line and hand it to the operating system.

        Raises:
            StorageError: it cannot be written; what was written before stays readable.
        """
        try:
            self._file.write(dumps(values) + "\n")
            self._file.flush()
        except OSError as error:
            raise StorageError(f"cannot write to {self.path}: {error.strerror}") from error

    def mark_not_passed(self, nodeid: str) -> None:
        """Note that a test did not pass although it had been measured: it is to run again.

        Raises:
            StorageError: it cannot be written.
        """
        self.append({_NOT_PASSED: nodeid})

    def finish(self, *, resumable: bool) -> None:
        """Mark the journal as finished: its session is over, and its records are safe.

        Args:
            resumable: whether another session can go on with it.

        Raises:
            StorageError: it cannot be written; the journal is kept then.
        """
        self.append(_END_TO_RESUME if resumable else _END)

    def interrupt(self, outcome: Mapping[str, Any]) -> None:
        """Say how its session ended before its time; the journal is kept.

        Raises:
            StorageError: it cannot be written.
        """
        self.append({_OUTCOME: outcome})

    def close(self) -> None:
        """Close the file; an empty journal is removed."""
        with suppress(OSError):
            self._file.close()
            if self.path.stat().st_size == 0:
                self.path.unlink()


def finish(journal: Path, *, resumable: bool = False) -> None:
    """Say of a session's journal that its records are safe, so that it can be deleted one day."""
    with suppress(OSError), journal.open("r+", encoding="utf-8") as file:
        file.seek(0, os.SEEK_END)
        file.write(dumps(_END_TO_RESUME if resumable else _END) + "\n")


def with_key(folder: Path, key: str) -> list[Path]:
    """The journals of sessions that were asked for the same, the newest first."""
    return [path for path in sorted(folder.glob("*.jsonl"), reverse=True) if _key(path) == key]


def _key(journal: Path) -> str | None:
    with suppress(OSError), journal.open("rb") as file:
        head = _parsed(file.readline())
        return head.get(KEY) if isinstance(head, dict) else None
    return None


def is_finished(journal: Path) -> bool:
    """True if the session of a journal is over, and its records are safe elsewhere."""
    return _ends_with(journal, _END, _END_TO_RESUME)


def is_resumable(journal: Path) -> bool:
    """True unless its session ran to its end, or another one has gone on with it."""
    return not _ends_with(journal, _END)


def is_running(journal: Path) -> bool:
    """True if the session of a journal writes it: it has a lock until its process ends.

    False where a file system has no locks: whoever asks says that the session is over, and could
    never go on with it otherwise.
    """
    with suppress(ImportError, OSError), journal.open("rb") as file:
        import fcntl

        try:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
    return False


def _ends_with(journal: Path, *lines: Mapping[str, Any]) -> bool:
    ends = tuple(dumps(line).encode() + b"\n" for line in lines)
    with suppress(OSError), journal.open("rb") as file:
        file.seek(0, os.SEEK_END)
        longest = max(map(len, ends))
        file.seek(-min(file.tell(), longest), os.SEEK_CUR)
        return file.read(longest).endswith(ends)  # a device has no end
    return False


@dataclass(frozen=True)
class Recovered:
    """Content of a journal.

    Attributes:
        run: its records, those of several launches merged, and what surrounds them.
        lost: what is wrong with the lines that are left out.
        entries: its records one by one, without those of tests that did not pass.
    """

    run: dict[str, Any]
    lost: Sequence[str]
    entries: Sequence[launches.Entry]


def recover(journal: Path, complete: Callable[[launches.Entry], Any]) -> Recovered:
    """The records of a journal as pytest-benchmark's JSON. A line that is damaged is left out.

    Args:
        complete: fills in the statistics that an entry merged from launches does not have.
    """
    reader = _Reader(journal)
    # Text after the last line break was cut off while it was written.
    try:
        lines = files.read(journal).split(b"\n")[:-1]
    except StorageError as error:
        raise UnreadableRun(str(error)) from error
    for number, line in enumerate(lines, 1):
        reader.read(number, line)
    if not reader.is_journal and not reader.entries:
        raise UnreadableRun(
            f"{journal} is not a journal of fwbench: its first line does not say so"
        )
    if not reader.entries:
        problems = "".join(f"\n  {problem}" for problem in reader.lost)
        raise UnreadableRun(
            f"{journal} has no record: the session ended before a case did, or all are damaged"
            f"{problems}"
        )
    gathered = launches.gather(reader.entries)
    run = {**reader.head, "benchmarks": [*map(complete, gathered)]}
    passed = [entry for entry in reader.entries if entry["fullname"] not in reader.not_passed]
    return Recovered(run, reader.lost, passed)


class _Reader:
    def __init__(self, journal: Path) -> None:
        self.is_journal = False
        self.head: dict[str, Any] = {}
        self.lost: list[str] = []
        self.not_passed: set[str] = set()
        self._journal = journal
        self._records: dict[str, dict[int | None, launches.Entry]] = defaultdict(dict)

    def read(self, number: int, line: bytes) -> None:
        """Keep what a line has, or note what is wrong with it."""
        try:
            values = _parsed(line)
            if number == 1:
                self._read_head(values)
            elif isinstance(values, dict) and _OUTCOME in values:
                outcome = SessionOutcome.checked(values[_OUTCOME])
                self.head["fwbench"] = {**self.head.get("fwbench", {}), "outcome": dict(outcome)}
            elif isinstance(values, dict) and _NOT_PASSED in values:
                self.not_passed.add(str(values[_NOT_PASSED]))
            elif values not in (_END, _END_TO_RESUME):
                self._read_entry(values)
        except DamagedFact as error:
            self.lost.append(f"{self._journal}: line {number}: {error}")

    def _read_head(self, values: Any) -> None:
        self.is_journal = isinstance(values, dict) and _OWN in values
        if not self.is_journal:
            raise DamagedFact("is not the head of a journal")
        head_of(values, str(self._journal))
        self.head = {name: value for name, value in values.items() if not name.startswith(_OWN)}

    def _read_entry(self, values: Any) -> None:
        if not isinstance(values, dict) or "fullname" not in values:
            raise DamagedFact("is not a record")
        facts = record_of(values, "its record").facts
        if facts.launch is not None or facts.launches:
            LaunchEntry.checked(values)
        before = self._records[values["fullname"]]
        # A test that ran again, after a failure, has its last record.
        new = facts.launch
        if before.keys() - {None} if new is None else before.keys() & {None, new}:
            raise DamagedFact(f"{values['fullname']} has such a record in a line before")
        before[new] = values
        self.not_passed.discard(values["fullname"])

    @property
    def entries(self) -> list[launches.Entry]:
        return [entry for records in self._records.values() for entry in records.values()]


def _parsed(line: bytes) -> Any:
    """A line as JSON; None if it is not."""
    with suppress(ValueError):
        return loads(line)
    return None
