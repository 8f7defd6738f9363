"""Networks: every model, answers by batch, accuracy in each dtype, and exported networks."""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

from fwbench.measure.limits import ITEMSIZE_BYTES
from fwbench.records.measurement import Measurement, group_by
from fwbench.records.units import mebibytes, time
from fwbench.report.charts import rate_point, time_point
from fwbench.report.condition import is_contended, marked
from fwbench.report.drawing import lines, palette
from fwbench.report.drawing.chart import Chart, Point
from fwbench.report.drawing.lines import Stop
from fwbench.report.drawing.palette import Look
from fwbench.report.model import Run, frameworks, operations
from fwbench.report.ranking import fastest
from fwbench.report.section import (
    ByBatch,
    Column,
    NamedRecord,
    Section,
    TableCell,
    batch_column,
    by_work,
    columns,
    grouped,
    legends,
    line_name,
    line_names,
    prose,
    quantity,
    row_keys,
    seconds,
)
from fwbench.terms.names import DEFAULT_DTYPE, framework_of

ORDER = 42
CONTENTS = "networks"

_PROSE = prose("networks")

#: Sizes of networks begin with the batch.
_BATCH = re.compile(r"b(\d+)(.*)")

#: Rates from here on are shown without fractions.
_HUNDRED = 100.0

#: Records by batch, by the names of their lines.
_ByBatch = Mapping[str, Mapping[int, Measurement]]

#: Key of records that are shown or compared together.
_Key = tuple[object, ...]


def sections(runs: Sequence[Run], names: Sequence[str]) -> list[Section]:
    """Tables for each kind of call, device and dtype; batches; accuracy; and exported networks."""
    return [*_speeds(runs, names), *_accuracies(runs, names), *_exports(runs, names)]


# Speed and memory


def _rate(record: Measurement) -> float | None:
    """Images, or tokens, in a second."""
    return record.facts.images_per_s or record.facts.tokens_per_s


def _shown(rate: float) -> str:
    """Three digits at least, and no fractions of hundreds."""
    return f"{rate:,.0f}" if rate >= _HUNDRED else f"{rate:.3g}"


def _memory_bytes(record: Measurement) -> int | None:
    alone = record.facts.memory
    if alone is not None and alone.above_bytes is not None:
        return alone.above_bytes
    return record.facts.memory_above_bytes


def _a_second(line: NamedRecord) -> TableCell:
    return quantity(_rate(line.record), _shown)


def _memory(line: NamedRecord) -> TableCell:
    return quantity(_memory_bytes(line.record), mebibytes)


_COLUMNS = columns("networks", _a_second, _memory)


def _speeds(runs: Sequence[Run], names: Sequence[str]) -> list[Section]:
    every = operations(record for run in runs for record in run.records)
    records = [record for record in every if record.facts.parameters is not None]
    tables = [
        Section.from_items(
            f"networks: {title}",
            _COLUMNS,
            [line for lines in by_work(group, names) for line in lines],
            lambda line: line.keys,
            notes=[legends(_COLUMNS)],
        )
        for title, group in grouped(records, "direction", "device", "dtype").items()
    ]
    colours = palette.colours(frameworks(runs))
    used = [record for record in records if record.facts.direction == "forward"]
    for title, group in _networks(used).items():
        tables += _by_batch(f"{title}: answers by batch", group, names, colours)
    return tables


def _networks(records: Sequence[Measurement]) -> dict[str, list[Measurement]]:
    """Records by what they have in common but for the batch."""

    def key(record: Measurement) -> str:
        facts = record.facts
        parts = (facts.workload, _batch(record)[1], facts.device, facts.dtype)
        return " ".join(filter(None, parts))

    return group_by(records, key)


def _batch(record: Measurement) -> tuple[int, str]:
    """The number of examples of a call, and the rest of its size."""
    size = _BATCH.fullmatch(record.facts.shape or "")
    return (int(size[1]), size[2]) if size else (record.facts.size, "")


def _by_batch(
    title: str, records: Sequence[Measurement], runs: Sequence[str], colours: Mapping[str, str]
) -> list[Section]:
    """Latency and throughput, if there are several batches."""
    batches = sorted({_batch(record)[0] for record in records})
    if len(batches) == 1:
        return []
    by_name: dict[str, dict[int, Measurement]] = {}
    for name, record in line_names(records, runs):
        by_name.setdefault(name, {})[_batch(record)[0]] = record
    first = {name: next(iter(by_batch.values())) for name, by_batch in by_name.items()}
    looks = palette.looks_of(first.items(), colours)
    return [
        Section.from_items(
            title,
            [*_batch_columns(batches)],
            [*by_name.items()],
            lambda line: row_keys(first[line[0]]),
            charts=[*_batch_charts(title, by_name, looks)],
            notes=[_PROSE["bounds"]] * any(is_contended(record.facts) for record in records),
            legend=looks,
        )
    ]


def _batch_columns(batches: Sequence[int]) -> Iterator[Column[ByBatch]]:
    """The latency and the throughput of each batch."""
    yield Column("case", lambda line: TableCell(line[0]))
    for batch in batches:
        yield batch_column(batch, _latency, optional=False)
        yield batch_column(batch, _throughput, ", a second", optional=False)


def _latency(record: Measurement) -> TableCell:
    return _bounded(record, seconds(record.median_s), "≤")


def _throughput(record: Measurement) -> TableCell:
    return _bounded(record, quantity(_rate(record), _shown), "≥")


def _bounded(record: Measurement, cell: TableCell, sign: str) -> TableCell:
    """The cell, after a sign where the record's time is an upper bound."""
    if not cell.text or not is_contended(record.facts):
        return cell
    return replace(cell, text=f"{sign} {cell.text}")


def _batch_charts(title: str, by_name: _ByBatch, looks: Mapping[str, Look]) -> Iterator[Chart]:
    """Latency, and throughput."""
    times: dict[str, list[Point]] = {}
    rates: dict[str, list[Point]] = {}
    for name, by_batch in by_name.items():
        for batch, record in by_batch.items():
            times.setdefault(name, []).append(time_point(record, batch))
            rates.setdefault(name, []).append(rate_point(record, batch, batch))
    joined = len({batch for by_batch in by_name.values() for batch in by_batch}) >= lines.A_LINE
    yield lines.draw(f"{title}: latency", times, "batch size", looks=looks, joined=joined)
    title = f"{title}: examples a second"
    yield lines.draw(title, rates, "batch size", None, _shown, looks=looks, joined=joined)


# Accuracy, time and bytes of trained networks


#: Radius of a dot, for each root of the bytes that a number has.
_RADIUS = 3.0

_KIBIBYTE = 2.0**10


def _size_kib(record: Measurement) -> float | None:
    size_bytes = record.facts.model_bytes
    return None if size_bytes is None else size_bytes / _KIBIBYTE


#: A quantity of the horizontal axis, if it is known.
_Quantity = Callable[[Measurement], float | None]

_QUANTITIES: Mapping[str, tuple[_Quantity, Callable[[float], str]]] = {
    "time of a call": (lambda record: record.median_s, time),
    "size of the model": (_size_kib, "{:,.0f} KiB".format),
}


class _Trained(NamedTuple):
    """A record of a trained network, and that of the same contestant in float32."""

    name: str
    record: Measurement
    wide: Measurement | None

    @property
    def lost(self) -> float | None:
        if self.wide is None:
            return None
        return (self.record.facts.accuracy or 0.0) - (self.wide.facts.accuracy or 0.0)

    @property
    def marked(self) -> str:
        return marked(self.name, self.record.facts)

    @property
    def gain(self) -> float | None:
        return _gain(self.wide, self.record)


def _gain(base: Measurement | None, record: Measurement) -> float | None:
    """Ratio of the base's time to the record's; None if either is missing or an upper bound."""
    if base is None or is_contended(base.facts) or is_contended(record.facts):
        return None
    return base.median_s / record.median_s


def _int8_features(row: _Trained) -> TableCell:
    features = row.record.facts.int8_features
    return TableCell("nothing" if features == "" else features or "")


def _pictures(row: _Trained) -> TableCell:
    return quantity(row.record.facts.tested_examples or 0, "{:,}".format)


_ACCURACY_COLUMNS = columns("accuracies", _int8_features, _pictures)


def _accuracies(runs: Sequence[Run], names: Sequence[str]) -> list[Section]:
    trained = (r for run in runs for r in run.records if r.facts.accuracy is not None)
    works = group_by(trained, lambda r: (r.facts.workload, r.facts.device, r.facts.size_text))
    colours = palette.colours(frameworks(runs))
    return [_accuracy(key, records, names, colours) for key, records in works.items()]


def _accuracy(
    key: _Key, records: Sequence[Measurement], names: Sequence[str], colours: Mapping[str, str]
) -> Section:
    wide = {(r.run, r.contestant): r for r in records if r.facts.dtype == DEFAULT_DTYPE}
    network = " ".join(map(str, key))
    return Section.from_items(
        f"accuracy, time and bytes: {network}",
        _ACCURACY_COLUMNS,
        [
            _Trained(line_name(record, names), record, wide.get((record.run, record.contestant)))
            for record in records
        ],
        lambda row: row_keys(row.record),
        charts=[*_accuracy_charts(network, records, names, colours)],
        notes=[_PROSE["accuracy"].format(legends(_ACCURACY_COLUMNS))],
        page_notes=[_PROSE["dtypes"]],
    )


def _accuracy_charts(
    title: str, records: Sequence[Measurement], names: Sequence[str], colours: Mapping[str, str]
) -> Iterator[Chart]:
    by_line = group_by(records, lambda record: line_name(record, names))
    looks = palette.looks_of(((name, some[0]) for name, some in by_line.items()), colours)
    for axis, (quantity_of, show) in _QUANTITIES.items():
        tracks = {
            name: stops for name, some in by_line.items() if (stops := _stops(some, quantity_of))
        }
        if tracks:
            against = f"{title}: accuracy against {axis}"
            yield lines.draw_tracks(against, tracks, (axis, "accuracy"), show, looks)


def _stops(records: Sequence[Measurement], quantity_of: _Quantity) -> list[Stop]:
    """A point for each dtype, the larger the wider it is: a byte, where that is not known."""
    return [
        Stop(
            x,
            facts.accuracy or 0.0,
            facts.dtype,
            _RADIUS * ITEMSIZE_BYTES.get(facts.dtype, 1) ** 0.5,
        )
        for record in records
        for facts in [record.facts]
        if (x := quantity_of(record)) is not None
    ]


# Exported networks


class _ExportedNetwork(NamedTuple):
    """A record of an exported network, and the fastest where it comes from."""

    record: Measurement
    there: Measurement | None
    names: Sequence[str]

    @property
    def network(self) -> str:
        return f"{self.record.facts.workload} {self.record.facts.size_text}"

    @property
    def name(self) -> str:
        return marked(line_name(self.record, self.names), self.record.facts)

    @property
    def name_there(self) -> str:
        """The name of the line where it comes from."""
        if self.there is None:
            return ""
        return marked(line_name(self.there, self.names), self.there.facts)

    @property
    def gain(self) -> float | None:
        return _gain(self.there, self.record)


_EXPORTED_COLUMNS = columns("exports")


def _exports(runs: Sequence[Run], names: Sequence[str]) -> list[Section]:
    rows = [row for run in runs for row in _exported(run, names)]
    section = Section.from_items(
        "exported networks",
        _EXPORTED_COLUMNS,
        rows,
        lambda row: row_keys(row.record),
        notes=[_PROSE["exported"]],
    )
    return [section] if rows else []


def _exported(run: Run, names: Sequence[str]) -> Iterator[_ExportedNetwork]:
    """The exported networks of a run, each with the fastest of those that stayed."""
    there = fastest(
        (record for record in run.records if record.facts and record.facts.exported_from is None),
        lambda record: (framework_of(record.facts.framework), *_work(record)),
    )
    for record in run.records:
        source = record.facts.exported_from
        if source is not None:
            yield _ExportedNetwork(record, there.get((source, *_work(record))), names)


def _work(record: Measurement) -> _Key:
    return (*record.facts.work, *record.requested.items())
