"""TensorFlow: indexing."""

from __future__ import annotations

from fwbench.frameworks.layout import Layout
from fwbench.frameworks.table import Call, Laid, Table
from fwbench.manifest import Gap

#: An index is a vector of one coordinate.
_COORDINATES = Layout(
    place=lambda arrays: [arrays[0], arrays[1][:, None], *arrays[2:]],
    restore=lambda arrays: [arrays[0], arrays[1][:, 0], *arrays[2:]],
)

OPERATIONS: Table = {
    "gather_rows": "gather",
    "embedding": lambda tf, n, d: tf.nn.embedding_lookup,
    "gather_elements": Call("gather", batch_dims=1),
    "pick": Call("gather", batch_dims=1),
    "gather_nd": "gather_nd",
    "scatter_add": lambda tf, n, d: Call("math.unsorted_segment_sum", num_segments=n)(tf),
    "scatter_nd_update": Laid("tensor_scatter_nd_update", _COORDINATES),
    "one_hot": lambda tf, d: Call("one_hot", depth=d)(tf),
    "boolean_mask": "boolean_mask",
    "sequence_mask": lambda tf, d: lambda x, i: x * tf.sequence_mask(i, d, x.dtype),
}

GAPS: tuple[Gap, ...] = (
    Gap("XLA has no gradient of boolean_mask", "boolean_mask", "xla", "backward"),
)
