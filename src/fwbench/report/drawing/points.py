"""Points: a share up, a time or another quantity across; single ones, or joined to tracks."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple

import pygal

from fwbench.records.units import time
from fwbench.report.drawing.chart import Chart, blank, marks, rendered
from fwbench.report.drawing.palette import Look


def draw_scatter(
    title: str,
    points: Mapping[str, tuple[float, float]],
    x_title: str,
    y_title: str,
    looks: Mapping[str, Look] | None = None,
) -> Chart:
    """A chart of points: a share against seconds.

    Args:
        points: seconds and a share (0 to 1), by name.
    """
    chart = blank(
        pygal.XY,
        len(points),
        x_title=x_title,
        y_title=y_title,
        stroke=False,
        dots_size=7,
        value_formatter=lambda share: f"{share:.2%}",
        x_value_formatter=time,
    )
    for name, point in points.items():
        chart.add(name, [{"value": point, "label": name}])
    text = (f"{name} {time(time_s)}, {share:.2%}" for name, (time_s, share) in points.items())
    return rendered(chart, title, "; ".join(text), looks)


# Tracks


#: What the vertical axis has above and below all points: smaller differences look small.
_ROOM = 0.005


class Stop(NamedTuple):
    """A point of a track.

    Attributes:
        x: the quantity.
        share: 0 to 1.
        label: what it is the point of.
        radius: of its dot.
    """

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
    """A chart of tracks, whose points have their labels in a tooltip.

    Args:
        tracks: points in the order in which they are joined, by name; one at least.
        axes: labels of the horizontal and of the vertical axis.
    """
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
        chart.add(name, [_dot(stop) for stop in some])
    text = (
        f"{name} {stop.label} {show(stop.x)}, {stop.share:.2%}"
        for name, some in tracks.items()
        for stop in some
    )
    return rendered(chart, title, "; ".join(text), looks)


def _range(shares: Iterable[float]) -> tuple[float, float]:
    low, *_, high = sorted([*shares] * 2)
    return max(0.0, low - _ROOM), min(1.0, high + _ROOM)


def _dot(stop: Stop) -> dict[str, object]:
    return {
        "value": (stop.x, stop.share),
        "label": stop.label,
        "node": {"r": stop.radius},
    }
