"""Convolution."""

import pytest

from fwbench.cases.case import Case
from fwbench.workloads import CONVOLUTION


@pytest.mark.fwbench(*CONVOLUTION, families="representatives")
def test_convolution(case: Case) -> None:
    case.measure()
