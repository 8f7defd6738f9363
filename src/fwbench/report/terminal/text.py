"""Lines of a terminal: pieces of text with a style, never wider than they may be."""

import textwrap
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass

from fwbench.report import escaping

#: No line is wrapped more narrowly: words would be cut to pieces.
NARROWEST = 20

#: Between two columns of a table.
_GAP = "  "


@dataclass(frozen=True)
class Span:
    """A piece of a line."""

    #: Without line breaks.
    text: str
    #: A style of pytest's terminal writer (``green``, ``bold``), or empty.
    style: str = ""


Line = Sequence[Span]


def plain(line: Line) -> str:
    """A line without its styles."""
    return "".join(span.text for span in line)


def aligned(rows: Sequence[Sequence[str]], texts: Collection[int], width: int) -> list[Line]:
    """Rows of a table as lines: as many columns as fit, at least the first two.

    Args:
        texts: the numbers of the columns that begin at the left; others end at the right.
    """
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    fitting = max(
        (n for n in range(3, len(widths) + 1) if sum(widths[:n]) + len(_GAP) * (n - 1) <= width),
        default=2,
    )
    return [(Span(_row(row[:fitting], widths, texts)[:width]),) for row in rows]


def _row(row: Iterable[str], widths: Sequence[int], texts: Collection[int]) -> str:
    cells = (
        f"{cell:<{widths[at]}}" if at in texts else f"{cell:>{widths[at]}}"
        for at, cell in enumerate(row)
    )
    return _GAP.join(cells).rstrip()


def wrapped(text: str, width: int, style: str = "") -> list[Line]:
    """A text as lines of a width, all but the first indented, control characters as escapes."""
    indent = " " * (len(text) - len(text.lstrip()) + 2)
    lines = textwrap.wrap(
        escaping.terminal(text),
        max(width, NARROWEST),
        subsequent_indent=indent,
        break_on_hyphens=False,
    )
    return [(Span(line, style),) for line in lines]
