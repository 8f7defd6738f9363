"""The journal of a session: its records as they finish, so that a crash loses none."""

import os
import socket
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import IO, Any

import psutil

from fwbench import project
from fwbench.errors import StorageError, UnreadableRun
from fwbench.jsontext import dumps, loads
from fwbench.records import files, launches
from fwbench.records.session_facts import SessionFacts
from fwbench.records.stored import head_of, record_of
from fwbench.records.table import DamagedFact
from fwbench.records.upstream import LaunchEntry

#: How many journals of finished sessions are kept; a session that begins one deletes older ones.
_JOURNALS = 10

#: Prefix of what a journal has and a run has not; in the first line what the session was asked for
#: and its digest, in one of the last what is known of the session at its end only, and in others
#: the node id of a test that did not pass although it had been measured.
_OWN = "fwbench_journal"
ASKED, KEY, _SESSION, _NOT_PASSED = (
    f"{_OWN}_{name}" for name in ("asked", "key", "session", "not_passed")
)

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
    While it is written, its process has it for itself (:func:`is_running`).

    A new journal deletes old ones and those without a record, and never that of a session that is
    alive, was interrupted or has crashed: it may be all that is left of hours of measuring.
    """

    def __init__(self, folder: Path, name: str) -> None:
        self.path = folder / name
        try:
            project.make_own_folder(folder)
            finished = [path for path in sorted(folder.glob("*.jsonl")) if is_finished(path)]
            with_records = [path for path in finished if has_record(path)]
            for old in {*finished}.difference(with_records[1 - _JOURNALS :]):
                for file in (*_owners(old), old):
                    file.unlink(missing_ok=True)
            self._file = self.path.open("x", encoding="utf-8")
            self._give_back = _own(self.path) if _lock(self._file) is None else None
        except OSError as error:
            raise StorageError(
                f"cannot write a journal under {folder}: {error.strerror}"
            ) from error
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

    def complete(self, session: Mapping[str, Any]) -> None:
        """Add facts of the session that are known at its end only, such as that it was interrupted.

        Raises:
            StorageError: it cannot be written.
        """
        self.append({_SESSION: session})

    def discard(self) -> None:
        """Close the file, and remove it: its records are in another journal."""
        with suppress(OSError):
            self.path.unlink()
        self.close()

    def close(self) -> None:
        """Close the file; an empty journal is removed."""
        with suppress(OSError):
            self._file.close()
            if self._give_back is not None:
                self._give_back()
            if self.path.stat().st_size == 0:
                self.path.unlink()


def finish(journal: Path, *, resumable: bool = False) -> None:
    """Say of a session's journal that its records are safe, so that it can be deleted one day."""
    with suppress(OSError), journal.open("r+", encoding="utf-8") as file:
        file.seek(0, os.SEEK_END)
        file.write(dumps(_END_TO_RESUME if resumable else _END) + "\n")


def newest_first(folder: Path) -> list[Path]:
    """The journals of a project."""
    return sorted(folder.glob("*.jsonl"), reverse=True)


def head(journal: Path) -> dict[str, Any]:
    """The first line of a journal; empty if it has none."""
    with suppress(OSError), journal.open("rb") as file:
        values = _parsed(file.readline())
        return values if isinstance(values, dict) else {}
    return {}


def has_record(journal: Path) -> bool:
    """True if a journal has a record, if only a damaged one."""
    with suppress(OSError), journal.open("rb") as file:
        return any(not line.startswith(f'{{"{_OWN}'.encode()) for line in file)
    return False


def is_finished(journal: Path) -> bool:
    """True if the session of a journal is over, and its records are safe elsewhere."""
    return _ends_with(journal, _END, _END_TO_RESUME)


def is_resumable(journal: Path) -> bool:
    """True unless its session ran to its end, or another one has gone on with it."""
    return not _ends_with(journal, _END)


def is_running(journal: Path) -> bool:
    """True if a process has a journal for itself: its own session, or one that goes on with it."""
    with suppress(ImportError, OSError), journal.open("rb") as file:
        is_free = _lock(file, shared=True)
        return any(map(_is_alive, _owners(journal))) if is_free is None else not is_free
    return False


def hold(journal: Path) -> Callable[[], object] | None:
    """Have a journal for this process, so that no other session goes on with it.

    By a lock; in a file system without locks by a file beside it, which names this process.

    Returns:
        The function that gives it back; None if another process has it.

    Raises:
        StorageError: neither can be had.
    """
    try:
        # Network file systems give a lock for writing to files that are open for writing.
        file = journal.open("r+b" if os.access(journal, os.W_OK) else "rb")
        is_free = _lock(file)
        if is_free:
            os.register_at_fork(after_in_child=file.close)
            return file.close
        file.close()
        return None if is_free is False else _own(journal)
    except OSError as error:
        raise StorageError(
            f"cannot keep other sessions from {journal}: {error.strerror}"
        ) from error


def owner_hint(journal: Path) -> str:
    """Name of the file by which a process has a journal where files have no locks, else empty."""
    owners = [owner for owner in _owners(journal) if _is_alive(owner)]
    return f" (delete {owners[-1]} if that is not so)" if owners else ""


def _lock(file: IO[Any], *, shared: bool = False) -> bool | None:
    """True if a lock is had; False if another process has one; None where files have none."""
    import fcntl  # Windows, where reports are read, has none

    try:
        fcntl.flock(file, (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:
        return None
    return True


def _owners(journal: Path) -> list[Path]:
    """Files of the processes that have, or had, a journal; only the last may be alive."""
    return sorted(journal.parent.glob(f"{journal.name}.owner-*"))


def _own(journal: Path) -> Callable[[], object] | None:
    """Name this process the owner of a journal; None if another one is, or was faster.

    Files of processes that have ended stay: to delete one could delete that of a new owner.
    """
    owners = _owners(journal)
    if any(map(_is_alive, owners)):
        return None
    number = int(owners[-1].name.rpartition("-")[2]) + 1 if owners else 1
    owner = journal.with_name(f"{journal.name}.owner-{number:04}")
    try:
        with owner.open("x", encoding="utf-8") as file:
            file.write(f"{os.getpid()} {socket.gethostname()}")
    except FileExistsError:
        return None
    return partial(owner.unlink, missing_ok=True)


def _is_alive(owner: Path) -> bool:
    """True unless a process of this machine that has ended is named; of others nobody can tell."""
    with suppress(OSError):
        pid, _, host = owner.read_text("utf-8").partition(" ")
        return host != socket.gethostname() or psutil.pid_exists(int(pid))
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
            elif isinstance(values, dict) and _SESSION in values:
                known = SessionFacts.checked(values[_SESSION])
                self.head["fwbench"] = {**self.head.get("fwbench", {}), **known}
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
