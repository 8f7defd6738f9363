"""The honest framework: NumPy with gradients written by hand, which every liar pretends to be."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, ClassVar, cast

import numpy as np
from numpy.typing import NDArray

from fwbench.frameworks.contract import BoundCall
from fwbench.frameworks.learner import Job, Learner
from fwbench.frameworks.numpy.framework import NumPy
from fwbench.frameworks.table import Table
from fwbench.testing.fake import Differentiable
from fwbench.workloads.operation import Implementation
from fwbench_extras.cheats.honest_learner import HonestLearner

#: Computes a result from the inputs: an array; for ``backward`` the result and its gradients.
Compute = Callable[..., Any]


def _sigmoid(x: NDArray[Any]) -> NDArray[Any]:
    return 1.0 / (1.0 + np.exp(-x))


def differentiable(value: Compute, gradient: Compute) -> Implementation:
    """An implementation with a gradient written by hand.

    Args:
        value: computes the result from the inputs.
        gradient: ``gradient(cotangent, *inputs)`` returns the gradient of every input.
    """
    return lambda np: Differentiable(value, gradient)


_OPERATIONS: Table = {
    "sigmoid": differentiable(_sigmoid, lambda g, x: [g * _sigmoid(x) * (1.0 - _sigmoid(x))]),
    "relu": differentiable(lambda x: np.maximum(x, 0), lambda g, x: [g * (x > 0)]),
    "tanh": differentiable(np.tanh, lambda g, x: [g * (1.0 - np.tanh(x) ** 2)]),
    "dot": differentiable(np.dot, lambda g, x, y: [g * y, g * x]),
    "gemm": differentiable(np.matmul, lambda g, x, y: [g @ y.T, x.T @ g]),
}


class Honest(NumPy):
    """NumPy with gradients and a learner: it does all that it is asked for, every time."""

    name = "honest"
    differentiable = True
    operations: ClassVar = _OPERATIONS
    training_executions = ("eager",)
    toggle_gaps: ClassVar = {
        ("eager", "decay", "on"): "the learner of the honest framework keeps its learning rate"
    }

    def forward(
        self, implementation: Implementation, inputs: Sequence[Any], execution: str
    ) -> BoundCall:
        """The function with its inputs."""
        return self.bound(implementation(np), inputs)

    def backward(
        self,
        implementation: Implementation,
        inputs: Sequence[Any],
        variables: Sequence[int],
        cotangent: Any,
        execution: str,
    ) -> BoundCall:
        """The function and its gradient, with their inputs."""
        function = cast("Differentiable", implementation(np))

        def compute(*inputs: Any) -> tuple[Any, list[Any]]:
            *operands, seed = inputs
            gradients = function.gradient(seed, *operands)
            return function(*operands), self.gradients([gradients[i] for i in variables])

        return self.bound(compute, [*inputs, cotangent])

    def gradients(self, gradients: list[Any]) -> list[Any]:
        """The gradients as a call returns them."""
        return gradients

    def bound(self, compute: Compute, inputs: Sequence[Any]) -> BoundCall:
        """The call that is timed.

        Args:
            compute: returns the result; for ``backward`` the result and the gradients.
            inputs: its arguments; for ``backward`` the cotangent is the last one.
        """
        return partial(compute, *inputs)

    def learner(self, job: Job) -> Learner:
        """A model of dense layers in training."""
        return HonestLearner(job)
