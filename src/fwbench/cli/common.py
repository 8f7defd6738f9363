"""Parts that several commands share: declarations in ``commands.toml``, templates, warnings."""

from __future__ import annotations

import argparse
import sys
import tomllib
from collections.abc import Callable, Mapping
from importlib import resources
from typing import Any

import jinja2

from fwbench.options import values
from fwbench.plugin.options import checked
from fwbench.report import escaping

_FILE = tomllib.loads((resources.files(__package__) / "commands.toml").read_text("utf-8"))

_LINES_KEPT = argparse.RawDescriptionHelpFormatter


def add_command(
    commands: Any,
    name: str,
    run: Callable[[argparse.Namespace], int] | None = None,
    **words: object,
) -> argparse.ArgumentParser:
    """Add a command of ``commands.toml`` with its own arguments.

    Args:
        name: as it is typed: ``env add`` is the action ``add`` of the command ``env``.
        run: returns the exit status; None for a command that has actions.
        words: what stands in braces in its texts.
    """
    row: dict[str, Any] = {**_FILE["commands"][name]}
    kept = row.pop("layout_kept", False)
    texts = {
        key: value.format(**words) if kept else _text(value, words)
        for key, value in row.items()
        if isinstance(value, str)
    }
    form = {"formatter_class": _LINES_KEPT} if kept else {}
    parser: argparse.ArgumentParser = commands.add_parser(
        name.rpartition(" ")[2], **{**row, **texts, **form}
    )
    add_arguments(parser, name, **words)
    if run is not None:
        parser.set_defaults(run=run)
    return parser


def add_arguments(parser: argparse._ActionsContainer, group: str, **words: object) -> None:
    """Add the arguments that ``commands.toml`` has for a command, or for several."""
    for flags, row in _FILE["arguments"].get(group, {}).items():
        given = {**row}
        if "type" in row:
            name, *more = row["type"]
            given["type"] = checked(getattr(values, name), *more)
        if "help" in row:
            given["help"] = _text(row["help"], words).replace("%", "%%")  # argparse formats it
        parser.add_argument(*flags.split(), **given)


def _text(text: str, words: Mapping[str, object]) -> str:
    """A text of ``commands.toml``, filled in and without its line breaks."""
    return " ".join(text.format(**words).split())


def rendered(template: str, **values: Any) -> str:
    """The text of a template of the commands, without the line break at its end."""
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("fwbench.cli"),
        autoescape=False,  # noqa: S701 (for terminals and Markdown)
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=jinja2.StrictUndefined,
    )
    return environment.get_template(template).render(values).rstrip("\n")


def warn(*texts: str) -> None:
    """Print texts on stderr; control characters in names of files and cases are escaped."""
    for text in texts:
        print(f"fwbench: {escaping.terminal(text)}", file=sys.stderr)
