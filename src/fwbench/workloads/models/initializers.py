"""Initial values of parameters: arrays of a shape, drawn by NumPy."""

from __future__ import annotations

import math
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

Shape = tuple[int, ...]


def glorot(shape: Shape, rng: np.random.Generator) -> NDArray[Any]:
    """Uniform within sqrt(6 / (fan in + fan out)) (Glorot and Bengio 2010)."""
    field = math.prod(shape[:-2])
    limit = math.sqrt(6.0 / (field * (shape[-2] + shape[-1])))
    return rng.uniform(-limit, limit, shape)


def he(shape: Shape, rng: np.random.Generator) -> NDArray[Any]:
    """Uniform within sqrt(6 / fan in), so that ReLU keeps the variance (He et al. 2015)."""
    limit = math.sqrt(6.0 / math.prod(shape[:-1]))
    return rng.uniform(-limit, limit, shape)


def uniform(shape: Shape, rng: np.random.Generator) -> NDArray[Any]:
    """Uniform between -0.05 and 0.05."""
    return rng.uniform(-0.05, 0.05, shape)


def _constant(number: float, shape: Shape, _: np.random.Generator) -> NDArray[Any]:
    return np.full(shape, number)


zeros = partial(_constant, 0.0)
ones = partial(_constant, 1.0)


def remembering(shape: Shape, _: np.random.Generator) -> NDArray[Any]:
    """The bias of an LSTM: 1 for the forget gate, the second of four."""
    bias = np.zeros((4, shape[0] // 4))
    bias[1] = 1.0
    return bias.ravel()
