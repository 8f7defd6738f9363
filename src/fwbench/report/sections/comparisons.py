"""What a gate or ``fwbench ab`` has said."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from fwbench.gate.verdicts import Comparison, Judgement
from fwbench.report import charts, verdicts
from fwbench.report.charts import Chart, Point
from fwbench.report.model import Run
from fwbench.report.sections.table import Cell, Part, Row

#: Cases that are drawn, the worst first.
_DRAWN = 40

_RATIO = 4


def parts(runs: Sequence[Run], names: Sequence[str]) -> list[Part]:
    """One for each run that was compared with another."""
    return [
        _part(run.comparison, f" ({name})" if len(runs) > 1 else "")
        for run, name in zip(runs, names, strict=True)
        if run.comparison is not None
    ]


def _part(comparison: Comparison, suffix: str) -> Part:
    title = f"{comparison.contender} against {comparison.base}{suffix}"
    ranked = verdicts.ranked(comparison)
    counts = {verdict: {"cases": number} for verdict, number in comparison.counts.items()}
    drawn = [charts.bars(f"{title}: verdicts", counts, "{:.0f}".format)] if counts else []
    changes = _changes(title, ranked[:_DRAWN])
    return Part(
        title,
        [name or "why" for name in verdicts.header(comparison)],
        [_row(one) for one in ranked],
        [*drawn, *([changes] if changes else [])],
        comparison.notes,
    )


def _row(judgement: Judgement) -> Row:
    cells = [Cell(text) for text in verdicts.row(judgement)]
    cells[_RATIO] = Cell(cells[_RATIO].text, judgement.ratio)
    return Row(cells, {"framework": judgement.framework} if judgement.framework else {})


def _changes(title: str, judgements: Sequence[Judgement]) -> Chart | None:
    series: dict[str, dict[str, Point]] = {}
    names = Counter(one.name for one in judgements)
    for one in judgements:
        if one.ratio is not None and one.low is not None and one.high is not None:
            change, low, high = (100 * (ratio - 1) for ratio in (one.ratio, one.low, one.high))
            point = Point(0, change, low, high)
            name = one.name if names[one.name] == 1 else one.key
            series.setdefault(one.verdict, {})[name] = point
    if not series:
        return None
    return charts.changes(f"{title}: change of the time, with its interval", series)
