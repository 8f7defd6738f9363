"""Networks that were exported: the same network, run where it comes from and where it went to."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from fwbench.names import framework_of
from fwbench.records.measurement import Measurement
from fwbench.records.units import kibibytes
from fwbench.report.model import Run
from fwbench.report.ranking.contests import fastest
from fwbench.report.section import Row, Section, TableCell, line_name, row_keys, seconds

ORDER = 44

_TITLE = "exported networks"

_COLUMNS = (
    *("network", "exported from", "run in", "a call", "there", "a call there", "times as fast"),
    *("model", "largest error"),
)

_NOTE = (
    "The same network with the same weights, exported from one framework and run in another; the "
    "export is untimed. Beside it the fastest execution of the framework that it comes from, of "
    "the same batch in the same run. Errors are against the reference in float64."
)

#: What a network and its measurement elsewhere have in common.
_Work = tuple[object, ...]


def sections(runs: Sequence[Run], names: Sequence[str]) -> list[Section]:
    """One section, if any network was exported.

    Args:
        runs: in the order to show them.
        names: of the runs.
    """
    rows = [row for run in runs for row in _rows(run, names)]
    return [Section(_TITLE, _COLUMNS, rows, notes=[_NOTE])] if rows else []


def _rows(run: Run, names: Sequence[str]) -> Iterator[Row]:
    there = _fastest(run)
    for record in run.records:
        source = record.facts.exported_from
        if source is not None:
            yield _row(record, source, there.get((source, *_work(record))), names)


def _fastest(run: Run) -> Mapping[_Work, Measurement]:
    """By framework and work, the record with the smallest time of networks that stayed there."""
    return fastest(
        (record for record in run.records if record.facts and record.facts.exported_from is None),
        lambda record: (framework_of(record.facts.framework), *_work(record)),
    )


def _work(record: Measurement) -> _Work:
    return (*record.facts.work, *record.requested.items())


def _row(record: Measurement, source: str, there: Measurement | None, names: Sequence[str]) -> Row:
    facts = record.facts
    faster = None if there is None else there.median_s / record.median_s
    return Row(
        [
            TableCell(f"{facts.workload} {facts.size_text}"),
            TableCell(source),
            TableCell(line_name(record, names)),
            seconds(record.median_s),
            TableCell("" if there is None else line_name(there, names)),
            seconds(None if there is None else there.median_s),
            TableCell("" if faster is None else f"{faster:.2f}", faster),
            _bytes(facts.model_bytes),
            _error(facts.max_relative_error),
        ],
        row_keys(record),
    )


def _bytes(size: int | None) -> TableCell:
    return TableCell("" if size is None else kibibytes(size), size)


def _error(error: float | None) -> TableCell:
    return TableCell("" if error is None else f"{error:.1e}", error)
