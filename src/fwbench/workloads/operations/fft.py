"""Discrete Fourier transforms, not normalised, of complex and of real numbers.

Results are compared as complex numbers, and gradients with the slopes of their real and imaginary
parts: frameworks take conjugates at different places (:class:`fwbench.Framework`).
"""

import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fwbench.terms.presets import Shape, sizes_of
from fwbench.workloads.operation import Operation, family
from fwbench.workloads.operations.vectors import normal, numbers
from fwbench.workloads.workload import Cost

Arrays = tuple[NDArray[Any], ...]

_SIZES = sizes_of("fft")


def _complex(size: Shape, rng: np.random.Generator) -> Arrays:
    real, imaginary = normal(numbers, numbers)(size, rng)
    return (real + 1j * imaginary,)


def _points(size: Shape) -> int:
    """In one transform: of all axes but the first."""
    return math.prod([*size.values()][1:])


def _complex_cost(size: Shape) -> Cost:
    """5 p log2 p for p points, as FFTW counts them; a complex number is two elements."""
    numbers = size["n"] * _points(size)
    return Cost(flops=5.0 * numbers * math.log2(_points(size)), elements=4.0 * numbers)


def _real_cost(size: Shape) -> Cost:
    """Half as many FLOPs; the other half of the result is its conjugate, and left out."""
    n, m = size["n"], size["m"]
    return Cost(flops=2.5 * n * m * math.log2(m), elements=n * (m + 2.0 * (m // 2 + 1)))


def _twice(cost: Callable[[Shape], Cost], size: Shape) -> Cost:
    """The gradient is one more transform, the other way round."""
    forward = cost(size)
    return Cost(flops=2.0 * forward.flops, elements=2.0 * forward.elements)


def _transform(
    name: str,
    reference: Callable[[NDArray[Any]], NDArray[Any]],
    sizes: str,
    *,
    inputs: Callable[[Shape, np.random.Generator], Arrays] = _complex,
    cost: Callable[[Shape], Cost] = _complex_cost,
    dtypes: Sequence[str] = ("complex64", "complex128"),
) -> Operation:
    """A transform; no framework has complex numbers of float16 or bfloat16 for it."""
    return Operation(
        name=name,
        inputs=inputs,
        reference=reference,
        sizes=_SIZES[sizes],
        cost=cost,
        backward_cost=partial(_twice, cost),
        dtypes=dtypes,
        terms=lambda size: math.ceil(math.log2(_points(size))),
    )


FFT = family(
    "fft",
    # The others are made of it.
    ("fft",),
    _transform("fft", np.fft.fft, "lines"),
    _transform(
        *("rfft", np.fft.rfft, "lines"),
        inputs=normal(numbers),
        cost=_real_cost,
        dtypes=("float32", "float64"),
    ),
    _transform("fft2", partial(np.fft.fft2, axes=(1, 2)), "images"),
)
