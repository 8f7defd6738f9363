"""Vectors and matrices."""

import pytest

from fwbench.cases.case import Case
from fwbench.workloads import LINALG


@pytest.mark.fwbench(*LINALG, families="representatives")
def test_linalg(case: Case) -> None:
    case.measure()
