"""``fwbench recover``: the JSON of a session that was interrupted or crashed."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from fwbench import ceilings, record
from fwbench.errors import StorageError


def add_to(commands: Any) -> None:
    """Add the command."""
    recover = commands.add_parser(
        "recover", help="write the JSON of a session that was interrupted or crashed"
    )
    recover.add_argument(
        "journal",
        nargs="?",
        type=Path,
        help="the session's journal (default: the latest under .fwbench/journal)",
    )
    recover.add_argument("-o", "--output", type=Path, required=True, help="the JSON file to write")
    recover.set_defaults(run=_recover)


def _recover(arguments: argparse.Namespace) -> int:
    journal = arguments.journal or _latest_journal()
    run = record.recover(journal)
    ceilings.annotate(run["benchmarks"], ceilings.of_run(run))
    record.write_atomically(arguments.output, record.dumps(run))
    print(f"{len(run['benchmarks'])} records of {journal} written to {arguments.output}")
    return 0


def _latest_journal() -> Path:
    folder = record.journal_folder(Path())
    journals = sorted(folder.glob("*.jsonl"))
    if not journals:
        raise StorageError(f"there is no journal under {folder}; name one, or go to its project")
    return journals[-1]
