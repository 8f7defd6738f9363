"""Several processes in MXNet: workers of a distributed KVStore, whose servers update parameters."""

import itertools
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import mxnet as mx
import numpy as np
from mxnet import gluon
from numpy.typing import NDArray

from fwbench.frameworks.learner import Job
from fwbench.frameworks.member import Member, Place, ReplicatedLearner, ServedSteps
from fwbench.frameworks.mxnet.servers import ModelStore, NullSteps, SparseReads, Stored, enter
from fwbench.frameworks.mxnet.training import MXNetLearner

#: The stores by which replicas agree. With both of them servers update the parameters.
_STORES = {"ps_sync": "dist_sync", "ps_async": "dist_async"}

#: How many keys a model has at most.
_KEYS = 10_000


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
        """The first of new keys."""
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
