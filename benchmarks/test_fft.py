"""Fourier transforms."""

import pytest

from fwbench.cases.case import Case
from fwbench.workloads import FFT


@pytest.mark.fwbench(*FFT, families="representatives")
def test_fft(case: Case) -> None:
    case.measure()
