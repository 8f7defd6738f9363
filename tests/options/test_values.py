"""Values are read from text and checked, and an error says what would have been understood."""

import tomllib
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from fwbench.errors import UsageError
from fwbench.options import values
from fwbench.options.options import SETTINGS
from fwbench.terms.replicas import network, straggler
from fwbench.terms.toggles import checked, parse

#: What reads the texts of a table of values.toml.
_READERS: Mapping[str, Callable[[str], Any]] = {
    **{name: SETTINGS[name].parse for name in ("isolation", "fail_on", "allow_different")},
    "timeout": partial(values.duration, what="timeout", least_s=0.001),
    "warm_up": partial(values.duration, what="warm-up", least_s=0.0),
    "threads": partial(values.positive, what="number of threads"),
    "warmup_epochs": partial(values.natural, what="number of warm-up epochs"),
    "budget": partial(values.duration, what="budget"),
    "share": partial(values.share, what="threshold"),
    "growth": partial(values.growth, what="threshold of memory"),
    "network": network,
    "straggler": straggler,
    "toggle": parse,
    "checked_toggle": lambda text: checked(dict([parse(text)]), ()),
}

_TABLE = tomllib.loads(Path(__file__).with_name("values.toml").read_text(encoding="utf-8"))


def _rows(kind: str) -> list[Any]:
    """Reader, text and what is expected, of every text of the table."""
    return [
        pytest.param(
            _READERS.get(name) or getattr(values, name), text, expected, id=f"{name}-{text}"
        )
        for name, kinds in _TABLE.items()
        for expected, *texts in kinds.get(kind, ())
        for text in texts
    ]


def _as_json(value: Any) -> Any:
    """Tuples as lists and paths as texts, as the table has them."""
    if isinstance(value, tuple):
        return [*map(_as_json, value)]
    return str(value) if isinstance(value, Path) else value


@pytest.mark.parametrize(("read", "text", "expected"), _rows("good"))
def test_good_values_are_read(read: Callable[[str], Any], text: str, expected: Any) -> None:
    """Every form is read, in the order given, each value once, with whitespace wherever it is."""
    assert _as_json(read(text)) == expected


#: Texts that are too long for a table, or not the same everywhere.
_LONG = [
    (values.sizes, "8" * 5000, "of up to 18 digits"),
    (_READERS["warmup_epochs"], "1" * 5000, "of up to 18 digits"),
    (_READERS["budget"], "9" * 400 + "h", "is not a duration above 0"),
    (values.file, "9" * 5000, "not a usable name of a file or a folder: .*too long"),
    (values.folder, __file__, "test_values.py' is not a directory"),
]


@pytest.mark.parametrize(("read", "text", "message"), [*_rows("bad"), *_LONG])
def test_bad_values_are_refused(read: Callable[[str], Any], text: str, message: str) -> None:
    """Every other form is refused, with what was given and what would be understood."""
    with pytest.raises(UsageError, match=message):
        read(text)
