"""The charts above the tables of a section: a module a chart.

A module defines ``SECTION``, the section that it belongs to; ``ORDER``, its place there; and
``draw(group)``, which returns a chart of a :class:`~fwbench.report.group.Group`, or None where
there is nothing to draw.
"""

from __future__ import annotations

import sys

from fwbench.report.discovery import extensions
from fwbench.report.drawing.chart import Chart
from fwbench.report.group import Group

#: The entry points by which other packages add charts.
GROUP = "fwbench.charts"


def draw_all(section: str, group: Group) -> list[Chart]:
    """The charts of a section, in their order.

    Args:
        section: ``operations`` or ``training``.
        group: the records to draw.

    Raises:
        DeclarationError: a chart of another package cannot be used.
    """
    modules = extensions(sys.modules[__name__], GROUP, "SECTION", "draw")
    charts = [module.draw(group) for module in modules if section == module.SECTION]
    return [chart for chart in charts if chart is not None]
