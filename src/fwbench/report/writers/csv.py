"""The cases of a report as CSV, for spreadsheets."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence

from fwbench.report.model import Record, Run

_CASE = ("workload", "framework", "device", "execution", "direction", "dtype", "size")

_TIMES = ("dispatch_s", "first_call_s")

#: The columns that are facts, as they are recorded.
FACTS = (*_CASE, *_TIMES)

_COLUMNS = ("run", "case", *_CASE, "median_s", "low_s", "high_s", *_TIMES, "values", "of")


def render(runs: Sequence[Run]) -> str:
    """A line for each case, as CSV (RFC 4180); times in seconds for one call."""
    written = io.StringIO()
    writer = csv.writer(written)
    writer.writerow(_COLUMNS)
    writer.writerows(_line(run, record) for run in runs for record in run.records)
    return written.getvalue()


def _line(run: Run, record: Record) -> list[object]:
    return [
        *(run.name, record.name),
        *(record.facts.get(name, "") for name in _CASE),
        *(record.median_s, *record.quartiles_s),
        *(record.facts.get(name, "") for name in _TIMES),
        *(record.number, record.measured.partition(" ")[2]),
    ]
