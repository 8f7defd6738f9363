"""Steps of MXNet's workers with parameter servers that compute nothing."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import mxnet as mx
import numpy as np
from numpy.typing import NDArray

from fwbench.frameworks.member import ServedSteps
from fwbench.frameworks.mxnet.servers import Added, ModelStore


class _Settled(ServedSteps):
    """Steps whose updates are made when MXNet has nothing left to do: servers answer then."""

    def settle(self) -> None:
        """``mx.nd.waitall``."""
        mx.nd.waitall()


class NullSteps(_Settled):
    """Parameters in shards, each fetched and updated by a key of its own.

    Args:
        store: that has no parameters yet; all workers call this at once.
        updates: of this worker, by shard.
    """

    def __init__(self, store: ModelStore, updates: Sequence[NDArray[Any]]) -> None:
        self._store = store
        store.set_optimizer(Added())
        self._updates = [mx.nd.array(update, dtype=update.dtype) for update in updates]
        self._sent = [mx.nd.zeros_like(update) for update in self._updates]
        self._parameters = [mx.nd.zeros_like(update) for update in self._updates]
        for key, parameter in enumerate(self._parameters):
            store.broadcast(key, mx.nd.zeros_like(parameter), out=parameter)

    def take(self, which: int) -> Any:
        """Pull all shards, wait for them, and push all."""
        for key, parameter in enumerate(self._parameters):
            self._store.pull(key, out=parameter)
        for parameter in self._parameters:
            parameter.wait_to_read()
        for key, (update, sent) in enumerate(zip(self._updates, self._sent, strict=True)):
            # A copy: the next pull comes by way of what was pushed, and writes to it.
            mx.nd.identity(update, out=sent)
            self._store.push(key, sent)
        return self._parameters

    def fetched(self, answer: Any) -> Sequence[NDArray[Any]]:
        """The shards."""
        return [parameter.asnumpy() for parameter in answer]


class SparseReads(_Settled):
    """Rows of a table that servers have as a sparse array.

    Args:
        store: that all have.
        key: of the table, which the store does not have yet; all workers call this at once.
        table: the same in every worker.
        sets: numbers of rows, ascending.
    """

    def __init__(
        self, store: Any, key: int, table: NDArray[Any], sets: Sequence[NDArray[np.int64]]
    ) -> None:
        self._store, self._key = store, key
        self._rows = [mx.nd.array(rows, dtype=rows.dtype) for rows in sets]
        self._read = [
            mx.nd.sparse.zeros("row_sparse", table.shape, dtype=table.dtype) for _ in sets
        ]
        store.init(key, mx.nd.array(table, dtype=table.dtype).tostype("row_sparse"))

    def take(self, which: int) -> Any:
        """Pull the rows of a set."""
        read = self._read[which]
        self._store.row_sparse_pull(self._key, out=read, row_ids=self._rows[which])
        read.wait_to_read()
        return read

    def fetched(self, answer: Any) -> Sequence[NDArray[Any]]:
        """Those rows of the sparse array that it has."""
        return [answer.data.asnumpy()]
