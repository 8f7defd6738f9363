"""Benchmarks that fwbench did not write."""

from __future__ import annotations

from collections.abc import Sequence

from fwbench.records.units import time
from fwbench.report.model import Run, foreign
from fwbench.report.section import Row, Section, TableCell, run_suffix, seconds

ORDER = 50

_COLUMNS = ("benchmark", "median", "middle half", "group", "measured")

_NOTE = (
    "fwbench did not write these: framework, device, dispatch, verification and warm-up are not "
    "recorded, so they are listed and not compared."
)


def sections(runs: Sequence[Run], names: Sequence[str]) -> list[Section]:
    """One section, if there are any such benchmarks.

    Args:
        runs: in the order to show them.
        names: of the runs.
    """
    rows = [
        Row(
            [
                TableCell(f"{record.name}{run_suffix(record.run, names)}"),
                seconds(record.median_s),
                TableCell(" to ".join(map(time, record.quartiles_s)), record.quartiles_s[0]),
                TableCell(record.group),
                TableCell(record.values_text, record.number),
            ]
        )
        for run in runs
        for record in foreign(run.records)
    ]
    return [Section("other benchmarks", _COLUMNS, rows, notes=[_NOTE])] if rows else []
