"""Optimisers."""

import pytest

from fwbench.cases.case import Case
from fwbench.workloads import OPTIMISERS


@pytest.mark.fwbench(*OPTIMISERS, families="representatives")
def test_optimisers(case: Case) -> None:
    case.measure()
