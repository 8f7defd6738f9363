"""Tables of parameters: rows of a test, in tables.toml of its folder under the test's name."""

import tomllib
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

import pytest

_Test = TypeVar("_Test", bound=Callable[..., None])


def tabled(test: _Test) -> _Test:
    """The test with its rows of tables.toml as parameters; lists of TOML are given as tuples.

    Raises:
        KeyError: tables.toml has no table of the test's name.
    """
    table = tables(test.__globals__["__file__"])[test.__name__]
    names = table["columns"].replace(",", " ").split()
    rows = table["rows"]
    keyed = [(None, row) for row in rows] if isinstance(rows, list) else [*rows.items()]
    parameters = [pytest.param(*_row(row, names), id=key) for key, row in keyed]
    marked: _Test = pytest.mark.parametrize(names, parameters)(test)
    return marked


def _row(values: Any, names: list[str]) -> tuple[Any, ...]:
    """Values of a row, in order or by name; what it does not give is None."""
    if len(names) == 1:
        return (_frozen(values),)
    given = values if isinstance(values, dict) else dict(zip(names, values, strict=False))
    assert given.keys() <= {*names}, f"{given} has other columns than {names}"
    return tuple(_frozen(given.get(name)) for name in names)


#: None within a value, which TOML lacks.
_NONE = "<none>"


def _frozen(value: Any) -> Any:
    if value == _NONE:
        return None
    if isinstance(value, list):
        return tuple(map(_frozen, value))
    if isinstance(value, dict):
        return {key: _frozen(inner) for key, inner in value.items()}
    return value


@cache
def tables(module: str) -> dict[str, Any]:
    """The tables of tables.toml in the folder of a module, whose ``__file__`` is given."""
    return tomllib.loads(Path(module).with_name("tables.toml").read_text(encoding="utf-8"))
