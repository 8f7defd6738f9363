"""JSON Schemas of what fwbench writes: ``python -m fwbench_extras.schemas``.

They come from the tables of facts, as docs/record.md does, and are published in the package, in
``src/fwbench/records/schemas``. The version of a schema is that of the record.
"""

from __future__ import annotations

import json
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import UnionType
from typing import Any, Union, get_args, get_origin

from fwbench.records import facts, session_facts, upstream
from fwbench.records.facts import SCHEMA, CaseFacts, CaseLine
from fwbench.records.session_facts import (
    SessionFacts,
    StoredComparison,
    StoredExplanation,
    StoredRow,
)
from fwbench.records.table import Check, Fact, Table
from fwbench.records.units import Unit
from fwbench.records.upstream import Entry, RunInfo, Statistics
from fwbench.report import writers

_ROOT = Path(__file__).parents[2]

#: The folder of the schemas in a checkout.
FOLDER = _ROOT / "src" / "fwbench" / "records" / "schemas"

_DIALECT = "https://json-schema.org/draft/2020-12/schema"

_TYPES: Mapping[Any, str] = {float: "number", int: "integer", bool: "boolean", str: "string"}

_Schema = dict[str, Any]


def schemas() -> dict[str, _Schema]:
    """The schemas by the names of their files."""
    roots = {
        "run": ("A run: what pytest --benchmark-json writes with fwbench", _run()),
        "comparison": ("What --json of fwbench ab and gate writes", _reference(StoredComparison)),
        "row": ("What --json of fwbench since writes", _reference(StoredRow)),
        "explanations": (
            "What --json of fwbench explain writes",
            _object({"explanations": _list(_reference(StoredExplanation))}, ["explanations"]),
        ),
        "cases": (
            "What --json of fwbench report writes",
            _object({"cases": _list(_line())}, ["cases"]),
        ),
    }
    return {f"{name}-{SCHEMA}.json": _document(name, *root) for name, root in roots.items()}


def _document(name: str, title: str, root: _Schema) -> _Schema:
    project = tomllib.loads((_ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    folder = f"{project['urls']['Homepage']}/raw/main/{FOLDER.relative_to(_ROOT).as_posix()}"
    head = {"$schema": _DIALECT, "$id": f"{folder}/{name}-{SCHEMA}.json", "title": title}
    return {**head, **root, "$defs": _definitions(root)}


# Parts of a schema


def _run() -> _Schema:
    entry = _object(
        {"stats": _reference(Statistics), "extra_info": _object({"fwbench": _facts_of_case()})},
        ["stats"],
    )
    parts = {"benchmarks": _list({"allOf": [_reference(Entry), entry]})}
    run = _object({**parts, "fwbench": _reference(SessionFacts)}, ["benchmarks"])
    return {"allOf": [_reference(RunInfo), run]}


def _facts_of_case() -> _Schema:
    """Facts of a case; of a plain test, and of what others have measured, no fact must be there."""
    plain = _object({"plain_test": {"const": True}}, ["plain_test"])
    properties = {name: _fact(declared) for name, declared in CaseFacts.declared().items()}
    return {
        **_object(properties),
        "if": {"not": {"anyOf": [plain, {"maxProperties": 0}]}},
        "then": {"required": CaseFacts.required()},
        "dependentRequired": _dependent(CaseFacts),
    }


def _line() -> _Schema:
    """A line of a report: all columns are there, and null where there is no value."""
    declared = {**CaseFacts.declared(), **CaseLine.declared()}
    columns = {name: _fact(declared[name]) for name in writers.COLUMNS}
    always = CaseLine.required()
    properties = {n: row if n in always else _or_null(row) for n, row in columns.items()}
    return _object(properties, [*columns])


def _table(table: type[Table]) -> _Schema:
    properties = {name: _fact(declared) for name, declared in table.declared().items()}
    text = (table.__doc__ or "").partition("\n")[0].replace("``", "`")
    schema = {"description": text, **_object(properties, table.required())}
    if dependent := _dependent(table):
        schema["dependentRequired"] = dependent
    return schema


def _dependent(table: type[Table]) -> dict[str, list[str]]:
    rows = table.declared().items()
    return {name: [*declared.needs] for name, declared in rows if declared.needs}


def _fact(declared: Fact) -> _Schema:
    """A fact: its type, its limits, its unit as ``x-unit``, and its meaning."""
    kind = _kind(declared.type, declared.check)
    if declared.filled:
        kind["minItems"] = 1
    # Reading takes a null for an absent value, except in a strict table.
    if declared.null or not (declared.is_required or declared.table.strict):
        kind = _or_null(kind)
    unit = {"x-unit": declared.unit.name} if declared.unit.name else {}
    null = f"; null {declared.null}" if declared.null else ""
    return {"description": declared.meaning + null, **unit, **kind}


def _kind(kind: Any, check: Check) -> _Schema:
    origin, arguments = get_origin(kind), get_args(kind)
    if origin in (Union, UnionType):
        return {"anyOf": [_kind(option, check) for option in arguments]}
    if origin is list:
        return _list(_kind(arguments[0], check))
    if origin is dict:
        return {"type": "object", "additionalProperties": _kind(arguments[1], check)}
    if kind is Any:
        return {}
    if issubclass(kind, Table):
        return _reference(kind)
    limits = _limits(check.unit, {**check.keywords}) if kind in (float, int) else check.keywords
    return {"type": _TYPES[kind], **limits}


def _limits(unit: Unit, condition: _Schema) -> _Schema:
    """The limits of a quantity: those of its check, and those of its unit."""
    limits = {"minimum": -unit.most, "maximum": unit.most, **condition}
    if "exclusiveMinimum" in condition:
        del limits["minimum"]
    if "exclusiveMaximum" in condition:
        del limits["maximum"]
    if unit.least:
        large = [{"maximum": -unit.least}, {"const": 0}, {"minimum": unit.least}]
        limits["anyOf"] = large if limits.get("minimum", 0) < 0 else large[1:]
    return limits


def _or_null(kind: _Schema) -> _Schema:
    """The schema of a value that may be null instead; conditions on numbers do not apply to it."""
    if isinstance(kind.get("type"), str):
        choices = {"enum": [*kind["enum"], None]} if "enum" in kind else {}
        return {**kind, "type": [kind["type"], "null"], **choices}
    return {"anyOf": [kind, {"type": "null"}]} if "$ref" in kind or "anyOf" in kind else kind


def _object(properties: Mapping[str, Any], required: list[str] | None = None) -> _Schema:
    needed = {"required": required} if required else {}
    return {"type": "object", "properties": {**properties}, **needed}


def _list(items: _Schema) -> _Schema:
    return {"type": "array", "items": items}


# Tables that a schema refers to


def _reference(table: type[Table]) -> _Schema:
    return {"$ref": f"#/$defs/{table.__name__}"}


def _definitions(schema: _Schema) -> dict[str, _Schema]:
    """The tables that a schema refers to, at any depth, by their names."""
    declared = {**vars(facts), **vars(session_facts), **vars(upstream)}
    found: dict[str, _Schema] = {}
    waiting = [*_references(schema)]
    while waiting:
        name = waiting.pop()
        if name not in found:
            found[name] = _table(declared[name])
            waiting += _references(found[name])
    return dict(sorted(found.items()))


def _references(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        if isinstance(value.get("$ref"), str):
            yield value["$ref"].rpartition("/")[2]
        for item in value.values():
            yield from _references(item)
    elif isinstance(value, list):
        for item in value:
            yield from _references(item)


def text(schema: _Schema) -> str:
    """A schema as it is published."""
    return json.dumps(schema, indent=1) + "\n"


def main() -> None:
    """Write all schemas."""
    FOLDER.mkdir(exist_ok=True)
    for name, schema in schemas().items():
        (FOLDER / name).write_text(text(schema), encoding="utf-8")


if __name__ == "__main__":
    main()
