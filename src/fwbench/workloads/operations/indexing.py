"""Indexing: rows and elements picked, added up, overwritten, masked.

Indices are within bounds: out of them MXNet clips, JAX fills in NaN, and the others raise.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fwbench.terms.presets import Shape, sizes_of
from fwbench.workloads.operation import Operation, family
from fwbench.workloads.workload import Counts

Array = NDArray[Any]
Arrays = tuple[Array, ...]

_SIZES = sizes_of("indexing")


def _indexed(
    table: str, below: str, indices: str
) -> Callable[[Shape, np.random.Generator], Arrays]:
    """Draws a table, and indices below a length: axes by the letters of a size."""

    def draw(size: Shape, rng: np.random.Generator) -> Arrays:
        numbers = rng.standard_normal([size[axis] for axis in table])
        return numbers, rng.integers(0, size[below], [size[axis] for axis in indices])

    return draw


def _coordinates(size: Shape, rng: np.random.Generator) -> Arrays:
    n, d, k = size.values()
    return rng.standard_normal((n, d)), np.stack([rng.integers(0, n, k), rng.integers(0, d, k)], 1)


def _other_rows(size: Shape, rng: np.random.Generator) -> Arrays:
    """No row is overwritten twice: which of two would stay is undefined."""
    n, d, k = size.values()
    return (
        rng.standard_normal((n, d)),
        rng.choice(n, k, replace=False),
        rng.standard_normal((k, d)),
    )


def _indices(size: Shape, rng: np.random.Generator) -> Arrays:
    n, d = size.values()
    return (rng.integers(0, d, n),)


def _masked(size: Shape, rng: np.random.Generator) -> Arrays:
    """A mask that is true for k rows: however it is drawn, the result has the same shape."""
    n, d, k = size.values()
    return rng.standard_normal((n, d)), rng.permutation(n) < k


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


def _indexing(
    name: str,
    inputs: Callable[[Any, np.random.Generator], Arrays],
    sizes: str,
    reference: Callable[..., Any],
    counts: Counts,
    parameters: Callable[[Any], tuple[Any, ...]] = lambda _: (),
) -> Operation:
    return Operation(
        name=name,
        inputs=inputs,
        reference=reference,
        sizes=_SIZES[sizes],
        cost=counts.forward,
        backward_cost=counts.backward if counts.gradients else None,
        differentiable=bool(counts.gradients),
        parameters=parameters,
        branching=inputs is _masked,
    )


def _table(size: Shape) -> tuple[int, int]:
    """The rows and the columns of a table."""
    return size["n"], size["d"]


def _columns(size: Shape) -> tuple[int]:
    return (size["d"],)


# Embeddings are what indexing is most used for.
INDEXING = family(
    "indexing",
    ("embedding",),
    # Rows, some of them several times.
    _indexing(
        *("gather_rows", _indexed("nd", "n", "k"), "rows", lambda x, i: x[i]),
        Counts("k+kd", "kd", "nd", sums="kd"),
    ),
    # Rows of a table for a batch of sequences.
    _indexing(
        *("embedding", _indexed("nd", "n", "bt"), "words", lambda w, i, *_: w[i]),
        Counts("bt+btd", "btd", "nd", sums="btd"),
        _table,
    ),
    # k elements of every row.
    _indexing(
        *("gather_elements", _indexed("nd", "d", "nk"), "elements"),
        partial(np.take_along_axis, axis=1),
        Counts("2nk", "nk", "nd", sums="nk"),
    ),
    # One element of every row.
    _indexing(
        *("pick", _indexed("nd", "d", "n"), "matrix", lambda x, i: x[np.arange(len(i)), i]),
        Counts("2n", "n", "nd"),
    ),
    # k elements by row and column.
    _indexing(
        *("gather_nd", _coordinates, "rows", lambda x, i: x[i[:, 0], i[:, 1]]),
        Counts("3k", "k", "nd", sums="k"),
    ),
    # k rows added to n rows of zeros.
    _indexing(
        *("scatter_add", _indexed("kd", "n", "k"), "rows", _added),
        Counts("k+kd", "nd", "kd", flops="kd"),
        _table,
    ),
    # A table, k rows of which are others.
    _indexing(
        *("scatter_nd_update", _other_rows, "fewer_rows", _overwritten),
        Counts("nd+k+kd", "nd", "nd+kd"),
    ),
    # Frameworks differ in the dtype of the result: int64 (PyTorch), or float32.
    _indexing(
        "one_hot", _indices, "matrix", lambda i, d: np.eye(d)[i], Counts("n", "nd"), _columns
    ),
    # The k rows for which a mask is true.
    _indexing("boolean_mask", _masked, "fewer_rows", lambda x, i: x[i], Counts("n+kd", "kd", "nd")),
    # Sequences, with zeros behind their ends.
    _indexing(
        "sequence_mask",
        _lengths,
        "matrix",
        lambda x, lengths, d: x * (np.arange(d) < lengths[:, None]),
        Counts("n+nd", "nd", "nd", "nd", "nd"),
        _columns,
    ),
)
