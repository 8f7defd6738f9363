"""MXNet: indexing."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from fwbench.frameworks.layout import Arrays, Layout, axes
from fwbench.frameworks.table import Call, Laid, Table
from fwbench.manifest import Gap


def _coordinates(arrays: Arrays) -> list[NDArray[Any]]:
    """The row of each index, and the index: ``mx.np.take_along_axis`` is NumPy's, on the host."""
    x, i = arrays
    rows = np.broadcast_to(np.arange(len(i))[:, None], i.shape)
    return [x, np.stack([rows, i])]


_OF_EACH_ROW = Layout(place=_coordinates, restore=lambda arrays: [arrays[0], arrays[1][1]])

#: Coordinates come first, here the only one.
_ROWS = Layout(
    place=lambda arrays: [arrays[0], arrays[1][None]],
    restore=lambda arrays: [arrays[0], arrays[1][0]],
)

#: DLPack, which tells where arrays lie, does not know MXNet's bool.
_MASK = Layout(
    place=lambda arrays: [arrays[0], arrays[1].astype(np.int32)],
    restore=lambda arrays: [arrays[0], arrays[1].astype(np.bool_)],
)


def _scatter_add(F: Any, n: int, d: int) -> Any:
    """The gradient of gather_nd adds up; scatter_nd keeps one of several."""
    return Call("_internal._backward_gather_nd", shape=(n, d))(F)


OPERATIONS: Table = {
    "gather_rows": "take",
    "embedding": lambda F, n, d: lambda w, i: F.Embedding(i, w, input_dim=n, output_dim=d),
    "gather_elements": Laid("gather_nd", _OF_EACH_ROW),
    "pick": "pick",
    "gather_nd": Laid("gather_nd", axes("", "kc->ck")),
    "scatter_add": Laid(_scatter_add, _ROWS),
    "scatter_nd_update": "contrib.index_copy",
    "one_hot": lambda F, d: Call("one_hot", depth=d)(F),
    "boolean_mask": Laid("contrib.boolean_mask", _MASK),
    "sequence_mask": lambda F, d: Call("SequenceMask", use_sequence_length=True, axis=1)(F),
}

GAPS: tuple[Gap, ...] = ()
