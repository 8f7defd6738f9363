"""Charts, drawn by pygal as SVG that stands in a page: each with a text that says what it shows."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import cycle, islice
from pathlib import Path
from typing import Any

import pygal
import pygaljs
from pygal.etree import etree
from pygal.style import Style

from fwbench.report.units import time

#: Told apart by people who see few colours, on white and on black (Okabe and Ito, 2008; the yellow
#: and the black left out).
_COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#8c6bb1", "#7f7f7f")

_STYLE: dict[str, Any] = {
    "background": "transparent",
    "plot_background": "transparent",
    "foreground": "var(--ink)",
    "foreground_strong": "var(--ink)",
    "foreground_subtle": "var(--faint)",
    "font_family": "system-ui, sans-serif",
    "label_font_size": 12,
    "major_label_font_size": 12,
    "legend_font_size": 13,
    "tooltip_font_size": 13,
    "value_font_size": 12,
    "opacity": ".85",
    "guide_stroke_color": "var(--faint)",
    "major_guide_stroke_color": "var(--faint)",
}

_SIZE = {"width": 820, "height": 430}

#: How pygal names the entries of a legend, each by the number of its series.
_LEGEND = "activate-serie-"

#: Shows values where a pointer is; of pygal, and of no other host. It is told to look for the
#: number of a series behind a chart's own name, because several charts are in one document.
SCRIPT = (
    Path(pygaljs.uri("2.0.x", "pygal-tooltips.js").removeprefix("file://"))
    .read_text(encoding="utf-8")
    .replace(f"replace('{_LEGEND}', '')", f"replace(/.*{_LEGEND}/, '')")
)


@dataclass(frozen=True)
class Chart:
    """A chart.

    Attributes:
        title: what it shows, in a line.
        text: for those who do not see it.
        svg: the picture.
    """

    title: str
    text: str
    svg: str


@dataclass(frozen=True)
class Point:
    """A value with its spread, at a place on the horizontal axis."""

    x: float
    y: float
    low: float
    high: float
    label: str = ""


def lines(title: str, series: Mapping[str, Sequence[Point]], x_title: str) -> Chart:
    """Times over sizes, both axes logarithmic, with the spread as a band.

    Args:
        title: of the chart.
        series: points by the name of their line; x is a size, y seconds.
        x_title: what a size is.
    """
    sizes = sorted({point.x for points in series.values() for point in points})
    chart = _chart(
        pygal.XY,
        len(series),
        x_title=x_title,
        y_title="time of a call",
        logarithmic=True,
        value_formatter=time,
        x_value_formatter=lambda x: f"{x:,.0f}",
        x_labels=sizes,
        # A little room at both ends; without it a single size has none at all.
        xrange=(sizes[0] / 1.3, sizes[-1] * 1.3),
        y_labels=_decades(point for points in series.values() for point in points),
        dots_size=3,
    )
    ordered = {name: sorted(points, key=lambda one: one.x) for name, points in series.items()}
    for name, points in ordered.items():
        chart.add(name, [_dot(point) for point in points])
    for points in ordered.values():  # in the same order, so in the same colours
        _spread(chart, points)
    ends = "; ".join(
        f"{name} {time(min(p.y for p in points))} to {time(max(p.y for p in points))}"
        for name, points in series.items()
    )
    return _drawn(chart, title, f"{title}: {ends}")


def curves(title: str, series: Mapping[str, Sequence[float]], y_title: str) -> Chart:
    """Values from epoch to epoch."""
    chart = _chart(
        pygal.Line,
        len(series),
        x_title="epoch",
        y_title=y_title,
        value_formatter=_three_digits,
        dots_size=2,
    )
    chart.x_labels = [str(i + 1) for i in range(max(map(len, series.values())))]
    for name, values in series.items():
        chart.add(name, [value if math.isfinite(value) else None for value in values])
    last = "; ".join(f"{name} ends at {values[-1]:.4g}" for name, values in series.items())
    return _drawn(chart, title, f"{title}: {last}")


def bars(
    title: str, series: Mapping[str, Mapping[str, float]], show: Callable[[float], str]
) -> Chart:
    """Grouped horizontal bars: a value for each category and name."""
    chart = _chart(pygal.HorizontalBar, len(series), value_formatter=show)
    categories = list(dict.fromkeys(name for values in series.values() for name in values))
    chart.x_labels = categories
    for name, values in series.items():
        chart.add(name, [values.get(category) for category in categories])
    told = [
        f"{category}, {name}: {show(values[category])}"
        for category in categories
        for name, values in series.items()
        if category in values
    ]
    return _drawn(chart, title, f"{title}: {'; '.join(told)}")


def scatter(title: str, points: Mapping[str, tuple[float, float]], x: str, y: str) -> Chart:
    """One point for each name: seconds across, a share up."""
    chart = _chart(
        pygal.XY,
        len(points),
        x_title=x,
        y_title=y,
        stroke=False,
        dots_size=7,
        value_formatter=lambda share: f"{share:.2%}",
        x_value_formatter=time,
    )
    for name, point in points.items():
        chart.add(name, [{"value": point, "label": name}])
    told = "; ".join(f"{name} {time(at)}, {share:.2%}" for name, (at, share) in points.items())
    return _drawn(chart, title, f"{title}: {told}")


def _chart(kind: Any, lines: int, **settings: Any) -> Any:
    return kind(
        style=Style(colors=tuple(islice(cycle(_COLOURS), lines)) * 2, **_STYLE),
        js=[],
        disable_xml_declaration=True,
        explicit_size=False,
        legend_at_bottom=True,
        legend_at_bottom_columns=2,
        truncate_legend=-1,
        margin_bottom=45,  # pygal leaves none for the last row of an odd number of names
        x_label_rotation=0,
        no_data_text="nothing to show",
        **_SIZE,
        **settings,
    )


def _drawn(chart: Any, title: str, text: str) -> Chart:
    """As SVG that can stand beside others in one document."""
    picture = chart.render_tree()
    for element in picture.iter():
        # Alike in every chart of pygal's.
        if element.attrib.get("id", "").startswith(_LEGEND):
            element.attrib["id"] = f"{chart.uuid}-{element.attrib['id']}"
    for element in picture.findall("title"):  # pygal's own name, which browsers would show
        picture.remove(element)
    return Chart(title, text, etree.tostring(picture, encoding="unicode"))


def _dot(point: Point) -> dict[str, Any]:
    spread = f"{time(point.low)} to {time(point.high)}"
    label = f"{point.label} ({spread})" if point.label else spread
    return {"value": (point.x, point.y), "label": label}


def _spread(chart: Any, points: Sequence[Point]) -> None:
    """The outline of a band: there along the low ends, back along the high ones."""
    there = [(point.x, point.low) for point in points]
    back = [(point.x, point.high) for point in reversed(points)]
    chart.add(
        None,
        [*there, *back, there[0]],
        show_dots=False,
        stroke_style={"width": 1, "dasharray": "3, 3"},
        formatter=lambda _: "",
    )


def _decades(points: Iterable[Point]) -> list[float]:
    """Powers of ten around all that is drawn."""
    seconds = [end for point in points for end in (point.low, point.y, point.high)]
    first, last = math.floor(math.log10(min(seconds))), math.ceil(math.log10(max(seconds)))
    return [10.0**power for power in range(first, max(last, first + 1) + 1)]


def _three_digits(value: float) -> str:
    return f"{value:.3g}"
