"""Shapes and orders of elements: copies, all of them; some read no more than a part of the operand.

Where NumPy or PyTorch would return a view, their implementations copy it, as the others do.
"""

import math
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fwbench.terms.presets import Shape, sizes_of
from fwbench.workloads.operation import Operation, family
from fwbench.workloads.operations.vectors import normal, numbers, square
from fwbench.workloads.workload import Cost

Array = NDArray[Any]
Arrays = tuple[Array, ...]

_SIZES = sizes_of("shape")

#: One row more above and below, two columns more on the left and on the right.
_pad = partial(np.pad, pad_width=((0, 0), (1, 1), (2, 2), (0, 0)))
_matrix = normal(square)


def _four_times_as_deep(size: Shape) -> tuple[int, ...]:
    *image, channels = size.values()
    return *image, 4 * channels


def _middle(size: int) -> tuple[int, int]:
    """Beginning and end of the middle half of the rows."""
    return size // 4, size // 4 + (size + 1) // 2


def _depth_to_space(x: Array) -> Array:
    """Four channels of a pixel become two by two pixels; their place comes before the channel."""
    n, h, w, c = x.shape
    blocks = x.reshape(n, h, w, 2, 2, c // 4).transpose(0, 1, 3, 2, 4, 5)
    return blocks.reshape(n, 2 * h, 2 * w, c // 4)


def _forward(elements: tuple[int, int], *, part: bool) -> Cost:
    """Read the operands, or the part of them that there is of the results; write these."""
    operands, results = elements
    return Cost(flops=0.0, elements=float((results if part else operands) + results))


def _backward(elements: tuple[int, int], *, part: bool, several: bool) -> Cost:
    """Forward; then read the gradients of the results and write those of the operands.

    The gradient of an element that is there several times is a sum.
    """
    operands, results = elements
    return Cost(
        flops=float(results - operands) if several else 0.0,
        elements=_forward(elements, part=part).elements + results + operands,
    )


def _move(
    name: str,
    reference: Callable[..., Any],
    elements: Callable[[Any], tuple[int, int]],
    inputs: Callable[[Any, np.random.Generator], Arrays] = _matrix,
    sizes: str = "matrices",
    *,
    part: bool = False,
    several: bool = False,
    parameters: Callable[[Any], tuple[Any, ...]] = lambda _: (),
) -> Operation:
    """An operation that moves elements and computes nothing.

    Args:
        elements: ``elements(size)``, the elements of the operands and of the results.
        part: whether no more of the operand is read than there are elements of the result.
        several: whether elements of the operand are several times in the result.
    """
    return Operation(
        name=name,
        inputs=inputs,
        reference=reference,
        sizes=_SIZES[sizes],
        cost=lambda size: _forward(elements(size), part=part),
        backward_cost=lambda size: _backward(elements(size), part=part, several=several),
        parameters=parameters,
    )


def _same(size: int) -> tuple[int, int]:
    return size**2, size**2


def _same_images(size: Shape, times: int = 1) -> tuple[int, int]:
    pixels = times * math.prod(size.values())
    return pixels, pixels


def _around(size: Shape) -> tuple[int, int]:
    n, h, w, c = size.values()
    return n * h * w * c, n * (h + 2) * (w + 4) * c


_joined = partial(
    _move, elements=lambda n: (2 * n**2, 2 * n**2), inputs=normal(square, square), sizes="several"
)
_padded = partial(_move, elements=_around, inputs=normal(numbers), sizes="images")
_repeated = partial(_move, sizes="several", several=True)

# Strides that defeat a cache are what transposing adds to copying.
SHAPE = family(
    "shape",
    ("transpose",),
    _move("transpose", np.transpose, _same),
    # Channels last to channels first.
    _move(
        *("permute_nhwc_nchw", lambda x: x.transpose(0, 3, 1, 2), _same_images),
        *(normal(numbers), "images"),
    ),
    # Two matrices, side by side.
    _joined("concat", lambda x, y: np.concatenate([x, y], axis=1)),
    # The rows of two matrices, in turn.
    _joined("stack", lambda x, y: np.stack([x, y], axis=1)),
    # Four matrices that were side by side.
    _move(
        "split",
        lambda x: tuple(np.split(x, 4, axis=1)),
        lambda n: (4 * n**2, 4 * n**2),
        normal(lambda n: (n, 4 * n)),
        "several",
    ),
    _padded("pad_constant", _pad),
    _padded("pad_reflect", partial(_pad, mode="reflect"), several=True),
    # Twice from top to bottom, three times from left to right.
    _repeated("tile", partial(np.tile, reps=(2, 3)), lambda n: (n**2, 6 * n**2)),
    # Every element three times, one after the other.
    _repeated("repeat", partial(np.repeat, repeats=3, axis=1), lambda n: (n**2, 3 * n**2)),
    # The middle half of rows and columns.
    _move(
        "slice",
        lambda x, begin, end: x[begin:end, begin:end],
        lambda n: (n**2, ((n + 1) // 2) ** 2),
        part=True,
        parameters=_middle,
    ),
    # Every second row, every third column.
    _move(
        "strided_slice",
        lambda x: x[::2, ::3],
        lambda n: (n**2, ((n + 1) // 2) * ((n + 2) // 3)),
        part=True,
    ),
    # The columns from right to left.
    _move("flip", partial(np.flip, axis=1), _same),
    # Every column three places to the right, the last ones to the front.
    _move("roll", partial(np.roll, shift=3, axis=1), _same),
    # A row, ``size`` times. Its gradient sums columns.
    _move(
        "broadcast_to",
        lambda x, n: np.broadcast_to(x, (n, n)),
        lambda n: (n, n**2),
        normal(lambda n: (1, n)),
        several=True,
        parameters=lambda n: (n,),
    ),
    # Blocks of two by two pixels of channels; ``c`` is what is left of four times as many.
    _move(
        *("depth_to_space", _depth_to_space, partial(_same_images, times=4)),
        *(normal(_four_times_as_deep), "deep_images"),
    ),
    # The lower triangle, with zeros above it.
    _move("tril", np.tril, _same),
    # The diagonal of a matrix.
    _move("diag_part", np.diagonal, lambda n: (n**2, n), part=True),
)
