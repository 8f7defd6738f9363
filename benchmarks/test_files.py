"""Photos that are loaded from files, and checkpoints of trainings that are saved to them."""

import pytest

from fwbench.cases.case import Case
from fwbench.workloads import CHECKPOINTS, PHOTOS


@pytest.mark.fwbench(*PHOTOS, families="representatives")
def test_photos(case: Case) -> None:
    case.measure()


@pytest.mark.fwbench(*CHECKPOINTS, families="representatives")
def test_checkpoint(case: Case) -> None:
    case.measure()
