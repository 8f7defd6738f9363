"""Convolution."""

import pytest

from fwbench.cases.case import Case
from fwbench.workloads import CONVOLUTION


@pytest.mark.fwbench(*CONVOLUTION)
def test_convolution(case: Case) -> None:
    case.measure()
