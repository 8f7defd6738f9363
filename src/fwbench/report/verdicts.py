"""Verdicts of comparisons in words: as a table, or as Markdown."""

import math
import statistics
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace

from fwbench.errors import some
from fwbench.gate.samples import THRESHOLDS
from fwbench.gate.verdicts import Comparison, Judgement, Verdict
from fwbench.records.measurement import MEMORY, MEMORY_BEFORE
from fwbench.records.session_facts import DESELECTED
from fwbench.records.units import count, time
from fwbench.report import escaping
from fwbench.report.section import Column, TableCell
from fwbench.report.terminal.text import plain_lines

_MEBIBYTE = 2**20

#: Unchanged cases that are shown one by one.
_SHOWN_UNCHANGED = 20

#: The share of cases in which a change must show for a machine to be said to see it.
MOST = 0.9

#: Verdicts on cases that are not on both sides, or not the same there: no change could have shown.
_INCOMPARABLE = (Verdict.DIFFERENT, Verdict.MISSING, Verdict.NEW)


def _judged(
    text: Callable[[Judgement], str], value: Callable[[Judgement], float | None] = lambda _: None
) -> Callable[[Judgement], TableCell]:
    """A cell with a text only where the judgement has a ratio."""
    return lambda j: TableCell("" if j.ratio is None else text(j), value(j))


def _figure(judgement: Judgement, values: Sequence[float]) -> str:
    if judgement.metric in (MEMORY, MEMORY_BEFORE):
        return f"{statistics.median(values) / _MEBIBYTE:.0f} MiB"
    return time(statistics.median(values))


def _median(values: Sequence[float]) -> float | None:
    return statistics.median(values) if values else None


def _change(ratio: float | None) -> str:
    return "?" if ratio is None else f"{ratio - 1:+.1%}"


def _bounds(judgement: Judgement) -> str:
    if judgement.low is judgement.high is None:
        return ""
    return f"{_change(judgement.low)} to {_change(judgement.high)}"


def _visible(judgement: Judgement) -> str:
    return "nothing" if judgement.visible is None else f"+{judgement.visible:.1%}"


def _why(judgement: Judgement) -> TableCell:
    """The reason, and on a GPU the change in cycles of its clock."""
    ratio = None if judgement.ratio is None else judgement.cycles_ratio
    in_cycles = "" if ratio is None else f"in cycles {_change(ratio)}"
    return TableCell("; ".join(filter(None, [judgement.reason, in_cycles])))


_BOUNDS = "bounds"

_COLUMNS: tuple[Column[Judgement], ...] = (
    Column("verdict", lambda j: TableCell(j.verdict)),
    Column("case", lambda j: TableCell(j.name)),
    Column("metric", _judged(lambda j: j.metric)),
    Column("base", _judged(lambda j: _figure(j, j.base), lambda j: _median(j.base))),
    Column("contender", _judged(lambda j: _figure(j, j.contender), lambda j: _median(j.contender))),
    Column("ratio", _judged(lambda j: _change(j.ratio), lambda j: j.ratio)),
    Column(_BOUNDS, _judged(_bounds)),
    Column("detectable change", _judged(_visible, lambda j: j.visible)),
    Column("", _why),
)

#: Columns before the first one of numbers.
_TEXTS = 3


def columns(comparison: Comparison, why: str = "") -> list[Column[Judgement]]:
    """The columns of a comparison, all of them shown; the bounds with their confidence."""
    bounds = f"{comparison.rules['confidence']:.0%} bounds".replace("%", " %")
    names = {_BOUNDS: bounds, "": why}
    return [
        replace(column, name=names.get(column.name, column.name), optional=False)
        for column in _COLUMNS
    ]


def _texts(comparison: Comparison, judgements: Iterable[Judgement]) -> list[list[str]]:
    shown = columns(comparison)
    rows = [[column.cell(judgement).text for column in shown] for judgement in judgements]
    return [[column.name for column in shown], *rows]


# The comparison


def table(comparison: Comparison, width: int | None = None) -> list[str]:
    """The lines of a table: worst first; then means, counts and notes.

    Where nothing could be judged, the first line says so.

    Args:
        width: of the terminal; None where a case has one line, however long that is.
    """
    shown, more = _shown(comparison)
    # Names may hold line breaks.
    rows = [
        [" ".join(escaping.terminal(cell).split()) for cell in row]
        for row in _texts(comparison, shown)
    ]
    above = [*map(escaping.terminal, [*_alarm(comparison), *_versions(comparison)])]
    below = [*map(escaping.terminal, [*more, *_summary(comparison)])]
    if width is None:
        return [*above, *_in_lines(rows), *below]
    return [*plain_lines(above, width), *_within(rows, width), *plain_lines(below, width)]


def _in_lines(rows: Sequence[Sequence[str]], texts: int = _TEXTS) -> list[str]:
    """Rows with aligned cells, the last one apart, which is a reason of any length.

    Args:
        texts: the number of columns before the first one of numbers.
    """
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return [
        "  ".join(
            cell.ljust(width) if i < texts else cell.rjust(width)
            for i, (cell, width) in enumerate(zip(row[:-1], widths, strict=False))
        )
        + ("  " + row[-1] if row[-1] else "")
        for row in rows
    ]


def _within(rows: Sequence[Sequence[str]], width: int) -> list[str]:
    """Rows as lines of at most this width."""
    return [
        line
        for beside, below in _laid_out(rows, width)
        for line in plain_lines([beside, *(f"  {text}" for text in below if text)], width)
    ]


def _laid_out(rows: Sequence[Sequence[str]], width: int) -> Iterable[tuple[str, Sequence[str]]]:
    """Rows with the texts below them: reasons where these have no room, then cases, then all."""
    head, *cases = rows
    lines = _in_lines(rows)
    if max(map(len, lines)) <= width:
        return [(line, ()) for line in lines]
    lines = _in_lines([[*row[:-1], ""] for row in rows])
    if max(map(len, lines)) <= width:
        return zip(lines, ([row[-1]] for row in rows), strict=True)
    names = [*head[:1], *head[2:-2], head[-2].partition(" ")[0], ""]
    lines = _in_lines([names, *([row[0], *row[2:-1], ""] for row in cases)], _TEXTS - 1)
    if max(map(len, lines)) <= width:
        return zip(lines, [(), *([row[1], row[-1]] for row in cases)], strict=True)
    return [(f"{row[0]} {row[1]}", [_in_words(head, row), row[-1]]) for row in cases]


def _in_words(names: Sequence[str], row: Sequence[str]) -> str:
    """The numbers of a row: ``median 61 us -> 74 us, +21.3%, ...``; empty where there are none."""
    metric, base, contender, ratio, *others = row[_TEXTS - 1 : -1]
    if not ratio:
        return ""
    more = [f"{name} {cell}" for name, cell in zip(names[-3:], others, strict=False) if cell]
    return ", ".join([f"{metric} {base} -> {contender}", ratio, *more])


def markdown(comparison: Comparison) -> str:
    """The comparison as Markdown, for a comment on a pull request.

    Where no case and no package has changed, the first line says so, and all else is behind
    :data:`fwbench.report.escaping.FOLDED`.
    """
    heading = f"{escaping.HEADING}{escaping.markdown(_headline(comparison))}"
    would = escaping.markdown(_would_have_shown(comparison))
    if not (
        comparison.interrupted or comparison.versions or {*comparison.counts} - {Verdict.UNCHANGED}
    ):
        heading = ": ".join(filter(None, [heading, would]))
        lines = [heading, "", escaping.FOLDED, "", *_markdown_table(comparison), "", "</details>"]
        return "\n".join(lines) + "\n"
    lines = [
        heading,
        "",
        *(f"**{escaping.markdown(line)}**\n" for line in _alarm(comparison)),
        *(f"- {escaping.markdown(line)}" for line in _versions(comparison)),
        *([""] if comparison.versions else []),
        *_markdown_table(comparison),
        *([f"- {would}"] if would else []),
    ]
    return "\n".join(lines) + "\n"


def _markdown_table(comparison: Comparison) -> list[str]:
    """The lines of the table, then means, counts and notes."""
    shown, more = _shown(comparison)
    head, *rows = _texts(comparison, shown)
    return [
        *(escaping.markdown_row(cells) for cells in (head, ["---"] * len(head), *rows)),
        "",
        *(line for each in more for line in (escaping.markdown(each), "")),
        *(f"- {escaping.markdown(line)}" for line in _summary(comparison)),
    ]


def detectable(comparison: Comparison, share: float) -> float | None:
    """The change of the time that would have shown, as a share, in this share of the cases.

    None where no change would have shown in that many, and without a case on both sides.
    """
    visible = sorted(
        math.inf if judgement.visible is None else judgement.visible
        for judgement in ranked(comparison)
        if judgement.metric not in THRESHOLDS and judgement.verdict not in _INCOMPARABLE
    )
    if not visible:
        return None
    change = visible[math.ceil(share * len(visible)) - 1]
    return None if change == math.inf else change


def _would_have_shown(comparison: Comparison) -> str:
    """The change that most cases would have shown; empty if half of them would have shown none."""
    shares = {"nine of ten": MOST, "half of the": 0.5}
    changes = {which: detectable(comparison, share) for which, share in shares.items()}
    texts = (f"{c:+.1%} would have shown in {which} cases" for which, c in changes.items() if c)
    return next(texts, "")


def _alarm(comparison: Comparison) -> list[str]:
    """Lines to be read before anything else."""
    lines = ["interrupted: what follows is what was known by then"] * comparison.interrupted
    if comparison.is_all_inconclusive:
        number = sum(verdict is Verdict.INCONCLUSIVE for verdict in comparison.verdicts.values())
        cases = "the only case is" if number == 1 else f"all {number} cases are"
        lines.append(f"nothing could be judged: {cases} inconclusive")
    return lines


def _versions(comparison: Comparison) -> list[str]:
    """Packages that differ between two builds, which verdicts are to be read with."""
    return [str(change) for change in comparison.versions]


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


def _shown(comparison: Comparison) -> tuple[list[Judgement], list[str]]:
    """The cases of a table, and lines on those that it leaves out: deselected, or unchanged."""
    every = ranked(comparison)
    deselected = [each for each in every if each.reason == DESELECTED]
    ordered = [each for each in every if each not in deselected]
    left_out = []
    if deselected:
        names = some([judgement.name for judgement in deselected])
        left_out.append(f"missing: {count(len(deselected), 'case')}, deselected: {names}")
    changed = [judgement for judgement in ordered if judgement.verdict is not Verdict.UNCHANGED]
    unchanged = ordered[len(changed) :]
    shown, others = unchanged[:_SHOWN_UNCHANGED], unchanged[_SHOWN_UNCHANGED:]
    if not others:
        return changed + shown, left_out
    ratios = [judgement.ratio for judgement in others if judgement.ratio is not None]
    ends = dict.fromkeys(_change(end) for end in (min(ratios), max(ratios))) if ratios else {}
    between = f", of {' to '.join(ends)}" * bool(ends)
    unchanged_more = f"... and {count(len(others), 'unchanged case')} more{between}"
    return changed + shown, [unchanged_more, *left_out]


def _size(judgement: Judgement) -> float:
    """The size of a change, in either direction for those that improved."""
    change = math.log(judgement.ratio) if judgement.ratio else 0.0
    return abs(change) if judgement.verdict is Verdict.IMPROVED else change


def _headline(comparison: Comparison) -> str:
    counts = ", ".join(f"{number} {verdict}" for verdict, number in comparison.counts.items())
    return f"{comparison.contender} against {comparison.base}: {counts or 'no case'}"


def notes(comparison: Comparison) -> list[str]:
    """All that is said of a comparison as a whole."""
    return [*_alarm(comparison), *_versions(comparison), *_summary(comparison)]


def _summary(comparison: Comparison) -> list[str]:
    means = [
        f"{name}: {mean:.3f}x of the base's time (geometric mean)"
        for name, mean in comparison.means.items()
    ]
    return [*means, _headline(comparison), *comparison.notes]
