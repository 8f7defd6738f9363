"""Kinds of charts, drawn by pygal as SVG that stands in a page: a module a kind, with `draw()`."""

import tomllib
from collections.abc import Mapping
from importlib import resources
from typing import Any


def read(file: str) -> Mapping[str, Mapping[str, Any]]:
    """The tables of a file of this folder."""
    return tomllib.loads((resources.files(__package__) / file).read_text("utf-8"))
