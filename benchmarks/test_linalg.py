"""Vectors and matrices: dot, gemm, flatten, L2 normalisation."""

import pytest

from fwbench.cases.case import Case
from fwbench.workloads import dot, flatten, gemm, l2_normalize


@pytest.mark.fwbench(dot, gemm, flatten, l2_normalize)
def test_linalg(case: Case) -> None:
    case.measure()
