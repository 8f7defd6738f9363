"""TensorFlow: shapes and orders of elements."""

from __future__ import annotations

from fwbench.frameworks.table import Call, Table
from fwbench.manifest import Gap

_PADDING = ((0, 0), (1, 1), (2, 2), (0, 0))

OPERATIONS: Table = {
    "transpose": "transpose",
    "permute_nhwc_nchw": Call("transpose", perm=(0, 3, 1, 2)),
    "concat": lambda tf: lambda x, y: tf.concat([x, y], 1),
    "stack": lambda tf: lambda x, y: tf.stack([x, y], 1),
    "split": Call("split", num_or_size_splits=4, axis=1),
    "pad_constant": Call("pad", paddings=_PADDING),
    "pad_reflect": Call("pad", paddings=_PADDING, mode="REFLECT"),
    "tile": Call("tile", multiples=(2, 3)),
    "repeat": Call("repeat", repeats=3, axis=1),
    "slice": lambda tf, begin, end: lambda x: tf.slice(x, [begin] * 2, [end - begin] * 2),
    "strided_slice": lambda tf: lambda x: x[::2, ::3],
    "flip": Call("reverse", axis=[1]),
    "roll": Call("roll", shift=3, axis=1),
    "broadcast_to": lambda tf, n: Call("broadcast_to", shape=(n, n))(tf),
    "depth_to_space": Call("nn.depth_to_space", block_size=2),
    "tril": Call("linalg.band_part", num_lower=-1, num_upper=0),
    "diag_part": "linalg.diag_part",
}

GAPS: tuple[Gap, ...] = ()
