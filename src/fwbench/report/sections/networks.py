"""Networks: every model by framework and execution, and answers against the size of a batch."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from fwbench.records.measurement import Measurement
from fwbench.records.units import mebibytes
from fwbench.report.drawing import lines, palette
from fwbench.report.drawing.chart import Chart, Point
from fwbench.report.drawing.palette import Look
from fwbench.report.model import Run, frameworks, operations
from fwbench.report.ranking.condition import marked
from fwbench.report.section import (
    Row,
    Section,
    TableCell,
    by_work,
    grouped,
    line_names,
    row_keys,
    seconds,
    share,
)

ORDER = 42

_COLUMNS = ("network", "size", "case", "a call", "a second", "memory", "of attainable")

_NOTE = (
    "A second: images, or tokens. Memory is the peak above what the process held before: of a "
    "process of its own with --fw-memory, and otherwise of the one that verified the case, too. "
    "Of attainable: the least time that the network's arithmetic takes here, over that of a call."
)

#: How sizes of networks begin: with the batch.
_BATCH = re.compile(r"b(\d+)(.*)")

#: Rates from here on are shown without fractions.
_HUNDRED = 100.0

#: Records by batch, by the names of their lines.
_ByBatch = Mapping[str, Mapping[int, Measurement]]


def sections(runs: Sequence[Run], names: Sequence[str]) -> list[Section]:
    """A table for each kind of call, device and dtype; then batches of each network in use.

    Args:
        runs: in the order to show them.
        names: of the runs.
    """
    every = operations(record for run in runs for record in run.records)
    records = [record for record in every if record.facts.parameters is not None]
    tables = [
        _table(f"networks: {title}", group, names)
        for title, group in grouped(records, "direction", "device", "dtype").items()
    ]
    colours = palette.colours(frameworks(runs))
    used = [record for record in records if record.facts.direction == "forward"]
    for title, group in _networks(used).items():
        tables += _by_batch(f"{title}: answers by batch", group, names, colours)
    return tables


def _table(title: str, records: Sequence[Measurement], runs: Sequence[str]) -> Section:
    rows = [
        _row(name, record) for named in by_work(records, runs) for name, record in named.items()
    ]
    return Section(title, _COLUMNS, rows, [], [_NOTE]).without_empty_columns()


def _row(name: str, record: Measurement) -> Row:
    facts = record.facts
    rate, memory_bytes = _rate(record), _memory_bytes(record)
    return Row(
        [
            TableCell(facts.workload),
            TableCell(facts.size_text, facts.size),
            TableCell(marked(name, facts)),
            seconds(record.median_s),
            TableCell("" if rate is None else _shown(rate), rate),
            TableCell("" if memory_bytes is None else mebibytes(memory_bytes), memory_bytes),
            share(facts.attainable_share),
        ],
        row_keys(record),
    )


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


def _networks(records: Sequence[Measurement]) -> dict[str, list[Measurement]]:
    """Records by what they have in common but for the batch."""
    groups: dict[str, list[Measurement]] = {}
    for record in records:
        facts = record.facts
        parts = (facts.workload, _batch(record)[1], facts.device, facts.dtype)
        groups.setdefault(" ".join(filter(None, parts)), []).append(record)
    return groups


def _batch(record: Measurement) -> tuple[int, str]:
    """Number of examples in a call, and the rest of its size."""
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
    rows = [
        Row([TableCell(name), *_cells(batches, by_batch)], row_keys(next(iter(by_batch.values()))))
        for name, by_batch in by_name.items()
    ]
    columns = [part for batch in batches for part in (f"batch {batch}", f"batch {batch}, a second")]
    contestants = {
        name: (record.facts.framework, record.facts.execution)
        for name, by_batch in by_name.items()
        for record in by_batch.values()
    }
    looks = palette.looks(contestants, colours)
    charts = [*_charts(title, by_name, looks)]
    return [Section(title, ["case", *columns], rows, charts, legend=looks)]


def _cells(batches: Sequence[int], by_batch: Mapping[int, Measurement]) -> Iterator[TableCell]:
    for batch in batches:
        record = by_batch.get(batch)
        rate = None if record is None else _rate(record)
        yield seconds(None if record is None else record.median_s)
        yield TableCell("" if rate is None else _shown(rate), rate)


def _charts(title: str, by_name: _ByBatch, looks: Mapping[str, Look]) -> Iterator[Chart]:
    how: dict[str, Any] = {"looks": looks}
    yield lines.draw(f"{title}: latency", _latencies(by_name), "batch size", **how)
    rates = f"{title}: examples a second"
    yield lines.draw(rates, _throughputs(by_name), "batch size", None, _shown, **how)


def _latencies(by_name: _ByBatch) -> dict[str, list[Point]]:
    return {
        name: [
            Point(batch, record.median_s, *record.quartiles_s, record.values_text)
            for batch, record in by_batch.items()
        ]
        for name, by_batch in by_name.items()
    }


def _throughputs(by_name: _ByBatch) -> dict[str, list[Point]]:
    """Throughputs of examples: a slow quartile of times is a low one of rates."""
    return {
        name: [
            Point(batch, batch / record.median_s, batch / high, batch / low, record.values_text)
            for batch, record in by_batch.items()
            for low, high in [record.quartiles_s]
        ]
        for name, by_batch in by_name.items()
    }
