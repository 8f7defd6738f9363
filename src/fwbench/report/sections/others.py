"""Benchmarks that fwbench did not write."""

from collections.abc import Sequence

from fwbench.records.measurement import Measurement
from fwbench.records.units import time
from fwbench.report.model import Run, foreign
from fwbench.report.section import Section, TableCell, columns, prose, run_suffix

ORDER = 50
CONTENTS = "other benchmarks"


def _spread(record: Measurement) -> TableCell:
    return TableCell(" to ".join(map(time, record.quartiles_s)), record.quartiles_s[0])


def sections(runs: Sequence[Run], names: Sequence[str]) -> list[Section]:
    """One section, if there are any such benchmarks."""

    def name(record: Measurement) -> TableCell:
        return TableCell(f"{record.name}{run_suffix(record.run, names)}")

    shown = columns("others", name, _spread)
    records = [record for run in runs for record in foreign(run.records)]
    note = prose("others")["foreign"]
    section = Section.from_items("other benchmarks", shown, records, notes=[note])
    return [section] if records else []
