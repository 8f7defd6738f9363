"""Training steps of the networks that people know: ``pytest benchmarks/test_models.py``."""

import pytest

from fwbench.cases.case import Case
from fwbench.workloads import MODELS


@pytest.mark.fwbench(*MODELS, families="representatives")
def test_model(case: Case) -> None:
    case.measure()
