"""MXNet: sorting and searching."""

from __future__ import annotations

from typing import Any

from fwbench.frameworks.table import Call, Table
from fwbench.manifest import Gap


def _unique(_: Any) -> Any:
    """Only ``mx.np`` has it; arrays become those of ``mx.np``, and of ``mx.nd``, without a copy."""
    import mxnet as mx  # not above: the adapter, which imports this module, prepares NumPy first

    return lambda x: mx.np.unique(x.as_np_ndarray()).as_nd_ndarray()


OPERATIONS: Table = {
    "sort": Call("sort", axis=1),
    "argsort": Call("argsort", axis=1, dtype="int32"),
    "top_k": Call("topk", k=5, axis=1, ret_typ="both", dtype="int32"),
    "unique": _unique,
}

GAPS: tuple[Gap, ...] = (
    *(
        Gap("mxnet does not sort float16", operation, dtype="float16")
        for operation in ("sort", "argsort")
    ),
    Gap("mxnet hybridizes unique in its NumPy mode alone", "unique", execution="hybridize"),
    Gap("mxnet leaves searchsorted to NumPy", "searchsorted"),
)
