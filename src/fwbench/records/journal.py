"""The journal of a session: its records as they finish, so that a crash loses none."""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fwbench import project
from fwbench.errors import StorageError
from fwbench.jsontext import dumps
from fwbench.records import replication
from fwbench.records.stored import facts_of
from fwbench.records.table import DamagedFact

#: How many journals of finished sessions are kept; a session that begins one deletes older ones.
_JOURNALS = 10

#: The last line of the journal of a session that is over, and whose records are safe elsewhere.
_END = {"fwbench_journal_end": True}


def journal_folder(root: Path) -> Path:
    """Where the journals of a project lie.

    Args:
        root: pytest's root folder.
    """
    return project.own_folder(root, "journal")


class Journal:
    """The records of a session, appended as they finish, so that a crash loses none.

    The first line is what surrounds the records in pytest-benchmark's JSON, every other one is an
    entry, but for the one that :meth:`finish` writes. A line is complete or it is the last one.

    A new journal deletes old ones, and never that of a session that is alive, was interrupted or
    has crashed: it may be all that is left of hours of measuring.

    Args:
        folder: where journals lie; made when missing.
        name: of this session's journal.

    Raises:
        StorageError: it cannot be begun.
    """

    def __init__(self, folder: Path, name: str) -> None:
        self.path = folder / name
        try:
            project.make_own_folder(folder)
            finished = [path for path in sorted(folder.glob("*.jsonl")) if _is_finished(path)]
            for old in finished[: 1 - _JOURNALS]:
                old.unlink(missing_ok=True)
            self._file = self.path.open("x", encoding="utf-8")
        except OSError as error:
            raise StorageError(
                f"cannot write a journal under {folder}: {error.strerror}"
            ) from error

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

    def finish(self) -> None:
        """Say that nobody needs this journal: its session is over, and its records are safe.

        Raises:
            StorageError: it cannot be written; the journal is kept then.
        """
        self.append(_END)

    def close(self) -> None:
        """Close the file; an empty journal is removed."""
        with contextlib.suppress(OSError):
            self._file.close()
            if self.path.stat().st_size == 0:
                self.path.unlink()


def finish(journal: Path) -> None:
    """Say of a session's journal that its records are safe, so that it can be deleted one day."""
    with contextlib.suppress(OSError), journal.open("a", encoding="utf-8") as file:
        file.write(dumps(_END) + "\n")


def _is_finished(journal: Path) -> bool:
    with contextlib.suppress(OSError), journal.open("rb") as file:
        end = dumps(_END).encode() + b"\n"
        file.seek(0, os.SEEK_END)
        file.seek(-min(file.tell(), len(end)), os.SEEK_CUR)
        return file.read() == end
    return False


@dataclass(frozen=True)
class Recovered:
    """What a journal has.

    Attributes:
        run: what ``--benchmark-json`` would have written.
        lost: what is wrong with the lines that could not be read.
    """

    run: dict[str, Any]
    lost: Sequence[str]


def recover(journal: Path, complete: Callable[[replication.Entry], Any]) -> Recovered:
    """The records of a journal as pytest-benchmark's JSON. A line that is damaged is left out.

    Args:
        complete: fills in the statistics that an entry merged from launches does not have.
        journal: a session's journal, whether or not the session ended.

    Raises:
        StorageError: the file cannot be read, or is not a journal with at least one record.
    """
    try:
        lines = journal.read_bytes().split(b"\n")
    except OSError as error:
        raise StorageError(f"cannot read {journal}: {error.strerror}") from error
    head = _parsed(lines[0])
    if not isinstance(head, dict) or "fwbench_journal" not in head:
        raise StorageError(f"{journal} is not a journal of fwbench: its first line does not say so")
    entries, lost = [], []
    # Whatever follows the last line break was cut off while it was written.
    for number, line in enumerate(lines[1:-1], 2):
        try:
            if (entry := _entry(line)) is not None:
                entries.append(entry)
        except StorageError as error:
            lost.append(f"{journal}: line {number}: {error}")
    if not entries:
        problems = "".join(f"\n  {problem}" for problem in lost)
        raise StorageError(
            f"{journal} has no record: the session ended before a case did, or all are damaged"
            f"{problems}"
        )
    del head["fwbench_journal"]
    gathered = replication.gather(entries)
    return Recovered({**head, "benchmarks": [complete(entry) for entry in gathered]}, lost)


def _parsed(line: bytes) -> Any:
    """A line as JSON; None if it is not."""
    with contextlib.suppress(ValueError, RecursionError):
        return json.loads(line)
    return None


def _entry(line: bytes) -> dict[str, Any] | None:
    """The record of a line; None of the line that ends a journal.

    Raises:
        StorageError: it is not a record, or a value of it is damaged.
    """
    entry = _parsed(line)
    if entry == _END:
        return None
    if not isinstance(entry, dict) or "fullname" not in entry:
        raise StorageError("is not a record")
    try:
        facts_of(entry)
    except DamagedFact as error:
        case = entry.get("param") or entry["fullname"]
        raise StorageError(f"{case}: {error}; the journal was changed") from None
    return entry
