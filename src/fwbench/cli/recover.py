"""``fwbench recover``: the JSON of a session that was interrupted or crashed."""

import argparse
from pathlib import Path
from typing import Any

from fwbench import ceilings
from fwbench.cli.common import add_command, print_result, warn
from fwbench.errors import UsageError
from fwbench.jsontext import dumps
from fwbench.plugin import host
from fwbench.records import files
from fwbench.records.journal import finish, is_finished, is_running, journal_folder, recover
from fwbench.records.units import count


def add_to(commands: Any) -> None:
    """Add ``fwbench recover`` to the commands."""
    add_command(commands, "recover", _recover)


def _recover(arguments: argparse.Namespace) -> int:
    path = arguments.journal or _latest_journal()
    if files.target(arguments.output) == files.target(path):
        raise UsageError(f"{path} is the journal, and would be lost; write to another file")
    recovered = recover(path, host.with_statistics)
    run = recovered.run
    ceilings.annotate(run["benchmarks"], ceilings.of_run(run))
    # Without indentation it is no larger than the journal, and so can be read again.
    files.write_atomically(arguments.output, dumps(run))
    if not (is_finished(path) or is_running(path)):
        finish(path, resumable=True)
    warn(*(f"left out: {problem}" for problem in recovered.lost))
    interrupted = run.get("fwbench", {}).get("outcome", {}).get("interrupted")
    ended = ", whose session was interrupted," if interrupted else ""
    records = count(len(run["benchmarks"]), "record")
    facts = {
        "journal": str(path),
        "output": str(arguments.output),
        "records": len(run["benchmarks"]),
        "left_out": [*recovered.lost],
    }
    text = f"{records} of {path}{ended} written to {arguments.output}"
    print_result(arguments, facts, text)
    return 0


def _latest_journal() -> Path:
    folder = journal_folder(Path())
    # An empty one is of a session that was killed before it began.
    journals = sorted(path for path in folder.glob("*.jsonl") if path.stat().st_size)
    if not journals:
        raise UsageError(f"there is no journal under {folder}; name one, or go to its project")
    return journals[-1]
