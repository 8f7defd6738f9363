"""Achieved rates under what the machine can do at most (the roofline)."""

from collections.abc import Callable, Mapping, Sequence

from fwbench.ceilings import path_of
from fwbench.records.measurement import Measurement, group_by
from fwbench.records.units import amount, four_digits
from fwbench.report.charts import rate_point
from fwbench.report.drawing import lines, palette
from fwbench.report.drawing.chart import Chart, Point
from fwbench.report.drawing.palette import Look
from fwbench.report.model import Run, frameworks
from fwbench.report.section import (
    NamedRecord,
    Section,
    TableCell,
    columns,
    line_name,
    prose,
    quantity,
)
from fwbench.terms.names import product_precision, real_dtype

ORDER = 30
CONTENTS = "attained rates"

_PROSE = prose("roofline")

#: By line, workload and direction: the record that came nearest to what is attainable.
Best = dict[tuple[str, str, str], Measurement]

#: Of frameworks, by their names.
Colours = Mapping[str, str]


def sections(runs: Sequence[Run], names: Sequence[str]) -> list[Section]:
    """A section for each device and dtype of a run for which ceilings are known."""
    return [
        section
        for run in runs
        for title, records in _by_device_and_precision(run).items()
        for section in _section(title, records, run, names, palette.colours(frameworks(runs)))
    ]


def _by_device_and_precision(run: Run) -> dict[str, list[Measurement]]:
    shown = (record for record in run.records if record.facts.attainable_share)
    return group_by(shown, lambda record: f"{record.facts.device_name} {_precision(record)}")


def _precision(record: Measurement) -> str:
    """The dtype of the case, or TF32."""
    products = product_precision(record.facts.dtype, record.facts.toggles or {})
    return products if products == "tf32" else record.facts.dtype


def _section(
    title: str, records: Sequence[Measurement], run: Run, names: Sequence[str], colours: Colours
) -> list[Section]:
    first = records[0]
    ceiling = run.ceilings.get(first.facts.device_name or "")
    if ceiling is None or not ceiling.bytes_per_s:
        return []
    best: Best = {}
    for record in sorted(records, key=lambda record: record.facts.attainable_share or 0.0):
        best[line_name(record, names), record.facts.workload, record.facts.direction] = record
    compute = ceiling.flops_per_s.get(real_dtype(_precision(first)))
    copied = ceiling.bytes_per_s
    rate = f"{four_digits(compute / 1e9)} GFLOP/s" if compute else "no known rate"
    note = _PROSE["ceilings"].format(compute=rate, copied=f"{four_digits(copied / 1e9)} GB/s")
    suffix = f" ({names[run.number]})" if len(names) > 1 else ""
    title = f"roofline {title}{suffix}"
    within = {key: record for key, record in best.items() if not path_of(record.facts)}
    notes = [note, *([_PROSE["cached"]] if ceiling.cached_per_s else [])]
    notes += [] if within == best else [_PROSE["between"]]
    drawn = _charts(title, within, copied, compute, colours)
    return [
        Section.from_items(
            title,
            _COLUMNS,
            [NamedRecord(name, record) for (name, _, _), record in best.items()],
            lambda line: line.keys,
            charts=drawn,
            notes=notes,
            page_notes=[] if within == best else [_PROSE["undrawn"]],
        )
    ]


def _charts(
    title: str, best: Best, bytes_per_s: float, compute: float | None, colours: Colours
) -> list[Chart]:
    drawn = []
    if compute and any(record.facts.flops and record.facts.bytes for record in best.values()):
        drawn.append(_roof(title, best, bytes_per_s, compute, colours))
    if any(record.facts.bytes for record in best.values()):
        drawn.append(_moved(f"{title}: bytes a second", best, bytes_per_s, colours))
    return drawn


def _roof(title: str, best: Best, bytes_per_s: float, compute: float, colours: Colours) -> Chart:
    """Rate over intensity; work without floating-point operations has neither."""
    series = _series(best, _flops, _intensity)
    places = [point.x for points in series.values() for point in points]
    ridge = compute / bytes_per_s
    ends = (min(*places, ridge), ridge, max(*places, ridge))
    return lines.draw(
        title,
        series,
        "floating-point operations for each byte moved",
        "operations a second",
        lambda rate: f"{four_digits(rate / 1e9)} GFLOP/s",
        "{:.3g}".format,
        {"attainable": [(x, min(compute, x * bytes_per_s)) for x in ends]},
        looks=_looks(best, colours),
        joined=False,
    )


def _moved(title: str, best: Best, bytes_per_s: float, colours: Colours) -> Chart:
    """Bytes a second over the bytes of a call."""
    series = _series(best, _bytes, _bytes)
    places = [point.x for points in series.values() for point in points]
    return lines.draw(
        title,
        series,
        "bytes moved by a call",
        "bytes a second",
        lambda rate: f"{four_digits(rate / 1e9)} GB/s",
        amount,
        {"the best copy": [(min(places), bytes_per_s), (max(places), bytes_per_s)]},
        looks=_looks(best, colours),
        joined=False,
    )


def _looks(best: Best, colours: Colours) -> dict[str, Look]:
    return palette.looks_of(((name, record) for (name, _, _), record in best.items()), colours)


def _flops(record: Measurement) -> float:
    """Operations of a call; 0 where they are not known."""
    return record.facts.flops or 0.0


def _bytes(record: Measurement) -> float:
    """Bytes that a call moves; 0 where they are not known."""
    return record.facts.bytes or 0.0


def _intensity(record: Measurement) -> float:
    """Operations for each byte of a record that moves some."""
    return _flops(record) / _bytes(record)


def _series(
    best: Best, work: Callable[[Measurement], float], place: Callable[[Measurement], float]
) -> dict[str, list[Point]]:
    """The rate of the work of each record that has some, by the names of its line."""
    series: dict[str, list[Point]] = {}
    for (name, workload, direction), record in best.items():
        if work(record) and record.facts.bytes:
            label = f"{workload} {direction} {record.facts.size_text}"
            point = rate_point(record, place(record), work(record), label)
            series.setdefault(name, []).append(point)
    return series


def _flop_a_byte(line: NamedRecord) -> TableCell:
    return quantity(_intensity(line.record) if line.facts.bytes else None, "{:.3g}".format)


def _operation(line: NamedRecord) -> TableCell:
    return TableCell(f"{line.facts.workload} {line.facts.direction}")


_COLUMNS = columns("roofline", _flop_a_byte, _operation)
