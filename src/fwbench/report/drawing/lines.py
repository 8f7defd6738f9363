"""Lines: over sizes with both axes logarithmic, from epoch to epoch, and from run to run."""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import pygal

from fwbench.records.units import time
from fwbench.report.drawing.chart import Chart, Point, blank, dot, marks, rendered
from fwbench.report.drawing.palette import SPARE, Look

#: Up to this many powers of ten there are marks between them, too.
_FEW_DECADES = 2

#: Number of labels that have room below an axis, and characters of all of them.
_LABELS, _CHARACTERS = 8, 45

#: Fewer sizes are not joined by a line: two of them would suggest a law.
A_LINE = 3

#: The corners of a line on which nothing was measured.
Limits = Mapping[str, Sequence[tuple[float, float]]]


def draw(
    title: str,
    series: Mapping[str, Sequence[Point]],
    x_title: str,
    y_title: str | None = None,
    show: Callable[[float], str] = time,
    show_x: Callable[[float], str] = "{:,.0f}".format,
    limits: Limits | None = None,
    *,
    looks: Mapping[str, Look] | None = None,
    joined: bool = True,
) -> Chart:
    """A chart of values over sizes.

    Args:
        y_title: label of the vertical axis; None for one that its labels explain.
        looks: of the lines, by their names; of limits, too, that are not to have the page's ink.
    """
    limits = limits or {}
    chart = blank(
        _Lines,
        len(series) + len(limits),
        x_title=x_title,
        y_title=y_title,
        logarithmic=True,
        value_formatter=show,
        x_value_formatter=show_x,
        dots_size=3,
        **_axes(series, limits, show_x),
    )
    for name, points in series.items():
        dots = [dot(point, show) for point in sorted(points, key=lambda point: point.x)]
        chart.add(name, dots, stroke=joined)
    for name, corners in limits.items():
        chart.add(name, list(corners), show_dots=False)
    heights = _heights(series, limits)
    ranges = (f"{name} {show(min(ys))} to {show(max(ys))}" for name, ys in heights.items())
    of_limits = dict.fromkeys(limits, Look("var(--ink)", dash="6 4"))
    return rendered(chart, title, "; ".join(ranges), {**of_limits, **(looks or {})})


def _axes(
    series: Mapping[str, Sequence[Point]], limits: Limits, show_x: Callable[[float], str]
) -> dict[str, Any]:
    points = [point for line in series.values() for point in line]
    corners = [corner for line in limits.values() for corner in line]
    places = sorted({point.x for point in points})
    across = [*places, *(x for x, _ in corners)]
    ends = [end for point in points for end in (point.low, point.y, point.high)]
    marks = _decades([*ends, *(y for _, y in corners)])
    longest = max(len(show_x(place)) for place in places)
    # A little room at both ends, for half a label; without it a single size has none at all.
    room = max(1.3, (max(across) / min(across)) ** (longest / _CHARACTERS / 2.5))
    return {
        "x_labels": _thinned(places, min(_LABELS, _CHARACTERS // longest)),
        "xrange": (min(across) / room, max(across) * room),
        "range": (marks[0], marks[-1] * 1.02),  # pygal leaves out a label at the very top
        "y_labels": marks,
    }


def _heights(series: Mapping[str, Sequence[Point]], limits: Limits) -> dict[str, list[float]]:
    """The values of every line, by its name."""
    heights = {name: [point.y for point in points] for name, points in series.items()}
    return heights | {name: [y for _, y in corners] for name, corners in limits.items()}


class _Lines(pygal.XY):  # type: ignore[misc]
    """pygal's, which looks for the interval of a point at the point and not at its height."""

    def _confidence_interval(
        self, node: Any, x: float, y: float, value: tuple[float, float], metadata: Any
    ) -> None:
        super()._confidence_interval(node, x, y, value[1], metadata)


def _decades(values: Sequence[float]) -> list[float]:
    """Powers of ten around all that is drawn; also 2 and 5 times them where these are few."""
    first, last = math.floor(math.log10(min(values))), math.ceil(math.log10(max(values)))
    last = max(last, first + 1)
    steps = (1, 2, 5) if last - first <= _FEW_DECADES else (1,)
    marks = [step * 10.0**power for power in range(first, last) for step in steps]
    marks.append(10.0**last)
    # All but the outermost that are not needed.
    low = max((mark for mark in marks if mark <= min(values)), default=marks[0])
    high = min((mark for mark in marks if mark >= max(values)), default=marks[-1])
    needed = [mark for mark in marks if low <= mark <= high]
    return needed if len(needed) > 1 else [low, 10 * low]


def _thinned(places: Sequence[float], labels: int) -> list[float]:
    """So few of the places, in their order, that their labels do not overlap."""
    apart = (places[-1] / places[0]) ** (1 / max(1, labels))
    shown: list[float] = []
    for place in places:
        if not shown or place >= shown[-1] * apart:
            shown.append(place)
    return shown


def draw_curves(
    title: str,
    series: Mapping[str, Sequence[float]],
    y_title: str,
    looks: Mapping[str, Look] | None = None,
) -> Chart:
    """A chart of a curve for each name."""
    chart = blank(
        pygal.Line,
        len(series),
        x_title="epoch",
        y_title=y_title,
        value_formatter="{:.3g}".format,
        dots_size=2,
    )
    chart.x_labels = [str(i + 1) for i in range(max(map(len, series.values())))]
    for name, values in series.items():
        chart.add(name, [*values])
    last = (f"{name} ends at {values[-1]:.4g}" for name, values in series.items())
    return rendered(chart, title, "; ".join(last), looks)


#: Up to this number of runs each has a dot.
_DOTS = 60


#: In charts over time: the line of the values themselves, and what is marked on it.
_MEDIAN, _EVENT = "median", "upgrade or lasting shift"

#: At most this many labels are beside a vertical axis.
_HEIGHTS = 6

#: Numbers of digits of labels, up to all that a number has.
_DIGITS = range(3, 18)

#: Pixels from a dot to the end of its margin, and of a character of its label.
_BEFORE_LABEL, _OF_CHARACTER = 12, 6

#: Below the lowest point there is room for its label: this share of the height.
_ROOM_FOR_LABELS = 0.12

#: Behind the last point there is room for half of its dot: this share of the width.
_ROOM_FOR_DOTS = 0.04

#: Opacity of the ends of intervals over time, whose dashes are thin.
_END = 0.7

#: Of a legend's dot without a line.
_NO_LINE = "0 99"


def draw_over_time(
    title: str,
    runs: Sequence[str],
    points: Sequence[Point],
    marks: Mapping[int, str],
    of_marks: str = _EVENT,
    ends: str = "quartile",
    *,
    colour: str = "",
    are_printed: bool = False,
) -> Chart:
    """A chart of times over runs.

    Args:
        runs: their labels: days, or versions.
        points: a value for each run; seconds.
        marks: what happened, by the number of the run.
        of_marks: their name.
        ends: the name of an end of an interval.
        colour: of the framework, if there is one.
        are_printed: whether the labels of points and marks are in the picture, and not only shown
            to a pointer.
    """
    looks = _looks_over_time(of_marks, ends, colour)
    chart = blank(
        pygal.Line,
        len(looks) if marks else len(looks) - 1,
        value_formatter=time,
        x_labels_major_every=math.ceil(len(runs) / max(1, _CHARACTERS // max(map(len, runs)))),
        show_minor_x_labels=False,
        show_dots=len(points) <= _DOTS,
        dots_size=2,
        print_labels=are_printed,
        **_time_axis(points, are_printed=are_printed),
        **_beside(marks.get(len(points) - 1, "")) if are_printed else {},
    )
    chart.x_labels = runs
    _add_over_time(chart, points, marks, of_marks, ends)
    first, last = (f"{time(points[end].y)} ({runs[end]})" for end in (0, -1))
    events = "; ".join(f"{runs[number]}: {event}" for number, event in sorted(marks.items()))
    return rendered(chart, title, f"{first}, {last}; {events or f'no {of_marks}'}", looks)


def _add_over_time(
    chart: Any, points: Sequence[Point], marks: Mapping[int, str], of_marks: str, ends: str
) -> None:
    """Add the lines of the values and of the ends of their intervals, and the dots of marks."""
    chart.add(_MEDIAN, [{"value": p.y, "label": p.label, "node": p.attributes} for p in points])
    chart.add(f"lower {ends}", [point.low for point in points], show_dots=False)
    chart.add(f"upper {ends}", [point.high for point in points], show_dots=False)
    if marks:
        places = enumerate(points)
        dots = [{"value": p.y, "label": marks[i]} if i in marks else None for i, p in places]
        chart.add(of_marks, dots, stroke=False, show_dots=True, dots_size=5)


def _time_axis(points: Sequence[Point], *, are_printed: bool) -> dict[str, Any]:
    """Round times in as many digits as tell them apart, and room for what is printed below dots."""
    ends_s = [end for point in points for end in (point.low, point.high)]
    least, most = min(ends_s), max(ends_s)
    places = marks(least, most, (), _HEIGHTS)
    texts = ([time(place, digits) for place in places] for digits in _DIGITS)
    apart = next(labels for labels in texts if len({*labels}) == len(labels))
    labels = [{"value": place, "label": text} for place, text in zip(places, apart, strict=True)]
    room = {"range": (least - _ROOM_FOR_LABELS * (most - least), most)} if are_printed else {}
    return {"y_labels": labels, **room}


def _beside(label: str) -> dict[str, Any]:
    """Room for what is printed on the right of the last dot."""
    return {"margin_right": _BEFORE_LABEL + _OF_CHARACTER * len(label)} if label else {}


def _looks_over_time(of_marks: str, ends: str, colour: str) -> dict[str, Look]:
    """Looks of the lines of a chart over time, by their names, which are the lines' keys."""
    line = Look(colour or SPARE[0])
    end = replace(line, opacity=_END, dash="3 3", has_dots=False)
    looks = {
        _MEDIAN: line,
        f"lower {ends}": end,
        f"upper {ends}": end,
        of_marks: Look(SPARE[3], dash=_NO_LINE),
    }
    return {name: replace(look, keys={"line": name}) for name, look in looks.items()}


def legend_over_time(
    charts: Sequence[Chart], of_marks: str = _EVENT, ends: str = "quartile", *, colour: str = ""
) -> dict[str, Look]:
    """The legend that charts over time share: the looks of the lines that any of them has.

    Args:
        colour: that all charts have.
    """
    used = {name for chart in charts for name in chart.legends}
    looks = _looks_over_time(of_marks, ends, colour)
    return {name: look for name, look in looks.items() if name in used}


def draw_scatter(
    title: str,
    points: Mapping[str, tuple[float, float]],
    x_title: str,
    y_title: str,
    looks: Mapping[str, Look] | None = None,
) -> Chart:
    """A chart of points: a share against seconds, which begin at zero."""
    longest_s = max(time_s for time_s, _ in points.values())
    chart = blank(
        pygal.XY,
        len(points),
        x_title=x_title,
        y_title=y_title,
        xrange=(0, longest_s * (1 + _ROOM_FOR_DOTS)),
        range=_range(share for _, share in points.values()),
        stroke=False,
        dots_size=7,
        value_formatter=lambda share: f"{share:.2%}",
        x_value_formatter=time,
    )
    chart.x_labels = marks(0, longest_s, ())
    for name, point in points.items():
        chart.add(name, [{"value": point, "label": name}])
    text = (f"{name} {time(time_s)}, {share:.2%}" for name, (time_s, share) in points.items())
    return rendered(chart, title, "; ".join(text), looks)


#: What the vertical axis has above and below all points: smaller differences look small.
_ROOM = 0.005


class Stop(NamedTuple):
    """A point of a track; the share is from 0 to 1."""

    x: float
    share: float
    label: str
    radius: float


def draw_tracks(
    title: str,
    tracks: Mapping[str, Sequence[Stop]],
    axes: tuple[str, str],
    show: Callable[[float], str],
    looks: Mapping[str, Look] | None = None,
) -> Chart:
    """A chart of tracks, whose points have their labels in a tooltip."""
    stops = [stop for some in tracks.values() for stop in some]
    largest = max(stop.x for stop in stops)
    chart = blank(
        pygal.XY,
        len(tracks),
        x_title=axes[0],
        y_title=axes[1],
        xrange=(0, largest),
        range=_range(stop.share for stop in stops),
        value_formatter=lambda share: f"{share:.2%}",
        x_value_formatter=show,
    )
    chart.x_labels = marks(0, largest, ())
    for name, some in tracks.items():
        dots = [
            {"value": (stop.x, stop.share), "label": stop.label, "node": {"r": stop.radius}}
            for stop in some
        ]
        chart.add(name, dots)
    text = (
        f"{name} {stop.label} {show(stop.x)}, {stop.share:.2%}"
        for name, some in tracks.items()
        for stop in some
    )
    return rendered(chart, title, "; ".join(text), looks)


def _range(shares: Iterable[float]) -> tuple[float, float]:
    low, *_, high = sorted([*shares] * 2)
    return max(0.0, low - _ROOM), min(1.0, high + _ROOM)
