"""TODO."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

from fwbench.errors import UnreadableRun
from fwbench.records import entry as record


def files_of(path: Path) -> list[Path]:
    """A file itself, or the runs in a folder.

    Raises:
        UnreadableRun: there is none in the folder.
    """
    if not path.is_dir():
        return [path]
    files = sorted(path.glob("*.json"))
    if not files:
        raise UnreadableRun(f"{path} is a folder without a JSON file; name the runs in it")
    return files


def load(path: Path) -> dict[str, Any]:
    """The JSON of a run, looked at.

    Raises:
        UnreadableRun: it cannot be read, is cut off, or is not what pytest-benchmark writes.
    """
    return checked(path, parse(path))


def parse(path: Path) -> Any:
    """What a JSON file holds.

    Raises:
        UnreadableRun: it cannot be read, is empty, or is cut off.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise UnreadableRun(f"cannot read {path}: {error}") from error
    try:
        return json.loads(text)
    except ValueError as error:
        cut = "is empty" if not text.strip() else f"is no JSON, or cut off ({error})"
        raise UnreadableRun(f"{path} {cut}; measure again with --benchmark-json") from error


def checked(path: Path, found: Any) -> dict[str, Any]:
    """What a file holds, if that is a run.

    Raises:
        UnreadableRun: it is not what pytest-benchmark writes, or of a newer fwbench.
    """
    entries = found.get("benchmarks") if isinstance(found, dict) else None
    if not isinstance(entries, list):
        raise UnreadableRun(
            f"{path} is JSON, but not of pytest-benchmark: it has no list 'benchmarks'; give a "
            "file that --benchmark-json wrote"
        )
    surroundings = found.get("fwbench", {})
    schema = surroundings.get("schema", 0) if isinstance(surroundings, dict) else None
    if not isinstance(schema, int):
        raise UnreadableRun(f"{path} is no run as fwbench writes it: the file was changed")
    if schema > record.SCHEMA:
        raise UnreadableRun(
            f"{path} was written by a newer fwbench ({surroundings.get('version')}): its "
            f"schema is {schema}, and this one reads up to {record.SCHEMA}; upgrade fwbench"
        )
    for number, entry in enumerate(entries):
        if not _is_entry(entry):
            raise UnreadableRun(
                f"{path}: benchmark {number} has no name, or no times above 0; the file was "
                "changed, or is of something else"
            )
    run: dict[str, Any] = found
    return run


def _is_entry(entry: Any) -> bool:
    try:
        times = entry["stats"].get("data") or [entry["stats"]["min"]]
        facts = entry.get("extra_info", {}).get("fwbench", {})
        return (
            isinstance(facts, dict)
            and isinstance(entry["fullname"], str)
            and all(0 < time < math.inf for time in times)
        )
    except (AttributeError, KeyError, TypeError):
        return False
