"""Ratio of each case to the fastest one, within its run and its work."""

from __future__ import annotations

from collections.abc import Sequence

from fwbench.records.measurement import Measurement
from fwbench.records.units import times
from fwbench.report.ranking.contests import ratios_to_fastest, work
from fwbench.report.section import TableCell, Timing, run_suffix


def against_fastest(
    named: Sequence[tuple[str, Measurement]], runs: Sequence[str], prefix: str = ""
) -> list[TableCell]:
    """The ratio of each record as a cell; an empty cell for those that are not ranked.

    Args:
        named: the records of a table, or of a row of it, with the names of their lines.
        runs: the names of the runs, in their order.
        prefix: sets their contests apart from those of other rows of the same section.
    """
    records = [record for _, record in named]
    works = [work(record.facts) for record in records]
    contests = {done: f"{prefix}{number}" for number, done in enumerate(dict.fromkeys(works))}
    ratios = ratios_to_fastest(records, lambda record: (record.run, work(record.facts)))
    return [
        TableCell("")
        if ratio is None
        else TableCell(
            times(ratio),
            ratio,
            timing=Timing(
                contests[done],
                name.removesuffix(run_suffix(record.run, runs)),
                record.run,
                record.median_s,
            ),
        )
        for (name, record), done, ratio in zip(named, works, ratios, strict=True)
    ]
