"""From host data to an array: a NumPy array, a Python list."""

import pytest

from fwbench.cases.case import Case
from fwbench.workloads import CREATIONS


@pytest.mark.fwbench(*CREATIONS, families="representatives")
def test_creation(case: Case) -> None:
    case.measure()
