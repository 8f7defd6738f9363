"""Training loops, their steps, input pipelines and checkpoints."""

import pytest

from fwbench.cases.case import Case
from fwbench.workloads import CHECKPOINTS, LOOPS, PHOTOS, STEPS


@pytest.mark.fwbench(*STEPS, families="representatives")
def test_step(case: Case) -> None:
    case.measure()


@pytest.mark.fwbench(*(loop.loader for loop in LOOPS), *PHOTOS, families="representatives")
def test_loader(case: Case) -> None:
    case.measure()


@pytest.mark.fwbench(*LOOPS, families="representatives")
def test_loop(case: Case) -> None:
    case.measure()


@pytest.mark.fwbench(*CHECKPOINTS, families="representatives")
def test_checkpoint(case: Case) -> None:
    case.measure()
