"""The schemas that the package publishes say what fwbench writes, and refuse what it refuses."""

import json
import math
from pathlib import Path
from typing import Any

import pytest

from fwbench import cli
from fwbench.records.facts import SCHEMA, CaseFacts
from fwbench.records.session_facts import SessionFacts
from fwbench.records.table import Table
from fwbench.report import writers
from fwbench_extras import schemas
from support.launched_runs import entry, output, plain
from support.projects import CASES, Project
from support.reports import everything
from support.schemas import load_valid, problems, validator
from support.tables import tables

_TESTS = Path(__file__).parents[1]

_NAMES = ("run", "comparison", "row", "explanations", "cases")


def _stored() -> list[tuple[str, Path]]:
    """Every run and comparison that is stored for tests, with its schema."""
    found = []
    for path in sorted(_TESTS.rglob("*.json")):
        values = json.loads(path.read_text(encoding="utf-8"))
        keys = values.keys() if isinstance(values, dict) else ()
        found += [("run", path)] if "benchmarks" in keys else []
        found += [("comparison", path)] if "judgements" in keys else []
    return found


def test_schemas_are_those_of_the_tables() -> None:
    """If this fails: make pages."""
    written = {path.name: path.read_text(encoding="utf-8") for path in schemas.FOLDER.glob("*")}
    assert written == {name: schemas.text(each) for name, each in schemas.schemas().items()}


@pytest.mark.parametrize("name", _NAMES)
def test_a_schema_has_the_version_of_the_record(name: str) -> None:
    schema = validator(name).schema
    assert schema["$schema"] == "https://json-schema.org/draft/2020-12/schema"
    assert schema["$id"].endswith(f"/src/fwbench/records/schemas/{name}-{SCHEMA}.json")


def test_every_fact_has_its_meaning_and_unit() -> None:
    (facts,) = (
        each["extra_info"]["properties"]["fwbench"]["properties"]
        for part in validator("run").schema["allOf"]
        for items in [part.get("properties", {}).get("benchmarks", {}).get("items", {})]
        for each in [half["properties"] for half in items.get("allOf", ()) if "properties" in half]
    )
    assert facts.keys() == CaseFacts.declared().keys()
    assert facts["completion_s"]["x-unit"] == "s"
    assert facts["completion_s"]["exclusiveMinimum"] == 0
    assert facts["condition"]["enum"] == ["clean", "drifting", "contended", None]


@pytest.mark.parametrize(("name", "path"), _stored(), ids=lambda value: Path(value).stem)
def test_stored_runs_are_valid(name: str, path: Path) -> None:
    load_valid(name, path)


def test_runs_of_every_kind_are_valid() -> None:
    """Cases, tests that are none, runs without fwbench, and keys of a newer version."""
    newer = entry(mass_kg=2.5, toggles={"workers": "2"}, workers="2")
    plain_test = {**plain(), "extra_info": {"fwbench": {"plain_test": True, "load": 0.5}}}
    for made in (output([newer, plain(), plain_test], weather="fine"), {"benchmarks": [plain()]}):
        assert problems("run", made) == []
    assert problems("run", output([{**plain(), "extra_info": {"fwbench": {"load": 0.5}}}]))


#: JSON has none of these numbers, so no schema can refuse them.
_NUMBERS = ("infinite", "not a number", "launch")

_DAMAGED = tables(str(_TESTS / "records" / "test_facts.py"))["test_what_is_damaged_is_named"][
    "rows"
]


@pytest.mark.parametrize("name", [name for name in _DAMAGED if name not in _NUMBERS])
def test_what_is_refused_is_not_valid(name: str) -> None:
    changes, _ = _DAMAGED[name]
    assert problems("run", output([entry(**changes)]))


@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("comparison", {"base": "main", "contender": "branch"}),
        ("row", {"row": "numpy>=1.26", "versions": "1.26"}),
        ("explanations", {}),
        ("cases", {"cases": [{"case": "gemm"}]}),
    ],
)
def test_what_is_incomplete_is_not_valid(name: str, values: Any) -> None:
    assert problems(name, values)


def _nulls(table: type[Table], facts: dict[str, Any]) -> list[str]:
    """The keys that are null without a reason that is declared."""
    rows = table.declared().items()
    return [name for name, row in rows if name in facts and facts[name] is None and not row.null]


def test_a_fresh_session_and_its_report_are_valid(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    project.write("test_it.py", CASES + "\ndef test_plain(benchmark):\n    benchmark(sum, [1])\n")
    project.measure("--fw-launches=2", "--fw-precision=0.5")
    run = load_valid("run", project.path / "measured.json")
    assert len(run["benchmarks"]) == 5
    nulls = {*_nulls(SessionFacts, run["fwbench"])}
    for each in run["benchmarks"]:
        nulls |= {*_nulls(CaseFacts, each["extra_info"]["fwbench"])}
    assert nulls == set(), "facts.toml does not say when they are null"
    monkeypatch.chdir(project.path)
    assert cli.main(["report", "measured.json", "--json", "cases.json"]) == 0
    lines = load_valid("cases", project.path / "cases.json")["cases"]
    assert [line["case"] for line in lines] == [
        each["param"] or each["name"] for each in run["benchmarks"]
    ]
    assert all(math.isfinite(line["median_s"]) for line in lines)
    assert {line["cpu"] for line in lines} == {run["fwbench"]["machine"]["cpu"]}


def test_reports_of_every_kind_are_valid() -> None:
    """Trainings, launches, interrupted sessions, and tests that are no cases."""
    lines = json.loads(writers.as_json(everything()))
    assert problems("cases", lines) == []
    assert len(lines["cases"]) == 9
