"""Training loops, their steps, and their input pipelines."""

import pytest

from fwbench.cases.case import Case
from fwbench.workloads import cifar_cnn, lenet, mlp, sentiment_lstm


@pytest.mark.fwbench(mlp.step, lenet.step, cifar_cnn.step, sentiment_lstm.step)
def test_step(case: Case) -> None:
    case.measure()


@pytest.mark.fwbench(mlp.loader, lenet.loader, cifar_cnn.loader, sentiment_lstm.loader)
def test_loader(case: Case) -> None:
    case.measure()


@pytest.mark.fwbench(mlp, lenet, cifar_cnn, sentiment_lstm)
def test_loop(case: Case) -> None:
    case.measure()
