"""docs/commands.md, written from the parsers: ``python -m fwbench.cli.page > docs/commands.md``."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence

from fwbench.cli import _parser

_HEAD = """# Commands

<!-- Written by `python -m fwbench.cli.page > docs/commands.md`; do not edit. -->

What fwbench does in addition to pytest. `fwbench COMMAND --help` shows the same in the terminal.
[Exit statuses](exit-statuses.md) are a page of their own.
"""


def page() -> str:
    """The text of docs/commands.md, from the parsers of all commands."""
    sections = (_section(command, summary) for command, summary in _commands(_parser()))
    return "\n".join([_HEAD, *sections])


def _commands(
    parser: argparse.ArgumentParser,
) -> Iterator[tuple[argparse.ArgumentParser, str | None]]:
    """The commands that do something, by name, those within a command included; with summaries."""
    for action in parser._actions:  # noqa: SLF001 (argparse offers no other way to list them)
        if isinstance(action, argparse._SubParsersAction):  # noqa: SLF001
            for choice in sorted(action._choices_actions, key=lambda choice: choice.dest):  # noqa: SLF001
                command = action.choices[choice.dest]
                yield from list(_commands(command)) or [(command, choice.help)]


def _section(command: argparse.ArgumentParser, summary: str | None) -> str:
    arguments = [action for action in command._actions if _is_shown(action)]  # noqa: SLF001
    text = command.description or summary
    parts = [f"## {command.prog}\n", f"```text\n{_usage(command, arguments)}\n```\n"]
    parts += [_description(command, text)] if text else []
    parts += [_table(command, arguments)] if arguments else []
    return "\n".join(parts)


def _description(command: argparse.ArgumentParser, text: str) -> str:
    if command.formatter_class is argparse.RawDescriptionHelpFormatter:
        return f"```text\n{text.strip()}\n```\n"
    return f"{_plain(text)}\n"


def _is_shown(action: argparse.Action) -> bool:
    is_help = isinstance(action, argparse._HelpAction)  # noqa: SLF001
    return not is_help and action.help is not argparse.SUPPRESS


def _usage(command: argparse.ArgumentParser, arguments: Sequence[argparse.Action]) -> str:
    """One line; argparse's own differs between versions of Python."""
    if command.usage:
        return command.usage
    options = [action for action in arguments if action.option_strings]
    needed = [_form(action).rpartition(", ")[2] for action in options if action.required]
    more = [] if len(needed) == len(options) else ["[options]"]
    operands = [_operand(action) for action in arguments if not action.option_strings]
    return " ".join([command.prog, *needed, *more, *operands])


def _operand(action: argparse.Action) -> str:
    form = _form(action)
    return {"?": f"[{form}]", "*": f"[{form} ...]", "+": f"{form} [{form} ...]"}.get(
        str(action.nargs), form
    )


def _table(command: argparse.ArgumentParser, arguments: Sequence[argparse.Action]) -> str:
    rows = [
        f"| `{_form(action)}` | {_plain((action.help or '') % _fields(command, action))} |"
        for action in arguments
    ]
    return "\n".join(["| argument | meaning |", "|---|---|", *rows, ""])


def _form(action: argparse.Action) -> str:
    """How the argument is written on a command line."""
    if not action.option_strings:
        return str(action.metavar or action.dest)
    value = "" if action.nargs == 0 else f" {action.metavar or action.dest.upper()}"
    if action.nargs == "?":
        value = f" [{value.strip()}]"
    return f"{', '.join(action.option_strings)}{value}"


def _fields(command: argparse.ArgumentParser, action: argparse.Action) -> dict[str, object]:
    """What a help text may name, as argparse fills it in."""
    return {**vars(action), "prog": command.prog}


def _plain(text: str) -> str:
    """One line, in which Markdown takes nothing for a mark of its own."""
    return " ".join(text.split()).replace("|", r"\|").replace("*", r"\*").replace("<", r"\<")


if __name__ == "__main__":
    print(page(), end="")
