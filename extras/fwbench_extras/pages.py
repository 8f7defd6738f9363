"""Pages of docs/ that are written from the code: ``python -m fwbench_extras.pages NAME``."""

from __future__ import annotations

import argparse
import inspect
import textwrap
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain
from typing import get_args, get_origin

from fwbench.cli import build_parser
from fwbench.cli.doctor import capabilities
from fwbench.frameworks.declared import manifests
from fwbench.options.options import PARTS, SELECTORS, SETTINGS, Option
from fwbench.records import facts, files, session_facts, units
from fwbench.records.table import Fact, Table, type_words
from fwbench.report.writers import COLUMNS
from fwbench_extras import regressions
from fwbench_extras.cheats import CHEATS, Cheat, check_harness, naive
from fwbench_extras.cheats.table import CHEATS_BY_SUBJECT
from fwbench_extras.idioms.page import page as idioms

# Options

_OPTIONS = """# Options of pytest

<!-- Written by `python -m fwbench_extras.pages options > docs/options.md`; do not edit. -->

The options that fwbench adds to pytest's; `pytest --help` has a line for each, under *fwbench*.
Each is also an ini setting, with underscores for hyphens: `fw_size = paper`. The command line wins
over a test's marker, and a marker over the ini file. What begins with `-o` has no flag: it is a
setting of ini files, which pytest's `-o` gives on a command line.

pytest-benchmark's own options do what they always do: `--benchmark-json`, `--benchmark-autosave`,
`--benchmark-compare`, `--benchmark-max-time`, `--benchmark-disable` (verify, and time nothing), ...

Of these flags plain tests of pytest-benchmark heed
{plain}.
Flags that change nothing in the tests of a session are named at its end.
"""

_SELECTORS_HEAD = """
## What is measured

A test's marker takes these as well, under the names in the last column:
`@pytest.mark.fwbench(operation, {example})`. It also takes `precision`, as
`--fw-precision`, and `threshold`: the smallest change of the time, as a share, that `--fw-gate`,
`fwbench ab` and `--fw-race` use in its cases instead of their threshold.

| option | selects | marker |
|---|---|---|
"""

_SETTINGS_HEAD = """
| option | says |
|---|---|
"""


def options() -> str:
    """The text of docs/options.md, from the table of options."""
    selection = _SELECTORS_HEAD.format(example='sizes="64,1024"')
    selectors = (_option_row(option, f"`{name}`") for name, option in SELECTORS.items())
    parts = [_part(part) for part in PARTS]
    heeded = [f"`{option.flag}`" for option in SETTINGS.values() if option.plain]
    plain = textwrap.fill(f"{', '.join(heeded[:-1])} and {heeded[-1]}", 100)
    return "".join([_OPTIONS.format(plain=plain), selection, *selectors, *parts])


def _part(part: str) -> str:
    """The settings of a part; the first one's follow the selectors."""
    heading = "" if part == PARTS[0] else f"\n## {part.capitalize()}\n"
    settings = (_option_row(option) for option in SETTINGS.values() if option.part == part)
    return "".join([heading, _SETTINGS_HEAD, *settings])


def _option_row(option: Option, *more: str) -> str:
    return _option_cells((f"`{_option_form(option)}`", option.about, *more))


def _option_form(option: Option) -> str:
    """The option as it is written on a command line."""
    if option.ini:
        return f"-o {option.dest}={option.metavar or 'true'}"
    if option.switch:
        return option.flag
    if option.alone is not None:
        return f"{option.flag}[={option.metavar}]"
    return f"{option.flag} {option.metavar}"


def _option_cells(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |\n"


# Commands

_COMMANDS = """# Commands

<!-- Written by `python -m fwbench_extras.pages commands > docs/commands.md`; do not edit. -->

What fwbench does in addition to pytest. `fwbench COMMAND --help` shows the same in the terminal.
[Exit statuses](ci.md#exit-statuses) are listed with gates.
"""


def commands() -> str:
    """The text of docs/commands.md, from the parsers of all commands."""
    sections = (_command_section(command, summary) for command, summary in parsers(build_parser()))
    return "\n".join([_COMMANDS, *sections])


def parsers(
    parser: argparse.ArgumentParser,
) -> Iterator[tuple[argparse.ArgumentParser, str | None]]:
    """The commands that do something, by name, those within a command included; with summaries."""
    for action in parser._actions:  # noqa: SLF001 (argparse offers no other way to list them)
        if isinstance(action, argparse._SubParsersAction):  # noqa: SLF001
            for choice in sorted(action._choices_actions, key=lambda choice: choice.dest):  # noqa: SLF001
                command = action.choices[choice.dest]
                yield from list(parsers(command)) or [(command, choice.help)]


def _command_section(command: argparse.ArgumentParser, summary: str | None) -> str:
    arguments = [action for action in command._actions if _is_shown(action)]  # noqa: SLF001
    text = command.description or summary
    parts = [f"## {command.prog}\n", f"```text\n{_usage(command, arguments)}\n```\n"]
    parts += [_description(command, text)] if text else []
    parts += [_argument_table(command, arguments)] if arguments else []
    return "\n".join(parts)


def _description(command: argparse.ArgumentParser, text: str) -> str:
    if command.formatter_class is argparse.RawDescriptionHelpFormatter:
        return f"```text\n{text.strip()}\n```\n"
    return f"{_plain(text)}\n"


def _is_shown(action: argparse.Action) -> bool:
    is_help = isinstance(action, argparse._HelpAction)  # noqa: SLF001
    return not is_help and action.help is not argparse.SUPPRESS


def _usage(command: argparse.ArgumentParser, arguments: Sequence[argparse.Action]) -> str:
    """One line; that of argparse differs between versions of Python."""
    if command.usage:
        return command.usage
    options = [action for action in arguments if action.option_strings]
    needed = [_argument_form(action).rpartition(", ")[2] for action in options if action.required]
    more = [] if len(needed) == len(options) else ["[options]"]
    operands = [_operand(action) for action in arguments if not action.option_strings]
    return " ".join([command.prog, *needed, *more, *operands])


def _operand(action: argparse.Action) -> str:
    form = _argument_form(action)
    return {"?": f"[{form}]", "*": f"[{form} ...]", "+": f"{form} [{form} ...]"}.get(
        str(action.nargs), form
    )


def _argument_table(command: argparse.ArgumentParser, arguments: Sequence[argparse.Action]) -> str:
    rows = [
        f"| `{_argument_form(action)}` | {_plain((action.help or '') % _fields(command, action))} |"
        for action in arguments
    ]
    return "\n".join(["| argument | meaning |", "|---|---|", *rows, ""])


def _argument_form(action: argparse.Action) -> str:
    """The argument as it is written on a command line."""
    if not action.option_strings:
        return str(action.metavar or action.dest)
    value = "" if action.nargs == 0 else f" {action.metavar or action.dest.upper()}"
    if action.nargs == "?":
        value = f" [{value.strip()}]"
    return f"{', '.join(action.option_strings)}{value}"


def _fields(command: argparse.ArgumentParser, action: argparse.Action) -> dict[str, object]:
    """Fields of a help text, as argparse fills them in."""
    return {**vars(action), "prog": command.prog}


def _plain(text: str) -> str:
    """One line, with the marks of Markdown escaped."""
    return " ".join(text.split()).replace("|", r"\|").replace("*", r"\*").replace("<", r"\<")


# Frameworks

_FRAMEWORKS = """# Frameworks

<!-- Written by `python -m fwbench_extras.pages frameworks > docs/frameworks.md` from the
`Capabilities` that each adapter declares; do not edit. -->

Each column is one framework, as its adapter in fwbench declares it; `fwbench doctor` shows the same
for what is installed here, with devices, threads and builds. A dash: fwbench has no such cases of
it. What an operation lacks is in [the table of operations](operations.md).

"""

_CAPABILITIES = """
- *executions*: of operations; *directions*: of operations.
- *training*: executions in which models are trained; the dtypes of training and of networks.
- *networks*: executions in which networks answer; *int8*: those of quantized networks.
- *own models*: the dtypes in which [users' models](own-model.md) run.
- *checkpoints*: whether the [states of trainings](training.md#checkpoints) are saved and restored.
- *recompute*: executions that recompute results instead of keeping them for the gradient.
- *toggles*: switches of the whole process that it reads: `--fw-toggle`.
- *replicas*: executions; strategies; exchanges between [replicas](replicas.md).
- *gpu memory*: whether it knows the peak of its memory on a GPU.
- *gpu clock*: the GPU's clock that times its calls; CUPTI where `cupti-python` is installed.
"""


def frameworks() -> str:
    """The text of docs/frameworks.md, from the capabilities that adapters declare."""
    columns = {name: capabilities(manifest) for name, manifest in manifests().items()}
    rows = [["", *columns], ["---"] * (len(columns) + 1)]
    rows += [
        [f"*{name}*", *(column[name] or "-" for column in columns.values())]
        for name in next(iter(columns.values()))
    ]
    return "".join([_FRAMEWORKS, *(f"| {' | '.join(row)} |\n" for row in rows), _CAPABILITIES])


# Records

_RECORD = f"""# What a record holds

<!-- Written by `python -m fwbench_extras.pages record > docs/record.md` from the tables in
`src/fwbench/records`; do not edit. -->

fwbench keeps its facts in pytest-benchmark's JSON: those of a case under
`benchmarks[].extra_info.fwbench`, those of the session under `fwbench`. `schema` there is the
version of this layout, now {facts.SCHEMA}. A file with a higher version is refused; one with the
same or a lower version is read, and unknown keys of a newer fwbench are kept and shown unchanged.
A requested toggle is also a key of its case, under its name.

*Required* keys are always present; others may be absent. A key is null only where its row says so.

Files are checked when they are read: one with an invalid value is refused as a whole, naming file,
case and key, and there is no verdict. In a journal only the line with the value is lost. Numbers
are finite and within the limits of their unit:

{{units}}

The package has all of this as JSON Schemas (draft 2020-12), with the version of the layout in
their names and in `$id`: `fwbench/records/schemas` has `run-{facts.SCHEMA}.json` for runs,
`comparison` for `--json` of `fwbench ab` and `gate`, `row` of `since`, `explanations` of `explain`,
and `cases` of `report`. Units are in `x-unit`. As reading does, they allow further keys, and null
for what may be absent.

```python
import json
from importlib import resources

import jsonschema

schemas = resources.files("fwbench.records") / "schemas"
schema = json.loads((schemas / "run-{facts.SCHEMA}.json").read_text("utf-8"))
jsonschema.validate(json.load(open("run.json")), schema)
```

A file is also refused if it is larger than {files.LARGEST_BYTES // 2**20} MiB (reading it takes
about three times its size of memory, and recovering a journal five times), is nested more than 100
levels deep, or has an object with the same key twice.
"""

_COLUMNS = """## A case in a line

What `--csv` and `--json` of `fwbench report` write: a line for each case of each file, so that
lines of several files, machines and days can be joined.
In CSV a null is an empty cell; `--json` writes an object whose list `cases` has the lines, with
numbers as numbers. Facts of a case are null of plain tests and of cases that were not measured. New
columns come at the end. [Examples](reporting.md#lines-for-other-programs).
"""

#: Suffixes of the keys of several tables.
_SIGNS = {list: "[]", dict: ".*"}


def record() -> str:
    """The text of docs/record.md, from the tables of facts."""
    parts = [_RECORD.format(units=_units())]
    for title, root in (
        ("A case: `benchmarks[].extra_info.fwbench`", facts.CaseFacts),
        ("The session: `fwbench`", session_facts.SessionFacts),
        ("A row of versions: the whole file", session_facts.StoredRow),
    ):
        parts.append(f"## {title}\n\n{_meaning(root)}\n\n{_fact_table(root)}")
        parts += [
            f"### `{path}`\n\n{_meaning(table)}\n\n{_fact_table(table)}"
            for path, table in _within(root, "")
        ]
    return "\n".join([*parts, _COLUMNS, _column_table()])


def _column_table() -> str:
    """The columns of lines; all are always there."""
    declared = {**facts.CaseFacts.declared(), **facts.CaseLine.declared()}
    return _table(declared[name] for name in COLUMNS).replace(", required", "")


def _units() -> str:
    rows = [
        f"| {unit.name} | {f'{unit.least:g}' if unit.least else ''} | {unit.most:g} |"
        for unit in units.ALL
    ]
    return "\n".join(["| unit | minimum, if not 0 | maximum |", "|---|---|---|", *rows])


def _within(table: type[Table], path: str) -> Iterator[tuple[str, type[Table]]]:
    """The tables in a table at any depth, with their keys."""
    for name, declared in table.declared().items():
        kinds = [declared.type, *get_args(declared.type)]
        for kind in kinds:
            if isinstance(kind, type) and issubclass(kind, Table):
                place = f"{path}{name}{_SIGNS.get(get_origin(declared.type), '')}"
                yield place, kind
                yield from _within(kind, f"{place}.")


def _meaning(table: type[Table]) -> str:
    return (table.__doc__ or "").partition("\n")[0].replace("``", "`")


def _fact_table(table: type[Table]) -> str:
    return _table(table.declared().values())


def _table(declared: Iterable[Fact]) -> str:
    rows = map(_fact_row, declared)
    return "\n".join(["| key | type | unit | meaning |", "|---|---|---|---|", *rows, ""])


def _fact_row(declared: Fact) -> str:
    kind = " ".join(filter(None, (type_words(declared.type), declared.check.words)))
    required = ", required" if declared.is_required else ""
    null = f"; null {declared.null}" if declared.null else ""
    cells = (f"`{declared.name}`", kind + required, declared.unit.name, declared.meaning + null)
    return f"| {' | '.join(cells)} |"


# Cheats

_CHEATS = """# Frameworks that cheat

<!-- Written by `python -m fwbench_extras.pages cheats > docs/cheats.md` from the tables in
`extras/fwbench_extras/cheats`; do not edit. -->

Frameworks that cheat or err, each in one way and as briefly as possible, to test a harness with.
They stand for mistakes of published benchmarks. Each is NumPy with one thing changed; `Honest` is
NumPy with nothing changed. They come with [`fwbench-extras`](installing.md#fwbench-extras).
"""

_ANY_HARNESS = """## Any harness

`check_harness(harness)` calls a harness with one cheat after the other. The harness times
`cheat.run()` like anything else, and raises if something looks wrong; a cheat that gets a number
was missed. For careful harnesses a cheat also has `inputs` (NumPy arrays, which may be changed in
place), `wait()`, `read(returned)` and `expected()`.

This harness is a typical loop, which even checks the first result:

```python
{source}```

It misses {missed} of {total} (a cheat that cheats forward and backward counts twice):

```python
from fwbench_extras.cheats import check_harness
from fwbench_extras.cheats.naive import first_call_checked

outcomes = check_harness(first_call_checked)
print(list(outcomes.values()).count(None), "of", len(outcomes))
```

`benchmarks/harness/cheats.py` tests that loop, a more careful one and fwbench with all of them.
"""

_FWBENCH = """## fwbench

Cheats are frameworks like any other once a folder with their entry points is on the path. The
entry points of `fwbench-extras` do not name them, so none is measured by accident.

```sh
python -m fwbench_extras.cheats /tmp/cheats
PYTHONPATH=/tmp/cheats pytest benchmarks --fw {example} -k {workload}
```

Of the {total} cheats below, {caught} end as a failed case, with one sentence and without a number.
The other {missed} get a number; the last column says why, and how they can still be noticed.
"""


def cheats() -> str:
    """The text of docs/cheats.md, from the tables of cheats."""
    subjects = map(_cheat_table, CHEATS_BY_SUBJECT)
    return "\n".join([_CHEATS, _any_harness(), _fwbench(), *chain.from_iterable(subjects)])


def _any_harness() -> str:
    outcomes = check_harness(naive.first_call_checked)
    return _ANY_HARNESS.format(
        source=inspect.getsource(naive),
        missed=list(outcomes.values()).count(None),
        total=len(outcomes),
    )


def _fwbench() -> str:
    caught = sum(cheat.caught_by is not None for cheat in CHEATS)
    return _FWBENCH.format(
        example=CHEATS[0].name,
        workload=CHEATS[0].workload.name,
        total=len(CHEATS),
        caught=caught,
        missed=len(CHEATS) - caught,
    )


def _cheat_table(subject: str) -> Iterator[str]:
    yield f"## {subject}\n"
    yield "| cheat | what it does | stands for | ends in | what catches it, or why nothing does |"
    yield "|---|---|---|---|---|"
    yield from map(_cheat_row, CHEATS_BY_SUBJECT[subject])
    yield ""


def _cheat_row(cheat: Cheat) -> str:
    error = cheat.caught_by.__name__ if cheat.caught_by else "**a number**"
    cells = (f"`{cheat.name}`", cheat.fakes, cheat.mistake, error, cheat.why)
    return f"| {' | '.join(cells)} |"


#: The pages by name, with the functions that write them.
PAGES: dict[str, Callable[[], str]] = {
    "cheats": cheats,
    "commands": commands,
    "frameworks": frameworks,
    "idioms": idioms,
    "options": options,
    "record": record,
    "regressions": regressions.page,
}


def main() -> None:
    """Print a page."""
    parser = argparse.ArgumentParser(prog="python -m fwbench_extras.pages", description=__doc__)
    parser.add_argument("page", choices=PAGES)
    print(PAGES[parser.parse_args().page](), end="")


if __name__ == "__main__":
    main()
