"""Points of a name, joined in their order: a share up, a quantity across from zero."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple

import pygal

from fwbench.report.drawing.chart import Chart, blank, marks, rendered
from fwbench.report.drawing.palette import Look

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


def draw(
    title: str,
    tracks: Mapping[str, Sequence[Stop]],
    axes: tuple[str, str],
    show: Callable[[float], str],
    looks: Mapping[str, Look] | None = None,
) -> Chart:
    """A chart of tracks, whose points have their labels in a tooltip.

    Args:
        title: of the chart.
        tracks: points in the order in which they are joined, by name; one at least.
        axes: labels of the horizontal and of the vertical axis.
        show: formats a quantity.
        looks: of the tracks, by their names.
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
