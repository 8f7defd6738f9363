"""Convolution in one to three dimensions: dense, strided, dilated, grouped, transposed.

Arrays are channels last: inputs N H W C, kernels R S C K. As in every framework the kernel is not
flipped. A kernel's numbers are scaled so that results are of order one.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fwbench.terms.presets import Shape, sizes_of
from fwbench.workloads.operation import Operation, family
from fwbench.workloads.workload import Cost

Array = NDArray[Any]


@dataclass(frozen=True)
class Window:
    """Movement of a convolution's kernel over its input: the parameter of implementations."""

    #: Its extent along each axis of space.
    kernel: tuple[int, ...]
    #: The channels of the result.
    filters: int
    #: Between two positions.
    stride: int = 1
    #: Zeros at each end of each axis; a transposed convolution leaves out as many.
    padding: int = 0
    #: The distance between neighbours within the kernel.
    dilation: int = 1
    #: Of channels that are convolved apart.
    groups: int = 1

    @property
    def rank(self) -> int:
        """The number of axes of space."""
        return len(self.kernel)

    def extent(self, before: int, axis: int) -> int:
        """The positions of the kernel along an axis."""
        reach = self.dilation * (self.kernel[axis] - 1) + 1
        return (before + 2 * self.padding - reach) // self.stride + 1

    def transposed_extent(self, before: int, axis: int) -> int:
        """The elements along an axis of the result of a transposed convolution."""
        return (before - 1) * self.stride + self.kernel[axis] - 2 * self.padding

    def tap(self, place: tuple[int, ...], extents: tuple[int, ...]) -> tuple[slice, ...]:
        """Elements of an input, padding included, that one element of the kernel meets."""
        starts = (self.dilation * i for i in place)
        return (
            slice(None),
            *(
                slice(start, start + self.stride * (extent - 1) + 1, self.stride)
                for start, extent in zip(starts, extents, strict=True)
            ),
        )


def _convolved(x: Array, w: Array, window: Window) -> Array:
    """Image by image, for the sake of memory: a product of matrices for each group."""
    pads = [(0, 0), *[(window.padding, window.padding)] * window.rank, (0, 0)]
    extents = tuple(window.extent(x.shape[1 + axis], axis) for axis in range(window.rank))
    groups, padded = window.groups, np.pad(x, pads)
    kernels = w.reshape(-1, groups, window.filters // groups).swapaxes(0, 1)
    products = (
        np.matmul(_met(padded[[i]], window, extents), kernels).swapaxes(0, 1) for i in range(len(x))
    )
    return np.concatenate(list(products)).reshape(len(x), *extents, window.filters)


def _met(image: Array, window: Window, extents: tuple[int, ...]) -> Array:
    """For each group and position, what all elements of the kernel meet."""
    places = np.ndindex(window.kernel)
    every = [image[window.tap(place, extents)] for place in places]
    by_group = [met.reshape(-1, window.groups, met.shape[-1] // window.groups) for met in every]
    stacked = np.stack(by_group, axis=2).swapaxes(0, 1)
    return stacked.reshape(window.groups, math.prod(extents), -1)


def _transposed(x: Array, w: Array, window: Window) -> Array:
    """Every element of the input adds the kernel, times itself, to the result."""
    extents, cut = x.shape[1:-1], window.padding
    whole = [window.transposed_extent(n, axis) + 2 * cut for axis, n in enumerate(extents)]
    y = np.zeros((len(x), *whole, window.filters))
    for place in np.ndindex(window.kernel):
        y[window.tap(place, extents)] += x @ w[place].T
    kept = [slice(cut, extent - cut) for extent in whole]
    return y[(slice(None), *kept)]


@dataclass(frozen=True)
class _Geometry:
    """The shapes of a convolution, by its size."""

    window: Callable[[Shape], Window]
    transposed: bool = False

    def input(self, size: Shape) -> tuple[int, ...]:
        """N H W C."""
        return size["n"], *(size[axis] for axis in "dhwl" if axis in size), size["c"]

    def kernel(self, size: Shape) -> tuple[int, ...]:
        """R S C K with the channels of one group; R S K C of a transposed convolution."""
        window, channels = self.window(size), size["c"]
        if self.transposed:
            return *window.kernel, window.filters, channels
        return *window.kernel, channels // window.groups, window.filters

    def result(self, size: Shape) -> tuple[int, ...]:
        """N H W K."""
        window = self.window(size)
        extent = window.transposed_extent if self.transposed else window.extent
        n, *space, _ = self.input(size)
        return n, *(extent(before, axis) for axis, before in enumerate(space)), window.filters

    def operands(self, size: Shape, rng: np.random.Generator) -> tuple[Array, Array]:
        """Normal; the kernel is divided by the root of the terms of an element."""
        w = rng.standard_normal(self.kernel(size)) / math.sqrt(self.terms(size))
        return rng.standard_normal(self.input(size)), w

    def terms(self, size: Shape) -> int:
        return math.prod(self.kernel(size)) // self.window(size).filters

    def cost(self, passes: int, size: Shape) -> Cost:
        """A product and a sum for each element of the kernel at each of its positions.

        Positions in the padding count, as in published rates. The gradients by the input and by
        the kernel are a convolution each: backward is three passes.
        """
        kernel, x, y = map(math.prod, (self.kernel(size), self.input(size), self.result(size)))
        positions = math.prod((self.input if self.transposed else self.result)(size)[:-1])
        return Cost(2.0 * passes * positions * kernel, float(passes * (x + kernel + y)))


def _convolution(
    name: str, sizes: str, window: Callable[[Shape], Window], *, transposed: bool = False
) -> Operation:
    shapes = _Geometry(window, transposed)
    return Operation(
        name=name,
        inputs=shapes.operands,
        reference=_transposed if transposed else _convolved,
        sizes=_SIZES[sizes],
        cost=partial(shapes.cost, 1),
        backward_cost=partial(shapes.cost, 3),
        terms=shapes.terms,
        parameters=lambda size: (window(size),),
    )


def _fixed(*kernel: int, **how: int) -> Callable[[Shape], Window]:
    """A kernel of one extent with ``k`` filters."""
    return lambda size: Window(kernel, size["k"], **how)


_SIZES = sizes_of("convolution")

CONVOLUTION = family(
    "convolution",
    # The kernel that networks spend their time in.
    ("conv2d_3x3",),
    _convolution(
        "conv2d",
        "published",
        lambda size: Window((size["r"], size["s"]), size["k"], size["u"], size["p"]),
    ),
    _convolution("conv2d_3x3", "images", _fixed(3, 3, padding=1)),
    _convolution("conv2d_1x1", "bottlenecks", _fixed(1, 1)),
    _convolution("conv2d_7x7_s2", "colours", _fixed(7, 7, stride=2, padding=3)),
    _convolution("conv2d_5x20_s2", "speech", _fixed(5, 20, stride=2)),
    _convolution("conv2d_dilated", "images", _fixed(3, 3, padding=2, dilation=2)),
    _convolution("conv2d_grouped", "images", _fixed(3, 3, padding=1, groups=4)),
    replace(
        _convolution(
            "depthwise_conv2d",
            "channels",
            lambda size: Window((3, 3), size["c"], padding=1, groups=size["c"]),
        ),
        # The gradient by a kernel adds up 25,000 products, and a result nine. Seen: 1.4 (PyTorch,
        # of 13 draws).
        tolerance=3.0,
    ),
    _convolution(
        "conv2d_transposed", "enlarged", _fixed(4, 4, stride=2, padding=1), transposed=True
    ),
    _convolution("conv1d", "sequences", _fixed(3, padding=1)),
    _convolution("conv3d", "volumes", _fixed(3, 3, 3, padding=1)),
)
