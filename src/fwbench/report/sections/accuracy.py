"""Trained networks: accuracy against time and bytes, in each dtype of a framework."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

from fwbench.measure.limits import ITEMSIZE_BYTES
from fwbench.names import DEFAULT_DTYPE
from fwbench.records.measurement import Measurement
from fwbench.records.units import kibibytes, time
from fwbench.report.drawing import palette, tracks
from fwbench.report.drawing.chart import Chart
from fwbench.report.drawing.tracks import Stop
from fwbench.report.model import Run, frameworks
from fwbench.report.section import (
    Row,
    Section,
    TableCell,
    line_name,
    percent,
    row_keys,
    seconds,
)

ORDER = 43

_COLUMNS = (
    *("case", "dtype", "accuracy", "against float32", "as reference", "pictures", "a call"),
    *("times as fast", "model", "CPU has for int8"),
)

_NOTE = (
    "Every case has the same trained weights and is asked about the same pictures of the test set. "
    "Against float32: the same framework and execution in the same run. As reference: pictures "
    "that are classified as by NumPy in float64. Models are files of the framework's own format. "
    "In the charts a line joins the dtypes of a case; wider ones have larger points."
)

#: Of a dot, for each root of the bytes that a number has.
_RADIUS = 3.0

_KIBIBYTE = 2.0**10

#: What a chart has across, if it is known, and how that is written.
_Quantity = Callable[[Measurement], float | None]


def _size_kib(record: Measurement) -> float | None:
    size_bytes = record.facts.model_bytes
    return None if size_bytes is None else size_bytes / _KIBIBYTE


_QUANTITIES: Mapping[str, tuple[_Quantity, Callable[[float], str]]] = {
    "time of a call": (lambda record: record.median_s, time),
    "size of the model": (_size_kib, "{:,.0f} KiB".format),
}

#: What the cases of a section have in common, and what a case and its like in float32 have.
_Key = tuple[object, ...]


def sections(runs: Sequence[Run], names: Sequence[str]) -> list[Section]:
    """A section for each trained network and batch.

    Args:
        runs: in the order to show them.
        names: of the runs.
    """
    works: dict[_Key, list[Measurement]] = {}
    for record in (record for run in runs for record in run.records):
        facts = record.facts
        if facts.accuracy is not None:
            works.setdefault((facts.workload, facts.device, facts.size_text), []).append(record)
    colours = palette.colours(frameworks(runs))
    return [_section(key, records, names, colours) for key, records in works.items()]


def _section(
    key: _Key, records: Sequence[Measurement], names: Sequence[str], colours: Mapping[str, str]
) -> Section:
    wide = {_like(record): record for record in records if record.facts.dtype == DEFAULT_DTYPE}
    rows = [_row(record, wide.get(_like(record)), names) for record in records]
    what = " ".join(map(str, key))
    charts = [*_charts(what, records, names, colours)]
    return Section(
        f"accuracy, time and bytes: {what}", _COLUMNS, rows, charts, [_NOTE]
    ).without_empty_columns()


def _like(record: Measurement) -> _Key:
    """Key that a record and that of another dtype have in common."""
    return record.run, record.contestant


def _charts(
    title: str, records: Sequence[Measurement], names: Sequence[str], colours: Mapping[str, str]
) -> Iterator[Chart]:
    by_line: dict[str, list[Measurement]] = {}
    for record in records:
        by_line.setdefault(line_name(record, names), []).append(record)
    contestants = {
        name: (first.facts.framework, first.facts.execution)
        for name, (first, *_) in by_line.items()
    }
    looks = palette.looks(contestants, colours)
    for axis, (quantity, show) in _QUANTITIES.items():
        drawn = {name: stops for name, some in by_line.items() if (stops := _stops(some, quantity))}
        if drawn:
            against = f"{title}: accuracy against {axis}"
            yield tracks.draw(against, drawn, (axis, "accuracy"), show, looks)


def _stops(records: Sequence[Measurement], quantity: _Quantity) -> list[Stop]:
    """A point for each dtype, the larger the wider it is."""
    return [
        Stop(x, facts.accuracy or 0.0, facts.dtype, _RADIUS * ITEMSIZE_BYTES[facts.dtype] ** 0.5)
        for record in records
        for facts in [record.facts]
        if (x := quantity(record)) is not None
    ]


def _row(record: Measurement, wide: Measurement | None, names: Sequence[str]) -> Row:
    facts = record.facts
    accuracy, agreement = facts.accuracy or 0.0, facts.agreement
    lost = None if wide is None else accuracy - (wide.facts.accuracy or 0.0)
    faster = None if wide is None else wide.median_s / record.median_s
    size_bytes = facts.model_bytes
    features = "nothing" if facts.int8_features == "" else facts.int8_features or ""
    return Row(
        [
            TableCell(line_name(record, names)),
            TableCell(facts.dtype),
            TableCell(percent(accuracy), accuracy),
            TableCell("" if lost is None else f"{lost:+.2%}", lost),
            TableCell("" if agreement is None else percent(agreement), agreement),
            TableCell(f"{facts.tested_examples or 0:,}", facts.tested_examples),
            seconds(record.median_s),
            TableCell("" if faster is None else f"{faster:.2f}", faster),
            TableCell("" if size_bytes is None else kibibytes(size_bytes), size_bytes),
            TableCell(features),
        ],
        row_keys(record),
    )
