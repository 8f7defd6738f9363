"""A bar for each contestant, in the order given."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import pygal
from pygal.util import alter

from fwbench.report.drawing.chart import Chart, Point, blank, dot, marks, rendered
from fwbench.report.drawing.palette import Look, neutral


@dataclass(frozen=True)
class Bar:
    """A value with its spread, and how much of it is drawn in a lighter tone.

    Attributes:
        point: the value; where it is on the horizontal axis is not used.
        lighter: from zero to this; 0 for none.
    """

    point: Point
    lighter: float = 0.0


def draw(
    title: str,
    bars: Mapping[str, Bar],
    show: Callable[[float], str],
    looks: Mapping[str, Look],
    parts: tuple[str, str] = ("value", ""),
) -> Chart:
    """A chart of a horizontal bar for each name, downwards in their order.

    Args:
        title: of the chart.
        bars: by name.
        show: formats a value.
        looks: by name.
        parts: what a bar is, and what its lighter part is.
    """
    highest = max(max(bar.point.y, bar.point.high) for bar in bars.values())
    split = any(bar.lighter for bar in bars.values())
    chart = blank(
        _Bars,
        2 if split else 0,
        bars=len(bars),
        value_formatter=show,
        show_legend=split,
        range=(0.0, highest * 1.05),
        labels=bars,
        y_labels=marks(0.0, highest, bars),
    )
    names = [*bars][::-1]  # pygal begins at the bottom
    every = {**neutral(names), **looks}
    chart.x_labels = names
    if split:
        chart.add(parts[1], [_lighter(bars[name], every[name], parts[1]) for name in names])
    chart.add(parts[0], [_rest(bars[name], every[name], show) for name in names])
    text = "; ".join(f"{name} {_told(bar, parts, show)}" for name, bar in bars.items())
    grey = Look("var(--faint)")
    drawn = {**looks, parts[0]: grey, parts[1]: grey.lighter}
    return rendered(chart, title, text, drawn)


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


def _told(bar: Bar, parts: tuple[str, str], show: Callable[[float], str]) -> str:
    """The value, and how it is made up where a part of it is lighter."""
    if not bar.lighter:
        return show(bar.point.y)
    return f"{show(bar.point.y)} {parts[0]}, {show(bar.lighter)} {parts[1]}"


def _rest(bar: Bar, look: Look, show: Callable[[float], str]) -> dict[str, Any]:
    """The part of a bar in the full tone; its tooltip says the whole value."""
    whole = bar.point.y
    value = {**dot(bar.point, show), "value": whole - bar.lighter, "whole": whole}
    return {**value, **_painted(look), "formatter": lambda _: show(whole)}


def _lighter(bar: Bar, look: Look, part: str) -> dict[str, Any]:
    """The part of a bar in the tone of its series, which is lighter."""
    return {"value": bar.lighter, "label": part, **_painted(look)}


def _painted(look: Look) -> dict[str, Any]:
    return {"style": look.paint, "node": look.attributes}
