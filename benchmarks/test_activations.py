"""Element by element: sigmoid, relu, tanh, softplus, softsign of a vector."""

import pytest

from fwbench.cases.case import Case
from fwbench.workloads import relu, sigmoid, softplus, softsign, tanh


@pytest.mark.fwbench(sigmoid, relu, tanh, softplus, softsign)
def test_activation(case: Case) -> None:
    case.measure()
