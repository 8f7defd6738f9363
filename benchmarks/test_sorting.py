"""Sorting and searching."""

import pytest

from fwbench.cases.case import Case
from fwbench.workloads import SORTING


@pytest.mark.fwbench(*SORTING, families="representatives")
def test_sorting(case: Case) -> None:
    case.measure()
