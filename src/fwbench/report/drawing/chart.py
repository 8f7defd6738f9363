"""What charts of every kind share: a picture with a text that says what it shows, and its style."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from itertools import cycle, islice
from pathlib import Path
from typing import Any

import pygaljs
from pygal.etree import etree
from pygal.style import Style

from fwbench.report import escaping

#: Told apart by people who see few colours, on white and on black (Okabe and Ito, 2008; the yellow
#: and the black left out).
COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#8c6bb1", "#7f7f7f")

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

_WIDTH, _HEIGHT = 820, 400

_LEGEND_COLUMNS = 2

#: How pygal names the entries of a legend, each by the number of its series.
_LEGEND = "activate-serie-"

#: Shows values under the pointer: pygal's own script, included in the page. It is made to look for
#: the number of a series after a chart's own name, because several charts are in one document.
SCRIPT = (
    Path(pygaljs.uri("2.0.x", "pygal-tooltips.js").removeprefix("file://"))
    .read_text(encoding="utf-8")
    .replace(f"replace('{_LEGEND}', '')", f"replace(/.*{_LEGEND}/, '')")
)


@dataclass(frozen=True)
class Chart:
    """A chart: a picture, and what it shows in words.

    Attributes:
        title: what it shows, in a line.
        text: the same for people who do not see the picture.
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


def blank(kind: Any, series: int, *, bars: int = 0, **settings: Any) -> Any:
    """An empty chart of pygal's, as high as its legend and its bars need.

    Args:
        kind: pygal's class.
        series: how many series the legend will list.
        bars: how many bars will lie above each other.
        settings: pygal's.
    """
    height = max(_HEIGHT, 110 + 22 * bars) + 24 * math.ceil(series / _LEGEND_COLUMNS)
    return kind(
        style=Style(colors=tuple(islice(cycle(COLOURS), series)), **_STYLE),
        js=[],
        disable_xml_declaration=True,
        explicit_size=False,
        legend_at_bottom=True,
        legend_at_bottom_columns=_LEGEND_COLUMNS,
        truncate_legend=-1,
        margin_bottom=45,  # pygal leaves none for the last row of an odd number of names
        x_label_rotation=0,
        no_data_text="nothing to show",
        width=_WIDTH,
        height=height,
        **settings,
    )


def rendered(chart: Any, title: str, text: str) -> Chart:
    """A pygal chart as SVG that can share a document with other charts.

    Args:
        chart: pygal's, with its series.
        title: what it shows, in a line.
        text: what it shows, after the title, for people who do not see it.
    """
    picture = chart.render_tree()
    for element in picture.iter():
        # pygal gives these the same ids in every chart.
        if element.attrib.get("id", "").startswith(_LEGEND):
            element.attrib["id"] = f"{chart.uuid}-{element.attrib['id']}"
    for element in picture.findall("title"):  # pygal's own name, which browsers would show
        picture.remove(element)
    # XML does not have control characters, and names may.
    svg = escaping.terminal(etree.tostring(picture, encoding="unicode"))
    return Chart(title, f"{title}: {text}", svg)


def dot(point: Point, show: Callable[[float], str]) -> dict[str, Any]:
    """A point as pygal takes it: with its interval, and both in the tooltip.

    Args:
        point: the value and its spread.
        show: formats a value.
    """
    value: dict[str, Any] = {"value": (point.x, point.y)}
    label = [point.label] if point.label else []
    if point.low < point.high:
        value["ci"] = {"low": point.low, "high": point.high}
        label.append(f"{show(point.low)} to {show(point.high)}")
    return {**value, "label": ", ".join(label)}
