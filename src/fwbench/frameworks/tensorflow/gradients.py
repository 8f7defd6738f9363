"""The gradients of an update, read from what it left in a Keras optimiser.

A step that returned them, or kept them, would not be the step that is timed. An optimiser that has
not seen a gradient before has the gradient itself in its slots after one update.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fwbench.frameworks.tensorflow.training import TensorFlowLearner
from fwbench.workloads.objective import SGD, Adam, RMSprop

Arrays = list[NDArray[Any]]


def of_first_update(learner: TensorFlowLearner) -> Arrays:
    """The gradients of the first update since the learner was reset, in the order of ``trained``.

    Args:
        learner: has taken one step.
    """
    constants = learner.job.training.optimizer
    read = _READERS[type(constants)]
    return read(learner, constants)


def _adam(learner: TensorFlowLearner, constants: Adam) -> Arrays:
    """The first moment is (1 - beta 1) times the gradient."""
    return [moment / (1.0 - constants.beta_1) for moment in _slots(learner, "_momentums")]


def _rmsprop(learner: TensorFlowLearner, constants: RMSprop) -> Arrays:
    """The mean square is (1 - rho) times that of the gradient; its sign is that of the update."""
    squares = _slots(learner, "_velocities")
    return [
        np.sign(update) * np.sqrt(square / (1.0 - constants.rho))
        for update, square in zip(_updates(learner), squares, strict=True)
    ]


def _sgd(learner: TensorFlowLearner, constants: SGD) -> Arrays:
    """The update is the learning rate times the gradient, with momentum and without."""
    return [update / constants.learning_rate for update in _updates(learner)]


_READERS: dict[type[Any], Callable[[TensorFlowLearner, Any], Arrays]] = {
    Adam: _adam,
    RMSprop: _rmsprop,
    SGD: _sgd,
}


def _slots(learner: TensorFlowLearner, name: str) -> Arrays:
    """State that the optimiser's rule keeps of each parameter, without a scaled loss."""
    kept: Sequence[Any] = getattr(learner.rule, name)
    by_variable = dict(zip(map(id, learner.model.trainable_variables), kept, strict=True))
    return [by_variable[id(variable)].numpy() for variable in learner.variables]


def _updates(learner: TensorFlowLearner) -> Arrays:
    """By how much each parameter has become smaller."""
    initial = learner.trained(learner.job.training.initial())
    pairs = zip(initial, learner.variables, strict=True)
    return [before - variable.numpy() for before, variable in pairs]
