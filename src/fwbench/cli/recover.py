"""``fwbench recover``: the JSON of a session that was interrupted or crashed."""

import argparse
import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from fwbench import ceilings
from fwbench.cli.common import add_command, print_result, warn
from fwbench.errors import UsageError
from fwbench.jsontext import dumps
from fwbench.plugin import host
from fwbench.project import project_root
from fwbench.records import files
from fwbench.records.journal import (
    finish,
    has_record,
    is_finished,
    is_running,
    journal_folder,
    newest_first,
    recover,
)
from fwbench.records.journal import head as journal_head
from fwbench.records.units import count
from fwbench.report import escaping


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
        "session": _session(run),
    }
    text = f"{records} of {path}{ended} written to {arguments.output}"
    print_result(arguments, facts, "\n".join([text, *filter(None, [_session(run)])]))
    return 0


def _session(head: Mapping[str, Any]) -> str:
    """When a session began, and its command line; empty if its journal does not say."""
    began, arguments = head.get("datetime"), head.get("fwbench", {}).get("arguments") or ()
    if not began:
        return ""
    return escaping.terminal(
        f"the session began {str(began)[:19].replace('T', ' ')} UTC: "
        f"{shlex.join(['pytest', *map(str, arguments)])}"
    )


def _latest_journal() -> Path:
    """The journal of the latest session.

    Raises:
        UsageError: there is none, or that session has no record: an older one is not meant.
    """
    here, root = Path(), project_root(Path())
    folder = journal_folder(here if root == here.absolute() else root)
    # An empty one is of a session that was killed before it began.
    journals = [path for path in newest_first(folder) if path.stat().st_size]
    if not journals:
        raise UsageError(f"there is no journal under {folder}; name one, or go to its project")
    latest = journals[0]
    if has_record(latest):
        return latest
    earlier = [path for path in journals if has_record(path)][:1]
    hint = "".join(f"; fwbench recover {path} writes those of the one before" for path in earlier)
    told = _session(journal_head(latest)) or "it does not say when it began"
    raise UsageError(f"the latest session has no record in {latest} ({told}){hint}")
