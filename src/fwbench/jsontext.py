"""Values as JSON text, for messages between processes, journals and stored runs."""

import json
from collections import Counter
from collections.abc import Sequence
from typing import Any

#: How deep objects and lists may be nested; in fwbench's own files a dozen levels are.
_DEEPEST = 100

#: Digits of the longest whole number that is read: more than any 64 bits have.
_DIGITS = 40


def dumps(values: Any, *, indent: int | None = None) -> str:
    """JSON text of ``values``, in ASCII.

    What JSON does not have becomes the text that pytest-benchmark writes for it into its files, so
    that no value breaks a message or a file.

    Args:
        indent: spaces of indentation for each level; None for one line.
    """
    return json.dumps(values, default=lambda value: f"UNSERIALIZABLE[{value!r}]", indent=indent)


def loads(text: bytes) -> Any:
    """The values of JSON text from a file that anybody may have written.

    ``NaN`` and ``Infinity``, which pytest-benchmark writes, are read; a byte-order mark is skipped.

    Raises:
        ValueError: it is not UTF-8 or not JSON, an object has a key twice, a whole number has more
            than 40 digits, or it is nested more than 100 levels deep.
    """
    try:
        values = json.loads(
            text.decode("utf-8-sig"), object_pairs_hook=_object, parse_int=_whole_number
        )
    except RecursionError:
        raise ValueError(_TOO_DEEP) from None
    if _is_too_deep(values):
        raise ValueError(_TOO_DEEP)
    return values


_CONTAINERS = frozenset({dict, list})

_TOO_DEEP = f"it is nested more than {_DEEPEST} levels deep"


def _object(pairs: Sequence[tuple[str, Any]]) -> dict[str, Any]:
    values = dict(pairs)
    if len(values) < len(pairs):
        ((name, _),) = Counter(name for name, _ in pairs).most_common(1)
        raise ValueError(f"an object has the key {name!r} twice")
    return values


def _whole_number(digits: str) -> int:
    if len(digits) > _DIGITS:
        raise ValueError(f"a whole number has {len(digits)} digits")
    return int(digits)


def _is_too_deep(values: Any) -> bool:
    level: list[Any] = [[values]]
    for _ in range(_DEEPEST + 1):
        level = [
            inner
            for outer in level
            for inner in (outer.values() if type(outer) is dict else outer)
            if type(inner) in _CONTAINERS
        ]
    return bool(level)
