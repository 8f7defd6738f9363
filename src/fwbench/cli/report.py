"""``fwbench report``: stored runs as one HTML file, as Markdown, or as CSV."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from fwbench import record
from fwbench.errors import UnreadableRun, UsageError
from fwbench.report import page, text
from fwbench.report.records import Run, read

_SOME_UNREADABLE = 1


def add_to(commands: Any) -> None:
    """Add the command."""
    report = commands.add_parser(
        "report",
        help="stored runs as one HTML file, as Markdown, or as CSV",
        description="The HTML file holds all that it shows, and asks for nothing from anywhere. "
        "Exit status 1 if a run could not be read; the others are in the report then.",
    )
    report.add_argument(
        "runs", nargs="+", type=Path, metavar="RUN", help="a file that --benchmark-json wrote"
    )
    report.add_argument("-o", "--output", type=Path, metavar="FILE", help="the HTML file to write")
    report.add_argument("--markdown", type=Path, metavar="FILE", help="the tables, for reviews")
    report.add_argument("--csv", type=Path, metavar="FILE", help="a line for each case")
    report.set_defaults(run=_report)


def _report(arguments: argparse.Namespace) -> int:
    outputs = [path for path in (arguments.output, arguments.markdown, arguments.csv) if path]
    if not outputs:
        raise UsageError("say what to write: -o report.html, --markdown FILE, --csv FILE")
    if {path.resolve() for path in outputs} & {path.resolve() for path in arguments.runs}:
        raise UsageError("a report would replace a run; write it to another file")
    for path in outputs:
        record.check_writable(path)
    runs, problems = _read(arguments.runs)
    for problem in problems:
        print(f"fwbench: {problem}", file=sys.stderr)
    if not runs:
        raise UsageError("none of these is a run; nothing is written")
    _write(arguments.output, partial(page.html, runs, problems))
    _write(arguments.markdown, partial(text.markdown, runs, problems))
    _write(arguments.csv, partial(text.table, runs))
    return _SOME_UNREADABLE if problems else 0


def _write(path: Path | None, make: Callable[[], str]) -> None:
    if path is not None:
        record.write_atomically(path, make())
        print(f"written: {path}")


def _read(paths: list[Path]) -> tuple[list[Run], list[str]]:
    runs: list[Run] = []
    problems = []
    for path in paths:
        try:
            runs.append(read(path, len(runs)))
        except UnreadableRun as error:
            problems.append(str(error))
    return runs, problems
