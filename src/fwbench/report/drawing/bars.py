"""Horizontal bars: grouped, made of parts, changes in per cent, and one for each contestant."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import pygal
from pygal.util import alter

from fwbench.records.units import signed
from fwbench.report.drawing import palette
from fwbench.report.drawing.chart import Chart, Point, blank, dot, marks, rendered
from fwbench.report.drawing.palette import Look

#: Approximate number of marks below the bars of counts.
_COUNT_MARKS = 8


def draw(
    title: str,
    series: Mapping[str, Mapping[str, float]],
    show: Callable[[float], str],
    looks: Mapping[str, Look] | None = None,
    *,
    downwards: bool = False,
) -> Chart:
    """A chart of a bar for each category and name; whole numbers below it if all are counts.

    Args:
        looks: of the series, by their names; or of the categories, whose bars are then paler from
            series to series.
        downwards: whether the first category is the uppermost, and not the lowest.
    """
    categories = list(dict.fromkeys(name for values in series.values() for name in values))
    bars = len(categories) * len(series)
    chart = blank(
        pygal.HorizontalBar, len(series), bars=bars, labels=categories, value_formatter=show
    )
    chart.x_labels = categories[::-1] if downwards else categories
    values = [value for by_category in series.values() for value in by_category.values()]
    if all(isinstance(value, int) for value in values):
        most = max(values, default=0)
        chart.y_labels = range(0, int(most) + 1, max(1, math.ceil(most / _COUNT_MARKS)))
    elif values:
        chart.y_labels = marks(min(0.0, *values), max(0.0, *values), categories)
    looks = looks or {}
    steps = palette.steps(series) if looks.keys() & {*categories} else {}
    for name, by_category in series.items():
        chart.add(name, [_bar(category, by_category, looks) for category in chart.x_labels])
    text = [
        f"{category}, {name}: {show(by_category[category])}"
        for category in categories
        for name, by_category in series.items()
        if category in by_category
    ]
    return rendered(chart, title, "; ".join(text), {**looks, **steps})


def _bar(
    category: str, values: Mapping[str, float], looks: Mapping[str, Look]
) -> dict[str, Any] | None:
    """A bar as pygal takes it, as pale as its series; None where there is no value."""
    if category not in values:
        return None
    value, look = {"value": values[category]}, looks.get(category)
    if look is None:
        return value
    return {**value, "style": replace(look, opacity=1.0).paint, "node": look.attributes}


def draw_stacked(
    title: str,
    bars: Mapping[str, Mapping[str, float]],
    parts: Sequence[str],
    show: Callable[[float], str],
) -> Chart:
    """A chart of a bar for each name, downwards in their order.

    Args:
        parts: every part that a chart of this kind can have; each has its colour in all charts.
    """
    looks = palette.parts(parts)
    used = [part for part in parts if any(values.get(part) for values in bars.values())]
    longest = max(sum(values.values()) for values in bars.values())
    chart = _stacked(len(used), [*bars], (0.0, longest), show)
    for part in used:
        chart.add(part, [bars[name].get(part) for name in chart.x_labels])
    text = "; ".join(f"{name}: {_parts_text(values, used, show)}" for name, values in bars.items())
    return rendered(chart, title, text, looks)


def _stacked(
    series: int,
    names: Sequence[str],
    ends: tuple[float, float],
    show: Callable[[float], str],
    kind: Any = pygal.HorizontalStackedBar,
    **settings: Any,
) -> Any:
    """An empty chart of bars with these names, downwards, on an axis with these ends."""
    axis = {"range": ends, **settings, "y_labels": marks(*ends, names)}
    chart = blank(kind, series, bars=len(names), labels=names, value_formatter=show, **axis)
    chart.x_labels = names[::-1]  # pygal begins at the bottom
    return chart


def _parts_text(
    values: Mapping[str, float], parts: Sequence[str], show: Callable[[float], str]
) -> str:
    return ", ".join(f"{part} {show(values[part])}" for part in parts if values.get(part))


def draw_differences(title: str, seconds: Mapping[str, float]) -> Chart:
    """A chart of a bar for each name, to either side of zero, downwards in their order."""
    low, high = min(0.0, *seconds.values()), max(0.0, *seconds.values())
    looks = {"takes longer": Look(palette.LONGER), "takes less": Look(palette.SHORTER)}
    series = {
        name: "takes longer" if value > 0 else "takes less" for name, value in seconds.items()
    }
    used = [each for each in looks if each in series.values()]
    chart = _stacked(len(used), [*seconds], (low, high), signed)
    for each in used:
        chart.add(each, [seconds[n] if series[n] == each else None for n in chart.x_labels])
    text = "; ".join(f"{name} {signed(value)}" for name, value in seconds.items())
    return rendered(chart, title, text, looks)


def draw_changes(
    title: str, series: Mapping[str, Mapping[str, Point]], looks: Mapping[str, Look]
) -> Chart:
    """A chart of a horizontal bar for each name, in per cent, downwards in their order."""
    names = [name for points in series.values() for name in points]
    points = [point for by_name in series.values() for point in by_name.values()]
    low, high = min(0.0, *(p.low for p in points)), max(0.0, *(p.high for p in points))
    room = 0.05 * (high - low)
    axis = (low - room, high + room)
    chart = _stacked(len(series), names, (low, high), _percent, range=axis)
    for verdict, by_name in series.items():
        shown = (by_name.get(name) for name in chart.x_labels)
        chart.add(
            verdict, [point and {**dot(point, _percent), "value": point.y} for point in shown]
        )
    text = (
        f"{name} {verdict}, {_percent(point.y)}"
        for verdict, by_name in series.items()
        for name, point in by_name.items()
    )
    return rendered(chart, title, "; ".join(text), looks)


def _percent(value: float) -> str:
    return f"{value:+.3g} %" if value else "0 %"


@dataclass(frozen=True)
class Bar:
    """A value with its spread, and how much of it is drawn in a lighter tone."""

    #: The value; where it is on the horizontal axis is not used.
    point: Point
    #: From zero to this; 0 for none.
    lighter: float = 0.0


def draw_each(
    title: str,
    bars: Mapping[str, Bar],
    show: Callable[[float], str],
    looks: Mapping[str, Look],
    parts: tuple[str, str] = ("value", ""),
) -> Chart:
    """A chart of a horizontal bar for each name, downwards in their order."""
    highest = max(max(bar.point.y, bar.point.high) for bar in bars.values())
    split = any(bar.lighter for bar in bars.values())
    drawn: dict[str, Any] = {"show_legend": split, "range": (0.0, highest * 1.05)}
    chart = _stacked(2 if split else 0, [*bars], (0.0, highest), show, _Bars, **drawn)
    names = chart.x_labels
    every = {**palette.neutral(names), **looks}
    if split:
        chart.add(parts[1], [_lighter(bars[name], every[name], parts[1]) for name in names])
    chart.add(parts[0], [_rest(bars[name], every[name], show) for name in names])
    text = "; ".join(f"{name} {_bar_text(bar, parts, show)}" for name, bar in bars.items())
    grey = Look("var(--faint)")
    return rendered(chart, title, text, {**looks, parts[0]: grey, parts[1]: grey.lighter})


class _Bars(pygal.HorizontalStackedBar):  # type: ignore[misc]
    """pygal's, with attributes on each bar and on its interval."""

    def _bar(self, serie: Any, parent: Any, *place: Any, **settings: Any) -> Any:
        (i,) = place[2:3]
        alter(parent, serie.metadata.get(i))
        return super()._bar(serie, parent, *place, **settings)

    def _confidence_interval(
        self, node: Any, x: float, y: float, value: Any, metadata: Any
    ) -> None:
        around = self.svg.node(node, class_="spread")
        alter(around, metadata)
        super()._confidence_interval(around, x, y, (metadata or {}).get("whole", value), metadata)


def _bar_text(bar: Bar, parts: tuple[str, str], show: Callable[[float], str]) -> str:
    """The value, with its lighter part if there is one."""
    if not bar.lighter:
        return show(bar.point.y)
    return f"{show(bar.point.y)} {parts[0]}, {show(bar.lighter)} {parts[1]}"


def _rest(bar: Bar, look: Look, show: Callable[[float], str]) -> dict[str, Any]:
    """The part of a bar in the full tone; its tooltip says the whole value."""
    whole = bar.point.y
    value = {**dot(bar.point, show), "value": whole - bar.lighter, "whole": whole}
    painted = _painted(look, bar.point)
    return {**value, **painted, "formatter": lambda _: show(whole)}


def _lighter(bar: Bar, look: Look, part: str) -> dict[str, Any]:
    """The part of a bar in the tone of its series, which is lighter."""
    return {"value": bar.lighter, "label": part, **_painted(look, bar.point)}


def _painted(look: Look, point: Point) -> dict[str, Any]:
    return {"style": look.paint, "node": {**look.attributes, **point.attributes}}
