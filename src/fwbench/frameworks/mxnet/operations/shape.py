"""MXNet: shapes and orders of elements."""

from __future__ import annotations

from typing import Any

from fwbench.frameworks.layout import axes
from fwbench.frameworks.table import Call, Laid, Table
from fwbench.manifest import Gap

_CHANNELS_FIRST = axes("nhwc->nchw", results=["nhwc->nchw"])

#: ``pad`` pads the last two axes, and wants to be told so of the others.
_PADDING = (0, 0, 0, 0, 1, 1, 2, 2)


def _roll(F: Any) -> Any:
    """``mx.nd`` has no roll, and ``mx.np``'s cannot be hybridized: two slices, joined again."""

    def roll(x: Any) -> Any:
        last = F.slice_axis(x, axis=1, begin=-3, end=None)
        return F.concat(last, F.slice_axis(x, axis=1, begin=0, end=-3), dim=1)

    return roll


OPERATIONS: Table = {
    "transpose": "transpose",
    "permute_nhwc_nchw": Call("transpose", axes=(0, 3, 1, 2)),
    "concat": Call("concat", dim=1),
    "stack": Call("stack", axis=1),
    "split": Call("split", num_outputs=4, axis=1),
    "pad_constant": Laid(Call("pad", mode="constant", pad_width=_PADDING), _CHANNELS_FIRST),
    "pad_reflect": Laid(Call("pad", mode="reflect", pad_width=_PADDING), _CHANNELS_FIRST),
    "tile": Call("tile", reps=(2, 3)),
    "repeat": Call("repeat", repeats=3, axis=1),
    "slice": lambda F, begin, end: Call("slice", begin=(begin, begin), end=(end, end))(F),
    "strided_slice": Call("slice", begin=(None, None), end=(None, None), step=(2, 3)),
    "flip": Call("flip", axis=1),
    "roll": _roll,
    "broadcast_to": lambda F, n: Call("broadcast_to", shape=(n, n))(F),
    "depth_to_space": Laid(Call("depth_to_space", block_size=2), _CHANNELS_FIRST),
    # The elements of the lower triangle as a vector, and back into a triangle.
    "tril": lambda F: lambda x: F.linalg.maketrian(F.linalg.extracttrian(x)),
    "diag_part": "diag",
}

GAPS: tuple[Gap, ...] = (Gap("mxnet has no triangles of float16", "tril", dtype="float16"),)
