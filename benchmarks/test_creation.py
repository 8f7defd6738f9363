"""From host data to an array: a NumPy array, a Python list."""

import pytest

from fwbench.cases.case import Case
from fwbench.workloads import from_list, from_numpy


@pytest.mark.fwbench(from_numpy, from_list)
def test_creation(case: Case) -> None:
    case.measure()
