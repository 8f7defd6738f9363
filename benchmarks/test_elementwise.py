"""Arithmetic, functions, comparisons and casts, element by element."""

import pytest

from fwbench.cases.case import Case
from fwbench.workloads import ELEMENTWISE


@pytest.mark.fwbench(*ELEMENTWISE, families="representatives")
def test_elementwise(case: Case) -> None:
    case.measure()
