"""The report as Markdown, for pull requests and README files, and as CSV, for spreadsheets."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence

from fwbench.report import summary
from fwbench.report.model import Run
from fwbench.report.sections import Part, details

_COLUMNS = (
    *("run", "case", "workload", "framework", "device", "execution", "direction", "dtype", "size"),
    *("median_s", "low_s", "high_s", "dispatch_s", "first_call_s", "values", "of"),
)


def markdown(runs: Sequence[Run], problems: Sequence[str] = (), before: Sequence[Part] = ()) -> str:
    """Summary and tables, without charts; see :func:`fwbench.report.writers.html.html`."""
    lines = [f"- {_escaped(note)}" for note in (*problems, *summary.notes(runs))]
    for part in (*summary.parts(runs), *before, *details(runs)):
        notes = [_escaped(note) for note in part.notes]
        lines += ["", f"### {_escaped(part.title)}", "", *notes, "", *_table(part)]
    return "\n".join(lines).strip() + "\n"


def _table(part: Part) -> list[str]:
    rows = [[cell.text for cell in row.cells] for row in part.rows]
    under = ["---", *("---:" for _ in part.columns[1:])]
    return [_row(cells) for cells in (list(part.columns), under, *rows)]


def _row(cells: Sequence[str]) -> str:
    return "| " + " | ".join(map(_escaped, cells)) + " |"


def _escaped(text: str) -> str:
    """In one line, and no markup."""
    for sign, harmless in (("\\", "\\\\"), ("|", "\\|"), ("<", "&lt;")):
        text = text.replace(sign, harmless)
    return " ".join(text.split())


def table(runs: Sequence[Run]) -> str:
    """A line for each case, as CSV (RFC 4180); times in seconds for one call."""
    written = io.StringIO()
    writer = csv.writer(written)
    writer.writerow(_COLUMNS)
    for run in runs:
        for record in run.records:
            low_s, high_s = record.quartiles_s
            parts = (record.facts.get(name, "") for name in _COLUMNS[2:9])
            writer.writerow(
                [
                    *(run.name, record.name, *parts, record.median_s, low_s, high_s),
                    *(record.facts.get(name, "") for name in ("dispatch_s", "first_call_s")),
                    *(record.number, record.measured.partition(" ")[2]),
                ]
            )
    return written.getvalue()
