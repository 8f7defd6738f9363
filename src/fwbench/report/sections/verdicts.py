"""Verdicts: races at the same work, comparisons of two sides, rows of versions, and causes."""

from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

from fwbench.gate.samples import THRESHOLDS
from fwbench.gate.verdicts import Comparison, Judgement
from fwbench.records.session_facts import StoredBudget, StoredContestant, StoredGroup, StoredRace
from fwbench.report import explanation, races, since, verdicts
from fwbench.report.drawing import bars, palette
from fwbench.report.drawing.chart import Chart, Point
from fwbench.report.drawing.palette import Look
from fwbench.report.model import Run
from fwbench.report.section import Section, TableCell, columns, run_suffix

ORDER = 5
CONTENTS = "verdicts"

#: Of verdicts, the same in every chart.
_LOOKS = {verdict: Look(colour) for verdict, colour in palette.VERDICTS.items()}

#: Cases that are drawn, the worst first.
_DRAWN = 40


def sections(runs: Sequence[Run], names: Sequence[str]) -> list[Section]:
    """A section for each race, comparison and row of versions, then for each explained change."""
    named = [(run, run_suffix(number, names)) for number, run in enumerate(runs)]
    return [
        *(
            _race(race, run.session.budget, suffix)
            for run, suffix in named
            if (race := run.session.race) is not None
        ),
        *(_comparison(run.comparison, suffix) for run, suffix in named if run.comparison),
        *(since.section(run.row, suffix) for run, suffix in named if run.row),
        *(
            explanation.section(explained, suffix)
            for run, suffix in named
            for explained in run.explanations
        ),
    ]


# Races


class _Entrant(NamedTuple):
    """A contestant in its group; the row of the leader says why nothing is decided."""

    group: StoredGroup
    contestant: StoredContestant
    why: str


def _behind(row: _Entrant) -> TableCell:
    return TableCell(races.behind(row.contestant), row.contestant.behind)


_RACE_COLUMNS = columns("race", _behind)


def _race(race: StoredRace, budget: StoredBudget | None, suffix: str) -> Section:
    return Section.from_items(
        f"Race{suffix}",
        _RACE_COLUMNS,
        [entrant for group in race.groups for entrant in _entrants(group)],
        lambda row: {"framework": row.contestant.name.partition(" ")[0]},
        notes=[
            races.headline(race),
            *([races.spent(budget)] if budget else []),
            *races.paired(race.groups),
        ],
    )


def _entrants(group: StoredGroup) -> list[_Entrant]:
    undecided = races.why_undecided(group) if group.verdict == "undecided" else ""
    leader, *others = group.contestants
    return [
        _Entrant(group, leader, undecided or leader.why or ""),
        *(_Entrant(group, other, other.why or "") for other in others),
    ]


# Comparisons


def _comparison(comparison: Comparison, suffix: str) -> Section:
    title = f"{comparison.contender} against {comparison.base}{suffix}"
    ranked = verdicts.ranked(comparison)
    times = [judgement for judgement in ranked if judgement.metric not in THRESHOLDS]
    drawn = [_counts(title, comparison), _changes(title, times[:_DRAWN])]
    return Section.from_items(
        title,
        verdicts.columns(comparison, "why"),
        ranked,
        lambda judgement: {"framework": judgement.framework} if judgement.framework else {},
        charts=[chart for chart in drawn if chart is not None],
        notes=verdicts.notes(comparison),
    ).compact


def _counts(title: str, comparison: Comparison) -> Chart | None:
    counts = {verdict: {"cases": number} for verdict, number in comparison.counts.items()}
    return bars.draw(f"{title}: verdicts", counts, "{:.0f}".format, _LOOKS) if counts else None


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
    return bars.draw_changes(f"{title}: change of the time, with its interval", series, _LOOKS)


def _change(judgement: Judgement) -> Point | None:
    """The change in per cent, with its interval."""
    ratios = (judgement.ratio, judgement.low, judgement.high)
    change, low, high = (None if ratio is None else 100 * (ratio - 1) for ratio in ratios)
    if change is None or low is None or high is None:
        return None
    return Point(0, change, low, high)
