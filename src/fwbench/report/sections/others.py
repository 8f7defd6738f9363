"""Benchmarks that fwbench did not write."""

from collections.abc import Sequence

from fwbench.records.measurement import Measurement
from fwbench.records.units import time
from fwbench.report.model import Run, foreign
from fwbench.report.section import Column, Section, TableCell, run_suffix, seconds, values_cell

ORDER = 50

_NOTE = (
    "fwbench did not write these: framework, device, dispatch, verification and warm-up are not "
    "recorded, so they are listed and not compared."
)


def _spread(record: Measurement) -> TableCell:
    return TableCell(" to ".join(map(time, record.quartiles_s)), record.quartiles_s[0])


def sections(runs: Sequence[Run], names: Sequence[str]) -> list[Section]:
    """One section, if there are any such benchmarks."""

    def name(record: Measurement) -> TableCell:
        return TableCell(f"{record.name}{run_suffix(record.run, names)}")

    columns: tuple[Column[Measurement], ...] = (
        Column("benchmark", name, optional=False),
        Column("median", lambda record: seconds(record.median_s), optional=False),
        Column("middle half", _spread, optional=False),
        Column("group", lambda record: TableCell(record.group), optional=False),
        Column("measured", values_cell, optional=False),
    )
    records = [record for run in runs for record in foreign(run.records)]
    return (
        [Section.from_items("other benchmarks", columns, records, notes=[_NOTE])] if records else []
    )
