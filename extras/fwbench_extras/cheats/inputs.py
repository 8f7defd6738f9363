"""Liars about inputs: changed, shared, or never placed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, ClassVar

import numpy as np

from fwbench import workloads
from fwbench.errors import FwbenchError, NotACopy
from fwbench.frameworks.contract import BoundCall
from fwbench_extras.cheats.honest import Compute
from fwbench_extras.cheats.liar import Liar

_FORWARD: tuple[str, ...] = ("forward",)


class _InPlace(Liar):
    """Writes its result over its first input."""

    directions: ClassVar = _FORWARD
    why = "the inputs after the call are not those before it"

    def bound(self, compute: Compute, inputs: Sequence[Any]) -> BoundCall:
        """The input, overwritten."""
        first = inputs[0]

        def run() -> Any:
            first[...] = compute(*inputs)
            return first

        return run


class MutatedInput(_InPlace):
    """Writes its result over its input: the next call works on something else."""

    mistake = "an operation in place, which saves the allocation"
    workload = workloads.tanh


class InPlaceRelu(_InPlace):
    """Writes its result over its input, which changes no later result: relu of relu is relu."""

    mistake = "`relu(x, inplace=True)`, timed against one that allocates"
    workload = workloads.relu


class ViewForCopy(Liar):
    """Creates arrays that share memory with their source."""

    mistake = "`from_numpy` and `asarray`, which wrap, timed against calls that copy"
    caught_by: ClassVar[type[FwbenchError] | None] = NotACopy
    why = "the created array changes with its source"
    workload = workloads.from_numpy
    size = 1_000
    directions: ClassVar = _FORWARD

    def creator(self, device: str, dtype: str) -> Callable[[Any], Any]:
        """Wraps what is an array already."""
        return partial(np.asarray, dtype=dtype)


class UninitialisedInputs(Liar):
    """Places arrays of the right shape full of zeros, and not what they were to hold."""

    mistake = "`empty` for inputs: zeros and denormal numbers take other times than data"
    why = "what was placed is read back and compared before anything runs"
    directions: ClassVar = _FORWARD

    def creator(self, device: str, dtype: str) -> Callable[[Any], Any]:
        """Looks at the shape alone."""
        return lambda source: np.zeros(np.shape(source), dtype=dtype)


LIARS = (MutatedInput, InPlaceRelu, ViewForCopy, UninitialisedInputs)
