"""Lines of a terminal: pieces of text with a style, never wider than they may be."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from dataclasses import dataclass

from fwbench.report import escaping

#: No line is wrapped more narrowly: words would be cut to pieces.
NARROWEST = 20


@dataclass(frozen=True)
class Span:
    """A piece of a line.

    Attributes:
        text: without line breaks.
        style: a style of pytest's terminal writer (``green``, ``bold``), or empty.
    """

    text: str
    style: str = ""


Line = Sequence[Span]


def plain(line: Line) -> str:
    """A line without its styles."""
    return "".join(span.text for span in line)


def wrapped(text: str, width: int, style: str = "") -> list[Line]:
    """A text as lines of a width, all but the first indented.

    Args:
        text: control characters in it are shown as escapes.
        width: columns that a line may take.
        style: of all lines.
    """
    indent = " " * (len(text) - len(text.lstrip()) + 2)
    lines = textwrap.wrap(
        escaping.terminal(text),
        max(width, NARROWEST),
        subsequent_indent=indent,
        break_on_hyphens=False,
    )
    return [(Span(line, style),) for line in lines]
