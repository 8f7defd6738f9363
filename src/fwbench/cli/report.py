"""``fwbench report``: stored runs as one HTML file, as Markdown, CSV, JSON, or pictures."""

from __future__ import annotations

import argparse
import dataclasses
import itertools
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from fwbench.cli.common import add_arguments, add_command, warn
from fwbench.errors import DeclarationError, StorageError, UnreadableRun, UsageError
from fwbench.records import files
from fwbench.records.stored import unknown_notice
from fwbench.report import history, sections, writers
from fwbench.report.discovery import extensions
from fwbench.report.drawing.chart import Chart, png, png_converter
from fwbench.report.model import Run, read
from fwbench.report.section import Section

_INCOMPLETE = 1

#: Characters of the name of a picture, without its number and its suffix.
_LONGEST_NAME = 120

#: The entry points by which packages add studies: published reports, and runs compared with them.
_STUDIES = "fwbench.studies"


def add_to(commands: Any) -> None:
    """Add the command to the command line."""
    report = add_command(commands, "report", _report)
    _add_studies(report)
    add_arguments(report, "report history")


def _add_studies(report: argparse.ArgumentParser) -> None:
    """Add the option of each study."""
    report.set_defaults(studies=[])
    try:
        every = extensions(None, _STUDIES, "OPTION", "HELP", "sections")
    except DeclarationError as error:
        # Other commands do without studies.
        report.set_defaults(run=partial(_refuse, error))
        return
    for study in every:
        report.add_argument(
            f"--{study.OPTION}", dest="studies", action="append_const", const=study, help=study.HELP
        )


def _refuse(error: DeclarationError, _: argparse.Namespace) -> int:
    raise error


def _report(arguments: argparse.Namespace) -> int:
    _check(arguments)
    runs, problems = _read(arguments.runs, arguments.only)
    if arguments.runs and not runs:
        warn(*problems)
        raise UsageError("none of these is a run; nothing is written")
    badge = _badge(runs) if arguments.badge else ""
    before = [
        dataclasses.replace(section, group="studies")
        for study in dict.fromkeys(arguments.studies)
        for section in study.sections(runs)
    ]
    if arguments.history:
        if arguments.add:
            added = history.add(arguments.history, arguments.add)
            print("".join(f"added: {path}\n" for path in added), end="")
        lines, unread = history.collect(arguments.history, arguments.only)
        before += history.sections(lines)
        problems += unread
    notice = unknown_notice([(run.name, run.unknown) for run in runs])
    incomplete = [f"{run.name}: {why}" for run in runs for why in run.shortfalls]
    warn(*problems, *incomplete, *([notice] if notice else []))
    _write(arguments.output, partial(writers.html, runs, problems, before))
    _write(arguments.markdown, partial(writers.markdown, runs, problems, before))
    _write(arguments.csv, partial(writers.comma_separated, runs))
    _write(arguments.json, partial(writers.as_json, runs))
    _write(arguments.badge, lambda: badge)
    if arguments.png:
        _draw(arguments.png, [*before, *sections.details(runs)])
    return _INCOMPLETE if problems or incomplete else 0


def _check(arguments: argparse.Namespace) -> None:
    """Refuse before any work what is not clear, or cannot be written."""
    texts = (arguments.output, arguments.markdown, arguments.csv, arguments.json)
    outputs = (*texts, arguments.badge)
    written = [path for path in outputs if path]
    _check_requested(arguments, nothing_written=not written)
    _check_outputs(arguments, [files.target(path) for path in written])
    for path in written:
        files.check_writable(path)
    if arguments.png:
        png_converter()
        _make(arguments.png)


#: The options for what -o does not write, by the suffixes of such files.
_OPTIONS = {".md": "--markdown", ".csv": "--csv"}


def _check_requested(arguments: argparse.Namespace, *, nothing_written: bool) -> None:
    if nothing_written and not arguments.png:
        raise UsageError(
            "say what to write: -o report.html, --markdown FILE, --csv FILE, --json FILE, "
            "--png FOLDER, --badge FILE"
        )
    if not (arguments.runs or arguments.history):
        raise UsageError("say what to show: files that --benchmark-json wrote, or --history FOLDER")
    if arguments.add and not arguments.history:
        raise UsageError("--add keeps runs in the folder of --history FOLDER, and none is given")
    suffix = arguments.output.suffix.lower() if arguments.output else ""
    if suffix in _OPTIONS:
        raise UsageError(
            f"-o writes a page in HTML, and {arguments.output} is named as another kind of file; "
            f"give {_OPTIONS[suffix]} {arguments.output}"
        )
    for option, path in (("--csv", arguments.csv), ("--json", arguments.json)):
        if path and not arguments.runs:
            raise UsageError(f"{option} holds the cases of RUN files, and none is given")


def _check_outputs(arguments: argparse.Namespace, outputs: Sequence[Path]) -> None:
    if {*outputs} & {files.target(path) for path in arguments.runs}:
        raise UsageError("a report would replace a run; write it to another file")
    history = arguments.history and files.target(arguments.history)
    if history and any(p.suffix == ".json" and p.is_relative_to(history) for p in outputs):
        raise UsageError("a report would be among the runs of the history; write it elsewhere")
    if len({*outputs}) < len(outputs):
        raise UsageError("two reports would be written to one file; give each its own")


def _write(path: Path | None, make: Callable[[], str]) -> None:
    if path is not None:
        files.write_atomically(path, make())
        if not files.is_special(path):  # or whoever reads /dev/stdout would find that in it
            print(f"written: {path}")


def _make(folder: Path) -> None:
    """Find out before anything is drawn whether pictures can be kept there."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise StorageError(f"cannot make the folder {folder}: {error.strerror}") from error
    files.check_writable(folder / "chart.png")


def _draw(folder: Path, drawn: Sequence[Section]) -> None:
    for name, chart in _named(sections.linkable(drawn)):
        path = folder / f"{name}.png"
        picture = png(chart)
        try:
            path.write_bytes(picture)
        except OSError as error:
            raise StorageError(f"cannot write {path}: {error.strerror}") from error
        print(f"written: {path}")


def _named(drawn: Iterable[Section]) -> Iterator[tuple[str, Chart]]:
    """Charts with names for their files: section and title, without figures in brackets."""
    taken: set[str] = set()
    for section in drawn:
        for chart in section.charts:
            title = chart.title.removeprefix(section.title).partition(" (")[0].replace(",", "")
            stem = sections.slug(f"{section.id.removeprefix('part-')} {title}")[:_LONGEST_NAME]
            numbered = (f"{stem}-{number}" for number in itertools.count(2))
            name = next(each for each in itertools.chain([stem], numbered) if each not in taken)
            taken.add(name)
            yield name, chart


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


def _badge(runs: Sequence[Run]) -> str:
    comparisons = [run.comparison for run in runs if run.comparison]
    if len(comparisons) != 1:
        raise UsageError(
            f"--badge is of one comparison, and {len(comparisons)} are given; give it a file that "
            "fwbench ab --json wrote"
        )
    return writers.badge(comparisons[0])


def _chosen(run: Run, only: str) -> Run:
    """A run with only those of its cases that have the text in their names."""
    comparison = run.comparison
    if comparison is not None:
        judged = [judgement for judgement in comparison.judgements if only in judgement.name]
        comparison = dataclasses.replace(comparison, judgements=judged)
    records = [record for record in run.records if only in record.name]
    return dataclasses.replace(run, records=records, comparison=comparison)
