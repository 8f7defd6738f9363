"""Images, channels last: enlarged, and taken apart into patches."""

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fwbench.terms.presets import Shape, sizes_of
from fwbench.workloads.operation import Operation, family
from fwbench.workloads.operations.vectors import normal, numbers
from fwbench.workloads.workload import Cost

Array = NDArray[Any]

#: The side of a patch.
_SIDE = 3


def _doubled(size: Shape) -> tuple[int, int]:
    """The height and the width of what is twice as large."""
    return 2 * size["h"], 2 * size["w"]


def _between(x: Array, axis: int) -> Array:
    """Twice as long: three quarters of a pixel, and one of its neighbour on that side.

    Pixels have their centres at halves, so that new ones are a quarter away from old ones; at the
    edges the neighbour is the pixel itself.
    """
    last = x.shape[axis] - 1
    places = np.arange(last + 1)
    before = np.take(x, np.maximum(places - 1, 0), axis)
    after = np.take(x, np.minimum(places + 1, last), axis)
    pairs = np.stack([0.75 * x + 0.25 * before, 0.75 * x + 0.25 * after], axis + 1)
    shape = list(x.shape)
    shape[axis] *= 2
    return pairs.reshape(shape)


def _patches(x: Array, height: int, width: int) -> Array:
    """By pixel, the rows of its patch one after the other, the channel last."""
    parts = [x[:, i : i + height, j : j + width] for i in range(_SIDE) for j in range(_SIDE)]
    return np.concatenate(parts, axis=3)


def _within(size: Shape) -> tuple[int, int]:
    """Number of patches that fit into the height and the width."""
    return size["h"] - _SIDE + 1, size["w"] - _SIDE + 1


def _image(
    name: str,
    reference: Callable[..., Array],
    extent: Callable[[Shape], tuple[int, int]],
    *,
    channels: int = 1,
    flops: int = 0,
    sums: int,
) -> Operation:
    """An operation that makes images of images.

    Args:
        extent: the height and the width of the result: the parameters of the implementations.
        channels: of the result for each of the operand.
        flops: for each element of the result.
        sums: FLOPs of the gradient, for each element of the result.
    """

    def elements(size: Shape) -> tuple[int, int]:
        height, width = extent(size)
        n, h, w, c = size.values()
        return n * h * w * c, n * height * width * c * channels

    def cost(size: Shape) -> Cost:
        operand, result = elements(size)
        return Cost(flops=float(flops * result), elements=float(operand + result))

    def backward_cost(size: Shape) -> Cost:
        """Forward; then read the gradient of the result, and write the operand's."""
        operand, result = elements(size)
        return Cost(flops=float((flops + sums) * result), elements=2.0 * (operand + result))

    return Operation(
        name=name,
        inputs=normal(numbers),
        reference=reference,
        sizes=sizes_of("image")["images"],
        cost=cost,
        backward_cost=backward_cost,
        parameters=extent,
    )


# What models that generate or segment images use most.
IMAGE = family(
    "image",
    ("resize_bilinear",),
    # Twice as large. Of four pixels with weights: four products and three sums; their gradients
    # four products and four sums.
    _image("resize_bilinear", lambda x, *_: _between(_between(x, 1), 2), _doubled, flops=7, sums=8),
    # Twice as large, every pixel four times.
    _image("resize_nearest", lambda x, *_: x.repeat(2, axis=1).repeat(2, axis=2), _doubled, sums=1),
    # The patch around every pixel that has a whole one.
    _image("im2col", _patches, _within, channels=_SIDE**2, sums=1),
)
