"""Random numbers and waves that are the same wherever they are computed.

The frameworks may run in environments with different NumPys, on machines with different vector
units, and must be given the same data. So there is only arithmetic that IEEE 754 rounds in one way
(+, -, *, /, square root, no sums whose order is NumPy's choice), and of a random generator only
uniform numbers, integers and permutations. Python's numbers meet float32 arrays, never NumPy's
scalars: whether those widen the array depends on NumPy's version.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float32]


def labels(examples: int, classes: int, rng: np.random.Generator) -> NDArray[np.int32]:
    """Labels (examples,), as many of each class as of any other, in any order.

    Args:
        examples: how many labels.
        classes: how many different ones, from 0.
        rng: draws the order.
    """
    return rng.permutation(np.arange(examples, dtype=np.int32) % classes)


def uniform(rng: np.random.Generator, low: float, high: float, *shape: int) -> Floats:
    """Uniform float32 numbers of the given shape.

    Args:
        rng: draws them.
        low: the smallest one.
        high: the bound that none reaches.
        *shape: of the array.
    """
    return rng.random(shape, dtype=np.float32) * (high - low) + low


def wave(x: Floats) -> Floats:
    """Much like a sine, but from 0 to 1, of period 1 and put together from parabolas."""
    x = (x - np.floor(x)) * 2 - 1
    return (1 - np.abs(x)) * x * 2 + 0.5
