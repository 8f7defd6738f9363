"""The networks that people know, trained and in use: ``pytest benchmarks/test_models.py``."""

import pytest

from fwbench.cases.case import Case
from fwbench.workloads import CLASSIFICATIONS, FORWARD_BACKWARDS, INFERENCES, MODELS, SAMPLED


@pytest.mark.fwbench(*MODELS, *SAMPLED, families="representatives")
def test_step(case: Case) -> None:
    case.measure()


@pytest.mark.fwbench(*INFERENCES, families="representatives")
def test_inference(case: Case) -> None:
    case.measure()


@pytest.mark.fwbench(*FORWARD_BACKWARDS, families="representatives")
def test_forward_backward(case: Case) -> None:
    case.measure()


@pytest.mark.fwbench(*CLASSIFICATIONS, families="representatives")
def test_classification(case: Case) -> None:
    case.measure()
