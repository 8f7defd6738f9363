"""Texts of somebody else, made harmless for where they are shown.

Names of cases, reasons of skips and errors come from tests and from files that were sent: what is
shown of them must be what they say, and nothing else.
"""

import re
from collections.abc import Iterable

#: Characters that move a cursor, change colours, or change the direction of what follows, and
#: halves of characters, which cannot be written at all.
_INVISIBLE = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")

#: What is markup in GitHub's Markdown: https://github.github.com/gfm/.
_MARKUP = re.compile(r"[\\`*\[\]|~]|(?<![^\W_])_|_(?![^\W_])")

#: What GitHub makes a link, a mention or a reference of, by where a sign must go to prevent it.
_AUTOMATIC = re.compile(r"(?<=://)|(?<=\bwww\.)|(?<!\w)@(?=\w)|#(?=\d)|\bGH-(?=\d)", re.IGNORECASE)

#: Nothing is seen of it, and no line breaks at it.
_JOINER = "\u2060"

#: What :func:`markdown` never leaves in a text: HTML, links and pictures, entities, and what GitHub
#: makes a link or a mention of.
_LIVE = re.compile(
    rf"<|(?<!\\)(?:\\\\)*\[|&(?!amp;|lt;)|(?:{_AUTOMATIC.pattern})(?!{_JOINER})", re.IGNORECASE
)

#: A comparison in Markdown begins with it.
HEADING = "### fwbench: "

#: What is behind this line of it is not commented on a pull request: its first line says all.
FOLDED = "<details><summary>Cases</summary>"

#: With these a spreadsheet begins a formula.
_FORMULA = ("=", "+", "-", "@", "\t", "\r")


def terminal(text: str) -> str:
    """A text without control characters: shown as escapes; lines and tabs stay."""
    return _INVISIBLE.sub(lambda match: match[0].encode("unicode_escape").decode(), text)


def markdown(text: str) -> str:
    """A text in a single line that is not markup on GitHub, without links and mentions."""
    line = " ".join(terminal(text).split())
    line = _MARKUP.sub(r"\\\g<0>", line)
    line = line.replace("&", "&amp;").replace("<", "&lt;")
    return _AUTOMATIC.sub(rf"\g<0>{_JOINER}", line)


def is_inert(text: str) -> bool:
    """True if Markdown has no HTML, link, picture or mention, and nothing that cannot be seen."""
    return not (_LIVE.search(text) or _INVISIBLE.search(text))


def markdown_row(cells: Iterable[str]) -> str:
    """Texts as a row of a table on GitHub."""
    return "| " + " | ".join(map(markdown, cells)) + " |"


def spreadsheet(text: str) -> str:
    """A text that no spreadsheet takes for a formula."""
    text = terminal(text)
    return f"'{text}" if text.startswith(_FORMULA) else text
