"""docs/record.md, written from the tables: ``python -m fwbench.records.page > docs/record.md``."""

from __future__ import annotations

from collections.abc import Iterator
from typing import get_args, get_origin

from fwbench.records import facts, files, session_facts, units
from fwbench.records.messages import type_words
from fwbench.records.table import Fact, Table

_HEAD = f"""# What a record holds

<!-- Written by `python -m fwbench.records.page > docs/record.md` from the tables in
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

A file is also refused if it is larger than {files.LARGEST_BYTES // 2**20} MiB (reading it takes
about three times its size of memory, and recovering a journal five times), is nested more than 100
levels deep, or has an object with the same key twice.
"""

#: What stands behind the key of several tables.
_SIGNS = {list: "[]", dict: ".*"}


def page() -> str:
    """The text of docs/record.md, from the tables of facts."""
    parts = [_HEAD.format(units=_units())]
    for title, root in (
        ("A case: `benchmarks[].extra_info.fwbench`", facts.CaseFacts),
        ("The session: `fwbench`", session_facts.SessionFacts),
    ):
        parts.append(f"## {title}\n\n{_meaning(root)}\n\n{_table(root)}")
        parts += [
            f"### `{path}`\n\n{_meaning(table)}\n\n{_table(table)}"
            for path, table in _within(root, "")
        ]
    return "\n".join(parts)


def _units() -> str:
    rows = [
        f"| {unit.name} | {f'{unit.least:g}' if unit.least else ''} | {unit.most:g} |"
        for unit in units.ALL
    ]
    return "\n".join(["| unit | minimum, if not 0 | maximum |", "|---|---|---|", *rows])


def _within(table: type[Table], path: str) -> Iterator[tuple[str, type[Table]]]:
    """The tables in a table, and those in them, each with the key under which it is."""
    for name, declared in table.declared().items():
        kinds = [declared.type, *get_args(declared.type)]
        for kind in kinds:
            if isinstance(kind, type) and issubclass(kind, Table):
                place = f"{path}{name}{_SIGNS.get(get_origin(declared.type), '')}"
                yield place, kind
                yield from _within(kind, f"{place}.")


def _meaning(table: type[Table]) -> str:
    return (table.__doc__ or "").partition("\n")[0].replace("``", "`")


def _table(table: type[Table]) -> str:
    rows = [_row(declared) for declared in table.declared().values()]
    return "\n".join(["| key | type | unit | meaning |", "|---|---|---|---|", *rows, ""])


def _row(declared: Fact) -> str:
    kind = " ".join(filter(None, (type_words(declared.type), declared.check.words)))
    required = ", required" if declared.is_required else ""
    null = f"; null {declared.null}" if declared.null else ""
    cells = (f"`{declared.name}`", kind + required, declared.unit.name, declared.meaning + null)
    return f"| {' | '.join(cells)} |"


if __name__ == "__main__":
    print(page(), end="")
