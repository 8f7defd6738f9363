"""Whole trainings: time, losses, accuracy, memory, and what batch sizes and workers do."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from fwbench.records import equality
from fwbench.records.facts import Unequal
from fwbench.records.measurement import Measurement
from fwbench.records.units import mebibytes, time
from fwbench.report import charts
from fwbench.report.drawing import lines, palette, scatter
from fwbench.report.drawing.chart import Point
from fwbench.report.drawing.palette import Look
from fwbench.report.group import Group
from fwbench.report.model import Run, frameworks, trainings
from fwbench.report.ranking.condition import marked
from fwbench.report.section import (
    Row,
    Section,
    TableCell,
    grouped,
    joules,
    line_names,
    percent,
    row_keys,
    seconds,
)
from fwbench.report.training import accuracy, epochs_s, losses

ORDER = 40

_COLUMNS = (
    *("case", "an epoch", "first epoch", "all epochs", "a second", "accuracy", "last loss"),
    *("compiling", "CPUs busy", "peak memory", "held before", "energy", "measured"),
)

_OFF = "eager"

#: Of frameworks, by their names.
Colours = Mapping[str, str]


def sections(runs: Sequence[Run], names: Sequence[str]) -> list[Section]:
    """A section for each model, device, dtype and batch size; then those of a model over all these.

    Args:
        runs: in the order to show them.
        names: of the runs.
    """
    records = trainings(record for run in runs for record in run.records)
    groups: dict[tuple[Any, ...], list[Measurement]] = {}
    for record in records:
        groups.setdefault((*record.facts.work, record.facts.steps_per_epoch), []).append(record)
    colours = palette.colours(frameworks(runs))
    shown = [_section(_title(group[0]), group, names, colours) for group in groups.values()]
    for workload, group in grouped(records, "workload").items():
        shown += _by_batch(workload, group, names, colours)
        shown += _on_every_device(workload, group, names, colours)
    return [section.without_empty_columns() for section in shown]


def _title(record: Measurement) -> str:
    parts = (record.facts.workload, record.facts.device, record.facts.dtype, record.facts.size)
    return " ".join(map(str, parts)) + _data_suffix(record)


def _place(record: Measurement) -> str:
    """Where a training is among those of its model."""
    facts = record.facts
    return f"{facts.device} {facts.dtype} {facts.size}{_data_suffix(record)}"


def _data_suffix(record: Measurement) -> str:
    """A word for trainings on generated data."""
    return " synthetic" if record.is_synthetic else ""


def _section(
    title: str, records: Sequence[Measurement], runs: Sequence[str], colours: Colours
) -> Section:
    named = dict(line_names(records, runs))
    unequal = equality.unequal({name: record.facts for name, record in named.items()})
    return Section(
        f"training {title}",
        _COLUMNS,
        [
            _row(f"{name} (unequal: {_why(unequal[name])})" if name in unequal else name, record)
            for name, record in named.items()
        ],
        charts.draw_all("training", Group(f"training {title}", [*named.items()], runs, colours)),
    ).without_empty_columns(("energy",))


def _why(unequal: Unequal) -> str:
    return f"{unequal.nats:.2g} nats from {unequal.to}, {unequal.allowed:.2g} allowed"


def _row(name: str, record: Measurement) -> Row:
    epochs = epochs_s(record)
    rate = record.facts.images_per_s or record.facts.tokens_per_s
    busy = record.facts.cpu_utilization
    last = losses(record)[-1]
    return Row(
        [
            TableCell(marked(name, record.facts)),
            seconds(record.median_s),
            TableCell(
                f"{time(epochs[0])} ({record.facts.first_epoch_excess or 0:+.0%})", epochs[0]
            ),
            seconds(sum(epochs)),
            TableCell(f"{rate:,.0f}" if rate else "", rate),
            _tested(record),
            TableCell(f"{last:.4f}", last),
            seconds(record.facts.compile_s),
            TableCell(f"{busy:.0%} of {record.facts.threads}" if busy else "", busy),
            _bytes(record.facts.memory_above_bytes),
            _held_before(record),
            joules(record.facts.energy_j),
            TableCell(record.values_text, record.number),
        ],
        row_keys(record),
    )


def _bytes(size: int | None) -> TableCell:
    return TableCell("" if size is None else mebibytes(size), size)


def _held_before(record: Measurement) -> TableCell:
    """Memory of the process before the model was built, and the data set's part of it."""
    held, data = record.facts.host_memory_before_bytes, record.facts.data_memory_bytes
    if held is None or data is None:
        return _bytes(held)
    return TableCell(f"{mebibytes(held)}, data set {mebibytes(data)}", held)


def _tested(record: Measurement) -> TableCell:
    """The test accuracy, and of how many examples where that is recorded."""
    reached, examples = accuracy(record), record.facts.tested_examples
    if reached is None or examples is None:
        return _accuracy(reached)
    return TableCell(f"{percent(reached)} of {examples:,}", reached)


def _accuracy(reached: float | None) -> TableCell:
    return TableCell("" if reached is None else percent(reached), reached)


def _by_batch(
    workload: str, records: Sequence[Measurement], runs: Sequence[str], colours: Colours
) -> list[Section]:
    """Epoch time by batch size, and by toggles such as the workers of the loader, if several."""
    batches = sorted({record.facts.size for record in records})
    settings = {tuple(record.requested.items()) for record in records}
    if len(batches) == 1 and len(settings) == 1:
        return []
    by_name: dict[str, dict[int, Measurement]] = {}
    for name, record in line_names(records, runs, _place):
        where = f"{record.facts.device} {record.facts.dtype}{_data_suffix(record)}"
        by_name.setdefault(f"{name}, {where}", {})[record.facts.size] = record
    series = {
        name: [
            Point(b, record.median_s, *record.quartiles_s, record.values_text)
            for b, record in by.items()
        ]
        for name, by in by_name.items()
    }
    title = f"training {workload}: time of an epoch by batch size and loader workers"
    columns = ["case", *(f"batch {batch}" for batch in batches)]
    rows = [_batch_row(name, batches, by) for name, by in by_name.items()]
    looks = _looks({name: next(iter(by.values())) for name, by in by_name.items()}, colours)
    drawn = lines.draw(title, series, "batch size", looks=looks)
    return [Section(title, columns, rows, [drawn])]


def _looks(records: Mapping[str, Measurement], colours: Colours) -> dict[str, Look]:
    contestants = {
        name: (record.facts.framework, record.facts.execution) for name, record in records.items()
    }
    return palette.looks(contestants, colours)


def _batch_row(name: str, batches: Sequence[int], by_batch: dict[int, Measurement]) -> Row:
    times_s = (by_batch[batch].median_s if batch in by_batch else None for batch in batches)
    return Row([TableCell(name), *map(seconds, times_s)], row_keys(next(iter(by_batch.values()))))


def _on_every_device(
    workload: str, records: Sequence[Measurement], runs: Sequence[str], colours: Colours
) -> list[Section]:
    """Time against accuracy with optimisation on and off, on every device, if there are several."""
    if len({record.facts.device for record in records}) == 1:
        return []
    tested = {
        f"{name}, {_place(record)}, optimisation {_optimisation(record)}": (
            record,
            sum(epochs_s(record)),
            reached,
        )
        for name, record in line_names(records, runs, _place)
        if (reached := accuracy(record)) is not None
    }
    if not tested:
        return []
    title = f"training {workload}: time against accuracy on every device"
    rows = [
        Row([TableCell(name), seconds(spent_s), _accuracy(reached)], row_keys(record))
        for name, (record, spent_s, reached) in tested.items()
    ]
    looks = _looks({name: record for name, (record, _, _) in tested.items()}, colours)
    points = {name: (spent_s, reached) for name, (_, spent_s, reached) in tested.items()}
    drawn = scatter.draw(title, points, "all epochs", "accuracy", looks)
    return [Section(title, ("case", "all epochs", "accuracy"), rows, [drawn])]


def _optimisation(record: Measurement) -> str:
    return "off" if record.facts.execution == _OFF else "on"
