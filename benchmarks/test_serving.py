"""Work of workers and servers, without a model: add --fw-replicas 2 --fw-toggle servers=1."""

import pytest

from fwbench.cases.case import Case
from fwbench.workloads import SERVED


@pytest.mark.fwbench(*SERVED, families="representatives")
def test_step(case: Case) -> None:
    case.measure()
