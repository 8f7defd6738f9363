"""Training loops, their steps, and their input pipelines."""

import pytest

from fwbench.cases.case import Case
from fwbench.workloads import TRAININGS


@pytest.mark.fwbench(*(training.step for training in TRAININGS), families="representatives")
def test_step(case: Case) -> None:
    case.measure()


@pytest.mark.fwbench(*(training.loader for training in TRAININGS), families="representatives")
def test_loader(case: Case) -> None:
    case.measure()


@pytest.mark.fwbench(*TRAININGS, families="representatives")
def test_loop(case: Case) -> None:
    case.measure()
