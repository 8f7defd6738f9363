"""Values as JSON text, for messages between processes, journals and stored runs."""

from __future__ import annotations

import json
from typing import Any


def dumps(values: Any, *, indent: int | None = None) -> str:
    """JSON text of ``values``, in ASCII.

    What JSON does not have becomes the text that pytest-benchmark writes for it into its files, so
    that no value breaks a message or a file.

    Args:
        values: dictionaries, lists and scalars; tuples become lists.
        indent: spaces of indentation for each level; None for one line.
    """
    return json.dumps(values, default=_unserializable, indent=indent)


def _unserializable(value: Any) -> str:
    return f"UNSERIALIZABLE[{value!r}]"
