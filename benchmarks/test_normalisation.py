"""Normalisation."""

import pytest

from fwbench.cases.case import Case
from fwbench.workloads import NORMALISATION


@pytest.mark.fwbench(*NORMALISATION, families="representatives")
def test_normalisation(case: Case) -> None:
    case.measure()
