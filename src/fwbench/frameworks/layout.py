"""Layouts of arrays that differ between a framework and the definition of an operation.

The definition has one layout: channels last, the batch first. A framework whose function wants
another one says so next to the function in its table. The arrays are converted when they are placed
and when they are read back, never while anything is timed.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fwbench.errors import DeclarationError

Arrays = Sequence[NDArray[Any]]

#: ``conversion(arrays)``: all operands, or all results, in another layout.
Conversion = Callable[[Arrays], list[NDArray[Any]]]


@dataclass(frozen=True)
class Layout:
    """The layout of operands and results in a framework.

    Attributes:
        place: makes the framework's operands of the definition's.
        restore: makes the definition's operands, or the gradients by them, of the framework's.
        place_results: makes the framework's results of the definition's.
        restore_results: makes the definition's results of the framework's.
    """

    place: Conversion = list
    restore: Conversion = list
    place_results: Conversion = list
    restore_results: Conversion = list


def axes(*operands: str, results: Sequence[str] = ()) -> Layout:
    """A layout with axes in another order.

    Args:
        operands: for each operand, a letter for every axis in the order of the definition and of
            the framework: ``"nhwc->nchw"``. An empty text, or none for the last operands, leaves
            the array as it is.

    Raises:
        DeclarationError: a text is not an order of axes.
    """
    there, back = zip(*map(_orders, operands), strict=True) if operands else ((), ())
    of_results = [_orders(text) for text in results]
    return Layout(
        place=_permuting(there),
        restore=_permuting(back),
        place_results=_permuting([order for order, _ in of_results]),
        restore_results=_permuting([order for _, order in of_results]),
    )


def channels_last(layout: Layout) -> Layout:
    """The same layout with the channels last in memory, of images and of kernels.

    The order of axes stays. Arrays of other than four or five axes stay as they are.
    """
    return Layout(
        lambda arrays: [*map(_last_in_memory, layout.place(arrays))],
        layout.restore,
        lambda arrays: [*map(_last_in_memory, layout.place_results(arrays))],
        layout.restore_results,
    )


def _last_in_memory(array: NDArray[Any]) -> NDArray[Any]:
    if array.ndim not in (4, 5):
        return array
    return np.moveaxis(np.ascontiguousarray(np.moveaxis(array, 1, -1)), -1, 1)


def reset_first(array: NDArray[Any]) -> NDArray[Any]:
    """The columns of a GRU's update and reset gates exchanged; the new state's stay the last.

    Keras has the update gate first, as definitions have, and cuDNN, which others follow, the reset
    gate. It is its own inverse.
    """
    update, reset, new = np.split(array, 3, axis=-1)
    return np.concatenate([reset, update, new], axis=-1)


def transposed_factors(factors: Arrays) -> list[NDArray[Any]]:
    """The two factors of a matrix, of those of the transposed one: its own inverse."""
    first, second = factors
    return [second.T, first.T]


def _orders(text: str) -> tuple[list[int] | None, list[int] | None]:
    """The order of axes of a conversion, and of its inverse; None for arrays that stay."""
    if not text:
        return None, None
    before, arrow, after = text.partition("->")
    if not arrow or sorted(before) != sorted(after) or len({*before}) < len(before):
        raise DeclarationError(
            f"the layout {text!r} is not an order of axes; write the same letters twice, as in "
            "'nhwc->nchw'"
        )
    return [before.index(axis) for axis in after], [after.index(axis) for axis in before]


def _permuting(orders: Sequence[list[int] | None]) -> Conversion:
    def permuted(arrays: Arrays) -> list[NDArray[Any]]:
        kept = [None] * (len(arrays) - len(orders))
        return [
            array if order is None else np.ascontiguousarray(array.transpose(order))
            for array, order in zip(arrays, [*orders, *kept], strict=True)
        ]

    return permuted


def _grouped(count: int) -> tuple[Conversion, Conversion]:
    """Channels first, with the ``count`` parts of a channel behind it; and the inverse."""

    def place(arrays: Arrays) -> list[NDArray[Any]]:
        (x,) = arrays
        n, h, w, c = x.shape
        parts = x.reshape(n, h, w, count, c // count).transpose(0, 4, 3, 1, 2)
        return [np.ascontiguousarray(parts.reshape(n, c, h, w))]

    def restore(arrays: Arrays) -> list[NDArray[Any]]:
        (x,) = arrays
        n, c, h, w = x.shape
        parts = x.reshape(n, c // count, count, h, w).transpose(0, 3, 4, 2, 1)
        return [np.ascontiguousarray(parts.reshape(n, h, w, c))]

    return place, restore


#: Images and sequences with the channels before the space.
CHANNELS_FIRST = axes("nhwc->nchw", results=["nhwc->nchw"])
SEQUENCE_CHANNELS_FIRST = axes("nlc->ncl", results=["nlc->ncl"])

#: Convolutions with the channels first in images, and output channels first in kernels.
CONV1D = axes("nlc->ncl", "lio->oil", results=["nlc->ncl"])
CONV2D = axes("nhwc->nchw", "hwio->oihw", results=["nhwc->nchw"])
CONV2D_TRANSPOSED = axes("nhwc->nchw", "hwoi->iohw", results=["nhwc->nchw"])
CONV3D = axes("ndhwc->ncdhw", "dhwio->oidhw", results=["ndhwc->ncdhw"])

#: Channels first, and in the results of ``im2col`` the nine elements of a patch behind a channel.
PATCHES = Layout(CHANNELS_FIRST.place, CHANNELS_FIRST.restore, *_grouped(9))

#: Channels first, and in the operand the place in a block of 2 x 2 behind a channel.
PIXEL_SHUFFLE = Layout(*_grouped(4), CHANNELS_FIRST.place_results, CHANNELS_FIRST.restore_results)
