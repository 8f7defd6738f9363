"""What the harness itself costs in each framework: reported, never subtracted."""

import pytest

from fwbench.cases.case import Case
from fwbench.workloads import noop


@pytest.mark.fwbench(noop)
def test_overhead(case: Case) -> None:
    case.measure()
