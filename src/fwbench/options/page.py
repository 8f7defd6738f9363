"""docs/options.md, written from the table: ``python -m fwbench.options.page > docs/options.md``."""

from __future__ import annotations

from collections.abc import Iterable

from fwbench.options.table import SELECTORS, SETTINGS, Option

_HEAD = """# Options of pytest

<!-- Written by `python -m fwbench.options.page > docs/options.md`; do not edit. -->

The options that fwbench adds to pytest's, as `pytest --help` lists them under *fwbench*. Each is
also an ini setting, with underscores for hyphens: `fw_size = paper`. The command line wins over a
test's marker, and a marker over the ini file.

pytest-benchmark's own options do what they always do: `--benchmark-json`, `--benchmark-autosave`,
`--benchmark-compare`, `--benchmark-max-time`, `--benchmark-disable` (verify, and time nothing), ...
"""

_SELECTION = """
## What is measured

A test's marker takes these as well, under the names in the last column:
`@pytest.mark.fwbench(operation, {example})`. It also takes `precision`, as
`--fw-precision`, and `threshold`: the smallest change of the time, as a share, that `--fw-gate`,
`fwbench ab` and `--fw-race` care for in its cases, whatever their own threshold is.

| option | selects | marker |
|---|---|---|
"""

_SETTINGS = """
## How it is measured and judged

| option | says |
|---|---|
"""


def page() -> str:
    """The text of docs/options.md, from the table of options."""
    selection = _SELECTION.format(example='sizes="64,1024"')
    selectors = (_row(option, f"`{name}`") for name, option in SELECTORS.items())
    settings = (_row(option) for option in SETTINGS.values())
    return "".join([_HEAD, selection, *selectors, _SETTINGS, *settings])


def _row(option: Option, *more: str) -> str:
    return _cells((f"`{_form(option)}`", option.help, *more))


def _form(option: Option) -> str:
    """How the option is written on a command line."""
    if option.switch:
        return option.flag
    if option.alone is not None:
        return f"{option.flag}[={option.metavar}]"
    return f"{option.flag} {option.metavar}"


def _cells(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |\n"


if __name__ == "__main__":
    print(page(), end="")
