"""Attention."""

import pytest

from fwbench.cases.case import Case
from fwbench.workloads import ATTENTION


@pytest.mark.fwbench(*ATTENTION)
def test_attention(case: Case) -> None:
    case.measure()
