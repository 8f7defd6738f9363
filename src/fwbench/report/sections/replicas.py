"""Replicas: time and throughput by their number, what they sent, and what more would take."""

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from fwbench.measure.limits import ITEMSIZE_BYTES
from fwbench.records.measurement import group_by
from fwbench.records.units import four_digits
from fwbench.report import scaling
from fwbench.report.condition import is_contended, marked
from fwbench.report.drawing import lines, palette
from fwbench.report.drawing.chart import Chart, Point
from fwbench.report.drawing.palette import Look
from fwbench.report.model import Run, frameworks
from fwbench.report.scaling import (
    OVERSUBSCRIBED,
    Exchange,
    Modelled,
    Scaling,
    Shared,
    SharedCase,
    modelled,
    rows,
)
from fwbench.report.section import Section, TableCell, columns, prose, row_keys, run_suffix, share
from fwbench.terms.replicas import LOOPBACK

ORDER = 48
CONTENTS = "replicas"

_PROSE = prose("replicas")

_MODEL = "model, not measured"

_IDEAL = "ideal of {}"

#: Of ideal lines, and of what was not measured.
_IDEAL_DASH, _MODEL_DASH = "5 3", "2 3"

#: By the place of a number of replicas among all of them.
_DASHES = ("", "9 4", "2 3", "9 3 2 3")

_BILLION = 1e9


def sections(runs: Sequence[Run], names: Sequence[str]) -> list[Section]:
    """A section for each work that replicas shared, and for each kind of exchange."""
    records = [record for run in runs for record in run.records if record.facts]
    works = scaling.scalings(
        Shared(record, run_suffix(record.run, names))
        for record in records
        if scaling.is_scaling(record)
    )
    colours = palette.colours(frameworks(runs))
    trained = [work for work in works if any(case.rate is not None for case in work.cases)]
    exchanged = [work for work in works if work not in trained]
    return [
        *(_shared(work, colours) for work in trained),
        *(_softmaxes(work, colours) for work in scaling.with_either_softmax(trained)),
        *(_exchanged(title, group, colours) for title, group in _by_kind(exchanged).items()),
    ]


def _by_kind(exchanges: Sequence[Scaling]) -> dict[str, list[Scaling]]:
    """Exchanges by what they are, each with its sizes, the smallest first."""
    by_size = sorted(exchanges, key=lambda exchange: exchange.facts.size)
    return group_by(by_size, lambda e: f"{e.facts.workload} {e.facts.device} {e.facts.dtype}")


def _notes(first: str, cases: Sequence[Shared]) -> list[str]:
    loopback = any(case.gang is not None and case.gang.network == LOOPBACK for case in cases)
    return [*(first,) * bool(first), _PROSE["wire"], *(_PROSE["loopback"],) * loopback]


_WIRE = columns("wire")


# Training


def _efficiency(row: SharedCase) -> TableCell:
    if row.case.oversubscribed:
        return TableCell(OVERSUBSCRIBED)
    return share(row.efficiency)


_SHARED = (*columns("shared", _efficiency), *_WIRE)


def _shared(work: Scaling, colours: Mapping[str, str]) -> Section:
    title = f"replicas: {work.title}"
    by_replicas = [*_shared_charts(title, work, colours)]
    return Section.from_items(
        title,
        _SHARED,
        rows([work]),
        lambda row: row_keys(row.case.record),
        charts=[*by_replicas, *_by_servers(title, work, colours)],
        notes=_notes(_PROSE["shared"], work.cases),
        legend=_looks(work, colours) if by_replicas else {},
    )


def _shared_charts(title: str, work: Scaling, colours: Mapping[str, str]) -> Iterator[Chart]:
    if len({case.replicas for case in work.cases}) < 2:  # noqa: PLR2004 (a single place)
        return
    rates = {name: [_rate_point(c) for c in line.values()] for name, line in work.lines.items()}
    times = {name: [_point(c) for c in line.values()] for name, line in work.lines.items()}
    looks, unit = _looks(work, colours), work.cases[0].unit
    limits = _ideals(work, rates, gains=True)
    yield lines.draw(f"{title}: {unit} a second", rates, "replicas", None, four_digits,
                     limits=limits, looks=looks)  # fmt: skip
    limits = _ideals(work, times, gains=False)
    yield lines.draw(f"{title}: time of a step", times, "replicas", limits=limits, looks=looks)


def _by_servers(title: str, work: Scaling, colours: Mapping[str, str]) -> Iterator[Chart]:
    """Throughput against parameter servers, a line for each number of workers.

    As figure 9 of the TensorFlow paper has it (Abadi et al., OSDI 2016); without several numbers
    of servers there is nothing to compare.
    """
    served = [case for case in work.cases if case.gang is not None and case.gang.servers]
    points = [_rate_point(case, case.servers) for case in served]
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
    """Lines of each contestant, one for each number of replicas, which have a dash each."""
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
    label, is_pale = marked(case.record.values_text, case.facts), is_contended(case.facts)
    return Point(case.replicas, case.time_s, *case.spread_s, label, is_pale)


def _rate_point(case: Shared, x: float | None = None, rate: float | None = None) -> Point:
    """The rate of a case by its replicas, or another rate over another place."""
    rate = rate or case.rate or 0.0
    high, low = (rate * case.time_s / end_s for end_s in case.spread_s)
    return replace(_point(case), x=case.replicas if x is None else x, y=rate, low=low, high=high)


def _ideals(work: Scaling, series: Mapping[str, Sequence[Point]], *, gains: bool) -> lines.Limits:
    """Ideal of each line, without exchange and waiting, from its smallest number on."""
    ideals = {}
    for name, points in series.items():
        first, last = points[0], points[-1]
        times = last.x / first.x
        factor = times if gains else 1.0 if work.weak else 1 / times
        if times > 1:
            ideals[_IDEAL.format(name)] = [(first.x, first.y), (last.x, first.y * factor)]
    return ideals


def _looks(work: Scaling, colours: Mapping[str, str]) -> dict[str, Look]:
    records = ((row.name, row.case.record) for row in rows([work]))
    looks = palette.looks_of(records, colours)
    return looks | {
        _IDEAL.format(name): Look(
            look.colour, _IDEAL_DASH, look.opacity, has_dots=False, keys=look.keys
        )
        for name, look in looks.items()
        if len(work.lines[name]) > 1
    }


def _softmaxes(work: Scaling, colours: Mapping[str, str]) -> Section:
    """Words a second with either softmax; the table of each has the rest."""
    title = f"replicas: {work.title}, full and sampled softmax"
    by_replicas = itertools.islice(_shared_charts(title, work, colours), 1)
    charts = [*by_replicas, *_by_servers(title, work, colours)]
    legend = _looks(work, colours)
    return Section(title, [], [], charts, [_PROSE["softmaxes"]], legend=legend)


# Exchanges


def _exchange(row: SharedCase) -> TableCell:
    return TableCell(marked(row.case.name, row.case.facts))


_EXCHANGED = (*columns("exchanged", _exchange), *_WIRE)


def _exchanged(title: str, group: Sequence[Scaling], colours: Mapping[str, str]) -> Section:
    shown = [row for row in rows(group) if row.case.gang is not None]
    cases = [row.case for row in shown]
    title = f"replicas: {title}"
    models = {id(work): _models(work) for work in group}
    contestants = dict.fromkeys(name for work in group for name in work.lines)
    charts = [
        *(_by_replicas(title, name, group, models) for name in contestants),
        *_by_size(title, cases, colours),
    ]
    has_model = any(line for lines_of in models.values() for line in lines_of.values())
    return Section.from_items(
        title,
        _EXCHANGED,
        shown,
        lambda row: row_keys(row.case.record),
        charts=[chart for chart in charts if chart is not None],
        notes=_notes("", cases),
        page_notes=[_PROSE["model"]] * has_model,
    )


def _models(work: Scaling) -> dict[str, list[Modelled]]:
    """Expected times with more replicas, by contestant, where the model has them.

    It has none for a dtype whose size is not known.
    """
    facts = work.facts
    if facts.dtype not in ITEMSIZE_BYTES:
        return {}
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
    for work in group:
        line = work.lines.get(name, {})
        if line:
            size = f"{work.facts.size:,}"
            measured[size] = [_point(case) for case in line.values()]
            continued[size] = [
                Point(point.replicas, point.time_s, point.low_s, point.high_s, _MODEL)
                for point in models[id(work)].get(name, ())
            ]
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


def _by_size(title: str, cases: Sequence[Shared], colours: Mapping[str, str]) -> Iterator[Chart]:
    """Bus bandwidth against size, if there are several."""
    rates = [(case, case.gang and case.gang.bus_bytes_per_s) for case in cases]
    moved = [case for case, rate in rates if rate]
    points = [_rate_point(case, case.facts.size, rate) for case, rate in rates if rate]
    series, looks = _by_number(moved, [case.name for case in moved], points, colours)
    if max(map(len, series.values()), default=0) > 1:
        title = f"{title}: bus bandwidth"
        yield lines.draw(
            title, series, "elements", None, lambda x: f"{x / _BILLION:,.3g} GB/s", looks=looks
        )
