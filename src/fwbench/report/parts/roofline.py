"""Achieved rates under what the machine can do at most (the roofline)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from fwbench.ceilings import Ceiling
from fwbench.report import charts
from fwbench.report.charts import Chart, Point
from fwbench.report.parts.table import Cell, Part, Row, billions, grouped, keys, line, share
from fwbench.report.records import Record, Run

_COLUMNS = ("case", "operation", "size", "FLOP a byte", "GFLOP/s", "GB/s", "of attainable")

_NOTE = (
    "What is attainable is the smaller of two ceilings: {compute} in matrix products, and {copied} "
    "of data moved by copies (fwbench doctor --peaks). Each operation is shown where it came "
    "nearest to it. More than 100 % is right where a cache holds the data."
)


def parts(runs: Sequence[Run], names: Sequence[str]) -> list[Part]:
    """One for each device and dtype of a run for which ceilings are known."""
    return [
        part
        for run in runs
        for (title, records) in grouped(
            (one for one in run.records if one.attainable_share), "device_name", "dtype"
        ).items()
        for part in _part(title, records, run, names)
    ]


def _part(title: str, records: Sequence[Record], run: Run, names: Sequence[str]) -> list[Part]:
    first = records[0]
    ceiling = run.ceilings.get(first.device_name)
    if ceiling is None or not ceiling.bytes_per_s:
        return []
    best: dict[tuple[str, str, str], Record] = {}
    for record in sorted(records, key=lambda one: float(one.attainable_share)):
        best[line(record, names), record.workload, record.direction] = record
    compute = ceiling.flops_per_s.get(first.dtype)
    told = f"{compute / 1e9:,.4g} GFLOP/s" if compute else "no known rate"
    note = _NOTE.format(compute=told, copied=f"{ceiling.bytes_per_s / 1e9:,.4g} GB/s")
    suffix = f" ({names[run.number]})" if len(names) > 1 else ""
    chart = _chart(f"roofline {title}{suffix}", best, ceiling, compute)
    return [
        Part(
            f"roofline {title}{suffix}",
            _COLUMNS,
            [_row(name, record) for (name, _, _), record in best.items()],
            [chart] if chart else [],
            [note],
        )
    ]


def _row(name: str, record: Record) -> Row:
    intensity = record.flops / record.bytes
    return Row(
        [
            Cell(name),
            Cell(f"{record.workload} {record.direction}"),
            Cell(f"{record.size:,}", record.size),
            Cell(f"{intensity:.3g}", intensity),
            billions(record.flops, record.median_s),
            billions(record.bytes, record.median_s),
            share(record.attainable_share),
        ],
        keys(record),
    )


def _chart(
    title: str,
    best: Mapping[tuple[str, str, str], Record],
    ceiling: Ceiling,
    compute: float | None,
) -> Chart | None:
    """Rate over intensity; work without floating-point operations has neither."""
    series: dict[str, list[Point]] = {}
    for (name, workload, direction), record in best.items():
        if record.flops:
            low_s, high_s = record.quartiles_s
            rate, low, high = (record.flops / one for one in (record.median_s, high_s, low_s))
            intensity = record.flops / record.bytes
            label = f"{workload} {direction} {record.size:,}"
            series.setdefault(name, []).append(Point(intensity, rate, low, high, label))
    if not series or compute is None or not ceiling.bytes_per_s:
        return None
    places = [point.x for points in series.values() for point in points]
    ridge = compute / ceiling.bytes_per_s
    ends = (min(*places, ridge), ridge, max(*places, ridge))
    roof = [(x, min(compute, x * ceiling.bytes_per_s)) for x in ends]
    return charts.lines(
        title,
        series,
        "floating-point operations for each byte moved",
        "operations a second",
        "{:.3g} FLOP/s".format,
        "{:.3g}".format,
        {"attainable": roof},
    )
