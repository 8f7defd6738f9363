"""The variables that fwbench's own frameworks record are named one by one."""

import re
import tomllib
from pathlib import Path

import fwbench.frameworks
from fwbench.frameworks.variables import variables_of

_EVERY: dict[str, list[str]] = tomllib.loads(
    (Path(fwbench.frameworks.__file__).parent / "variables.toml").read_text(encoding="utf-8")
)


def test_names_are_whole() -> None:
    """A prefix would record whatever else begins so, secrets included."""
    whole = re.compile(r"[A-Z][A-Z0-9_]*[A-Z0-9]")
    for names in _EVERY.values():
        assert [name for name in names if not whole.fullmatch(name)] == []
        assert len({*names}) == len(names) > 0


def test_a_framework_names_its_libraries() -> None:
    """Their variables, in the order of the file."""
    assert variables_of("xla", "openblas") == ("XLA_FLAGS", *_EVERY["openblas"])
