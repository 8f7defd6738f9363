"""The journal of a session: its records as they finish, so that a crash loses none."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from fwbench import project
from fwbench.errors import StorageError
from fwbench.jsontext import dumps
from fwbench.records import replication
from fwbench.records.stored import facts_of
from fwbench.records.table import DamagedFact

#: How many journals are kept; older ones are deleted when a session begins one.
_JOURNALS = 10


def journal_folder(root: Path) -> Path:
    """Where the journals of a project lie.

    Args:
        root: pytest's root folder.
    """
    return project.own_folder(root, "journal")


class Journal:
    """The records of a session, appended as they finish, so that a crash loses none.

    The first line is what surrounds the records in pytest-benchmark's JSON, every other one is an
    entry. A line is complete or it is the last one.

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
            for old in sorted(folder.glob("*.jsonl"))[: -(_JOURNALS - 1)]:
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

    def close(self) -> None:
        """Close the file; an empty journal is removed."""
        with contextlib.suppress(OSError):
            self._file.close()
            if self.path.stat().st_size == 0:
                self.path.unlink()


def recover(journal: Path, complete: Callable[[replication.Entry], Any]) -> dict[str, Any]:
    """The records of a journal as pytest-benchmark's JSON.

    Args:
        complete: fills in the statistics that an entry merged from launches does not have.
        journal: a session's journal, whether or not the session ended.

    Returns:
        What ``--benchmark-json`` would have written.

    Raises:
        StorageError: the file cannot be read, or is not a journal with at least one record.
    """
    try:
        lines = journal.read_text(encoding="utf-8").split("\n")
    except (OSError, UnicodeDecodeError) as error:
        raise StorageError(f"cannot read {journal}: {error}") from error
    # Whatever follows the last line break was cut off while it was written.
    parsed = []
    for number, line in enumerate(lines[:-1], 1):
        try:
            parsed.append(json.loads(line))
        except ValueError as error:
            raise StorageError(f"{journal} is not a journal: line {number}: {error}") from error
    if not parsed or not isinstance(parsed[0], dict) or "fwbench_journal" not in parsed[0]:
        raise StorageError(f"{journal} is not a journal of fwbench: its first line does not say so")
    head, *entries = parsed
    if not all(_is_entry(entry) for entry in entries):
        raise StorageError(
            f"{journal} is not a journal of fwbench: one of its lines is not a record"
        )
    for entry in entries:
        _check(journal, entry)
    if not entries:
        raise StorageError(f"{journal} has no record: the session ended before a case did")
    del head["fwbench_journal"]
    return {**head, "benchmarks": [complete(entry) for entry in replication.gather(entries)]}


def _check(journal: Path, entry: Mapping[str, Any]) -> None:
    """Refuse a damaged value before launches are merged.

    Raises:
        StorageError: there is one; the message names journal, case and key.
    """
    try:
        facts_of(entry)
    except DamagedFact as error:
        case = entry.get("param") or entry["fullname"]
        raise StorageError(f"{journal}: {case}: {error}; the journal was changed") from None


def _is_entry(line: Any) -> bool:
    return isinstance(line, dict) and "fullname" in line
