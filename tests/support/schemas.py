"""JSON that must be as the published schemas say."""

import json
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Any

from jsonschema import Draft202012Validator

from fwbench.records.facts import SCHEMA


@cache
def validator(name: str) -> Draft202012Validator:
    """The validator of a schema that the package has: ``run``, ``comparison``, ..."""
    folder = resources.files("fwbench.records") / "schemas"
    schema = json.loads((folder / f"{name}-{SCHEMA}.json").read_text(encoding="utf-8"))
    Draft202012Validator.check_schema(schema)
    return Draft202012Validator(schema)


def problems(name: str, values: Any) -> list[str]:
    """Every violation of a schema, with its place."""
    return [f"{error.json_path}: {error.message}" for error in validator(name).iter_errors(values)]


def load_valid(name: str, path: Path) -> Any:
    """The values of a JSON file, which must follow a schema."""
    values = json.loads(path.read_text(encoding="utf-8"))
    found = problems(name, values)
    assert not found, "\n".join(found)
    return values
