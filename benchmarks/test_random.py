"""Random numbers."""

import pytest

from fwbench.cases.case import Case
from fwbench.workloads import RANDOM


@pytest.mark.fwbench(*RANDOM, families="representatives")
def test_random(case: Case) -> None:
    case.measure()
