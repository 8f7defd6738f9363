"""Examples that networks in int8 are calibrated with: their activations set the scales."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from fwbench.errors import DeclarationError
from fwbench.frameworks.learner import Predictor
from fwbench.workloads.objective import Classifier


def examples(predictor: Predictor) -> Any:
    """All examples to calibrate a network with, as its predictor places them.

    Args:
        predictor: of the network.

    Raises:
        DeclarationError: there are none.
    """
    training = predictor.job.training
    if not isinstance(training, Classifier):
        raise DeclarationError(
            f"{training.name} was asked for in int8 without examples to calibrate it with; give "
            "the job a fwbench.workloads.objective.Classifier, which has them"
        )
    placed, _ = predictor.place((training.calibration, np.zeros(0, np.int32)))
    return placed


def batches(predictor: Predictor) -> Iterator[Any]:
    """The same in batches, as large as those that the network takes; without a shorter last one.

    Args:
        predictor: of the network.

    Raises:
        DeclarationError: there are no examples.
    """
    every, batch = examples(predictor), predictor.job.batch
    for start in range(0, len(every) - batch + 1, batch):
        yield every[start : start + batch]
