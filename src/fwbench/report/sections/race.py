"""Who is fastest at the same work, as a race decided it."""

from __future__ import annotations

from collections.abc import Sequence

from fwbench.records.session_facts import StoredBudget, StoredContestant, StoredGroup, StoredRace
from fwbench.report import races
from fwbench.report.model import Run
from fwbench.report.section import Row, Section, TableCell, seconds

ORDER = 5

_COLUMNS = ("work", "standing", "contestant", "time", "behind", "launches", "")


def sections(runs: Sequence[Run], names: Sequence[str]) -> list[Section]:
    """A section for each run that was a race.

    Args:
        runs: in the order to show them.
        names: of the runs.
    """
    return [
        _section(race, run.session.budget, f" ({name})" if len(runs) > 1 else "")
        for run, name in zip(runs, names, strict=True)
        if (race := run.session.race) is not None
    ]


def _section(race: StoredRace, budget: StoredBudget | None, suffix: str) -> Section:
    notes = [races.headline(race), *([races.spent(budget)] if budget else [])]
    rows = [row for group in race.groups for row in _rows(group)]
    return Section(f"Race{suffix}", _COLUMNS, rows, notes=notes)


def _rows(group: StoredGroup) -> list[Row]:
    """A row for each contestant; that of the leader says why nothing is decided."""
    undecided = races.why_undecided(group) if group.verdict == "undecided" else ""
    leader, *others = group.contestants
    return [
        _row(group, leader, undecided or leader.why or ""),
        *(_row(group, other, other.why or "") for other in others),
    ]


def _row(group: StoredGroup, contestant: StoredContestant, why: str) -> Row:
    return Row(
        [
            TableCell(group.title),
            TableCell(contestant.standing),
            TableCell(contestant.name),
            seconds(contestant.time_s),
            TableCell(races.behind(contestant), contestant.behind),
            TableCell(str(contestant.launches), contestant.launches),
            TableCell(why),
        ],
        {"framework": contestant.name.partition(" ")[0]},
    )
