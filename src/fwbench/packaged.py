"""Tables in TOML and JSON that are files of packages."""

import json
import tomllib
from functools import cache
from importlib import resources
from typing import Any


@cache
def read_table(package: str, file: str) -> Any:
    """The values of a file of a package, read once and not to be changed.

    Args:
        package: ``__package__`` of the module that reads its own.
        file: its name, which ends in ``.toml`` or ``.json``.
    """
    text = (resources.files(package) / file).read_text("utf-8")
    return tomllib.loads(text) if file.endswith(".toml") else json.loads(text)
