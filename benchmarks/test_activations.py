"""Activations, element by element, of a vector."""

import pytest

from fwbench.cases.case import Case
from fwbench.workloads import ACTIVATIONS


@pytest.mark.fwbench(*ACTIVATIONS, families="representatives")
def test_activation(case: Case) -> None:
    case.measure()
