"""Cache of operands and references, computed once for all cases that need them.

A framework's executions and directions have the same operands, one case after the other. To draw
them and to compute their references takes longer than to compare with them.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fwbench.presets import Size
from fwbench.workloads.operation import Operation

#: Everything that an operation on two vectors of a million numbers needs takes 80 MiB.
_LIMIT_BYTES = 256 * 2**20

#: Computes arrays that are not known yet.
Compute = Callable[[], Iterable[NDArray[Any]]]


class Kept:
    """The arrays that were asked for last, as long as they take no more memory than they may.

    Args:
        limit_bytes: what all of them may take together.

    Attributes:
        size_bytes: what they take.
    """

    def __init__(self, limit_bytes: int) -> None:
        self._limit_bytes = limit_bytes
        self._known: OrderedDict[Hashable, Sequence[NDArray[Any]]] = OrderedDict()
        self.size_bytes = 0

    def arrays(self, key: Hashable, compute: Compute) -> Sequence[NDArray[Any]]:
        """The arrays of a key; those that are kept cannot be written to.

        Args:
            key: whatever they are computed from.
            compute: computes them where they are not known.
        """
        known = self._known.get(key)
        if known is not None:
            self._known.move_to_end(key)
            return known
        computed = tuple(compute())
        if _size_bytes(computed) > self._limit_bytes:
            return computed
        return self._add(key, tuple(map(_own, computed)))

    def _add(self, key: Hashable, arrays: Sequence[NDArray[Any]]) -> Sequence[NDArray[Any]]:
        self._known[key] = arrays
        self.size_bytes += _size_bytes(arrays)
        while self.size_bytes > self._limit_bytes:
            _, oldest = self._known.popitem(last=False)
            self.size_bytes -= _size_bytes(oldest)
        return arrays


def _own(array: NDArray[Any]) -> NDArray[Any]:
    """A copy: what was computed may share memory with inputs that change."""
    copy = np.array(array)
    copy.setflags(write=False)
    return copy


def _size_bytes(arrays: Sequence[NDArray[Any]]) -> int:
    return sum(array.nbytes for array in arrays)


#: What the cases of this process have in common.
KEPT = Kept(_LIMIT_BYTES)


def operands(operation: Operation, size: Size, *, changed: bool) -> Sequence[NDArray[Any]]:
    """The operands of an operation, as it draws them.

    Args:
        operation: draws them.
        size: of them.
        changed: whether others of the same shapes are asked for.
    """
    first = KEPT.arrays((operation, size, "first"), lambda: operation.operands(size))
    if not changed:
        return first
    return KEPT.arrays(
        (operation, size, "changed"), lambda: operation.changed_operands(size, first)
    )
