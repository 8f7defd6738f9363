"""The report as Markdown, for pull requests and README files."""

from __future__ import annotations

from collections.abc import Sequence

from fwbench.report import escaping, summary
from fwbench.report.model import Run
from fwbench.report.section import Section
from fwbench.report.sections import details


def render(
    runs: Sequence[Run], problems: Sequence[str] = (), before: Sequence[Section] = ()
) -> str:
    """Summary and tables, without charts.

    Args:
        runs: in the order in which they are shown.
        problems: files that could not be read, each with the reason.
        before: sections that are shown before those of the runs.
    """
    lines = [f"- {escaping.markdown(note)}" for note in (*problems, *summary.notes(runs))]
    for section in (*summary.sections(runs), *before, *details(runs)):
        notes = [escaping.markdown(note) for note in section.notes]
        gaps = [f"- Gap: {escaping.markdown(gap)}" for gap in section.gaps]
        lines += ["", f"### {escaping.markdown(section.title)}", "", *notes, "", *_table(section)]
        lines += ["", *gaps] if gaps else []
    return "\n".join(lines).strip() + "\n"


def _table(section: Section) -> list[str]:
    rows = [[cell.text for cell in row.cells] for row in section.rows]
    under = ["---", *("---:" for _ in section.columns[1:])]
    return [_row(cells) for cells in (list(section.columns), under, *rows)]


def _row(cells: Sequence[str]) -> str:
    return "| " + " | ".join(map(escaping.markdown, cells)) + " |"
