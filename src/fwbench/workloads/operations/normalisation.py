"""Normalisation, channels last: by batch, layer, group, image, neighbouring channels.

Epsilons are the same everywhere: 1e-3 by batch, as TensorFlow clamps a smaller one, else 1e-5.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fwbench.terms.presets import Shape, sizes_of
from fwbench.workloads.operation import Operation, family
from fwbench.workloads.operations.vectors import numbers
from fwbench.workloads.workload import Counts

Array = NDArray[Any]

BATCH_EPSILON = 1e-3
EPSILON = 1e-5
#: Of channels that are normalised together.
GROUPS = 8
#: AlexNet's local response normalisation: channels in a window, these constants.
NEIGHBOURS, BIAS, ALPHA, BETA = 5, 2.0, 1e-4, 0.75

_SIZES = sizes_of("normalisation")


def _operands(size: Shape, rng: np.random.Generator, *, vectors: int, scale: float = 1.0) -> Any:
    """An input around 0.5, and for each channel: a factor, an offset, a mean, a variance."""
    c = size["c"]
    x = scale * (0.5 + rng.standard_normal(numbers(size)))
    gamma, beta = rng.uniform(0.5, 1.5, c), rng.standard_normal(c)
    return (x, gamma, beta, rng.standard_normal(c), rng.uniform(0.5, 1.5, c))[: 1 + vectors]


def _counts(flops: int, vectors: int, size: Shape) -> Counts:
    """``flops`` for an element of the input: reads it and the vectors, writes another.

    The gradient reads x, g and the vectors, and writes one by x and by some of the vectors: two
    sums of products, and the difference of x, g and their means, each at the forward's price.
    """
    x, also = "".join(size), vectors + min(vectors, 2)
    return Counts(f"{x}+{vectors}c", x, f"2{x}+{also}c", f"{2 * flops}{x}", f"{flops}{x}")


def _normalisation(
    name: str,
    reference: Callable[..., Array],
    sizes: str,
    *,
    flops: int,
    vectors: int,
    scale: float = 1.0,
    terms: Callable[[Shape], int] = lambda size: size["c"],
) -> Operation:
    """Numbers less their mean, divided by their deviation; statistics have no gradient."""
    differentiated = min(vectors, 2)
    return Operation(
        name=name,
        inputs=partial(_operands, vectors=vectors, scale=scale),
        reference=reference,
        sizes=_SIZES[sizes],
        cost=lambda size: _counts(flops, vectors, size).forward(size),
        backward_cost=lambda size: _counts(flops, vectors, size).backward(size),
        variables=tuple(range(1 + differentiated)),
        terms=terms,
    )


def _standard(x: Array, axes: tuple[int, ...], epsilon: float) -> Array:
    """With mean 0 and variance 1 along axes."""
    return (x - x.mean(axes, keepdims=True)) / np.sqrt(x.var(axes, keepdims=True) + epsilon)


def _scaled(*axes: int, epsilon: float = EPSILON) -> Callable[..., Array]:
    return lambda x, gamma, beta: _standard(x, axes, epsilon) * gamma + beta


def _batch_norm_inference(
    x: Array, gamma: Array, beta: Array, mean: Array, variance: Array
) -> Array:
    return (x - mean) / np.sqrt(variance + BATCH_EPSILON) * gamma + beta


def _rms_norm(x: Array, gamma: Array) -> Array:
    return x / np.sqrt((x * x).mean(-1, keepdims=True) + EPSILON) * gamma


def _group_norm(x: Array, gamma: Array, beta: Array) -> Array:
    grouped = x.reshape(*x.shape[:-1], GROUPS, -1)
    return _standard(grouped, (1, 2, 4), EPSILON).reshape(x.shape) * gamma + beta


def _local_response(x: Array) -> Array:
    """Divided by a power of the sum of the squares of the nearest channels."""
    reach = NEIGHBOURS // 2
    squares = np.pad(x * x, [(0, 0), (0, 0), (0, 0), (reach, reach)])
    channels = x.shape[-1]
    total: Any = sum(squares[..., i : i + channels] for i in range(NEIGHBOURS))
    return np.asarray(x / (BIAS + ALPHA * total) ** BETA)


def _image(size: Shape) -> int:
    """Elements of a channel of an image."""
    return size["h"] * size["w"]


def _batch(size: Shape) -> int:
    """Elements of a channel of all images."""
    return size["n"] * _image(size)


_layer_norm = _scaled(-1)
_instance_norm = _scaled(1, 2)
_batch_norm = _scaled(0, 1, 2, epsilon=BATCH_EPSILON)

NORMALISATION = family(
    "normalisation",
    # The two that networks have: over the batch, and over the features of an element.
    ("batch_norm_training", "layer_norm"),
    _normalisation("batch_norm_training", _batch_norm, "images", flops=8, vectors=2, terms=_batch),
    _normalisation(
        "batch_norm_inference", _batch_norm_inference, "images", flops=4, vectors=4, terms=_batch
    ),
    _normalisation("layer_norm", _layer_norm, "features", flops=8, vectors=2),
    _normalisation("rms_norm", _rms_norm, "features", flops=5, vectors=1),
    _normalisation(
        "group_norm",
        _group_norm,
        "images",
        flops=8,
        vectors=2,
        terms=lambda size: size["c"] // GROUPS * _image(size),
    ),
    _normalisation("instance_norm", _instance_norm, "images", flops=8, vectors=2, terms=_image),
    # Of numbers large enough for the squares to count.
    _normalisation(
        "lrn",
        _local_response,
        "images",
        flops=NEIGHBOURS + 10,
        vectors=0,
        scale=20.0,
        terms=lambda _: NEIGHBOURS,
    ),
)
