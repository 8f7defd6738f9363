"""``fwbench report``: stored runs as one HTML file, as Markdown, as CSV, or as pictures."""

from __future__ import annotations

import argparse
import dataclasses
import sys
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from fwbench.errors import StorageError, UnreadableRun, UsageError
from fwbench.records import files
from fwbench.report import charts, history, sections
from fwbench.report.model import Run, read
from fwbench.report.sections import Part
from fwbench.report.writers import html, text
from fwbench.studies import report_2020

_SOME_UNREADABLE = 1


def add_to(commands: Any) -> None:
    """Add the command."""
    report = commands.add_parser(
        "report",
        help="stored runs as one HTML file, as Markdown, as CSV, or as pictures",
        description="The HTML file holds all that it shows, and asks for nothing from anywhere. "
        "Exit status 1 if a run could not be read; the others are in the report then.",
    )
    report.add_argument(
        "runs",
        nargs="*",
        type=Path,
        metavar="RUN",
        help="a file that --benchmark-json wrote, or --json of fwbench ab or gate",
    )
    report.add_argument("-o", "--output", type=Path, metavar="FILE", help="the HTML file to write")
    report.add_argument("--markdown", type=Path, metavar="FILE", help="the tables, for reviews")
    report.add_argument("--csv", type=Path, metavar="FILE", help="a line for each case")
    report.add_argument("--png", type=Path, metavar="FOLDER", help="every chart as a picture")
    report.add_argument(
        "-k", dest="only", metavar="TEXT", default="", help="only cases with this in their names"
    )
    report.add_argument(
        "--paper",
        action="store_true",
        help="beside the TensorFlow / MXNet report of 2020: its figures and its statements "
        "(measure with --fw-size paper)",
    )
    report.add_argument(
        "--history",
        type=Path,
        metavar="FOLDER",
        help="every case over all runs in a folder such as .benchmarks",
    )
    report.set_defaults(run=_report)


def _report(arguments: argparse.Namespace) -> int:
    _check(arguments)
    runs, problems = _read(arguments.runs, arguments.only)
    if arguments.runs and not runs:
        _tell(problems)
        raise UsageError("none of these is a run; nothing is written")
    before = report_2020.parts(runs) if arguments.paper else []
    if arguments.history:
        lines, unread = history.collect(arguments.history, arguments.only)
        before += history.parts(lines)
        problems += unread
    _tell(problems)
    _write(arguments.output, partial(html.html, runs, problems, before))
    _write(arguments.markdown, partial(text.markdown, runs, problems, before))
    _write(arguments.csv, partial(text.table, runs))
    if arguments.png:
        _draw(arguments.png, [*before, *sections.details(runs)])
    return _SOME_UNREADABLE if problems else 0


def _check(arguments: argparse.Namespace) -> None:
    """Find out before any work whether it is clear what is wanted, and whether it can be written.

    Raises:
        UsageError: it is not clear.
        StorageError: it cannot be written.
    """
    written = [path for path in (arguments.output, arguments.markdown, arguments.csv) if path]
    outputs = {path.resolve() for path in written}
    wrong = {
        "say what to write: -o report.html, --markdown FILE, --csv FILE, --png FOLDER": not written
        and not arguments.png,
        "say what to show: files that --benchmark-json wrote, or --history FOLDER": not (
            arguments.runs or arguments.history
        ),
        "--csv holds the cases of RUN files, and none is given": arguments.csv
        and not arguments.runs,
        "a report would replace a run; write it to another file": outputs
        & {path.resolve() for path in arguments.runs},
        "a report would lie among the runs of the history; write it elsewhere": arguments.history
        and any(_is_of(path, arguments.history) for path in outputs),
        "two reports would be written to one file; give each its own": len(outputs) < len(written),
    }
    for what, is_wrong in wrong.items():
        if is_wrong:
            raise UsageError(what)
    for path in written:
        files.check_writable(path)
    if arguments.png:
        charts.converter()
        _make(arguments.png)


def _is_of(path: Path, history: Path) -> bool:
    """Whether a file would be taken for a run of a history."""
    return path.suffix == ".json" and path.is_relative_to(history.resolve())


def _tell(problems: Sequence[str]) -> None:
    for problem in problems:
        print(f"fwbench: {problem}", file=sys.stderr)


def _write(path: Path | None, make: Callable[[], str]) -> None:
    if path is not None:
        files.write_atomically(path, make())
        print(f"written: {path}")


def _make(folder: Path) -> None:
    """Find out before anything is drawn whether pictures can be kept there.

    Raises:
        StorageError: they cannot.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise StorageError(f"cannot make the folder {folder}: {error.strerror}") from error
    files.check_writable(folder / "chart.png")


def _draw(folder: Path, drawn: Sequence[Part]) -> None:
    for part in sections.linkable(drawn):
        for number, chart in enumerate(part.charts, 1):
            path = folder / f"{part.id.removeprefix('part-')}-{number}.png"
            picture = charts.png(chart)
            try:
                path.write_bytes(picture)
            except OSError as error:
                raise StorageError(f"cannot write {path}: {error.strerror}") from error
            print(f"written: {path}")


def _read(paths: list[Path], only: str) -> tuple[list[Run], list[str]]:
    runs: list[Run] = []
    problems = []
    for path in paths:
        try:
            run = read(path, len(runs))
        except UnreadableRun as error:
            problems.append(str(error))
            continue
        runs.append(_chosen(run, only))
        if only and runs[-1].is_empty:
            problems.append(f"{path}: no case has {only!r} in its name")
    return runs, problems


def _chosen(run: Run, only: str) -> Run:
    """A run with those of its cases that have something in their names."""
    comparison = run.comparison
    if comparison is not None:
        judged = [one for one in comparison.judgements if only in one.name]
        comparison = dataclasses.replace(comparison, judgements=judged)
    records = [one for one in run.records if only in one.name]
    return dataclasses.replace(run, records=records, comparison=comparison)
