"""A comparison for people: as a table on the terminal, and as Markdown for a pull request."""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from fwbench.gate.samples import THRESHOLDS
from fwbench.gate.verdicts import Comparison, Judgement, Verdict
from fwbench.records.measurement import MEMORY
from fwbench.records.units import count, time
from fwbench.report import escaping

_MEBIBYTE = 2**20

#: Unchanged cases that are shown one by one.
_SHOWN_UNCHANGED = 20

# Columns


@dataclass(frozen=True)
class ComparedColumn:
    """A column of a comparison.

    Attributes:
        name: head; ``bounds`` stands for the confidence of the bounds.
        judged: returns the text of a judgement that has a ratio.
        value: returns the number that sorts it; None for none.
        always: returns the text of a judgement without a ratio.
    """

    name: str
    judged: Callable[[Judgement], str]
    value: Callable[[Judgement], float | None] = lambda _: None
    always: Callable[[Judgement], str] = lambda _: ""

    def text(self, judgement: Judgement) -> str:
        """The text of a judgement."""
        return (self.always if judgement.ratio is None else self.judged)(judgement)


def _figure(judgement: Judgement, values: Sequence[float]) -> str:
    if judgement.metric == MEMORY:
        return f"{statistics.median(values) / _MEBIBYTE:.0f} MiB"
    return time(statistics.median(values))


def _median(values: Sequence[float]) -> float | None:
    return statistics.median(values) if values else None


def _change(ratio: float | None) -> str:
    return "?" if ratio is None else f"{ratio - 1:+.1%}"


def _bounds(judgement: Judgement) -> str:
    return f"{_change(judgement.low)} to {_change(judgement.high)}"


def _visible(judgement: Judgement) -> str:
    return "nothing" if judgement.visible is None else f"+{judgement.visible:.1%}"


def _why(judgement: Judgement) -> str:
    """The reason, and on a GPU the change in cycles of its clock."""
    ratio = judgement.cycles_ratio
    in_cycles = "" if ratio is None else f"in cycles {_change(ratio)}"
    return "; ".join(filter(None, [judgement.reason, in_cycles]))


COLUMNS = (
    ComparedColumn("verdict", lambda j: j.verdict, always=lambda j: j.verdict),
    ComparedColumn("case", lambda j: j.name, always=lambda j: j.name),
    ComparedColumn("metric", lambda j: j.metric),
    ComparedColumn("base", lambda j: _figure(j, j.base), lambda j: _median(j.base)),
    ComparedColumn("contender", lambda j: _figure(j, j.contender), lambda j: _median(j.contender)),
    ComparedColumn("ratio", lambda j: _change(j.ratio), lambda j: j.ratio),
    ComparedColumn("bounds", _bounds),
    ComparedColumn("detectable change", _visible, lambda j: j.visible),
    ComparedColumn("", _why, always=lambda j: j.reason),
)

#: Columns before the first one of numbers.
_TEXTS = 3


def header(comparison: Comparison) -> list[str]:
    """The heads of the columns of a comparison."""
    bounds = f"{comparison.rules['confidence']:.0%} bounds".replace("%", " %")
    return [bounds if column.name == "bounds" else column.name for column in COLUMNS]


def row(judgement: Judgement) -> list[str]:
    """The texts of one case."""
    return [column.text(judgement) for column in COLUMNS]


# The comparison


def table(comparison: Comparison) -> list[str]:
    """The lines of a table: worst first; then means, counts and notes.

    Where nothing could be judged, the first line says so.
    """
    shown, left_out = _shown(comparison)
    cells = [header(comparison), *(row(judgement) for judgement in shown)]
    # Names may hold line breaks.
    rows = [[" ".join(escaping.terminal(cell).split()) for cell in row] for row in cells]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = [
        "  ".join(
            cell.ljust(width) if i < _TEXTS else cell.rjust(width)
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


def _row_of(cells: Sequence[str]) -> str:
    return "| " + " | ".join(map(escaping.markdown, cells)) + " |"


def _alarm(comparison: Comparison) -> list[str]:
    """Lines to be read before anything else."""
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

    Of each case the one on its time, by the statistic that looks worse; of other metrics only
    those that are not unchanged.
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
    """The size of a change, in either direction for those that improved."""
    change = math.log(judgement.ratio) if judgement.ratio else 0.0
    return abs(change) if judgement.verdict is Verdict.IMPROVED else change


def _headline(comparison: Comparison) -> str:
    counts = ", ".join(f"{number} {verdict}" for verdict, number in comparison.counts.items())
    return f"{comparison.contender} against {comparison.base}: {counts or 'no case'}"


def _summary(comparison: Comparison) -> list[str]:
    means = [
        f"{name}: {mean:.3f}x of the base's time (geometric mean)"
        for name, mean in comparison.means.items()
    ]
    return [*means, _headline(comparison), *comparison.notes]
