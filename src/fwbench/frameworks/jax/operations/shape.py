"""JAX: shapes and orders of elements."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp

from fwbench.frameworks.table import Call, Table
from fwbench.manifest import Gap

_PADDING = ((0, 0), (1, 1), (2, 2), (0, 0))


def _depth_to_space(x: Any) -> Any:
    n, h, w, c = x.shape
    blocks = jnp.transpose(jnp.reshape(x, (n, h, w, 2, 2, c // 4)), (0, 1, 3, 2, 4, 5))
    return jnp.reshape(blocks, (n, 2 * h, 2 * w, c // 4))


OPERATIONS: Table = {
    "transpose": "numpy.transpose",
    "permute_nhwc_nchw": Call("numpy.transpose", axes=(0, 3, 1, 2)),
    "concat": lambda jax: lambda x, y: jax.numpy.concatenate([x, y], 1),
    "stack": lambda jax: lambda x, y: jax.numpy.stack([x, y], 1),
    "split": Call("numpy.split", indices_or_sections=4, axis=1),
    "pad_constant": Call("numpy.pad", pad_width=_PADDING),
    "pad_reflect": Call("numpy.pad", pad_width=_PADDING, mode="reflect"),
    "tile": Call("numpy.tile", reps=(2, 3)),
    "repeat": Call("numpy.repeat", repeats=3, axis=1),
    "slice": lambda jax, begin, end: lambda x: jax.lax.slice(x, [begin] * 2, [end] * 2),
    "strided_slice": lambda jax: lambda x: x[::2, ::3],
    "flip": Call("numpy.flip", axis=1),
    "roll": Call("numpy.roll", shift=3, axis=1),
    "broadcast_to": lambda jax, n: Call("numpy.broadcast_to", shape=(n, n))(jax),
    "depth_to_space": lambda jax: _depth_to_space,
    "tril": "numpy.tril",
    "diag_part": "numpy.diagonal",
}

GAPS: tuple[Gap, ...] = ()
