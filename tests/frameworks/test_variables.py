"""The variables that fwbench's own frameworks record are named one by one."""

import re

from fwbench.frameworks.variables import variables_of
from fwbench.packaged import read_table

_EVERY: dict[str, list[str]] = read_table("fwbench.frameworks", "variables.toml")


def test_names_are_whole() -> None:
    """A prefix would record whatever else begins so, secrets included."""
    whole = re.compile(r"[A-Z][A-Z0-9_]*[A-Z0-9]")
    for names in _EVERY.values():
        assert [name for name in names if not whole.fullmatch(name)] == []
        assert len({*names}) == len(names) > 0


def test_a_framework_names_its_libraries() -> None:
    """Their variables, in the order of the file."""
    assert variables_of("xla", "openblas") == ("XLA_FLAGS", *_EVERY["openblas"])
