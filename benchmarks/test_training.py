"""Training loops, their steps and input pipelines."""

import pytest

from fwbench.cases.case import Case
from fwbench.workloads import LOOPS, STEPS


@pytest.mark.fwbench(*STEPS, families="representatives")
def test_step(case: Case) -> None:
    case.measure()


@pytest.mark.fwbench(*(loop.loader for loop in LOOPS), families="representatives")
def test_loader(case: Case) -> None:
    case.measure()


@pytest.mark.fwbench(*LOOPS, families="representatives")
def test_loop(case: Case) -> None:
    case.measure()
