"""Common parts of all charts: a picture with a text that describes it, and its style."""

import functools
import html
import math
import re
import textwrap
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pygal
import pygaljs
from pygal.etree import etree
from pygal.style import Style

from fwbench.errors import UsageError
from fwbench.measure.condition import CONTENDED
from fwbench.packaged import read_table
from fwbench.report import escaping
from fwbench.report.drawing import palette
from fwbench.report.drawing.palette import Look

_PYGAL = read_table(__package__, "pygal.toml")

_WIDTH, _HEIGHT = 440, 250

#: Heights: of what is above and below bars; of a bar among many; and of one among few.
_AROUND_BARS, _THIN_BAR, _THICK_BAR = 90, 18, 40

#: Labels with more characters than this need a chart of this width.
_LONG, _WIDE = 26, 2 * _WIDTH

_MARGIN = 12

_LEGEND_COLUMNS = 2

#: Names with more characters than this need a column that is as wide as a narrow chart.
_LONG_NAME = 21

#: Names of this many characters fit into a row of a narrow chart; longer ones are made to.
_FITTING = 54
_SQUEEZED = {"textLength": "335", "lengthAdjust": "spacingAndGlyphs"}

#: As high as pygal's rows of a legend are, and what is around them.
_LEGEND_ROW, _AROUND_LEGEND = 18, 4

#: Of the title above a picture: its letters, the height of a row, and the width of a letter.
_TITLE_SIZE, _TITLE_ROW, _LETTER = 13, 18, 7.5

#: Approximate number of marks below bars, and with labels that are longer than the short ones.
_MARKS, _FEW_MARKS, _SHORT = 4, 2, 17

#: The opacity of points in doubt.
_PALE = ".3"

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
    """A chart: a picture, and what it shows in words."""

    title: str
    text: str
    svg: str
    uuid: str = ""
    legends: Sequence[str] = ()
    #: Width and height, in the picture's units.
    size: tuple[int, int] = (_WIDTH, _HEIGHT)
    legend_height: int = 0
    #: Whether all of its series have keys: then a legend can stand for it and other charts.
    has_keys: bool = False
    #: Whether it shows one value and compares it with nothing: a table says as much.
    is_lone: bool = False

    @property
    def tooltips(self) -> dict[str, Any]:
        """Settings for pygal's script for tooltips."""
        width, height = self.size
        fancy = {"tooltip_fancy_mode": True}
        legends = [*map(escaping.terminal, self.legends)]
        return {"legends": legends, "width": width, "height": height, **fancy}

    @property
    def is_wide(self) -> bool:
        """True if it needs the whole width of the page."""
        return self.size[0] > _WIDTH

    @property
    def panel(self) -> str:
        """The picture without its legend, for where charts share one."""
        width, height = self.size
        full, cut = (f'viewBox="0 0 {width} {h}"' for h in (height, height - self.legend_height))
        return self.svg.replace(full, cut, 1)


@dataclass(frozen=True)
class Point:
    """A value with its spread, at a place on the horizontal axis; pale if it is in doubt."""

    x: float
    y: float
    low: float
    high: float
    label: str = ""
    is_pale: bool = False

    @property
    def attributes(self) -> dict[str, str]:
        """Attributes of what is drawn."""
        return {"opacity": _PALE} if self.is_pale else {}


@functools.cache
def style_sheet() -> str:
    """The style of all charts, for the document that they are in."""
    chart = pygal.XY(style=Style(colors=("inherit",), **_PYGAL["style"]), js=[])
    css = chart.render_tree().find("defs/style").text
    shared = css.replace(f"#chart-{chart.uuid}", ".pygal-chart")
    # Series have the colours of their own looks.
    return re.sub(r"[^{}]*\.color-\d+[^{}]*\{[^{}]*\}", "", shared)


def blank(
    kind: Any, series: int, *, bars: int = 0, labels: Iterable[str] = (), **settings: Any
) -> Any:
    """An empty chart of pygal's, as high as its legend and its bars need."""
    of_bars = max(_THIN_BAR * bars, min(_THICK_BAR * bars, _HEIGHT - _AROUND_BARS))
    height = (_AROUND_BARS + of_bars if bars else _HEIGHT) + _legend_height(series)
    return kind(
        style=Style(**_PYGAL["style"]),
        legend_at_bottom_columns=_LEGEND_COLUMNS,
        margin=_MARGIN,
        # pygal leaves no room for the last row of an odd number of names.
        margin_bottom=_MARGIN + _LEGEND_ROW * (series % _LEGEND_COLUMNS),
        width=_WIDE if _longest(labels) > _LONG else _WIDTH,
        height=height,
        # Half of the last label of the axis.
        **{"margin_right": 2 * _MARGIN, **_PYGAL["settings"], **settings},
    )


def _longest(labels: Iterable[str]) -> int:
    return max(map(len, labels), default=0)


def marks(low: float, high: float, labels: Iterable[str], most: int = _MARKS) -> list[float]:
    """Round values from ``low`` to ``high``, to be below bars with these labels, or at lines.

    They are as many as have room, and zero is among them if it is between the two.
    """
    longest = _longest(labels)
    number = most if longest <= _SHORT or longest > _LONG else _FEW_MARKS
    least = (high - low) / (number + 1) or 1.0
    decade = 10.0 ** math.floor(math.log10(least))
    steps = (step * decade for step in (1, 2, 5, 10) if step * decade >= least)
    rows = ([step * i for i in _multiples(low, high, step)] for step in steps)
    return next(row for row in rows if len(row) <= number + 1)


def _multiples(low: float, high: float, step: float) -> range:
    """The numbers by which a step is multiplied to be between two values."""
    return range(math.ceil(low / step), math.floor(high / step) + 1)


def _legend_height(series: int, columns: int = _LEGEND_COLUMNS) -> int:
    return _AROUND_LEGEND + _LEGEND_ROW * math.ceil(series / columns) if series else 0


def _fit_legend(chart: Any, names: Sequence[str]) -> int:
    """Give long names of a narrow chart a row each; returns how high its legend is."""
    if not chart.config.show_legend:
        return 0
    planned = _legend_height(len(names))
    if chart.config.width > _WIDTH or _longest(names) <= _LONG_NAME:
        return planned
    needed = _legend_height(len(names), 1)
    height = chart.config.height + needed - planned
    chart.config(legend_at_bottom_columns=1, height=height, margin_bottom=_MARGIN)
    return needed


def rendered(chart: Any, title: str, text: str, looks: Mapping[str, Look] | None = None) -> Chart:
    """A pygal chart as SVG that can share a document with other charts."""
    names = [options["title"] for _, options in chart.raw_series]
    legend_height = _fit_legend(chart, names)
    picture = chart.render_tree()
    every = {**palette.neutral(names), **(looks or {})}
    for number, name in enumerate(names):
        _dress(picture, chart, number, name, every[name])
    for label in (node for axis in _of_class(picture, "axis") for node in axis.iter("text")):
        _tag(label, every.get(label.text or ""))
    _strip(picture)
    # XML does not have control characters, and names may.
    svg = escaping.terminal(etree.tostring(picture, encoding="unicode"))
    size = (chart.config.width, chart.config.height)
    has_keys = all(every[name].keys for name in names)
    shown = [value for values, _ in chart.raw_series for value in values if value is not None]
    told, is_lone = f"{title}: {text}", len(shown) == 1
    return Chart(title, told, svg, chart.uuid, names, size, legend_height, has_keys, is_lone)


def _of_class(picture: Any, name: str) -> list[Any]:
    return [node for node in picture.iter() if name in node.attrib.get("class", "").split()]


def _dress(picture: Any, chart: Any, number: int, name: str, look: Look) -> None:
    """Give a series, wherever it is drawn, its look."""
    for node in _of_class(picture, f"serie-{number}"):
        node.attrib["style"] = look.paint
        _tag(node, look)
        for line in _of_class(node, "line") if look.line else ():
            line.attrib["style"] = look.line
        for dot in _of_class(node, "dot") if not look.filled else ():
            dot.attrib["style"] = "fill:var(--paper);stroke-width:1.5"
    for node in _of_class(picture, "legend"):
        # pygal gives these the same ids in every chart.
        if node.attrib.get("id") == f"{_LEGEND}{number}":
            node.attrib["id"] = f"{chart.uuid}-{_LEGEND}{number}"
            _tag(node, look)
            # Not at the rectangle: pygal's script takes a colour there for that of a hidden series.
            node.attrib["style"] = replace(look, opacity=1.0).paint
            # Hollow like the dots; what the script sets and clears is the fill, not its opacity.
            hollow = "" if look.filled else ";fill-opacity:0;stroke-width:1.5"
            node.find("rect").attrib["style"] = f"opacity:{look.opacity:g}{hollow}"
            if len(name) > _FITTING and chart.config.width <= _WIDTH:
                node.find("text").attrib.update(_SQUEEZED)


def _tag(node: Any, look: Look | None) -> None:
    """Say by which facts a part of a picture can be hidden."""
    if look is not None:
        node.attrib.update(look.attributes)


def _strip(picture: Any) -> None:
    """Leave out what all charts of a page share, and pygal's own name, which browsers show."""
    for element in [*picture.findall("title"), *picture.findall("defs")]:
        picture.remove(element)
    for element in [node for node in picture if not isinstance(node.tag, str)]:
        picture.remove(element)  # comments: version and date of pygal


def dot(point: Point, show: Callable[[float], str]) -> dict[str, Any]:
    """A point as pygal takes it: with its interval, and both in the tooltip."""
    value: dict[str, Any] = {"value": (point.x, point.y), "node": point.attributes}
    label = [point.label] if point.label else []
    if point.low < point.high:
        value["ci"] = {"low": point.low, "high": point.high}
        label.append(f"{show(point.low)} to {show(point.high)}")
    return {**value, "label": ", ".join(label)}


def png_converter() -> Callable[..., bytes]:
    """The function that converts SVG to PNG."""
    try:
        from cairosvg import svg2png
    except (ImportError, OSError) as error:  # OSError: without the library cairo itself
        raise UsageError(
            f"--png needs CairoSVG, and cannot use it ({error}): pip install 'fwbench[png]', and "
            "cairo itself from the system"
        ) from None
    return svg2png


def png(chart: Chart) -> bytes:
    """A chart as a PNG file's content, on white, below its title."""
    return png_converter()(_titled(chart).encode(), scale=2, background_color="white")


def _titled(chart: Chart) -> str:
    """A chart as an SVG file's content, below the title that a page has around it."""
    width, height = chart.size
    pale = f" (pale: {CONTENDED}, an upper bound)" if f'opacity="{_PALE}"' in chart.svg else ""
    title = escaping.terminal(f"{chart.title}{pale}")
    lines = textwrap.wrap(title, int((width - 2 * _MARGIN) / _LETTER))
    rows = (
        f'<text x="{_MARGIN}" y="{_TITLE_ROW * number}">{html.escape(line)}</text>'
        for number, line in enumerate(lines, 1)
    )
    above = _TITLE_ROW * len(lines) + _MARGIN
    place = f'<svg y="{above}" width="{width}" height="{height}" '
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height + above + _MARGIN}" '
        f'font-family="sans-serif" font-size="{_TITLE_SIZE}">{"".join(rows)}'
        f"{on_page(chart).replace('<svg ', place, 1)}</svg>"
    )


def on_page(chart: Chart, background: str = "white") -> str:
    """A chart as an SVG file's content, with the colours of a page that is white or dark."""
    style = f"svg{{background:var(--paper)}}{style_sheet()}"
    svg = chart.svg.replace(">", f"><style>{style}</style>", 1)
    for variable, colour in _PYGAL["on"][background].items():
        svg = svg.replace(f"var({variable})", colour)
    return svg
