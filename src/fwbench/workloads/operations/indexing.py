"""Indexing: rows and elements picked, added up, overwritten, masked.

Indices are within bounds: out of them MXNet clips, JAX fills in NaN, and the others raise.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fwbench.presets import Form, Shape, Sizes
from fwbench.workloads.operation import Operation, family
from fwbench.workloads.workload import Cost

Array = NDArray[Any]
Arrays = tuple[Array, ...]
Count = Callable[[Shape], int]

#: A table of n rows and d columns, and k indices.
_ROWS = Form("n{n}d{d}k{k}").sizes(
    quick=("n100d16k100", "n10000d16k10000", "n20000d128k20000"),
    full=("n100d16k100", "n10000d64k10000", "n100000d128k50000", "n100000d128k100000"),
)
#: Fewer rows than the table has, so that there are as many different ones.
_FEWER_ROWS = Form("n{n}d{d}k{k}").sizes(
    quick=("n100d16k50", "n10000d16k5000", "n20000d128k10000"),
    full=("n100d16k50", "n10000d64k5000", "n100000d128k10000", "n100000d128k50000"),
)
_ELEMENTS = Form("n{n}d{d}k{k}").sizes(
    quick=("n100d16k8", "n10000d16k8", "n20000d128k32"),
    full=("n100d16k8", "n10000d64k16", "n100000d128k32"),
)
#: A vocabulary of n words, d numbers a word; a batch of b sequences of t words.
_WORDS = Form("n{n}d{d}b{b}t{t}").sizes(
    quick=("n100d16b8t10", "n10000d64b16t64", "n20000d128b64t128"),
    full=("n100d16b8t10", "n10000d64b16t64", "n50000d256b64t128", "n50000d768b64t128"),
)
_MATRIX = Form("{n}x{d}").sizes(
    quick=("100x16", "1000x256", "4000x500"), full=("100x16", "1000x256", "4000x500", "20000x500")
)


def _rows(size: Shape, rng: np.random.Generator) -> Arrays:
    n, d, k = size.values()
    return rng.standard_normal((n, d)), rng.integers(0, n, k)


def _words(size: Shape, rng: np.random.Generator) -> Arrays:
    n, d, b, t = size.values()
    return rng.standard_normal((n, d)), rng.integers(0, n, (b, t))


def _of_each_row(size: Shape, rng: np.random.Generator) -> Arrays:
    n, d, k = size.values()
    return rng.standard_normal((n, d)), rng.integers(0, d, (n, k))


def _one_of_each_row(size: Shape, rng: np.random.Generator) -> Arrays:
    n, d = size.values()
    return rng.standard_normal((n, d)), rng.integers(0, d, n)


def _coordinates(size: Shape, rng: np.random.Generator) -> Arrays:
    n, d, k = size.values()
    return rng.standard_normal((n, d)), np.stack([rng.integers(0, n, k), rng.integers(0, d, k)], 1)


def _more_rows(size: Shape, rng: np.random.Generator) -> Arrays:
    n, d, k = size.values()
    return rng.standard_normal((k, d)), rng.integers(0, n, k)


def _other_rows(size: Shape, rng: np.random.Generator) -> Arrays:
    """No row is overwritten twice: which of two would stay is nobody's promise."""
    n, d, k = size.values()
    return (
        rng.standard_normal((n, d)),
        rng.choice(n, k, replace=False),
        rng.standard_normal((k, d)),
    )


def _indices(size: Shape, rng: np.random.Generator) -> Arrays:
    n, d = size.values()
    return (rng.integers(0, d, n),)


def _half(size: Shape, rng: np.random.Generator) -> Arrays:
    """A mask for half of the rows: however it is drawn, the result has the same shape."""
    n, d = size.values()
    return rng.standard_normal((n, d)), rng.permutation(n) < (n + 1) // 2


def _lengths(size: Shape, rng: np.random.Generator) -> Arrays:
    n, d = size.values()
    return rng.standard_normal((n, d)), rng.integers(1, d + 1, n)


def _added(x: Array, i: Array, n: int, d: int) -> Array:
    sums = np.zeros((n, d))
    np.add.at(sums, i, x)
    return sums


def _overwritten(x: Array, i: Array, rows: Array) -> Array:
    result = x.copy()
    result[i] = rows
    return result


def _nothing(_: Shape) -> int:
    return 0


def _indexing(
    name: str,
    inputs: Callable[[Any, np.random.Generator], Arrays],
    reference: Callable[..., Any],
    sizes: Sizes,
    elements: Callable[[Shape], tuple[int, int, int]],
    *,
    flops: tuple[Count, Count] = (_nothing, _nothing),
    differentiable: bool = True,
    parameters: Callable[[Any], tuple[Any, ...]] = lambda _: (),
) -> Operation:
    """An operation with indices.

    Args:
        name: of the operation.
        inputs: the operands.
        reference: in NumPy.
        sizes: by preset.
        elements: ``elements(size)``, how many are read, indices among them, how many are written,
            and how many the gradients by the operands have. Of a table no more is read than is
            picked; its gradient is written all over.
        flops: forward; backward: most often the sums of the gradients of what is picked twice.
        differentiable: whether there is a gradient.
        parameters: of the implementations.
    """
    forward, backward = flops

    def cost(size: Shape) -> Cost:
        read, written, _ = elements(size)
        return Cost(flops=float(forward(size)), elements=float(read + written))

    def backward_cost(size: Shape) -> Cost:
        """Forward; then read the gradient of the result, and write those of the operands."""
        read, written, gradients = elements(size)
        return Cost(
            flops=float(forward(size) + backward(size)),
            elements=float(read + 2 * written + gradients),
        )

    return Operation(
        name=name,
        inputs=inputs,
        reference=reference,
        sizes=sizes,
        cost=cost,
        backward_cost=backward_cost if differentiable else None,
        differentiable=differentiable,
        parameters=parameters,
    )


def _picked(size: Shape) -> int:
    """The elements of the rows that are picked."""
    return size["k"] * size["d"]


def _table(size: Shape) -> int:
    return size["n"] * size["d"]


def _table_size(size: Shape) -> tuple[int, int]:
    return size["n"], size["d"]


# Embeddings are what indexing is most used for; adding up is what they cost in training.
INDEXING = family(
    "indexing",
    ("embedding", "scatter_add"),
    # Rows, some of them several times.
    _indexing(
        "gather_rows",
        _rows,
        lambda x, i: x[i],
        _ROWS,
        lambda s: (s["k"] + _picked(s), _picked(s), _table(s)),
        flops=(_nothing, _picked),
    ),
    # Rows of a table for a batch of sequences.
    _indexing(
        "embedding",
        _words,
        lambda w, i, n, d: w[i],
        _WORDS,
        lambda s: (s["b"] * s["t"] * (1 + s["d"]), s["b"] * s["t"] * s["d"], _table(s)),
        flops=(_nothing, lambda s: s["b"] * s["t"] * s["d"]),
        parameters=_table_size,
    ),
    # k elements of every row.
    _indexing(
        "gather_elements",
        _of_each_row,
        partial(np.take_along_axis, axis=1),
        _ELEMENTS,
        lambda s: (2 * s["n"] * s["k"], s["n"] * s["k"], _table(s)),
        flops=(_nothing, lambda s: s["n"] * s["k"]),
    ),
    # One element of every row.
    _indexing(
        "pick",
        _one_of_each_row,
        lambda x, i: x[np.arange(len(i)), i],
        _MATRIX,
        lambda s: (2 * s["n"], s["n"], _table(s)),
    ),
    # k elements by row and column.
    _indexing(
        "gather_nd",
        _coordinates,
        lambda x, i: x[i[:, 0], i[:, 1]],
        _ROWS,
        lambda s: (3 * s["k"], s["k"], _table(s)),
        flops=(_nothing, lambda s: s["k"]),
    ),
    # k rows added to n rows of zeros.
    _indexing(
        "scatter_add",
        _more_rows,
        _added,
        _ROWS,
        lambda s: (s["k"] + _picked(s), _table(s), _picked(s)),
        flops=(_picked, _nothing),
        parameters=_table_size,
    ),
    # A table, k rows of which are others.
    _indexing(
        "scatter_nd_update",
        _other_rows,
        _overwritten,
        _FEWER_ROWS,
        lambda s: (_table(s) + s["k"] + _picked(s), _table(s), _table(s) + _picked(s)),
    ),
    # The dtype of the result is whatever a framework makes of it: int64 (PyTorch), or float32.
    _indexing(
        "one_hot",
        _indices,
        lambda i, d: np.eye(d)[i],
        _MATRIX,
        lambda s: (s["n"], _table(s), 0),
        differentiable=False,
        parameters=lambda s: (s["d"],),
    ),
    # Half of the rows.
    _indexing(
        "boolean_mask",
        _half,
        lambda x, mask: x[mask],
        _MATRIX,
        lambda s: (
            s["n"] + (s["n"] + 1) // 2 * s["d"],
            (s["n"] + 1) // 2 * s["d"],
            _table(s),
        ),
    ),
    # Sequences, with zeros behind their ends.
    _indexing(
        "sequence_mask",
        _lengths,
        lambda x, lengths, d: x * (np.arange(d) < lengths[:, None]),
        _MATRIX,
        lambda s: (s["n"] + _table(s), _table(s), _table(s)),
        flops=(_table, _table),
        parameters=lambda s: (s["d"],),
    ),
)
