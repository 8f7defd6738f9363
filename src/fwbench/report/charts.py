"""The charts above the tables of a section: fwbench's own, and those of other packages.

A chart of another package is a module with ``SECTION``, the section that it belongs to; ``ORDER``,
its place there; and ``draw(group)``, which returns a chart of a :class:`Group`, or None where there
is nothing to draw. An entry point names it.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

from fwbench.records.equality import curve
from fwbench.records.facts import CaseFacts
from fwbench.records.measurement import Measurement, group_by, ratio
from fwbench.records.repeatability import INTERVAL
from fwbench.records.units import time, times
from fwbench.report.condition import early, is_contended, marked
from fwbench.report.discovery import extensions
from fwbench.report.drawing import bars, lines, palette
from fwbench.report.drawing.bars import Bar
from fwbench.report.drawing.chart import Chart, Point
from fwbench.report.drawing.palette import Look
from fwbench.report.training import accuracy, deviation_text, epochs_s

#: The line at the speed of eager, in charts of gains.
_AS_EAGER = "as fast as eager"

#: The entry points by which other packages add charts.
ENTRY_POINTS = "fwbench.charts"


@dataclass(frozen=True)
class Group:
    """The records of a section."""

    title: str
    #: Each with the name of its line; operations have a record for each size of a line.
    records: Sequence[tuple[str, Measurement]]
    runs: Sequence[str]
    colours: Mapping[str, str] = field(default_factory=dict)
    #: The only one that its records have, for titles; empty for several.
    size: str = ""

    @cached_property
    def looks(self) -> dict[str, Look]:
        """The look of each line, by its name."""
        frameworks = (record.facts.framework for _, record in self.records)
        return palette.looks_of(self.records, self.colours or palette.colours(frameworks))

    @property
    def has_one_size(self) -> bool:
        """True where there is nothing to draw over sizes."""
        return len({record.facts.size_text for _, record in self.records}) == 1

    def size_text(self, size: float) -> str:
        """The size, or the shape, that its records have for a place on the horizontal axis."""
        texts = (r.facts.size_text for _, r in self.records if r.facts.size == size)
        return next(texts, f"{size:,.0f}")

    @property
    def apart(self) -> "list[Group]":
        """A group for each of its sizes, the smallest first; itself if a line can join these."""
        by_size = group_by(self.records, lambda named: (named[1].facts.size, named[1].facts.shape))
        if len(by_size) >= lines.A_LINE:
            return [self]
        return [
            replace(
                self, records=by_size[size], size=f" at size {by_size[size][0][1].facts.size_text}"
            )
            for size in sorted(by_size, key=lambda size: (size[0], size[1] or ""))
        ]

    @cached_property
    def gains(self) -> list[Point | None]:
        """The speed of each record over eager; None where that is not known."""
        return gains([record for _, record in self.records])


@dataclass(frozen=True)
class Drawing:
    """A kind of chart."""

    section: str
    order: int
    draw: Callable[[Group], Chart | None]
    #: Whether it is drawn for each size where there are too few for a line.
    apart: bool = False


_EAGER = "eager"

#: Of the line at the speed of eager; its key keeps it out of legends.
_DASHED = Look("var(--ink)", "6 4", has_dots=False, keys={"line": _AS_EAGER})


def gains(records: Sequence[Measurement]) -> list[Point | None]:
    """The speed of each record over that of the same framework's eager execution.

    Returns:
        The ratio with its 90 % interval from process to process, over the size; None of an eager
        record, and where the eager one is missing or one of the two is an upper bound.
    """
    eager: dict[tuple[Any, ...], Measurement] = {}
    for record in records:
        if record.facts.execution == _EAGER:
            eager.setdefault(_but_execution(record), record)
    return [
        None
        if record.facts.execution == _EAGER
        else _gain(record, eager.get(_but_execution(record)))
        for record in records
    ]


def _gain(record: Measurement, eager: Measurement | None) -> Point | None:
    if eager is None or is_contended(record.facts) or is_contended(eager.facts):
        return None
    gain = ratio(record, eager)
    return Point(record.facts.size, gain.value, *gain.interval(INTERVAL), point_label(record))


def point_label(record: Measurement) -> str:
    """The shape of a record, if any, and the number of its values."""
    return ", ".join(filter(None, [record.facts.shape, record.values_text]))


def time_point(record: Measurement, x: float, label: str = "") -> Point:
    """The median of a record in seconds, with its quartiles; pale where it is an upper bound."""
    text = marked(label or point_label(record), record.facts)
    is_pale = is_contended(record.facts)
    return Point(x, record.median_s, *record.quartiles_s, text, is_pale)


def rate_point(record: Measurement, x: float, work: float, label: str = "") -> Point:
    """Work a second: a slow quartile of times is a low one of rates."""
    point = time_point(record, x, label)
    rate, low, high = (work / time_s for time_s in (point.y, point.high, point.low))
    return replace(point, y=rate, low=low, high=high)


def _but_execution(record: Measurement) -> tuple[Any, ...]:
    """All that two records must have in common, except their execution."""
    return (
        record.run,
        record.facts.framework,
        record.facts.work,
        record.facts.steps_per_epoch,
        frozenset(record.requested.items()),
    )


def operation_times(group: Group) -> Chart:
    """Median times of each framework and execution."""
    if group.has_one_size:
        return _bars(group)
    by_name = group_by(group.records, lambda named: named[0])
    series = {
        name: [time_point(record, record.facts.size) for _, record in line]
        for name, line in by_name.items()
    }
    title, show_x = f"{group.title}: time against size", group.size_text
    return lines.draw(title, series, "size", show_x=show_x, looks=group.looks)


def _bars(group: Group) -> Chart:
    """A bar for each, in their order; in a lighter tone until the call returned, if early."""
    shown = {
        name: Bar(time_point(record, record.facts.size), _returned_s(record))
        for name, record in group.records
    }
    parts = ("done", "call returned")
    return bars.draw_each(f"{group.title}: time{group.size}", shown, time, group.looks, parts)


def _returned_s(record: Measurement) -> float:
    returned_s, _ = early(record.facts) or (0.0, 0.0)
    return min(returned_s, record.median_s)


def operation_dispatch(group: Group) -> Chart | None:
    """Two lines for each framework and execution whose calls return early.

    Until the call returned is drawn in a lighter tone. Bars of a single size show both.

    Returns:
        None where none does at several sizes.
    """
    series: dict[str, list[Point]] = {}
    looks: dict[str, Look] = {}
    for name, record in group.records if not group.has_one_size else ():
        times_s = early(record.facts)
        if times_s is None:
            continue
        dark = group.looks[name]
        for what, look, value in zip(
            ("returned", "done"), (dark.lighter, dark), times_s, strict=True
        ):
            looks[f"{name}, {what}"] = look
            point = replace(time_point(record, record.facts.size), y=value, low=value, high=value)
            series.setdefault(f"{name}, {what}", []).append(point)
    if max(map(len, series.values()), default=0) < 2:  # noqa: PLR2004 (a single size)
        return None
    title = f"{group.title}: time until calls returned (lighter), and until their work was done"
    return lines.draw(title, series, "size", show_x=group.size_text, looks=looks)


def speedup(group: Group) -> Chart | None:
    """A line of ratios for each execution, a bar of a single size; None where all are eager."""
    series: dict[str, list[Point]] = {}
    for (name, _), gain in zip(group.records, group.gains, strict=True):
        if gain is not None:
            series.setdefault(name, []).append(gain)
    if not series:
        return None
    title = f"{group.title}: how many times as fast as eager{group.size}"
    sizes = sorted({gain.x for line in series.values() for gain in line})
    if len(sizes) == 1:
        where = "" if group.has_one_size else f" at size {group.size_text(sizes[0])}"
        shown = {name: Bar(gain) for name, (gain,) in series.items()}
        return bars.draw_each(f"{title}{where}", shown, times, group.looks)
    limits = {_AS_EAGER: [(sizes[0], 1.0), (sizes[-1], 1.0)]}
    looks = {**group.looks, _AS_EAGER: _DASHED}
    title, joined = f"{title} (dashed: 1x)", len(sizes) >= lines.A_LINE
    return lines.draw(
        title, series, "size", None, times, group.size_text, limits, looks=looks, joined=joined
    )


def training_times(group: Group) -> Chart:
    """Three bars for each training, in its colour."""
    series = {
        "an epoch": {name: record.median_s for name, record in group.records},
        "the first epoch": {name: epochs_s(record)[0] for name, record in group.records},
        "all epochs": {name: sum(epochs_s(record)) for name, record in group.records},
    }
    title = f"{group.title}: time of training"
    return bars.draw(title, series, time, group.looks, downwards=True)


def training_losses(group: Group) -> Chart:
    """A curve for each training; the title says how far they are apart."""
    series = {name: curve(record.facts) for name, record in group.records}
    what = f"{group.title}: training loss after each epoch{deviation_text(series)}"
    return lines.draw_curves(what, series, "nats", group.looks)


def training_accuracy(group: Group) -> Chart | None:
    """A bar for each training that was tested; None where none was."""
    values = {
        name: value for name, record in group.records if (value := accuracy(record)) is not None
    }
    if not values:
        return None
    points = {name: 100 * value for name, value in values.items()}
    shown = {name: Bar(Point(0, point, point, point)) for name, point in points.items()}
    return bars.draw_each(f"{group.title}: test accuracy", shown, "{:.4g} %".format, group.looks)


def training_accuracy_against_time(group: Group) -> Chart | None:
    """A point for each training that was tested; None where there are not two to compare."""
    tested = [(name, record) for name, record in group.records if accuracy(record) is not None]
    if len(tested) < 2:  # noqa: PLR2004 (one point says nothing)
        return None
    return accuracy_against_time(f"{group.title}: time against accuracy", tested, group.looks)


def accuracy_against_time(
    title: str, tested: Iterable[tuple[str, Measurement]], looks: Mapping[str, Look]
) -> Chart:
    """A point for each of some trainings that were tested."""
    places = {name: (sum(epochs_s(record)), accuracy(record) or 0.0) for name, record in tested}
    return lines.draw_scatter(title, places, "all epochs", "accuracy", looks)


_PEAKS: Mapping[str, Callable[[CaseFacts], int | None]] = {
    "of the process": lambda facts: facts.memory_above_bytes,
    "of the device": lambda facts: facts.peak_device_memory_bytes,
}


def training_memory(group: Group) -> Chart | None:
    """Up to two bars for each training; None where no memory is known."""
    series = {
        # In MiB, so that the marks below the bars are round.
        what: {
            name: value / 2**20
            for name, record in group.records
            if (value := peak_bytes(record.facts))
        }
        for what, peak_bytes in _PEAKS.items()
    }
    known = {what: values for what, values in series.items() if values}
    if not known:
        return None
    only = f" {next(iter(known))}" if len(known) == 1 else ""
    title, show = f"{group.title}: peak memory{only} above what was held before", "{:,.0f} MiB"
    if only:
        (values,) = known.values()
        shown = {name: Bar(Point(0, value, value, value)) for name, value in values.items()}
        return bars.draw_each(title, shown, show.format, group.looks)
    return bars.draw(title, known, show.format, group.looks, downwards=True)


#: fwbench's own charts.
_CHARTS = (
    Drawing("operations", 10, operation_times, apart=True),
    Drawing("operations", 20, operation_dispatch, apart=True),
    Drawing("operations", 30, speedup, apart=True),
    Drawing("training", 10, training_times),
    Drawing("training", 20, speedup),
    Drawing("training", 30, training_losses),
    Drawing("training", 40, training_accuracy),
    Drawing("training", 50, training_accuracy_against_time),
    Drawing("training", 60, training_memory),
)


def draw_all(section: str, group: Group) -> list[Chart]:
    """The charts of a section, in their order."""
    modules = extensions(None, ENTRY_POINTS, "SECTION", "draw")
    others = [Drawing(module.SECTION, module.ORDER, module.draw) for module in modules]
    every = sorted([*_CHARTS, *others], key=lambda drawing: drawing.order)
    drawn = [
        drawing.draw(part)
        for drawing in every
        if drawing.section == section
        for part in (group.apart if drawing.apart else [group])
    ]
    return [chart for chart in drawn if chart is not None]
