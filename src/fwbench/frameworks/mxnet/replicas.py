"""Several processes in MXNet: workers of a distributed KVStore, its scheduler, and its servers.

Servers update parameters, or in steps between them and workers compute nothing. Roles, variables
and the meaning of a server's updates are those of MXNet 1.9's page "Distributed Training in MXNet"
and of ps-lite, which its KVStore is made of.
"""

import itertools
import os
import socket
import threading
import traceback
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import mxnet as mx
import numpy as np
from mxnet import gluon
from mxnet.kvstore.kvstore_server import KVStoreServer
from numpy.typing import NDArray

from fwbench.frameworks.learner import Job
from fwbench.frameworks.member import (
    SERVER,
    Member,
    Participant,
    Place,
    ReplicatedLearner,
    ServedSteps,
    address_of,
    reserved,
)
from fwbench.frameworks.mxnet import openmp
from fwbench.frameworks.mxnet.training import MXNetLearner

#: The stores by which replicas agree. With both of them servers update the parameters.
_STORES = {"ps_sync": "dist_sync", "ps_async": "dist_async"}

#: How many keys a model has at most.
_KEYS = 10_000


def enter(place: Place, addresses: Sequence[str]) -> None:
    """Tell ps-lite the place of this process; it reads that when the first store is made."""
    _, _, (scheduler,) = place.by_role(addresses)
    host, _, port = scheduler.rpartition(":")
    os.environ |= {
        "DMLC_ROLE": place.role,
        "DMLC_PS_ROOT_URI": host,
        "DMLC_PS_ROOT_PORT": port,
        "DMLC_NODE_HOST": place.host,
        "DMLC_NUM_WORKER": str(place.replicas),
        "DMLC_NUM_SERVER": str(place.servers),
    }


class SharedStore(mx.kv.KVStore):  # type: ignore[misc]
    """A store of MXNet's under another name in Python."""

    def __init__(self, store: Any) -> None:
        super().__init__(store.handle)
        self._store = store

    def __del__(self) -> None:
        """The store that it is frees itself."""


class Stored(mx.optimizer.Optimizer):  # type: ignore[misc]
    """An "optimizer" by which servers hold what was pushed, scaled as for an update.

    It puts values into servers, and shows the gradients that they would update with. It counts no
    updates.
    """

    def create_state(self, index: int, weight: Any) -> None:
        """No state: there is nothing to keep between updates."""

    def update(self, index: int, weight: Any, grad: Any, state: Any) -> None:
        """Hold what was pushed instead of what was there."""
        weight[:] = self.rescale_grad * grad


class Added(mx.optimizer.Optimizer):  # type: ignore[misc]
    """An "optimizer" by which servers add what was pushed to what they have.

    It counts no updates.
    """

    def create_state(self, index: int, weight: Any) -> None:
        """No state: there is nothing to keep between updates."""

    def update(self, index: int, weight: Any, grad: Any, state: Any) -> None:
        """Add what was pushed."""
        weight += grad


class ModelStore(SharedStore):
    """The part of a store that has one model: trainers count keys from 0."""

    def __init__(self, store: Any, first: int) -> None:
        super().__init__(store)
        self._first = first
        self._known: set[int] = set()

    def fill(self, parameters: Sequence[Any]) -> None:
        """Have servers hold values instead of what they learned; all workers call it at once."""
        if not self._known:
            return  # a trainer will begin with its own
        self.set_optimizer(Stored())
        # Servers add up what workers push, if they wait for all of them.
        factor = 0.0 if self.type == "dist_sync" and self.rank else 1.0
        for key, parameter in enumerate(parameters):
            if parameter.grad_req == "null":
                continue  # it is never updated
            value = parameter.data()
            self.push(key, factor * value)
            self.pull(key, out=value)
        mx.nd.waitall()

    def set_optimizer(self, optimizer: Any) -> None:
        """Send an optimizer once, when all workers have done what they did with the one before."""
        mx.nd.waitall()
        self._barrier()
        if not self.rank:
            super().set_optimizer(optimizer)
        self._barrier()

    def broadcast(self, key: int, value: Any, out: Any, priority: int = 0) -> None:
        """Begin with the first worker's value, or with the one that servers were filled with."""
        if key in self._known:
            self.pull(key, out, priority)
            return
        self._known.add(key)
        super().broadcast(self._first + key, value, out, priority)

    def push(self, key: int, value: Any, priority: int = 0) -> None:
        """See MXNet."""
        super().push(self._first + key, value, priority)

    def pull(
        self, key: int, out: Any = None, priority: int = 0, ignore_sparse: bool = True
    ) -> None:
        """See MXNet."""
        super().pull(self._first + key, out, priority, ignore_sparse)

    def pushpull(self, key: int, value: Any, out: Any = None, priority: int = 0) -> None:
        """See MXNet."""
        super().pushpull(self._first + key, value, out, priority)


class MXNetServing(Participant):
    """A parameter server, or the scheduler."""

    def __init__(self, place: Place) -> None:
        super().__init__(place)
        # ps-lite alone shares addresses without a listener.
        is_server = place.role == SERVER
        self._keeper = None if is_server else reserved(place.host, socket.SO_REUSEADDR)

    @property
    def address(self) -> str:
        """Host and port of the scheduler; servers need none."""
        return "" if self._keeper is None else address_of(self._keeper)

    def join(self, addresses: Sequence[str]) -> None:
        """Begin to serve, in a thread; workers know when all are connected."""
        enter(self.place, addresses)
        self._store = _Served(mx.kv.create("dist"))
        threading.Thread(target=_serve, args=[self._store], daemon=True).start()

    def updates(self) -> Mapping[str, int] | None:
        """Updates of the parameters of all models so far."""
        return self._store.updates() if self.place.role == SERVER else None

    def close(self) -> None:
        """It serves for as long as its process lives."""


def _serve(store: SharedStore) -> None:
    """Serve, and end this process with the reason if that fails: the thread is not waited for."""
    try:
        KVStoreServer(store).run()
    except Exception:  # noqa: BLE001 (the gang reports errors of every kind)
        traceback.print_exc()
        os._exit(1)


class _Served(SharedStore):
    """The store of a server, which counts updates as its optimizers do."""

    def __init__(self, store: Any) -> None:
        super().__init__(store)
        self._earlier: Counter[str] = Counter()

    def _set_updater(self, updater: Any) -> None:
        """Called when workers send an optimizer."""
        self._earlier = self.updates()
        super()._set_updater(updater)

    def updates(self) -> Counter[str]:
        if self._updater is None:
            return self._earlier
        counts = self._updater.optimizer._index_update_count  # noqa: SLF001 (no other way)
        return self._earlier + Counter({str(key): count for key, count in counts.items()})


class _Settled(ServedSteps):
    """Steps whose updates are made when MXNet has nothing left to do: servers answer then."""

    def synchronize(self) -> None:
        mx.nd.waitall()


class NullSteps(_Settled):
    """Parameters in shards by keys of their own, in a new store: all workers call this at once."""

    def __init__(self, store: ModelStore, updates: Sequence[NDArray[Any]]) -> None:
        self._store = store
        store.set_optimizer(Added())
        self._updates = [
            openmp.copied(mx.nd.array, update, dtype=update.dtype) for update in updates
        ]
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
        return [openmp.copied(parameter.asnumpy) for parameter in answer]


class SparseReads(_Settled):
    """Rows of a sparse table on servers, by a new key: all workers call this at once."""

    def __init__(
        self, store: Any, key: int, table: NDArray[Any], sets: Sequence[NDArray[np.int64]]
    ) -> None:
        self._store, self._key = store, key
        self._rows = [openmp.copied(mx.nd.array, rows, dtype=rows.dtype) for rows in sets]
        self._read = [
            mx.nd.sparse.zeros("row_sparse", table.shape, dtype=table.dtype) for _ in sets
        ]
        store.init(key, openmp.copied(mx.nd.array, table, dtype=table.dtype).tostype("row_sparse"))

    def take(self, which: int) -> Any:
        """Pull the rows of a set."""
        read = self._read[which]
        self._store.row_sparse_pull(self._key, out=read, row_ids=self._rows[which])
        read.wait_to_read()
        return read

    def fetched(self, answer: Any) -> Sequence[NDArray[Any]]:
        """The rows that the sparse array has."""
        return [openmp.copied(answer.data.asnumpy)]


class MXNetMember(Member):
    """A worker of a distributed KVStore."""

    def __init__(self, place: Place, context: Callable[[str], Any]) -> None:
        super().__init__(place)
        self._context = context
        self._next_key = 0
        self._models: dict[tuple[str, int, str], ModelStore] = {}

    @property
    def address(self) -> str:
        """Nothing: the scheduler tells the others."""
        return ""

    def join(self, addresses: Sequence[str]) -> None:
        """``mx.kv.create``, which returns when workers, servers and scheduler are there."""
        enter(self.place, addresses)
        self._store = mx.kv.create(_STORES[self.place.strategy])

    def barrier(self) -> None:
        """The KVStore's, which is between its workers."""
        self._store._barrier()  # noqa: SLF001 (MXNet's documents call it by this name)

    def all_reduce(self, source: Any) -> Callable[[], Any]:
        """``pushpull`` of a copy, as it works in place; servers without an optimizer add up."""
        key = self._keys(1)
        self._store.init(key, mx.nd.zeros_like(source))
        return partial(_summed, self._store, key, source, mx.nd.zeros_like(source))

    def _keys(self, count: int) -> int:
        first, self._next_key = self._next_key, self._next_key + count
        return first

    def null_steps(self, shards: Sequence[NDArray[Any]]) -> ServedSteps:
        """``pull`` of each shard, then ``push``; servers add up with an optimizer of fwbench's."""
        store = ModelStore(self._store, self._keys(len(shards)))
        return NullSteps(store, [(self.place.rank + 1) * shard for shard in shards])

    def sparse_reads(self, table: NDArray[Any], sets: Sequence[NDArray[np.int64]]) -> ServedSteps:
        """``row_sparse_pull`` from a table that is sparse itself."""
        return SparseReads(self._store, self._keys(1), table, sets)

    def learner(self, job: Job) -> ReplicatedLearner:
        """A model whose trainer has a distributed KVStore.

        Servers forget nothing, so models with the same arrays share them.
        """
        model = job.training.name, job.training.parameters, job.dtype
        if model not in self._models:
            self._models[model] = ModelStore(self._store, self._keys(_KEYS))
        learner = _Learner(job, self._context(job.device), self.place, self._models[model])
        return _Replicated(learner)

    def close(self) -> None:
        """Leave the store."""
        del self._models, self._store


def _summed(store: Any, key: int, source: Any, buffer: Any) -> Any:
    mx.nd.identity(source, out=buffer)
    store.pushpull(key, buffer)
    buffer.wait_to_read()
    return buffer


class _Learner(MXNetLearner):
    """The usual network, with a trainer whose servers update the parameters.

    The other way, by which servers add gradients up and each worker updates its own parameters
    (``update_on_kvstore=False``), trains wrongly in MXNet 1.9.1.
    """

    updates_on_servers = True

    def __init__(self, job: Job, context: Any, place: Place, store: ModelStore) -> None:
        self._store = store
        super().__init__(job, context)
        if place.strategy == "ps_sync":  # an update has the gradients of all workers
            self._labels *= place.replicas

    def _trainer_of(self, optimizer: Any) -> Any:
        """The KVStore's, which begins where all workers' networks begin."""
        # Not by name, as a trainer would: dense10_weight comes before dense9_weight.
        of_blocks = (block.collect_params().values() for block in self._net.blocks)
        parameters = list(itertools.chain.from_iterable(of_blocks))
        self._store.fill(parameters)
        trainer = gluon.Trainer(
            parameters, optimizer, kvstore=self._store, update_on_kvstore=self.updates_on_servers
        )
        # What its first step does: all workers must, before one of them takes a step alone.
        trainer.optimizer.rescale_grad = 1.0 / self._labels
        trainer._init_kvstore()  # noqa: SLF001 (no other way)
        trainer._init_params()  # noqa: SLF001 (no other way)
        return trainer

    def _begin(self, *, dropout: bool) -> None:
        """The initial weights, which the trainer of a distributed KVStore would not take."""
        for parameter in self._net.collect_params().values():
            parameter._set_trainer(None)  # noqa: SLF001 (no other way)
        super()._begin(dropout=dropout)

    def show_gradients(self) -> None:
        """Have the next step put the gradients where the weights are."""
        self._trainer = self._trainer_of(Stored())
        mx.nd.waitall()
        self._store._barrier()  # noqa: SLF001 (all have the weights before one puts anything there)


class _Replicated(ReplicatedLearner):
    def warm_start(self, examples: Any, labels: Any) -> None:
        """Have servers hold what they would update with, of which workers see nothing else."""
        self.learner.reset(exact=True)
        self.learner.show_gradients()
        self.learner.step(examples, labels)
        self._gradients = list(self.learner.weights())

    def gradients(self) -> Sequence[NDArray[Any]]:
        return self._gradients

    def synchronize(self) -> None:
        """``mx.nd.waitall``: servers answer when they have updated."""
        mx.nd.waitall()
