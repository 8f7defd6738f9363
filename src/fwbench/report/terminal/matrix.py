"""Times as tables: what was computed by framework and execution, in full or summed up."""

from __future__ import annotations

import statistics
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from fwbench.records.facts import CaseFacts
from fwbench.records.units import time
from fwbench.report.ranking import times
from fwbench.report.ranking.answer import TOO_CLOSE
from fwbench.report.ranking.contests import Contest, Timed, kind
from fwbench.report.terminal.contestants import Column, column, in_order, variant
from fwbench.report.terminal.marks import PARTIAL, signs

#: From this ratio to the fastest on a number is red.
_FAR_BEHIND = 10.0

#: Of operations without a family: a user's own.
_NO_FAMILY = "others"


@dataclass(frozen=True)
class Cell:
    """A number in a table.

    Attributes:
        text: a time, or a ratio.
        signs: what is in doubt about it.
        style: of the text.
    """

    text: str
    signs: str = ""
    style: str = ""


_FAILED = Cell("failed", style="red")


@dataclass(frozen=True)
class Row:
    """A row of a table.

    Attributes:
        name: of what was computed.
        size: of it; empty where sizes are summed up.
        cells: by column; no cell where nothing was measured.
    """

    name: str
    size: str
    cells: Mapping[Column, Cell]


@dataclass(frozen=True)
class Matrix:
    """A table of one kind of workload on one device in one dtype.

    Attributes:
        title: the kind, with device and dtype where there are several.
        what: what a cell says.
        rows: in their order.
    """

    title: str
    what: str
    rows: Sequence[Row]

    @property
    def columns(self) -> list[Column]:
        """The columns with a cell in any row, in their order."""
        return in_order(names for row in self.rows for names in row.cells)


#: The columns of the cases that failed, by their work.
Failures = Mapping[tuple[Any, ...], Sequence[Column]]

#: Makes the rows of a table from what was computed, and from what failed.
Rows = Callable[[Iterable[Contest], Failures], list[Row]]


@dataclass(frozen=True)
class Detail:
    """How much of the measurements a table shows.

    Attributes:
        what: what a cell says.
        rows: makes its rows.
    """

    what: str
    rows: Rows


def matrices(
    works: Iterable[Contest], detail: Detail, failed: Iterable[Timed] = ()
) -> list[Matrix]:
    """A table for each kind of workload, device and dtype.

    Args:
        works: all that was measured.
        detail: how much of it a table shows.
        failed: cases that failed; shown where others computed the same.
    """
    failures: dict[tuple[Any, ...], list[Column]] = defaultdict(list)
    for case in failed:
        failures[_key(case)].append(column(case))
    groups: dict[tuple[str, str, str], list[Contest]] = defaultdict(list)
    for work in works:
        facts = _facts(work)
        name = "training" if facts.direction == "train" else kind(facts)
        groups[name, facts.device, facts.dtype].append(work)
    several = [len({*values}) > 1 for values in zip(*groups, strict=True)]
    return [
        Matrix(
            _title(key, several),
            times.named(detail.what, key[1]),
            detail.rows(group, failures),
        )
        for key, group in groups.items()
    ]


def _title(key: Sequence[str], several: Sequence[bool]) -> str:
    name, *others = key
    return ", ".join(
        [name, *(part for part, tell in zip(others, several[1:], strict=True) if tell)]
    )


def _key(timed: Timed) -> tuple[Any, ...]:
    """What cases of the same work have in common, also those that have not got to their data."""
    *work, _data = timed.facts.work
    return *work, variant(timed)


def _with_failures(
    cells: Mapping[Column, Cell], works: Iterable[Contest], failures: Failures
) -> Mapping[Column, Cell]:
    """The cells of a row, and one for each case that failed where there is no other."""
    keys = {_key(work.entrants[0]) for work in works}
    failed = (names for key in keys for names in failures.get(key, ()))
    return {**dict.fromkeys(failed, _FAILED), **cells}


def _facts(work: Contest) -> CaseFacts:
    return work.entrants[0].facts


def _order(work: Contest) -> tuple[Any, ...]:
    """By family, then as words; sizes by their numbers."""
    facts = _facts(work)
    return facts.family or "", _name(work), facts.size, facts.shape or ""


def _name(work: Contest) -> str:
    return f"{_facts(work).workload}{work.label}{variant(work.entrants[0])}"


# In full


def _of_works(works: Iterable[Contest], failures: Failures) -> list[Row]:
    return [
        Row(
            _name(work),
            str(_facts(work).shape or work.size),
            _with_failures(_cells(work), [work], failures),
        )
        for work in sorted(works, key=_order)
    ]


def _cells(work: Contest) -> dict[Column, Cell]:
    """The fastest's time and the others' ratio to it; times where nobody is ranked."""
    ranked = work.ranked
    fastest_s = min((timed.time_s for timed in ranked), default=None)
    return {
        column(timed): Cell(
            _text(timed, fastest_s),
            signs([timed.facts]),
            _style(timed.time_s, fastest_s) if timed in ranked and len(ranked) > 1 else "",
        )
        for timed in work.entrants
    }


def _text(timed: Timed, fastest_s: float | None) -> str:
    if fastest_s is None or timed.time_s == fastest_s:
        return time(timed.time_s)
    return ratio(timed.time_s / fastest_s)


def _style(value: float, least: float | None) -> str:
    assert least is not None  # noqa: S101 (what is ranked has a fastest)
    if value < TOO_CLOSE * least:
        return "green"
    return "red" if value >= _FAR_BEHIND * least else ""


def ratio(number: float) -> str:
    """How many times as long, with three digits: ``1.23x``, ``12.3x``, ``1,234x``."""
    if number < 9.995:  # noqa: PLR2004 (what rounds to 10)
        return f"{number:.2f}x"
    return f"{number:.1f}x" if number < 99.95 else f"{number:,.0f}x"  # noqa: PLR2004 (to 100)


# Summed up


def _by_operation(works: Iterable[Contest], failures: Failures) -> list[Row]:
    groups = _grouped(works, _name)
    return [
        Row(name, "", _with_failures(_means(group), group, failures))
        for name, group in groups.items()
    ]


def _by_family(works: Iterable[Contest], failures: Failures) -> list[Row]:
    groups = _grouped(works, lambda work: _facts(work).family or _NO_FAMILY)
    return [
        Row(
            f"{family} ({len({*map(_name, group)})})",
            "",
            _with_failures(_means(group), group, failures),
        )
        for family, group in groups.items()
    ]


def _grouped(
    works: Iterable[Contest], name: Callable[[Contest], str]
) -> Mapping[str, Sequence[Contest]]:
    groups: dict[str, list[Contest]] = defaultdict(list)
    for work in sorted(works, key=_order):
        groups[name(work)].append(work)
    return groups


def _means(works: Sequence[Contest]) -> dict[Column, Cell]:
    """Geometric means of the ratio to the fastest, over contests that somebody can lose.

    Of who is ranked in none of them, the mean of the times. A single sign keeps columns narrow.
    """
    contests = [work for work in works if len(work.ranked) > 1]
    ratios: dict[Column, list[float]] = defaultdict(list)
    for contest in contests:
        fastest_s = min(timed.time_s for timed in contest.ranked)
        for timed in contest.ranked:
            ratios[column(timed)].append(timed.time_s / fastest_s)
    complete = (each for each in ratios.values() if len(each) >= len(contests))
    least = min(map(statistics.geometric_mean, complete), default=1.0)
    return {
        names: _mean(ratios[names], cases, least, len(contests))
        for names, cases in _by_column(works).items()
    }


def _mean(ratios: Sequence[float], cases: Sequence[Timed], least: float, most: int) -> Cell:
    """A mean; one over some of the contests has a sign of its own, and no colour."""
    doubt = signs(timed.facts for timed in cases)[:1]
    if not ratios:
        return Cell(time(statistics.geometric_mean(timed.time_s for timed in cases)), doubt)
    mean = statistics.geometric_mean(ratios)
    if len(ratios) < most:
        return Cell(ratio(mean), PARTIAL)
    return Cell(ratio(mean), doubt, _style(mean, least))


def _by_column(works: Iterable[Contest]) -> dict[Column, list[Timed]]:
    cases: dict[Column, list[Timed]] = defaultdict(list)
    for work in works:
        for timed in work.entrants:
            cases[column(timed)].append(timed)
    return cases


#: Every size of every operation.
EVERY_SIZE = Detail("median time of the fastest, others as ratios to it", _of_works)

_RATIOS = "ratios to the fastest, times where nothing is ranked, geometric mean over"

#: From the most detailed on, for what has to fit on a screen.
DETAILS = (
    EVERY_SIZE,
    Detail(f"{_RATIOS} sizes (-v: each)", _by_operation),
    Detail(f"{_RATIOS} operations (-v: each)", _by_family),
)
