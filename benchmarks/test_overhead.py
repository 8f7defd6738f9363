"""The cost of the harness itself in each framework: reported, never subtracted."""

import pytest

from fwbench.cases.case import Case
from fwbench.workloads import OVERHEAD


@pytest.mark.fwbench(*OVERHEAD, families="representatives")
def test_overhead(case: Case) -> None:
    case.measure()
