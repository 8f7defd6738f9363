"""Words for what stored values are, and must be."""

from __future__ import annotations

from collections.abc import Mapping
from types import UnionType
from typing import Any, Union, get_args, get_origin

#: Characters of a damaged value that a message shows.
_SHOWN = 60

_WORDS = {
    float: "number",
    int: "whole number",
    bool: "boolean",
    str: "text",
    dict: "object",
    list: "list",
    Any: "value",
}


def type_words(kind: Any) -> str:
    """A type as messages and the documentation call it: ``list of numbers``."""
    origin, arguments = get_origin(kind), get_args(kind)
    if origin in (Union, UnionType):
        return " or ".join(map(type_words, arguments))
    if origin is list:
        return f"list of {type_words(arguments[0])}s"
    if origin is dict and arguments[1] in _WORDS and arguments[1] is not Any:
        return f"object of {type_words(arguments[1])}s"
    if origin is dict or (isinstance(kind, type) and issubclass(kind, Mapping)):
        return "object"
    return _WORDS[kind]


def shown(value: Any) -> str:
    """A damaged value for a message: as much of it as tells what it is."""
    text = repr(value)
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}..."


def problem(path: str, value: Any, must: str, bounds: str = "") -> str:
    """Message about a damaged value.

    Args:
        path: the key under which it is stored.
        value: what is there.
        must: what has to be there.
        bounds: how large it can be, if it is beyond that.
    """
    article = "an" if must.startswith("o") else "a"
    beyond = f", {bounds}" if bounds else ""
    return f"{path} is {shown(value)}, and must be {article} {must}{beyond}"
