"""Representatives are right before and after a timing in every framework.

Verification alone does not read single elements, write inputs in place, or call bound work again.
"""

import pytest

from support.projects import Project
from support.real_training import if_installed

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


_FRAMEWORKS = ("mxnet", "numpy", "tensorflow", "torch")


@pytest.mark.serial
@pytest.mark.parametrize("framework", [*map(if_installed, _FRAMEWORKS)])
def test_representatives_are_right_before_and_after_they_are_timed(
    project: Project, framework: str
) -> None:
    """At their smallest sizes, in every execution and direction."""
    project.write("test_it.py", _SOURCE)
    records = project.facts(
        *("--fw-direction=forward,backward", "--fw-device=cpu", "--fw-warmup=0.01"),
        *("--benchmark-max-time=0.005", "--benchmark-min-rounds=2"),
        fw=framework,
    )
    assert any("adam" in name for name in records) or framework == "numpy"
    sorting = [facts for name, facts in records.items() if "sort-" in name]
    assert {facts["operand_sets"] for facts in sorting} == {201}, "in every execution and direction"
