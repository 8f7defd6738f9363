"""Liars about the result: other work than was asked for, or none."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np

from fwbench.frameworks.contract import BoundCall
from fwbench_extras.cheats.honest import Compute
from fwbench_extras.cheats.liar import Liar, each

_FIRST = "the first result differs from NumPy's"


class _Wrong(Liar):
    """Computes, and changes every array of the result."""

    why = _FIRST

    def bound(self, compute: Compute, inputs: Sequence[Any]) -> BoundCall:
        """The work with a changed result."""
        return lambda: each(self.changed, compute(*inputs))

    def changed(self, array: Any) -> Any:
        """An array of the result as this liar returns it."""
        raise NotImplementedError


class EveryTenthTerm(Liar):
    """Adds up every tenth term of a product, times ten."""

    mistake = "sampling, pruning or 'loop perforation' that nobody switched off"
    why = _FIRST
    directions: ClassVar = ("forward",)

    def bound(self, compute: Compute, inputs: Sequence[Any]) -> BoundCall:
        """A tenth of the columns of the left factor with their rows of the right one."""
        left, right = inputs
        return lambda: 10 * compute(left[:, ::10], right[::10])


class KernelThatNeverRan(_Wrong):
    """Returns zeros in the right shape."""

    mistake = "a launch that failed, whose error nobody asked for"

    def bound(self, compute: Compute, inputs: Sequence[Any]) -> BoundCall:
        """A call that allocates its result and does not compute it."""
        template = compute(*inputs)
        return lambda: each(np.zeros_like, template)


class NotNumbers(_Wrong):
    """Returns NaN everywhere: comparisons with NaN are never true, in a careless check either."""

    mistake = "inputs that overflow, and a check written as `not error > tolerance`"

    def changed(self, array: Any) -> Any:
        """NaN in the same shape."""
        return np.full_like(array, np.nan)


class FirstRowForAll(_Wrong):
    """Computes the first row, and broadcasts it to the shape of the result."""

    mistake = "a stride of 0, or a batch dimension that was lost and broadcast again"
    directions: ClassVar = ("forward",)

    def bound(self, compute: Compute, inputs: Sequence[Any]) -> BoundCall:
        """One row, as many times as there are rows."""
        shape = np.shape(compute(*inputs))
        return lambda: np.broadcast_to(compute(inputs[0][:1], *inputs[1:]), shape)


class KeptDimension(_Wrong):
    """Returns the right values with one dimension too many."""

    mistake = "`keepdims`, or a scalar that became a vector of one element"

    def changed(self, array: Any) -> Any:
        """With a first dimension of 1."""
        return array[None]


class Transposed(_Wrong):
    """Returns the transpose, which has the right shape where matrices are square."""

    mistake = "row-major data read as column-major"

    def changed(self, array: Any) -> Any:
        """The array with its axes in the other order."""
        return array.T


LIARS = (
    EveryTenthTerm,
    KernelThatNeverRan,
    NotNumbers,
    FirstRowForAll,
    KeptDimension,
    Transposed,
)
