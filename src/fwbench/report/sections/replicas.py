"""Replicas: time and throughput by their number, what they sent, and what more would take."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from fwbench.measure.limits import ITEMSIZE_BYTES
from fwbench.records.facts import GangFacts
from fwbench.records.units import four_digits
from fwbench.report import scaling
from fwbench.report.alpha_beta import Exchange, Modelled, modelled
from fwbench.report.drawing import lines, palette
from fwbench.report.drawing.chart import Chart, Point
from fwbench.report.drawing.palette import Look
from fwbench.report.model import Run, frameworks
from fwbench.report.ranking.condition import marked
from fwbench.report.scaling import Scaling, Shared
from fwbench.report.section import Row, Section, TableCell, row_keys, run_suffix, seconds, share
from fwbench.terms.replicas import LOOPBACK

ORDER = 48

_SHARED = ("case", "replicas", "a step", "a second", "efficiency", "communication")
_EXCHANGED = ("case", "size", "replicas", "a step", "bus GB/s")
_WIRE = ("MB sent", "of least", "skew", "joined by")

_OVERSUBSCRIBED = "more threads than CPUs"

_NOTE_SHARED = (
    "Efficiency is the gain over one replica, by their number. Replicas that have more threads "
    "than there are CPUs work by turns: times are shown, efficiency is not. Communication is what "
    "a step takes longer than without its exchange."
)
_NOTE_WIRE = (
    "Sent: by all replicas in a step; of least: as a multiple of what they must send. Skew: how "
    "much longer the slowest replica's median step is than the fastest's."
)
_NOTE_LOOPBACK = (
    "Loopback is memory, and not a wire: exchanges over it wait for processors, so times of "
    "different frameworks' exchanges do not compare."
)
_NOTE_SOFTMAXES = (
    "A sampled softmax is less work than a full one, and neither is ranked with the other; here "
    "they are together to show what it is worth by the number of replicas and of servers."
)
_NOTE_MODEL = (
    'Dashed lines that are titled "model, not measured" continue latency and bandwidth fitted to '
    "the measured numbers of replicas; beyond 8 times these they are right within a factor of 1.5."
)

_MODEL = "model, not measured"

#: Of ideal lines, and of what was not measured.
_IDEAL_DASH, _MODEL_DASH = "5 3", "2 3"

#: By the place of a number of replicas among all of them.
_DASHES = ("", "9 4", "2 3", "9 3 2 3")

_MILLION, _BILLION = 1e6, 1e9


def sections(runs: Sequence[Run], names: Sequence[str]) -> list[Section]:
    """A section for each work that replicas shared, and for each kind of exchange.

    Args:
        runs: in the order to show them.
        names: of the runs.
    """
    records = [record for run in runs for record in run.records if record.facts]
    found = scaling.scalings(
        Shared(record, run_suffix(record.run, names))
        for record in records
        if scaling.is_scaling(record)
    )
    colours = palette.colours(frameworks(runs))
    trained = [each for each in found if any(case.rate is not None for case in each.cases)]
    exchanged = [each for each in found if each not in trained]
    return [
        *(_shared(each, colours) for each in trained),
        *(_softmaxes(each, colours) for each in scaling.with_either_softmax(trained)),
        *(_exchanged(title, group, colours) for title, group in _by_kind(exchanged).items()),
    ]


def _by_kind(exchanges: Sequence[Scaling]) -> dict[str, list[Scaling]]:
    """Exchanges by what they are, each with its sizes, the smallest first."""
    kinds: dict[str, list[Scaling]] = {}
    for each in sorted(exchanges, key=lambda each: each.cases[0].facts.size):
        facts = each.cases[0].facts
        kinds.setdefault(f"{facts.workload} {facts.device} {facts.dtype}", []).append(each)
    return kinds


def _notes(own: str, cases: Sequence[Shared], *, has_model: bool = False) -> list[str]:
    loopback = any(case.gang is not None and case.gang.network == LOOPBACK for case in cases)
    return [
        *(own,) * bool(own),
        _NOTE_WIRE,
        *(_NOTE_LOOPBACK,) * loopback,
        *(_NOTE_MODEL,) * has_model,
    ]


def _on_wire(gang: GangFacts | None) -> list[TableCell]:
    """Bytes that replicas sent, their distance, and the network between them."""
    if gang is None:
        return [TableCell("")] * len(_WIRE)
    sent, least = gang.bytes_per_step, gang.least_bytes_per_step
    return [
        TableCell("" if sent is None else four_digits(sent / _MILLION), sent),
        TableCell("" if sent is None or not least else f"{sent / least:.3f}"),
        share(gang.skew),
        TableCell(gang.network),
    ]


# Training


def _shared(work: Scaling, colours: Mapping[str, str]) -> Section:
    rows = [
        _shared_row(work, case, name) for name, line in work.lines.items() for case in line.values()
    ]
    title = f"replicas: {work.title}"
    notes = _notes(_NOTE_SHARED, work.cases)
    by_replicas = [*_shared_charts(title, work, colours)]
    charts = [*by_replicas, *_by_servers(title, work, colours)]
    legend = _looks(work, colours) if by_replicas else {}
    made = Section(title, [*_SHARED, *_WIRE], rows, charts, notes, legend=legend)
    return made.without_empty_columns(_WIRE)


def _shared_row(work: Scaling, case: Shared, name: str) -> Row:
    rate = case.rate
    cells = [
        TableCell(marked(name, case.facts)),
        TableCell(str(case.replicas), case.replicas),
        seconds(case.time_s),
        TableCell("" if rate is None else four_digits(rate), rate),
        _efficiency(work, case),
        share(None if case.gang is None else case.gang.communication_share),
        *_on_wire(case.gang),
    ]
    return Row(cells, row_keys(case.record))


def _efficiency(work: Scaling, case: Shared) -> TableCell:
    if case.gang is not None and case.gang.oversubscribed:
        return TableCell(_OVERSUBSCRIBED)
    return share(work.efficiency(case))


def _shared_charts(title: str, work: Scaling, colours: Mapping[str, str]) -> Iterator[Chart]:
    if len({case.replicas for case in work.cases}) < 2:  # noqa: PLR2004 (a single place)
        return
    rates = {name: [_rate_point(c) for c in line.values()] for name, line in work.lines.items()}
    times = {name: [_point(c) for c in line.values()] for name, line in work.lines.items()}
    how: dict[str, Any] = {"looks": _looks(work, colours)}
    limits = _ideals(work, rates, gains=True)
    yield lines.draw(
        f"{title}: {work.cases[0].unit} a second",
        rates,
        "replicas",
        None,
        four_digits,
        limits=limits,
        **how,
    )
    limits = _ideals(work, times, gains=False)
    yield lines.draw(f"{title}: time of a step", times, "replicas", limits=limits, **how)


def _by_servers(title: str, work: Scaling, colours: Mapping[str, str]) -> Iterator[Chart]:
    """Throughput against parameter servers, a line for each number of workers.

    As figure 9 of the TensorFlow paper has it (Abadi et al., OSDI 2016); without several numbers
    of servers there is nothing to compare.
    """
    served = [case for case in work.cases if case.gang is not None and case.gang.servers]
    points = [replace(_rate_point(case), x=case.servers) for case in served]
    names = [case.whatever_servers for case in served]
    series, looks = _by_number(served, names, points, colours)
    if max((len({point.x for point in line}) for line in series.values()), default=0) > 1:
        title = f"{title}: {work.cases[0].unit} a second by servers"
        yield lines.draw(title, series, "servers", None, four_digits, looks=looks)


def _by_number(
    cases: Sequence[Shared],
    names: Sequence[str],
    points: Sequence[Point],
    colours: Mapping[str, str],
) -> tuple[dict[str, list[Point]], dict[str, Look]]:
    """Lines of each contestant, one for each number of replicas, which have a dash each.

    Args:
        cases: what is drawn.
        names: their contestants'.
        points: theirs.
        colours: of the frameworks.
    """
    frameworks_of = {name: c.facts.framework for name, c in zip(names, cases, strict=True)}
    plain = palette.parts(frameworks_of)
    if len({*frameworks_of.values()}) == len(frameworks_of):  # its colour tells which one it is
        plain = {name: Look(colours[framework]) for name, framework in frameworks_of.items()}
    counts = sorted({case.replicas for case in cases})
    series: dict[str, list[Point]] = {}
    looks: dict[str, Look] = {}
    for case, name, point in zip(cases, names, points, strict=True):
        line = f"{name}, {case.replicas} replicas"
        dash = _DASHES[counts.index(case.replicas) % len(_DASHES)]
        looks[line] = replace(plain[name], dash=dash, filled=not dash)
        series.setdefault(line, []).append(point)
    return series, looks


def _point(case: Shared) -> Point:
    return Point(case.replicas, case.time_s, *case.spread_s, case.record.values_text)


def _rate_point(case: Shared) -> Point:
    rate = case.rate or 0.0
    high, low = (rate * case.time_s / end_s for end_s in case.spread_s)
    return Point(case.replicas, rate, low, high, case.record.values_text)


def _ideal(name: str) -> str:
    return f"ideal of {name}"


def _ideals(work: Scaling, series: Mapping[str, Sequence[Point]], *, gains: bool) -> lines.Limits:
    """Ideal of each line, without exchange and waiting, from its smallest number on."""
    ideals = {}
    for name, points in series.items():
        first, last = points[0], points[-1]
        times = last.x / first.x
        factor = times if gains else 1.0 if work.weak else 1 / times
        if times > 1:
            ideals[_ideal(name)] = [(first.x, first.y), (last.x, first.y * factor)]
    return ideals


def _looks(work: Scaling, colours: Mapping[str, str]) -> dict[str, Look]:
    """Looks of contestants, and of their ideals."""
    contestants = {
        name: (case.facts.framework, case.facts.execution)
        for name, line in work.lines.items()
        for case in line.values()
    }
    looks = palette.looks(contestants, colours)
    return looks | {
        _ideal(name): Look(look.colour, _IDEAL_DASH, look.opacity, has_dots=False, keys=look.keys)
        for name, look in looks.items()
        if len(work.lines[name]) > 1
    }


def _softmaxes(work: Scaling, colours: Mapping[str, str]) -> Section:
    """Words a second with either softmax; the table of each has the rest."""
    title = f"replicas: {work.title}, full and sampled softmax"
    by_replicas = itertools.islice(_shared_charts(title, work, colours), 1)
    charts = [*by_replicas, *_by_servers(title, work, colours)]
    legend = _looks(work, colours)
    return Section(title, [], [], charts, [_NOTE_SOFTMAXES], legend=legend)


# Exchanges


def _exchanged(title: str, group: Sequence[Scaling], colours: Mapping[str, str]) -> Section:
    cases = [case for each in group for line in each.lines.values() for case in line.values()]
    cases = [case for case in cases if case.gang is not None]
    title = f"replicas: {title}"
    models = {id(each): _models(each) for each in group}
    charts = [
        *(_by_replicas(title, name, group, models) for name in _contestants(group)),
        *_by_size(title, cases, colours),
    ]
    has_model = any(line for of_one in models.values() for line in of_one.values())
    return Section(
        title,
        [*_EXCHANGED, *_WIRE],
        [_exchanged_row(case) for case in cases],
        [chart for chart in charts if chart is not None],
        _notes("", cases, has_model=has_model),
    ).without_empty_columns(("bus GB/s", *_WIRE))


def _exchanged_row(case: Shared) -> Row:
    gang = case.gang
    bus = None if gang is None else gang.bus_bytes_per_s
    cells = [
        TableCell(marked(case.name, case.facts)),
        TableCell(case.facts.size_text, case.facts.size),
        TableCell(str(case.replicas), case.replicas),
        seconds(case.time_s),
        TableCell("" if bus is None else four_digits(bus / _BILLION), bus),
        *_on_wire(gang),
    ]
    return Row(cells, row_keys(case.record))


def _contestants(group: Sequence[Scaling]) -> list[str]:
    return [*dict.fromkeys(name for each in group for name in each.lines)]


def _models(work: Scaling) -> dict[str, list[Modelled]]:
    """Expected times with more replicas, by contestant, where the model has them."""
    facts = work.cases[0].facts
    size_bytes = facts.size * ITEMSIZE_BYTES[facts.dtype]
    return {
        name: modelled(
            facts.workload,
            size_bytes,
            {w: Exchange(c.time_s, c.gang) for w, c in line.items() if c.gang is not None},
        )
        for name, line in work.lines.items()
    }


def _by_replicas(
    title: str,
    name: str,
    group: Sequence[Scaling],
    models: Mapping[int, Mapping[str, Sequence[Modelled]]],
) -> Chart | None:
    """Time against replicas, a line for each size; None if there is one number of them alone."""
    measured: dict[str, list[Point]] = {}
    continued: dict[str, list[Point]] = {}
    for each in group:
        line = each.lines.get(name, {})
        if line:
            size = f"{each.cases[0].facts.size:,}"
            measured[size] = [_point(case) for case in line.values()]
            continued[size] = [_modelled_point(point) for point in models[id(each)].get(name, ())]
    if max(map(len, measured.values()), default=0) < 2:  # noqa: PLR2004 (a single place)
        return None
    looks = palette.neutral(measured)
    drawn = {f"{size} (model)": points for size, points in continued.items() if points}
    looks |= {
        f"{size} (model)": Look(look.colour, _MODEL_DASH, filled=False)
        for size, look in looks.items()
    }
    title = f"{title}: {name}, time by size{f' (dashed: {_MODEL})' * bool(drawn)}"
    return lines.draw(title, {**measured, **drawn}, "replicas", looks=looks)


def _modelled_point(point: Modelled) -> Point:
    return Point(point.replicas, point.time_s, point.low_s, point.high_s, _MODEL)


def _by_size(title: str, cases: Sequence[Shared], colours: Mapping[str, str]) -> Iterator[Chart]:
    """Bus bandwidth against size, if there are several."""
    moved = [case for case in cases if case.gang is not None and case.gang.bus_bytes_per_s]
    points = [_bandwidth(case) for case in moved]
    series, looks = _by_number(moved, [case.name for case in moved], points, colours)
    if max(map(len, series.values()), default=0) > 1:
        show = _gigabytes
        yield lines.draw(f"{title}: bus bandwidth", series, "elements", None, show, looks=looks)


def _bandwidth(case: Shared) -> Point:
    assert case.gang is not None  # noqa: S101 (the caller's duty)
    bus = case.gang.bus_bytes_per_s or 0.0
    high, low = (bus * case.time_s / end_s for end_s in case.spread_s)
    return Point(case.facts.size, bus, low, high, case.record.values_text)


def _gigabytes(rate: float) -> str:
    return f"{rate / _BILLION:,.3g} GB/s"
