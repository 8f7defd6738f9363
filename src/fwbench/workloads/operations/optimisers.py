"""One step of an optimiser for a vector of weights, as a training makes it for each of its arrays.

Weights and state are overwritten. The steps are late in a training: so late that Adam's corrections
of its bias are 1, and every step is the same work, however many came before. ``TINY`` keeps
denominators from being zero and is too small to change anything, wherever it stands: frameworks
differ in whether it stands within the root.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fwbench.terms.presets import sizes_of
from fwbench.workloads.operation import Operation, family
from fwbench.workloads.workload import Cost

Arrays = tuple[NDArray[Any], ...]

# Sums of powers of two: MXNet has them in float32 for weights of any dtype.

#: Of every optimiser: large, so that an error of the step is not lost in the weights.
RATE = 0.125
MOMENTUM = 0.875
BETA1, BETA2 = 0.875, 1.0 - 2.0**-10
#: Of the mean of squares.
RHO = 0.875
#: Of the weights, relative to them and times the rate.
DECAY = 2.0**-7
#: The penalty on absolute values.
L1 = 2.0**-4
TINY = 2.0**-100

_SIZES = sizes_of("optimisers")["weights"]


def _weights(states: str, size: int, rng: np.random.Generator) -> Arrays:
    """Weights, their gradients, and a state: ``m``, like gradients; ``v``, like their squares.

    Gradients keep off zero, so that no mean of squares fades away while steps are timed.
    """
    x, gradient = rng.standard_normal(size), rng.standard_normal(size)
    drawn = {"m": 0.3 * rng.standard_normal(size), "v": rng.uniform(0.3, 1.0, size)}
    return x, gradient + np.copysign(0.2, gradient), *(drawn[state] for state in states)


def _optimiser(name: str, states: str, reference: Callable[..., Any], *, flops: int) -> Operation:
    """A step: reads weights, gradients and the state, and writes all but the gradients."""
    arrays = 2 + len(states)
    return Operation(
        name=name,
        inputs=partial(_weights, states),
        reference=reference,
        sizes=_SIZES,
        cost=lambda n: Cost(flops=float(flops * n), elements=float((2 * arrays - 1) * n)),
        differentiable=False,
        updates=(0, *range(2, arrays)),
    )


def _momentum(x: NDArray[Any], g: NDArray[Any], m: NDArray[Any]) -> Arrays:
    m = MOMENTUM * m + g
    return x - RATE * m, m


def _nesterov(x: NDArray[Any], g: NDArray[Any], m: NDArray[Any]) -> Arrays:
    m = MOMENTUM * m + g
    return x - RATE * (g + MOMENTUM * m), m


def _adam(
    x: NDArray[Any], g: NDArray[Any], m: NDArray[Any], v: NDArray[Any], decay: float = 0.0
) -> Arrays:
    m = BETA1 * m + (1 - BETA1) * g
    v = BETA2 * v + (1 - BETA2) * g * g
    return x - RATE * (m / (np.sqrt(v) + TINY) + decay * x), m, v


def _rmsprop(x: NDArray[Any], g: NDArray[Any], v: NDArray[Any]) -> Arrays:
    v = RHO * v + (1 - RHO) * g * g
    return x - RATE * g / (np.sqrt(v) + TINY), v


def _adagrad(x: NDArray[Any], g: NDArray[Any], v: NDArray[Any]) -> Arrays:
    v = v + g * g
    return x - RATE * g / (np.sqrt(v) + TINY), v


def _ftrl(x: NDArray[Any], g: NDArray[Any], z: NDArray[Any], v: NDArray[Any]) -> Arrays:
    """McMahan et al., "Ad click prediction: a view from the trenches" (2013), with beta = 0."""
    later = v + g * g
    z = z + g - (np.sqrt(later) - np.sqrt(v)) / RATE * x
    pulled = np.sign(z) * np.maximum(np.abs(z) - L1, 0.0)
    return -RATE * pulled / np.sqrt(later), z, later


OPTIMISERS = family(
    "optimisers",
    # What most networks are trained with, and the most arithmetic and state of the common ones.
    ("adam",),
    _optimiser("sgd", "", lambda x, g: x - RATE * g, flops=2),
    _optimiser("momentum", "m", _momentum, flops=4),
    _optimiser("nesterov", "m", _nesterov, flops=6),
    _optimiser("adam", "mv", _adam, flops=12),
    _optimiser("adamw", "mv", partial(_adam, decay=DECAY), flops=14),
    _optimiser("rmsprop", "v", _rmsprop, flops=9),
    _optimiser("adagrad", "v", _adagrad, flops=7),
    _optimiser("ftrl", "mv", _ftrl, flops=14),
)
