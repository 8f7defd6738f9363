"""Activations, element by element, of a vector."""

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fwbench.workloads.operation import family
from fwbench.workloads.operations.elementwise import erf
from fwbench.workloads.operations.vectors import between, elementwise

#: Most of those that the report of 2020 measured; newer activations have no paper sizes.
_PAPER = tuple(range(500, 57_501, 3_000))

#: G. Klambauer et al., Self-normalizing neural networks (2017), section 2.
_SELU_SCALE, _SELU_ALPHA = 1.0507009873554805, 1.6732632423543772


def _gelu_tanh(x: NDArray[Any]) -> NDArray[Any]:
    """D. Hendrycks and K. Gimpel, Gaussian error linear units (2016), section 2."""
    return 0.5 * x * (1.0 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)))


def _selu(x: NDArray[Any]) -> NDArray[Any]:
    return _SELU_SCALE * np.where(x > 0, x, _SELU_ALPHA * np.expm1(x))


ACTIVATIONS = family(
    "activations",
    # What memory bounds, and what is made of several functions. One alone, such as sigmoid, is
    # bounded by what `exp` is, which stands for elementwise functions.
    ("relu", "gelu"),
    elementwise(
        "sigmoid", lambda x: 1.0 / (1.0 + np.exp(-x)), flops=4, gradient_flops=3, paper=_PAPER
    ),
    elementwise("relu", lambda x: np.maximum(x, 0.0), gradient_flops=1, paper=_PAPER),
    elementwise("tanh", np.tanh, gradient_flops=3, paper=_PAPER),
    elementwise(
        "softplus",
        lambda x: np.logaddexp(0.0, x),
        flops=3,
        gradient_flops=5,
        paper=tuple(range(500, 19_501, 1_000)),
    ),
    elementwise(
        "softsign", lambda x: x / (1.0 + np.abs(x)), flops=3, gradient_flops=5, paper=_PAPER
    ),
    # x times the normal distribution function, not its approximation by tanh.
    elementwise(
        "gelu", lambda x: 0.5 * x * (1.0 + erf(x / math.sqrt(2))), flops=5, gradient_flops=6
    ),
    elementwise("gelu_tanh", _gelu_tanh, flops=9, gradient_flops=11),
    elementwise("elu", lambda x: np.where(x > 0, x, np.expm1(x)), flops=2, gradient_flops=3),
    elementwise("selu", _selu, flops=4, gradient_flops=3),
    # A quarter of x below 0: the slope is one that all dtypes have, as frameworks keep it in
    # float32. Their defaults are 0.01, 0.2 and 0.25.
    elementwise("leaky_relu", lambda x: np.where(x > 0, x, 0.25 * x), flops=2, gradient_flops=2),
    elementwise("silu", lambda x: x / (1.0 + np.exp(-x)), flops=4, gradient_flops=5),
    # Of slope 1/6, 0 up to -3 and 1 from 3 on.
    elementwise(
        "hard_sigmoid",
        lambda x: np.clip(x / 6.0 + 0.5, 0.0, 1.0),
        between(-6.0, -3.0, 3.0, 6.0),
        flops=4,
        gradient_flops=3,
        branching=True,
    ),
    elementwise("log_sigmoid", lambda x: -np.logaddexp(0.0, -x), flops=5, gradient_flops=3),
)
