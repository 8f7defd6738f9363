"""Recurrent layers."""

import pytest

from fwbench.cases.case import Case
from fwbench.workloads import RECURRENT


@pytest.mark.fwbench(*RECURRENT, families="representatives")
def test_recurrent(case: Case) -> None:
    case.measure()
