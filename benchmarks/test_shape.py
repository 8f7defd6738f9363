"""Shapes and orders of elements."""

import pytest

from fwbench.cases.case import Case
from fwbench.workloads import SHAPE


@pytest.mark.fwbench(*SHAPE, families="representatives")
def test_shape(case: Case) -> None:
    case.measure()
