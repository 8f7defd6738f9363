"""Sizes that are shapes: asked for, refused, measured and recorded."""

from typing import Any

import pytest

from support.projects import Project, refusals

_SHAPES = """
import numpy as np
import pytest
from declared import double
from fwbench import Cost, Form, Operation

area = Operation(
    name="area",
    inputs=lambda size, rng: (rng.standard_normal((size["m"], size["n"])),),
    reference=lambda x: 2.0 * x,
    sizes=Form("{m}x{n}").sizes(quick=("2x3", "4x5"), opperf=("7x1",)),
    cost=lambda size: Cost(flops=size["m"] * size["n"], elements=2 * size["m"] * size["n"]),
)
area.implement("numpy")(lambda np: lambda x: x + x)

@pytest.mark.fwbench(double, area)
def test_all(case):
    case.measure()

@pytest.mark.fwbench(area, sizes=("3x3", "2x9"))
def test_marked(case):
    case.measure()
"""


@pytest.fixture
def shapes(project: Project) -> Project:
    """A project with an operation of whole numbers and one of shapes."""
    project.write("test_it.py", _SHAPES)
    return project


def _outcomes(project: Project, *arguments: str) -> dict[str, Any]:
    """The outcomes of a session that is not refused, by workload and size."""
    result = project.run(
        "--junitxml=junit.xml", "--benchmark-disable", "--fw-direction=forward", *arguments
    )
    assert result.ret == pytest.ExitCode.OK, str(result.stdout)
    return {
        f"{name.partition('[')[2].split('-')[0]} {name.rpartition('-')[2].rstrip(']')}": case.kind
        for name, case in project.outcomes().items()
    }


def test_records_have_the_shape_and_a_number(shapes: Project) -> None:
    result, records = shapes.measure("--fw-size=4,3x5", "-k", "test_all")
    assert result.ret == pytest.ExitCode.OK
    result.assert_outcomes(passed=2, skipped=2, deselected=2)
    facts = {name: entry["extra_info"]["fwbench"] for name, entry in records.items()}
    area = facts["area-numpy-cpu-eager-forward-float32-3x5"]
    double = facts["double-numpy-cpu-eager-forward-float32-4"]
    assert (area["size"], area["shape"], area["bytes"]) == (30, "3x5", 4 * 30)
    assert (double["size"], double["shape"]) == (4, None)
    assert records["area-numpy-cpu-eager-forward-float32-3x5"]["params"]["size"] == "3x5"
    shapes.run("--fw-size=4,3x5", "-k", "test_all", "--benchmark-json=two.json", "--fw-launches=2")
    (kept,) = (entry for name, entry in shapes.records("two.json").items() if "area" in name)
    assert kept["extra_info"]["fwbench"]["shape"] == "3x5"


def test_a_size_that_some_operation_has_is_a_gap_of_the_others(shapes: Project) -> None:
    assert _outcomes(shapes, "--fw-size=8", "--fw-dtype=float32,float64") == {
        "double 8": "passed",
        "area 8": "skipped",
    }
    texts = [outcome.text for outcome in shapes.outcomes().values() if outcome.kind == "skipped"]
    assert len(texts) == 2, "once a test, though in two dtypes"
    why = "sizes of area are shapes written {m}x{n}, such as 2x3, 4x5"
    assert all(text.endswith(why) for text in texts)


def test_a_preset_that_some_operation_has_is_a_gap_of_the_others(shapes: Project) -> None:
    assert _outcomes(shapes, "--fw-size=opperf") == {
        "double opperf": "skipped",
        "area 7x1": "passed",
    }
    (text, *_) = (
        outcome.text for outcome in shapes.outcomes().values() if outcome.kind == "skipped"
    )
    assert text.endswith("double is not in the preset opperf; it has quick, full")


@refusals("shapes")
def test_a_size_that_nothing_has_is_refused(shapes: Project, given: str, said: list[str]) -> None:
    shapes.assert_refused(said, *given.split())


def test_markers_and_settings_take_shapes(shapes: Project) -> None:
    ini = shapes.path / "pytest.ini"
    ini.write_text("[pytest]\nfw_size = 5x5, 6\n", encoding="utf-8")
    assert _outcomes(shapes) == {
        "double 6": "passed",
        "area 5x5": "passed",
        "double 5x5": "skipped",
        "area 6": "skipped",
        "area 3x3": "passed",
        "area 2x9": "passed",
    }


def test_what_does_not_fit_into_memory_is_refused_before_it_is_placed(shapes: Project) -> None:
    result = shapes.run("--fw-size=3000000x3000000,2x2", "-k", "test_all and area")
    result.assert_outcomes(passed=1, failed=1, deselected=4)
    assert any("134110.45 GiB of memory" in line for line in result.outlines), str(result.stdout)
