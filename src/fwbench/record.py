"""Records: what is kept of a measured case, on the wire, in the journal and in the JSON.

A record is pytest-benchmark's own entry with ``extra_info["fwbench"]``. It travels on the test
report of its case, is appended to the session's journal when it arrives, and ends in
pytest-benchmark's JSON.
"""

from __future__ import annotations

import contextlib
import errno
import json
import os
import pstats
import tempfile
from collections.abc import Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from pytest_benchmark.fixture import BenchmarkFixture
from pytest_benchmark.stats import Metadata
from pytest_benchmark.utils import safe_dumps

from fwbench import launches, own_folder
from fwbench.errors import StorageError
from fwbench.frameworks.framework import Framework
from fwbench.frameworks.manifest import Manifest
from fwbench.grid import Cell
from fwbench.measure.clock import Clock

#: Version of what stands under ``extra_info["fwbench"]``.
SCHEMA = 1

#: How many journals are kept; older ones are deleted when a session begins one.
_JOURNALS = 10

_ITEMSIZE_BYTES = {"float64": 8, "float32": 4, "float16": 2, "bfloat16": 2}


def facts(cell: Cell, framework: Framework, manifest: Manifest) -> dict[str, Any]:
    """What a record says of a case beside its times."""
    cost = cell.workload.cost_of(cell.direction, cell.size)
    return {
        "schema": SCHEMA,
        **cell.params,
        "framework_version": framework.version,
        "device_name": manifest.device(cell.device).model,
        "threads": framework.threads(),
        "threshold": cell.threshold,
        "toggles": {
            **framework.toggles(),
            **_variables(framework.variables),
            **{name: cell.toggle(name) for name in sorted(cell.workload.toggles)},
            **dict(cell.toggles),
        },
        "flops": None if cost is None else cost.flops,
        "bytes": None if cost is None else cost.bytes_moved(_ITEMSIZE_BYTES[cell.dtype]),
    }


def work_of(facts: Mapping[str, Any]) -> tuple[Any, ...]:
    """What is the same work, whatever tables are grouped by: workload to size, and the data."""
    data = facts.get("data")
    parts = ("workload", "device", "direction", "dtype", "size")
    return (
        *(facts.get(part) for part in parts),
        data.get("digest") if isinstance(data, Mapping) else None,
    )


def _variables(prefixes: tuple[str, ...]) -> dict[str, str]:
    """The environment variables that change this framework's speed."""
    return {name: value for name, value in sorted(os.environ.items()) if name.startswith(prefixes)}


def times(benchmark: BenchmarkFixture, clock: Clock) -> dict[str, float]:
    """What the rounds just measured say, and how busy the machine was (its load over a minute)."""
    load, _, _ = os.getloadavg()
    return {**clock.facts(benchmark.stats.stats.data, benchmark.stats.iterations), "load": load}


def of(benchmark: BenchmarkFixture) -> dict[str, Any] | None:
    """A measured case as plain values; None if nothing was measured."""
    if not benchmark.stats or benchmark.has_error:
        return None
    profile = benchmark.stats.cprofile_stats
    return {
        "entry": benchmark.stats.as_dict(include_data=True),
        "cprofile": [(where, what[:4]) for where, what in profile.stats.items()]
        if profile
        else None,
    }


def dumps(output_json: Mapping[str, Any]) -> str:
    """A whole run as text, as pytest-benchmark writes it."""
    return str(safe_dumps(output_json, ensure_ascii=True, indent=4))


def restore(record: Mapping[str, Any]) -> Metadata:
    """A record as pytest-benchmark's own object, for its tables, comparisons and files."""
    entry = record["entry"]
    fixture = SimpleNamespace(
        **{name: entry[name] for name in ("name", "fullname", "group", "param", "params")},
        extra_info=entry["extra_info"],
        cprofile_stats=None,
        has_error=False,
    )
    metadata = Metadata(fixture, iterations=entry["stats"]["iterations"], options=entry["options"])
    metadata.stats.data = entry["stats"]["data"]
    if record["cprofile"] is not None:
        # pstats reads anything that looks like a profiler; callers are not kept.
        functions = {tuple(where): (*what, {}) for where, what in record["cprofile"]}
        profiler = SimpleNamespace(create_stats=lambda: None, stats=functions)
        metadata.cprofile_stats = pstats.Stats(profiler)  # type: ignore[arg-type]
    return metadata


def journal_folder(root: Path) -> Path:
    """Where the journals of a project lie.

    Args:
        root: pytest's root folder.
    """
    return own_folder.of(root, "journal")


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
            own_folder.make(folder)
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
            self._file.write(safe_dumps(values) + "\n")
            self._file.flush()
        except OSError as error:
            raise StorageError(f"cannot write to {self.path}: {error.strerror}") from error

    def close(self) -> None:
        """Close the file; an empty journal is removed."""
        with contextlib.suppress(OSError):
            self._file.close()
            if self.path.stat().st_size == 0:
                self.path.unlink()


def recover(journal: Path) -> dict[str, Any]:
    """The records of a journal as pytest-benchmark's JSON.

    Args:
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
        raise StorageError(f"{journal} is not a journal of fwbench: a line of it is no record")
    if not entries:
        raise StorageError(f"{journal} has no record: the session ended before a case did")
    del head["fwbench_journal"]
    return {**head, "benchmarks": [_complete(entry) for entry in launches.gather(entries)]}


def _is_entry(line: Any) -> bool:
    return isinstance(line, dict) and "fullname" in line


def _complete(entry: launches.Entry) -> dict[str, Any]:
    """An entry with all statistics, which one that was merged from launches has not."""
    if "launches" not in entry.get("extra_info", {}).get("fwbench", {}):
        return dict(entry)
    complete = restore({"entry": entry, "cprofile": None}).as_dict(include_data=True)
    return {**entry, "stats": complete["stats"]}


def check_writable(path: Path) -> None:
    """Try whether a file could be written to ``path``, and leave nothing there.

    Raises:
        StorageError: it could not.
    """
    try:
        if path.is_dir():
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
        if _is_special(path):
            return
        path = path.resolve()
        with tempfile.NamedTemporaryFile(dir=path.parent, prefix=f".{path.name}."):
            pass
    except OSError as error:
        raise StorageError(f"cannot write {path}: {error.strerror}") from error


def write_atomically(path: Path, text: str) -> None:
    """Write a file as a whole or not at all: an earlier file stays until the new one is complete.

    A link is followed; devices and pipes are written to, since they keep nothing.

    Raises:
        StorageError: it cannot be written; an earlier file is as it was.
    """
    try:
        if _is_special(path):
            path.write_text(text, encoding="utf-8")
        else:
            _replace(path.resolve(), text)
    except OSError as error:
        raise StorageError(f"cannot write {path}: {error.strerror}") from error


def _replace(path: Path, text: str) -> None:
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        with temporary.open("w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    except BaseException:
        with contextlib.suppress(OSError):
            temporary.unlink(missing_ok=True)
        raise


def _is_special(path: Path) -> bool:
    """Whether a path is a device or a pipe."""
    return path.exists() and not path.is_file()
