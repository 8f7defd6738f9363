"""Pooling."""

import pytest

from fwbench.cases.case import Case
from fwbench.workloads import POOLING


@pytest.mark.fwbench(*POOLING, families="representatives")
def test_pooling(case: Case) -> None:
    case.measure()
