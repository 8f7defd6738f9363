"""Exchanges between replicas, without any model: add --fw-replicas 2."""

import pytest

from fwbench.cases.case import Case
from fwbench.workloads import COLLECTIVES


@pytest.mark.fwbench(*COLLECTIVES, families="representatives")
def test_operation(case: Case) -> None:
    case.measure()
