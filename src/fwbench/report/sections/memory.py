"""Peak memory of calls, each case in a process of its own: forward passes and training apart."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

from fwbench.records.facts import CaseFacts, Memory
from fwbench.records.measurement import Measurement
from fwbench.records.units import mebibytes
from fwbench.report.drawing import bars
from fwbench.report.drawing.chart import Chart
from fwbench.report.model import Run
from fwbench.report.section import Row, Section, TableCell, by_work, row_keys

ORDER = 46

_NOTE = (
    "Each case made a few calls in a process of its own, and each forward pass of a model in "
    "another one. Peaks are above what the process held before the model was built or inputs were "
    "placed. Planned is what a framework's planner reserves for results, and saved what it keeps "
    "for the backward pass: neither compares between frameworks."
)

#: What is shown of memory, by its column.
_OF_CALLS: Mapping[str, Callable[[Memory], int | None]] = {
    "peak": lambda memory: memory.above_bytes,
    "of calls": lambda memory: memory.calls_bytes,
    "of device": lambda memory: memory.device_peak_bytes,
    "planned": lambda memory: memory.planned_bytes,
    "saved": lambda memory: memory.saved_bytes,
}

#: What the columns of a forward pass begin with.
_FORWARD = "forward: "

#: Records by the names of their lines.
_Named = Mapping[str, Measurement]


def sections(runs: Sequence[Run], names: Sequence[str]) -> list[Section]:
    """A section for each work whose memory was measured.

    Args:
        runs: in the order to show them.
        names: of the runs.
    """
    records = (record for run in runs for record in run.records)
    measured = (record for record in records if record.facts.memory is not None)
    return [_section(records) for records in by_work(measured, names)]


def _section(records: _Named) -> Section:
    facts = next(iter(records.values())).facts
    title = (
        f"memory: {facts.workload} {facts.direction} {facts.device} {facts.dtype} {facts.size_text}"
    )
    columns = ["case", *(f"{_FORWARD}{name}" for name in _OF_CALLS), *_OF_CALLS, "held before"]
    return Section(
        title,
        [*columns, "not measured"],
        [_row(name, record) for name, record in records.items()],
        [*_charts(title, records)],
        [_NOTE],
    ).without_empty_columns()


def _row(name: str, record: Measurement) -> Row:
    memory, forward = record.facts.memory, record.facts.forward_memory
    gaps = dict.fromkeys(each.gap for each in (forward, memory) if each and each.gap)
    return Row(
        [
            TableCell(name),
            *(_bytes(shown(forward) if forward else None) for shown in _OF_CALLS.values()),
            *(_bytes(shown(memory) if memory else None) for shown in _OF_CALLS.values()),
            _bytes(memory.before_bytes if memory else None),
            TableCell("; ".join(filter(None, gaps))),
        ],
        row_keys(record),
    )


def _bytes(size: int | None) -> TableCell:
    return TableCell("" if size is None else mebibytes(size), size)


def _charts(title: str, records: _Named) -> Iterator[Chart]:
    direction = next(iter(records.values())).facts.direction
    series = {
        "forward": _peaks(records, lambda facts: facts.forward_memory),
        direction: _peaks(records, lambda facts: facts.memory),
    }
    known = {name: peaks for name, peaks in series.items() if peaks}
    if known:
        yield bars.draw(f"{title}: peak above what was held before", known, "{:,.0f} MiB".format)


def _peaks(records: _Named, of: Callable[[CaseFacts], Memory | None]) -> dict[str, float]:
    """In MiB, so that the marks below the bars are round."""
    measured = {name: of(record.facts) for name, record in records.items()}
    return {
        name: memory.above_bytes / 2**20
        for name, memory in measured.items()
        if memory is not None and memory.above_bytes is not None
    }
