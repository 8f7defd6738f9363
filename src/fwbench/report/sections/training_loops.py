"""Whole trainings: time, losses, accuracy, memory, and what batch sizes and workers do."""

from collections.abc import Mapping, Sequence

from fwbench.records import equality
from fwbench.records.facts import Unequal
from fwbench.records.measurement import Measurement, group_by
from fwbench.records.units import mebibytes, percent, time
from fwbench.report import charts
from fwbench.report.charts import Group
from fwbench.report.drawing import lines, palette
from fwbench.report.model import Run, frameworks, trainings
from fwbench.report.section import (
    ByBatch,
    Column,
    NamedRecord,
    Section,
    TableCell,
    batch_column,
    columns,
    grouped,
    line_names,
    quantity,
    row_keys,
    seconds,
)
from fwbench.report.training import accuracy, epochs_s

ORDER = 40
CONTENTS = "training"

_OFF = "eager"

#: Colours of frameworks, by their names.
Colours = Mapping[str, str]


def sections(runs: Sequence[Run], names: Sequence[str]) -> list[Section]:
    """A section for each model, device, dtype and batch size; then those of a model over all."""
    records = trainings(record for run in runs for record in run.records)
    groups = group_by(records, lambda r: (*r.facts.work, r.facts.steps_per_epoch))
    colours = palette.colours(frameworks(runs))
    shown = [_section(_title(group[0]), group, names, colours) for group in groups.values()]
    for workload, group in grouped(records, "workload").items():
        shown += _by_batch(workload, group, names, colours)
        shown += _on_every_device(workload, group, names, colours)
    return shown


def _title(record: Measurement) -> str:
    parts = (record.facts.workload, record.facts.device, record.facts.dtype, record.facts.size)
    return " ".join(map(str, parts)) + _data_suffix(record)


def _place(record: Measurement) -> str:
    """Device, dtype and batch: the place of a training among those of its model."""
    facts = record.facts
    return f"{facts.device} {facts.dtype} {facts.size}{_data_suffix(record)}"


def _data_suffix(record: Measurement) -> str:
    """A word for trainings on generated data."""
    return " synthetic" if record.is_synthetic else ""


def _section(
    title: str, records: Sequence[Measurement], runs: Sequence[str], colours: Colours
) -> Section:
    named = line_names(records, runs)
    as_measured = sorted(named, key=lambda line: [*map(id, records)].index(id(line.record)))
    unequal = equality.unequal({line.name: line.facts for line in as_measured})
    rows = [
        NamedRecord(f"{name} (unequal: {_why(unequal[name])})" if name in unequal else name, record)
        for name, record in named
    ]
    group = Group(f"training {title}", named, runs, colours)
    drawn = charts.draw_all("training", group)
    parts = {"charts": drawn, "legend": group.looks}
    return Section.from_items(group.title, _COLUMNS, rows, lambda row: row.keys, **parts)


def _why(unequal: Unequal) -> str:
    return f"{unequal.nats:.2g} nats from {unequal.to}, {unequal.allowed:.2g} allowed"


def _first_epoch(row: NamedRecord) -> TableCell:
    first_s = epochs_s(row.record)[0]
    excess = row.facts.first_epoch_excess
    more = "" if excess is None else f" ({excess:+.0%})"
    return TableCell(f"{time(first_s)}{more}", first_s)


def _busy(row: NamedRecord) -> TableCell:
    facts = row.facts
    return quantity(facts.cpu_utilization or None, lambda busy: f"{busy:.0%} of {facts.threads}")


def _held_before(row: NamedRecord) -> TableCell:
    """Memory of the process before the model was built, and its part that is the data set."""
    held, data = row.facts.host_memory_before_bytes, row.facts.data_memory_bytes
    if held is None or data is None:
        return quantity(held, mebibytes)
    return TableCell(f"{mebibytes(held)}, data set {mebibytes(data)}", held)


def _tested(row: NamedRecord) -> TableCell:
    """The test accuracy, and the number of its examples where that is recorded."""
    reached, examples = accuracy(row.record), row.facts.tested_examples
    if reached is None or examples is None:
        return quantity(reached, percent)
    return TableCell(f"{percent(reached)} of {examples:,}", reached)


def _rate(row: NamedRecord) -> TableCell:
    facts = row.facts
    unit = "images" if facts.images_per_s else "tokens"
    rate = facts.images_per_s or facts.tokens_per_s or None
    return quantity(rate, lambda number: f"{number:,.0f} {unit}")


def _all_epochs(row: NamedRecord) -> TableCell:
    return seconds(sum(epochs_s(row.record)))


def _last_loss(row: NamedRecord) -> TableCell:
    return quantity(equality.curve(row.facts)[-1], "{:.4f}".format)


_COLUMNS = columns(
    "loops", _first_epoch, _all_epochs, _rate, _tested, _last_loss, _busy, _held_before
)


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
        name: [charts.time_point(record, batch, record.values_text) for batch, record in by.items()]
        for name, by in by_name.items()
    }
    title = f"training {workload}: time of an epoch by batch size and loader workers"
    first = {name: next(iter(by.values())) for name, by in by_name.items()}
    looks, joined = palette.looks_of(first.items(), colours), len(batches) >= lines.A_LINE
    columns: list[Column[ByBatch]] = [
        Column("case", lambda line: TableCell(line[0])),
        *(batch_column(batch, lambda record: seconds(record.median_s)) for batch in batches),
    ]
    return [
        Section.from_items(
            title,
            columns,
            by_name.items(),
            lambda line: row_keys(first[line[0]]),
            charts=[lines.draw(title, series, "batch size", looks=looks, joined=joined)],
            legend=looks,
        )
    ]


def _on_every_device(
    workload: str, records: Sequence[Measurement], runs: Sequence[str], colours: Colours
) -> list[Section]:
    """Time against accuracy with optimisation on and off, on every device, if there are several."""
    if len({record.facts.device for record in records}) == 1:
        return []
    tested = [
        NamedRecord(f"{name}, {_place(record)}, optimisation {state}", record)
        for name, record in line_names(records, runs, _place)
        for state in ["off" if record.facts.execution == _OFF else "on"]
        if accuracy(record) is not None
    ]
    if not tested:
        return []
    title = f"training {workload}: time against accuracy on every device"
    looks = palette.looks_of(tested, colours)
    drawn = charts.accuracy_against_time(title, tested, looks)
    parts = {"charts": [drawn], "legend": looks}
    return [Section.from_items(title, _TESTED, tested, lambda row: row.keys, **parts)]


_TESTED: tuple[Column[NamedRecord], ...] = (
    Column("case", lambda row: TableCell(row.name)),
    Column("all epochs", _all_epochs),
    Column("accuracy", lambda row: quantity(accuracy(row.record), percent)),
)
