"""Attention."""

import pytest

from fwbench.cases.case import Case
from fwbench.workloads import ATTENTION


@pytest.mark.fwbench(*ATTENTION, families="representatives")
def test_attention(case: Case) -> None:
    case.measure()
