"""A comparison for people: as a table on the terminal, and as Markdown for a pull request."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence

from fwbench.gate.samples import MEMORY, THRESHOLDS
from fwbench.gate.verdicts import Comparison, Judgement, Verdict
from fwbench.records.units import count, time
from fwbench.report import escaping

_MEBIBYTE = 2**20

#: Unchanged cases that are shown one by one.
_SHOWN_UNCHANGED = 20

_COLUMNS = (
    "verdict",
    "case",
    "metric",
    "base",
    "contender",
    "ratio",
    "90 % bounds",
    "detectable change",
    "",
)


def table(comparison: Comparison) -> list[str]:
    """The lines of a table: worst first; then means, counts and notes.

    Where nothing could be judged, the first line says so.
    """
    shown, left_out = _shown(comparison)
    cells = [header(comparison), *(row(judgement) for judgement in shown)]
    # In a single line, whatever names hold.
    rows = [[" ".join(escaping.terminal(cell).split()) for cell in row] for row in cells]
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
    around = [[escaping.terminal(line) for line in part(comparison)] for part in (_alarm, _summary)]
    return [*around[0], *lines, *around[1]]


def markdown(comparison: Comparison) -> str:
    """The comparison as Markdown, for a comment on a pull request."""
    shown, left_out = _shown(comparison)
    columns = header(comparison)
    lines = [
        f"### fwbench: {escaping.markdown(_headline(comparison))}",
        "",
        *(f"**{escaping.markdown(line)}**\n" for line in _alarm(comparison)),
        *(_row_of(cells) for cells in (columns, ["---"] * len(columns))),
        *(_row_of(row(judgement)) for judgement in shown),
        "",
        *([f"... and {count(left_out, 'unchanged case')} more", ""] if left_out else []),
        *(f"- {escaping.markdown(line)}" for line in _summary(comparison)),
    ]
    return "\n".join(lines) + "\n"


_FIRST_NUMBER = 3


def _row_of(cells: Sequence[str]) -> str:
    return "| " + " | ".join(map(escaping.markdown, cells)) + " |"


def header(comparison: Comparison) -> list[str]:
    """The columns of a comparison."""
    confidence = f"{comparison.rules['confidence']:.0%} bounds".replace("%", " %")
    return [confidence if "bounds" in name else name for name in _COLUMNS]


def _alarm(comparison: Comparison) -> list[str]:
    """Warning for a reader, before everything else."""
    interrupted = "interrupted: what follows is what was known by then"
    return [interrupted] * comparison.interrupted + _nothing_judged(comparison)


def _nothing_judged(comparison: Comparison) -> list[str]:
    if not comparison.is_all_inconclusive:
        return []
    number = sum(verdict is Verdict.INCONCLUSIVE for verdict in comparison.verdicts.values())
    cases = "the only case is" if number == 1 else f"all {number} cases are"
    return [f"nothing could be judged: {cases} inconclusive"]


def ranked(comparison: Comparison) -> list[Judgement]:
    """The judgements that are shown, the worst first.

    Of each case the one on its time, by the statistic that looks worse; of what else was judged
    only what is not unchanged.
    """
    times: dict[str, Judgement] = {}
    others: list[Judgement] = []
    for judgement in comparison.judgements:
        if judgement.metric in THRESHOLDS:
            if judgement.verdict is not Verdict.UNCHANGED:
                others.append(judgement)
        elif judgement.key not in times or _rank(judgement) < _rank(times[judgement.key]):
            times[judgement.key] = judgement
    return sorted([*times.values(), *others], key=_rank)


_ORDER = {verdict: place for place, verdict in enumerate(Verdict)}


def _rank(judgement: Judgement) -> tuple[int, float, str]:
    return (_ORDER[judgement.verdict], -_size(judgement), judgement.name)


def _shown(comparison: Comparison) -> tuple[list[Judgement], int]:
    ordered = ranked(comparison)
    changed = [judgement for judgement in ordered if judgement.verdict is not Verdict.UNCHANGED]
    unchanged = ordered[len(changed) :]
    shown = unchanged[:_SHOWN_UNCHANGED]
    return changed + shown, len(unchanged) - len(shown)


def _size(judgement: Judgement) -> float:
    """Size of a change, in either direction for improved ones."""
    change = math.log(judgement.ratio) if judgement.ratio else 0.0
    return abs(change) if judgement.verdict is Verdict.IMPROVED else change


def row(judgement: Judgement) -> list[str]:
    """The cells of one case."""
    if judgement.ratio is None:
        return [judgement.verdict, judgement.name, *[""] * 6, judgement.reason]
    text = _memory if judgement.metric == MEMORY else time
    visible = "nothing" if judgement.visible is None else f"+{judgement.visible:.1%}"
    return [
        judgement.verdict,
        judgement.name,
        judgement.metric,
        *(text(statistics.median(values)) for values in (judgement.base, judgement.contender)),
        f"{judgement.ratio - 1:+.1%}",
        f"{_bound(judgement.low)} to {_bound(judgement.high)}",
        visible,
        _why(judgement),
    ]


def _why(judgement: Judgement) -> str:
    """The reason, and on a GPU what changed in cycles of its clock."""
    ratio = judgement.cycles_ratio
    in_cycles = "" if ratio is None else f"in cycles {ratio - 1:+.1%}"
    return "; ".join(filter(None, [judgement.reason, in_cycles]))


def _memory(size_bytes: float) -> str:
    return f"{size_bytes / _MEBIBYTE:.0f} MiB"


def _bound(ratio: float | None) -> str:
    return "?" if ratio is None else f"{ratio - 1:+.1%}"


def _headline(comparison: Comparison) -> str:
    counts = ", ".join(f"{number} {verdict}" for verdict, number in comparison.counts.items())
    return f"{comparison.contender} against {comparison.base}: {counts or 'no case'}"


def _summary(comparison: Comparison) -> list[str]:
    means = [
        f"{name}: {mean:.3f}x of the base's time (geometric mean)"
        for name, mean in comparison.means.items()
    ]
    return [*means, _headline(comparison), *comparison.notes]
