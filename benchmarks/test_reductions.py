"""Reductions."""

import pytest

from fwbench.cases.case import Case
from fwbench.workloads import REDUCTIONS


@pytest.mark.fwbench(*REDUCTIONS, families="representatives")
def test_reductions(case: Case) -> None:
    case.measure()
