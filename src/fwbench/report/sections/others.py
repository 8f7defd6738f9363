"""Benchmarks that fwbench did not write."""

from __future__ import annotations

from collections.abc import Sequence

from fwbench.report.model import Run, foreign
from fwbench.report.sections.table import Cell, Part, Row, of_run, seconds
from fwbench.report.units import time

_NOTE = (
    "fwbench did not write these: framework, device, dispatch, verification and warm-up are not "
    "recorded, so they are listed and not compared."
)


def parts(runs: Sequence[Run], names: Sequence[str]) -> list[Part]:
    """One, if there are any."""
    rows = [
        Row(
            [
                Cell(f"{record.name}{of_run(record, names)}"),
                seconds(record.median_s),
                Cell(" to ".join(map(time, record.quartiles_s)), record.quartiles_s[0]),
                Cell(record.group),
                Cell(record.measured, record.number),
            ]
        )
        for run in runs
        for record in foreign(run.records)
    ]
    columns = ("benchmark", "median", "half of them", "group", "measured")
    return [Part("other benchmarks", columns, rows, notes=[_NOTE])] if rows else []
