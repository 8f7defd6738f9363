"""A comparison for people: as a table on the terminal, and as Markdown for a pull request."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence

from fwbench.gate.verdicts import Comparison, Judgement, Verdict
from fwbench.records.units import count, time

#: Unchanged cases that are shown one by one.
_SHOWN_UNCHANGED = 20

_COLUMNS = (
    "verdict",
    "case",
    "base",
    "contender",
    "ratio",
    "99 % interval",
    "detectable change",
    "",
)


def table(comparison: Comparison) -> list[str]:
    """The lines of a table: worst first; then means, counts and notes."""
    shown, left_out = _shown(comparison)
    rows = [header(comparison), *(row(judgement) for judgement in shown)]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = [
        "  ".join(
            cell.ljust(width) if i < _FIRST_NUMBER else cell.rjust(width)
            for i, (cell, width) in enumerate(zip(row[:-1], widths, strict=False))
        )
        + ("  " + row[-1] if row[-1] else "")
        for row in rows
    ]
    if left_out:
        lines.append(f"... and {count(left_out, 'unchanged case')} more")
    return [*lines, *_summary(comparison)]


def markdown(comparison: Comparison) -> str:
    """The comparison as Markdown, for a comment on a pull request."""
    shown, left_out = _shown(comparison)
    columns = header(comparison)
    lines = [
        f"### fwbench: {_headline(comparison)}",
        "",
        *(_row_of(cells) for cells in (columns, ["---"] * len(columns))),
        *(_row_of(row(judgement)) for judgement in shown),
        "",
        *([f"... and {count(left_out, 'unchanged case')} more", ""] if left_out else []),
        *(f"- {line.strip()}" for line in _summary(comparison)),
    ]
    return "\n".join(lines) + "\n"


_FIRST_NUMBER = 2


def _row_of(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


def header(comparison: Comparison) -> list[str]:
    """The columns of a comparison."""
    confidence = f"{comparison.rules['confidence']:.0%} interval".replace("%", " %")
    return [confidence if "interval" in name else name for name in _COLUMNS]


def ranked(comparison: Comparison) -> list[Judgement]:
    """All cases, the worst first."""
    order = {verdict: place for place, verdict in enumerate(Verdict)}
    return sorted(
        comparison.judgements,
        key=lambda judgement: (order[judgement.verdict], -_size(judgement), judgement.name),
    )


def _shown(comparison: Comparison) -> tuple[list[Judgement], int]:
    ordered = ranked(comparison)
    changed = [judgement for judgement in ordered if judgement.verdict is not Verdict.UNCHANGED]
    unchanged = ordered[len(changed) :]
    shown = unchanged[:_SHOWN_UNCHANGED]
    return changed + shown, len(unchanged) - len(shown)


def _size(judgement: Judgement) -> float:
    """How large a change is, in either direction for those that improved."""
    change = math.log(judgement.ratio) if judgement.ratio else 0.0
    return abs(change) if judgement.verdict is Verdict.IMPROVED else change


def row(judgement: Judgement) -> list[str]:
    """The cells of one case."""
    if judgement.ratio is None or judgement.low is None or judgement.high is None:
        return [judgement.verdict, judgement.name, "", "", "", "", "", judgement.reason]
    base_s, contender_s = (
        time(statistics.median(values)) for values in (judgement.base_s, judgement.contender_s)
    )
    visible = "nothing" if judgement.visible is None else f"+{judgement.visible:.1%}"
    return [
        judgement.verdict,
        judgement.name,
        base_s,
        contender_s,
        f"{judgement.ratio - 1:+.1%}",
        f"{judgement.low - 1:+.1%} to {judgement.high - 1:+.1%}",
        visible,
        judgement.reason,
    ]


def _headline(comparison: Comparison) -> str:
    counts = ", ".join(f"{number} {verdict}" for verdict, number in comparison.counts.items())
    return f"{comparison.contender} against {comparison.base}: {counts or 'no case'}"


def _summary(comparison: Comparison) -> list[str]:
    means = [
        f"{name}: {mean:.3f}x of the base's time (geometric mean)"
        for name, mean in comparison.means.items()
    ]
    return [*means, _headline(comparison), *comparison.notes]
