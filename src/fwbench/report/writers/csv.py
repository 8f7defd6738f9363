"""The cases of a report as CSV, for spreadsheets."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence

from fwbench.records.measurement import Measurement
from fwbench.records.session_facts import NotMeasured
from fwbench.report import escaping
from fwbench.report.model import Run
from fwbench.report.ranking.condition import condition_of

_CASE = ("workload", "framework", "device", "execution", "direction", "dtype", "size", "shape")

_TIMES = ("dispatch_s", "first_call_s", "first_call_in_process_s")

#: The columns that are facts, as they are recorded.
FACTS = (*_CASE, *_TIMES)

_COLUMNS = (
    *("run", "case", *_CASE, "median_s", "low_s", "high_s", *_TIMES, "values", "of"),
    *("condition", "outcome"),
)


def render(runs: Sequence[Run]) -> str:
    """A line for each case, as CSV (RFC 4180); times in seconds for one call.

    Cases that an interrupted session did not reach have a line without times.
    """
    written = io.StringIO()
    writer = csv.DictWriter(written, _COLUMNS)
    writer.writeheader()
    for run in runs:
        writer.writerows(_line(run, record) for record in run.records)
        writer.writerows(_lost(run, missing) for missing in run.lost)
    return written.getvalue()


def _line(run: Run, record: Measurement) -> dict[str, object]:
    low_s, high_s = record.quartiles_s
    return {
        "run": escaping.spreadsheet(run.name),
        "case": escaping.spreadsheet(record.name),
        **{name: _cell(record.facts[name]) for name in FACTS if name in record.facts},
        "median_s": record.median_s,
        "low_s": low_s,
        "high_s": high_s,
        "values": record.number,
        "of": record.values_text.partition(" ")[2],
        "condition": condition_of(record.facts),
        "outcome": "measured",
    }


def _lost(run: Run, missing: NotMeasured) -> dict[str, object]:
    return {
        "run": escaping.spreadsheet(run.name),
        "case": escaping.spreadsheet(missing.nodeid),
        "framework": escaping.spreadsheet(missing.framework),
        "outcome": escaping.spreadsheet(missing.why),
    }


def _cell(value: object) -> object:
    return escaping.spreadsheet(value) if isinstance(value, str) else value
