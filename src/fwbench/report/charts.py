"""Charts, drawn by pygal as SVG that stands in a page: each with a text that says what it shows."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import cycle, islice
from pathlib import Path
from typing import Any

import pygal
import pygaljs
from pygal.etree import etree
from pygal.style import Style

from fwbench.errors import UsageError
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

_WIDTH, _HEIGHT = 820, 400

_LEGEND_COLUMNS = 2

#: Up to so many powers of ten there are marks between them, too.
_FEW_DECADES = 2

#: Up to so many runs have a dot each.
_DOTS = 60

#: How many labels have room below an axis.
_LABELS = 12

#: What the page's style sheet says of its colours on white.
_ON_WHITE = {"--ink": "#1b1f24", "--faint": "#8a929c"}

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


def lines(
    title: str,
    series: Mapping[str, Sequence[Point]],
    x_title: str,
    y_title: str = "time of a call",
    show: Callable[[float], str] = time,
    show_x: Callable[[float], str] = "{:,.0f}".format,
    limits: Mapping[str, Sequence[tuple[float, float]]] | None = None,
    *,
    joined: bool = True,
) -> Chart:
    """Values over sizes, both axes logarithmic, with the spread of each as a bar.

    Args:
        title: of the chart.
        series: points by the name of their line.
        x_title: what is across.
        y_title: what is up.
        show: writes a value.
        show_x: writes what is across.
        limits: lines that nothing was measured on, such as a ceiling, by their names.
        joined: whether the points of a name are one line.
    """
    limits = limits or {}
    points = [point for found in series.values() for point in found]
    places = sorted({point.x for point in points})
    ends = [end for point in points for end in (point.low, point.y, point.high)]
    corners = [corner for line in limits.values() for corner in line]
    ends += [y for _, y in corners]
    across = [*places, *(x for x, _ in corners)]
    marks = _decades(ends)
    chart = _chart(
        _Lines,
        len(series) + len(limits),
        x_title=x_title,
        y_title=y_title,
        logarithmic=True,
        value_formatter=show,
        x_value_formatter=show_x,
        x_labels=_thinned(places),
        # A little room at both ends; without it a single size has none at all.
        xrange=(min(across) / 1.3, max(across) * 1.3),
        range=(marks[0], marks[-1] * 1.02),  # pygal leaves out a label at the very top
        y_labels=marks,
        dots_size=3,
    )
    for name, found in series.items():
        dots = [_dot(point, show) for point in sorted(found, key=lambda one: one.x)]
        chart.add(name, dots, stroke=joined)
    for name, line in limits.items():
        dashed = {"width": 2, "dasharray": "6, 4"}
        chart.add(name, list(line), show_dots=False, stroke_style=dashed)
    heights = {name: [point.y for point in found] for name, found in series.items()}
    heights |= {name: [y for _, y in line] for name, line in limits.items()}
    told = "; ".join(f"{name} {show(min(y))} to {show(max(y))}" for name, y in heights.items())
    return _drawn(chart, title, f"{title}: {told}")


def over_time(
    title: str, days: Sequence[str], points: Sequence[Point], marks: Mapping[int, str]
) -> Chart:
    """A value from run to run, between the lines of its spread, and what happened at some runs.

    Args:
        title: of the chart.
        days: a label for each run.
        points: a value for each run; seconds.
        marks: what happened, by the number of the run.
    """
    many = len(points) > _DOTS
    chart = _chart(
        pygal.Line,
        3 + bool(marks),
        value_formatter=time,
        x_labels_major_every=max(1, math.ceil(len(days) / 8)),
        show_minor_x_labels=False,
        truncate_label=-1,
        show_dots=not many,
        dots_size=2,
    )
    chart.x_labels = days
    chart.add("median", [{"value": one.y, "label": one.label} for one in points])
    faint = {"width": 1, "dasharray": "3, 3"}
    for name, ends in (
        ("lower quartile", [one.low for one in points]),
        ("upper quartile", [one.high for one in points]),
    ):
        chart.add(name, ends, show_dots=False, stroke_style=faint)
    if marks:
        found = [
            {"value": one.y, "label": marks[i]} if i in marks else None
            for i, one in enumerate(points)
        ]
        chart.add("upgrade or lasting shift", found, stroke=False, show_dots=True, dots_size=5)
    told = "; ".join(f"{days[number]}: {what}" for number, what in sorted(marks.items()))
    way = f"{time(points[0].y)} on {days[0]}, {time(points[-1].y)} on {days[-1]}"
    return _drawn(chart, title, f"{title}: {way}; {told or 'no upgrade, no lasting shift'}")


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
    """Grouped horizontal bars: a value for each category and name; counts if all are whole."""
    categories = list(dict.fromkeys(name for values in series.values() for name in values))
    drawn = len(categories) * len(series)
    chart = _chart(pygal.HorizontalBar, len(series), bars=drawn, value_formatter=show)
    chart.x_labels = categories
    every = [value for values in series.values() for value in values.values()]
    if all(isinstance(value, int) for value in every):
        most = max(every, default=0)
        chart.y_labels = range(0, int(most) + 1, max(1, math.ceil(most / 8)))
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


def columns(
    title: str,
    series: Mapping[str, Mapping[str, Point]],
    y_title: str,
    show: Callable[[float], str],
) -> Chart:
    """Grouped bars with their intervals: a point by name and category, whose x is not used."""
    highest = max(point.high for values in series.values() for point in values.values())
    chart = _chart(
        pygal.Bar,
        len(series),
        y_title=y_title,
        value_formatter=show,
        range=(0.0, highest * 1.05),
    )
    categories = list(dict.fromkeys(name for values in series.values() for name in values))
    chart.x_labels = categories
    for name, values in series.items():
        found = (values.get(category) for category in categories)
        chart.add(name, [one and {**_dot(one, show), "value": one.y} for one in found])
    told = "; ".join(
        f"{category}, {name}: {show(values[category].y)}"
        for category in categories
        for name, values in series.items()
        if category in values
    )
    return _drawn(chart, title, f"{title}: {told}")


def changes(title: str, series: Mapping[str, Mapping[str, Point]]) -> Chart:
    """Changes in per cent with their intervals, a bar for each name; the series are verdicts."""
    names = [name for values in series.values() for name in values]
    points = [point for values in series.values() for point in values.values()]
    low, high = min(0.0, *(p.low for p in points)), max(0.0, *(p.high for p in points))
    room = 0.05 * (high - low)
    chart = _chart(
        pygal.HorizontalStackedBar,
        len(series),
        bars=len(names),
        value_formatter=_percent,
        range=(low - room, high + room),
    )
    # pygal begins below.
    chart.x_labels = names[::-1]
    for verdict, values in series.items():
        found = (values.get(name) for name in names[::-1])
        chart.add(verdict, [one and {**_dot(one, _percent), "value": one.y} for one in found])
    told = "; ".join(
        f"{name} {verdict}, {_percent(point.y)}"
        for verdict, values in series.items()
        for name, point in values.items()
    )
    return _drawn(chart, title, f"{title}: {told}")


def _percent(value: float) -> str:
    return f"{value:+.3g} %"


class _Lines(pygal.XY):  # type: ignore[misc]
    """pygal's, which looks for the interval of a point at the point and not at its height."""

    def _confidence_interval(
        self, node: Any, x: float, y: float, value: tuple[float, float], metadata: Any
    ) -> None:
        super()._confidence_interval(node, x, y, value[1], metadata)


def _chart(kind: Any, lines: int, *, bars: int = 0, **settings: Any) -> Any:
    """One of pygal's charts, as high as its legend and its bars need."""
    height = max(_HEIGHT, 110 + 22 * bars) + 24 * math.ceil(lines / _LEGEND_COLUMNS)
    return kind(
        style=Style(colors=tuple(islice(cycle(_COLOURS), lines)), **_STYLE),
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


def converter() -> Callable[..., bytes]:
    """What makes pictures of SVG.

    Raises:
        UsageError: it is not installed, or does not work.
    """
    try:
        from cairosvg import svg2png
    except (ImportError, OSError) as error:  # OSError: without the library cairo itself
        raise UsageError(
            f"--png needs CairoSVG, and cannot use it ({error}): pip install 'fwbench[png]', and "
            "cairo itself from the system"
        ) from None
    made: Callable[..., bytes] = svg2png
    return made


def png(chart: Chart) -> bytes:
    """A chart as a picture on white.

    Raises:
        UsageError: there is no converter.
    """
    svg = chart.svg
    for variable, colour in _ON_WHITE.items():
        svg = svg.replace(f"var({variable})", colour)
    return converter()(svg.encode(), scale=2, background_color="white")


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


def _dot(point: Point, show: Callable[[float], str]) -> dict[str, Any]:
    dot: dict[str, Any] = {"value": (point.x, point.y)}
    told = [point.label] if point.label else []
    if point.low < point.high:
        dot["ci"] = {"low": point.low, "high": point.high}
        told.append(f"{show(point.low)} to {show(point.high)}")
    return {**dot, "label": ", ".join(told)}


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
    found = [mark for mark in marks if low <= mark <= high]
    return found if len(found) > 1 else [low, 10 * low]


def _thinned(places: Sequence[float]) -> list[float]:
    """So few of the places, in their order, that their labels do not lie on each other."""
    apart = (places[-1] / places[0]) ** (1 / _LABELS)
    shown: list[float] = []
    for place in places:
        if not shown or place >= shown[-1] * apart:
            shown.append(place)
    return shown


def _three_digits(value: float) -> str:
    return f"{value:.3g}"
