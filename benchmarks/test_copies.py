"""Copies between the host and a GPU; pytest benchmarks --fw-family copies --fw-device gpu."""

import pytest

from fwbench.cases.case import Case
from fwbench.workloads import COPIES


@pytest.mark.fwbench(*COPIES, families="representatives")
def test_copies(case: Case) -> None:
    case.measure()
