"""Charts as pictures."""

from __future__ import annotations

from collections.abc import Callable

from fwbench.errors import UsageError
from fwbench.report.drawing.chart import Chart, style_sheet

#: The page's style sheet's colours on white.
_ON_WHITE = {"--ink": "#1b1f24", "--faint": "#8a929c", "--line": "#d5dae0", "--paper": "#ffffff"}


def converter() -> Callable[..., bytes]:
    """The function that converts SVG to PNG.

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
    convert: Callable[..., bytes] = svg2png
    return convert


def picture(chart: Chart) -> bytes:
    """A chart as a PNG file's content, on white.

    Raises:
        UsageError: there is no converter.
    """
    return converter()(on_white(chart).encode(), scale=2, background_color="white")


def on_white(chart: Chart) -> str:
    """A chart as an SVG file's content, with the colours of a white page."""
    style = f"svg{{background:var(--paper)}}{style_sheet()}"
    svg = chart.svg.replace(">", f"><style>{style}</style>", 1)
    for variable, colour in _ON_WHITE.items():
        svg = svg.replace(f"var({variable})", colour)
    return svg
