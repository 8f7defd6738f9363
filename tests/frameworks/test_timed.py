"""Representatives are right before and after a timing in every framework.

Verification alone does not read single elements, write inputs in place, or call bound work again.
"""

from __future__ import annotations

import importlib.util

import pytest

from support.projects import Project

_SOURCE = """
import pytest
from fwbench.workloads import OPERATIONS

def timed(operation):
    @pytest.mark.fwbench(operation, sizes=str(operation.smallest))
    def test(case):
        case.measure()
    return test

for operation in OPERATIONS:
    if operation.representative:
        globals()[f"test_{operation.name}"] = timed(operation)
"""


@pytest.mark.serial
@pytest.mark.parametrize("framework", ["mxnet", "numpy", "tensorflow", "torch"])
def test_representatives_are_right_before_and_after_they_are_timed(
    project: Project, framework: str
) -> None:
    """At their smallest sizes, in every execution and direction."""
    if importlib.util.find_spec(framework) is None:
        pytest.skip(f"{framework} is not installed")
    project.write("test_it.py", _SOURCE)
    result, records = project.measure(
        *("--fw-direction=forward,backward", "--fw-device=cpu", "--fw-warmup=0.01"),
        *("--benchmark-max-time=0.005", "--benchmark-min-rounds=2"),
        fw=framework,
    )
    assert result.ret == pytest.ExitCode.OK, str(result.stdout)
    assert any("adam" in name for name in records) or framework == "numpy"
    sorting = [records[name]["extra_info"]["fwbench"] for name in records if "sort-" in name]
    assert {facts["operand_sets"] for facts in sorting} == {201}, "in every execution and direction"
