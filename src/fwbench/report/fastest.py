"""How many times as long as the fastest case each case takes, within its run and its work."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from fwbench.records.units import times
from fwbench.report.model import Record
from fwbench.report.ranking.condition import is_unranked
from fwbench.report.ranking.contests import work
from fwbench.report.section import TableCell, Timing, run_suffix


def against_fastest(
    named: Sequence[tuple[str, Record]], runs: Sequence[str], prefix: str = ""
) -> list[TableCell]:
    """The ratio of each record as a cell; an empty cell for those that are not ranked.

    Args:
        named: the records of a table, or of a row of it, with the names of their lines.
        runs: the names of the runs, in their order.
        prefix: sets their contests apart from those of other rows of the same section.
    """
    works = [work(record.facts) for _, record in named]
    contests = {done: f"{prefix}{number}" for number, done in enumerate(dict.fromkeys(works))}
    fastest_s: dict[tuple[int, tuple[Any, ...]], float] = {}
    for (_, record), done in zip(named, works, strict=True):
        if not is_unranked(record.facts):
            known_s = fastest_s.get((record.run, done), math.inf)
            fastest_s[record.run, done] = min(known_s, record.median_s)
    cells = []
    for (name, record), done in zip(named, works, strict=True):
        contestant = name.removesuffix(run_suffix(record.run, runs))
        timing = Timing(contests[done], contestant, record.run, record.median_s)
        unranked = is_unranked(record.facts)
        cells.append(TableCell("") if unranked else _ratio(timing, fastest_s[record.run, done]))
    return cells


def _ratio(timing: Timing, fastest_s: float) -> TableCell:
    ratio = timing.time_s / fastest_s
    return TableCell(times(ratio), ratio, timing=timing)
