"""JAX: indexing. Its integers have 32 bits unless it is told otherwise."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray

from fwbench.frameworks.layout import Arrays, Layout
from fwbench.frameworks.table import Call, Laid, Table
from fwbench.manifest import Gap
from fwbench.workloads.operation import Implementation


def _narrowed(arrays: Arrays) -> list[NDArray[Any]]:
    return [x.astype(np.int32) if x.dtype == np.int64 else x for x in arrays]


_INT32 = Layout(place=_narrowed)


def with_int32(entry: str | Implementation) -> Laid:
    """The implementation, with integers of 32 bits."""
    return Laid(entry, _INT32)


def _pick(x: Any, i: Any) -> Any:
    return jnp.take_along_axis(x, i[:, None], 1)[:, 0]


def _scatter_add(jax: Any, n: int, d: int) -> Any:
    return lambda x, i: jax.numpy.zeros((n, d), x.dtype).at[i].add(x)


def _sequence_mask(jax: Any, d: int) -> Any:
    return lambda x, lengths: x * (jax.numpy.arange(d) < lengths[:, None])


OPERATIONS: Table = {
    "gather_rows": with_int32(Call("numpy.take", axis=0)),
    "embedding": with_int32(lambda jax, n, d: lambda w, i: w[i]),
    "gather_elements": with_int32(Call("numpy.take_along_axis", axis=1)),
    "pick": with_int32(lambda jax: _pick),
    "gather_nd": with_int32(lambda jax: lambda x, i: x[i[:, 0], i[:, 1]]),
    "scatter_add": with_int32(_scatter_add),
    "scatter_nd_update": with_int32(lambda jax: lambda x, i, rows: x.at[i].set(rows)),
    "one_hot": with_int32(lambda jax, d: Call("nn.one_hot", num_classes=d)(jax)),
    "boolean_mask": lambda jax: lambda x, mask: x[mask],
    "sequence_mask": with_int32(_sequence_mask),
}

GAPS: tuple[Gap, ...] = (
    Gap("jit has no shapes that depend on data", "boolean_mask", execution="jit"),
)
