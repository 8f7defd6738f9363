"""Inputs of a user's model: arrays of random numbers, whose shapes name the batch."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from fwbench.errors import DeclarationError

#: The name of the axis of a shape that is as long as the batch is large.
BATCH = "batch"

_INTEGERS = ("int32", "int64")


class Input:
    """One array that a model takes: its shape with the batch named, and what numbers it has.

    Floating-point numbers are standard normal ones in the dtype of the case.

    Args:
        shape: the length of each axis, and ``"batch"`` for one of them:
            ``Input("batch", 3, 32, 32)``.
        below: of whole numbers: all are smaller. None for floating-point ones.
        at_least: of whole numbers: none is smaller.
        dtype: of whole numbers: ``int32`` or ``int64``.

    Raises:
        DeclarationError: no array can be made of that.
    """

    def __init__(
        self, *shape: int | str, below: int | None = None, at_least: int = 0, dtype: str = "int64"
    ) -> None:
        lengths = [length for length in shape if length != BATCH]
        whole = all(type(length) is int and length > 0 for length in lengths)
        if not whole or len(shape) - len(lengths) != 1:
            raise DeclarationError(
                f"an input has the shape {shape}; give the length of each axis, and {BATCH!r} for "
                f"the one that the batch has: Input({BATCH!r}, 3, 32, 32)"
            )
        if below is not None and below <= at_least:
            raise DeclarationError(
                f"an input has whole numbers from {at_least} up to {below}, of which there are "
                "none; give a larger `below`"
            )
        if dtype not in _INTEGERS:
            raise DeclarationError(
                f"an input has whole numbers in {dtype!r}; known are {', '.join(_INTEGERS)}. "
                "Floating-point numbers have the dtype of the case (--fw-dtype)"
            )
        self.shape = shape
        self.below = below
        self.at_least = at_least
        self.dtype = dtype

    def __repr__(self) -> str:
        numbers = "" if self.below is None else f", below={self.below}"
        return f"Input({', '.join(map(repr, self.shape))}{numbers})"

    @property
    def is_whole(self) -> bool:
        """True if its numbers are whole."""
        return self.below is not None

    def shape_of(self, batch: int) -> tuple[int, ...]:
        """The shape of an array."""
        return tuple(batch if length == BATCH else int(length) for length in self.shape)

    def draw(self, batch: int, rng: np.random.Generator) -> NDArray[Any]:
        """An array of random numbers."""
        shape = self.shape_of(batch)
        if self.below is None:
            return rng.standard_normal(shape, dtype=np.float32)
        return rng.integers(self.at_least, self.below, shape).astype(self.dtype)
