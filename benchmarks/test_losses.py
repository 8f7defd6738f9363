"""Softmax and losses."""

import pytest

from fwbench.cases.case import Case
from fwbench.workloads import LOSSES


@pytest.mark.fwbench(*LOSSES, families="representatives")
def test_losses(case: Case) -> None:
    case.measure()
