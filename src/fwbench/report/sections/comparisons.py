"""Results of a gate or of ``fwbench ab``."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from statistics import median

from fwbench.gate.samples import THRESHOLDS
from fwbench.gate.verdicts import Comparison, Judgement
from fwbench.report import verdicts
from fwbench.report.drawing import bars, changes
from fwbench.report.drawing.chart import Chart, Point
from fwbench.report.model import Run
from fwbench.report.section import Row, Section, TableCell

ORDER = 10

#: Cases that are drawn, the worst first.
_DRAWN = 40


def sections(runs: Sequence[Run], names: Sequence[str]) -> list[Section]:
    """A section for each run that was compared with another.

    Args:
        runs: in the order to show them.
        names: of the runs.
    """
    return [
        _section(run.comparison, f" ({name})" if len(runs) > 1 else "")
        for run, name in zip(runs, names, strict=True)
        if run.comparison is not None
    ]


def _section(comparison: Comparison, suffix: str) -> Section:
    title = f"{comparison.contender} against {comparison.base}{suffix}"
    ranked = verdicts.ranked(comparison)
    times = [judgement for judgement in ranked if judgement.metric not in THRESHOLDS]
    columns = verdicts.header(comparison)
    drawn = [_counts(title, comparison), _changes(title, times[:_DRAWN])]
    return Section(
        title,
        [name or "why" for name in columns],
        [_row(judgement, columns) for judgement in ranked],
        [chart for chart in drawn if chart is not None],
        comparison.notes,
    )


def _row(judgement: Judgement, columns: Sequence[str]) -> Row:
    base, contender = (median(of) if of else None for of in (judgement.base, judgement.contender))
    values = {
        "base": base,
        "contender": contender,
        "ratio": judgement.ratio,
        "detectable change": judgement.visible,
    }
    cells = [
        TableCell(text, values.get(column))
        for column, text in zip(columns, verdicts.row(judgement), strict=True)
    ]
    return Row(cells, {"framework": judgement.framework} if judgement.framework else {})


def _counts(title: str, comparison: Comparison) -> Chart | None:
    counts = {verdict: {"cases": number} for verdict, number in comparison.counts.items()}
    return bars.draw(f"{title}: verdicts", counts, "{:.0f}".format) if counts else None


def _changes(title: str, judgements: Sequence[Judgement]) -> Chart | None:
    series: dict[str, dict[str, Point]] = {}
    names = Counter(judgement.name for judgement in judgements)
    for judgement in judgements:
        point = _change(judgement)
        if point is not None:
            name = judgement.name if names[judgement.name] == 1 else judgement.key
            series.setdefault(judgement.verdict, {})[name] = point
    if not series:
        return None
    return changes.draw(f"{title}: change of the time, with its interval", series)


def _change(judgement: Judgement) -> Point | None:
    """In per cent."""
    ratios = (judgement.ratio, judgement.low, judgement.high)
    change, low, high = (None if ratio is None else 100 * (ratio - 1) for ratio in ratios)
    if change is None or low is None or high is None:
        return None
    return Point(0, change, low, high)
