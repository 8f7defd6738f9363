"""Pooling, channels last and without padding, whose zeros some frameworks count in averages."""

import math
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray

from fwbench.terms.presets import Shape, sizes_of
from fwbench.workloads.operation import Operation, family
from fwbench.workloads.workload import Cost, Counts

Array = NDArray[Any]

_SIZES = sizes_of("pooling")

#: Side of the blocks that hold each of their levels once: no window is larger.
_BLOCK = 4


def _shape(size: Shape) -> tuple[int, ...]:
    return size["n"], *(size[axis] for axis in "hwl" if axis in size), size["c"]


def _around_one(size: Shape, rng: np.random.Generator) -> tuple[Array]:
    """Normal around 1: averages around 0 would have no digits in float16."""
    return (1.0 + rng.standard_normal(_shape(size)),)


def _distinct(size: Shape, rng: np.random.Generator) -> tuple[Array]:
    """Numbers of which no two in a window are equal, in an order that no processor can learn.

    Where two are equal, either of them may get the gradient. Blocks hold each of their levels once,
    at random, and none of the blocks beside them; elements are off their levels by less than a
    tenth of the way to the next. In bfloat16 they differ, too.
    """
    n, *space, c = shape = _shape(size)
    rank, blocks = len(space), [-(-extent // _BLOCK) for extent in space]
    within = rng.permuted(np.tile(np.arange(_BLOCK**rank), (n, *blocks, c, 1)), axis=-1)
    beside = sum(2**axis * (i % 2) for axis, i in enumerate(np.indices(blocks)))
    levels = (2**rank * within + beside[..., np.newaxis, np.newaxis]).reshape(
        n, *blocks, c, *[_BLOCK] * rank
    )
    inner = [axis for i in range(rank) for axis in (1 + i, 2 + rank + i)]
    whole = levels.transpose(0, *inner, 1 + rank).reshape(n, *[_BLOCK * b for b in blocks], c)
    levels = whole[(slice(None), *map(slice, space))]
    count = (2 * _BLOCK) ** rank
    return ((levels - (count - 1) / 2 + rng.uniform(-0.1, 0.1, shape)) * 4.0 / count,)


def _pooled(reduce: Callable[..., Array], kernel: tuple[int, ...], x: Array) -> Array:
    """All windows at a distance of two."""
    rank = len(kernel)
    windows: Any = sliding_window_view(x, kernel, axis=range(1, 1 + rank))  # type: ignore[call-overload]
    apart = windows[(slice(None), *[slice(None, None, 2)] * rank)]
    return reduce(apart, axis=tuple(range(-rank, 0)))


def _elements(kernel: tuple[int, ...], size: Shape) -> tuple[int, int]:
    """Elements of the input, and of the result."""
    n, *space, c = _shape(size)
    extents = [(before - k) // 2 + 1 for before, k in zip(space, kernel, strict=True)]
    return n * math.prod(space) * c, n * math.prod(extents) * c


def _forward(kernel: tuple[int, ...], size: Shape) -> Cost:
    """A comparison or a sum for each element of each window."""
    x, y = _elements(kernel, size)
    return Cost(float(y * math.prod(kernel)), float(x + y))


def _backward(spread: bool, kernel: tuple[int, ...], size: Shape) -> Cost:
    """The gradient of a maximum reads x and g and writes dx, that of an average needs no x.

    A maximum hands every element of g to one element, an average a share to the whole window.
    """
    x, y = _elements(kernel, size)
    forward = _forward(kernel, size)
    flops = y * (math.prod(kernel) if spread else 1)
    return Cost(forward.flops + flops, forward.elements + y + x * (1 if spread else 2))


def _pooling(name: str, sizes: str, *kernel: int, average: bool = False) -> Operation:
    """The largest element or the average of windows at a distance of two."""
    return Operation(
        name=name,
        inputs=_around_one if average else _distinct,
        reference=partial(_pooled, np.mean if average else np.max, kernel),
        sizes=_SIZES[sizes],
        cost=partial(_forward, kernel),
        backward_cost=partial(_backward, average, kernel),
        terms=lambda _: math.prod(kernel) if average else 1,
    )


# Then g is read and spread over dx.
_AVERAGED = Counts("nhwc", "nc", "nhwc", sums="nhwc", flops="nhwc")

POOLING = family(
    "pooling",
    # Most networks have it, and its gradient looks for what the forward pass chose.
    ("max_pool2d",),
    _pooling("max_pool2d", "images", 2, 2),
    # Windows that overlap, as AlexNet's.
    _pooling("max_pool2d_3x3_s2", "images", 3, 3),
    _pooling("avg_pool2d", "images", 2, 2, average=True),
    # One average for each channel of an image; the result keeps the axes of space.
    Operation(
        name="global_avg_pool",
        inputs=_around_one,
        reference=partial(np.mean, axis=(1, 2), keepdims=True),
        sizes=_SIZES["images"],
        cost=_AVERAGED.forward,
        backward_cost=_AVERAGED.backward,
        terms=lambda size: size["h"] * size["w"],
    ),
    _pooling("max_pool1d", "sequences", 2),
)
