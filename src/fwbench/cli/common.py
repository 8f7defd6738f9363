"""Parts that several commands share: declarations in ``commands.toml``, templates, warnings.

pytest and Jinja are imported on use: Ctrl-C is not handled while this module is imported.
"""

import argparse
import json
import shutil
import sys
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from fwbench.options import values
from fwbench.packaged import read_table
from fwbench.report import escaping
from fwbench.report.terminal.text import plain_lines


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
    row = {**read_table(__package__, "commands.toml")["commands"][name]}
    kept, prints_json = row.pop("layout_kept", False), row.pop("json", False)
    for key, value in row.items():
        if isinstance(value, str):
            row[key] = value.format(**words) if kept else _text(value, words)
    if kept:
        row["formatter_class"] = argparse.RawDescriptionHelpFormatter
    parser: argparse.ArgumentParser = commands.add_parser(name.rpartition(" ")[2], **row)
    add_arguments(parser, name, **words)
    if prints_json:
        add_arguments(parser, "json")
    if run is not None:
        parser.set_defaults(run=run, parser=parser)
    return parser


def add_arguments(parser: argparse._ActionsContainer, group: str, **words: object) -> None:
    """Add the arguments that ``commands.toml`` has for a command, or for several."""
    from fwbench.plugin.options import checked

    for flags, row in read_table(__package__, "commands.toml")["arguments"].get(group, {}).items():
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
    import jinja2

    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("fwbench.cli"),
        autoescape=False,  # noqa: S701 (for terminals and Markdown)
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=jinja2.StrictUndefined,
    )
    return environment.get_template(template).render(values).rstrip("\n")


def terminal_width() -> int | None:
    """Columns of the terminal that results are printed on; None of a file or a pipe."""
    return shutil.get_terminal_size().columns if sys.stdout.isatty() else None


def print_lines(lines: Iterable[str]) -> None:
    """Print lines, on a terminal wrapped to its columns."""
    width = terminal_width()
    print("\n".join(lines if width is None else plain_lines(lines, width)))


def print_result(arguments: argparse.Namespace, facts: Any, text: str) -> None:
    """Print the result of a command: a text for people, or with ``--json`` its facts."""
    if arguments.json:
        print(json.dumps(facts, indent=2))
    else:
        print_lines(text.splitlines())


def warn(*texts: str) -> None:
    """Print texts on stderr; control characters in names of files and cases are escaped."""
    for text in texts:
        print(f"fwbench: {escaping.terminal(text)}", file=sys.stderr)
