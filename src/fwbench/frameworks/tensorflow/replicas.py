"""Several processes in TensorFlow: workers that exchange gradients, or parameter servers.

The former is MultiWorkerMirroredStrategy, the latter ParameterServerStrategy, whose workers a
coordinator gives work. It "is purely asynchronous" (tensorflow/tensorflow#27725): variables are on
servers, the optimiser updates them there, and workers run the graphs that they are given, without
any Python. So the coordinator takes the steps, and times them.
"""

import os
from collections.abc import Callable, Mapping, Sequence
from functools import cache, partial
from typing import Any

import keras
import numpy as np
import tensorflow as tf
from numpy.typing import NDArray

from fwbench.frameworks.learner import Job, Placed
from fwbench.frameworks.member import (
    SERVER,
    WORKER,
    Member,
    Participant,
    Place,
    ReplicatedLearner,
    ServedSteps,
    TracedLearner,
    Updates,
    address_of,
    reserved,
)
from fwbench.frameworks.tensorflow.training import TensorFlowLearner
from fwbench.workloads.objective import SGD, Adam, Batch, RMSprop

#: What Keras calls the slots, by optimiser.
_SLOTS: Mapping[type, str] = {Adam: "_momentums", RMSprop: "_velocities", SGD: "momentums"}


class ClusterTask(Participant):
    """A task of a cluster, which keeps a port for TensorFlow's server until that has it."""

    def __init__(self, place: Place) -> None:
        super().__init__(place)
        # tensorflow/core/distributed_runtime/rpc/grpc_server_lib.cc
        os.environ["TF_GRPC_REUSE_PORT"] = "true"
        self._keeper = reserved(place.host)
        self._address = address_of(self._keeper)

    @property
    def address(self) -> str:
        """Host and port of this task's server."""
        return self._address

    def close(self) -> None:
        """Give the port back; servers and connections end with their process."""
        self._keeper.close()


class MirroredMember(ClusterTask, Member):
    """A worker of a strategy whose collectives run in a ring over gRPC."""

    _strategy: Any = None

    def join(self, addresses: Sequence[str]) -> None:
        """``MultiWorkerMirroredStrategy``, which starts the server of this process."""
        distribute = tf.distribute
        resolver = distribute.cluster_resolver.SimpleClusterResolver(
            tf.train.ClusterSpec({"worker": list(addresses)}),
            task_type="worker",
            task_id=self.place.rank,
            rpc_layer="grpc",
        )
        options = distribute.experimental.CommunicationOptions(
            implementation=distribute.experimental.CommunicationImplementation.RING
        )
        self._strategy = distribute.MultiWorkerMirroredStrategy(resolver, options)
        self._keeper.close()
        self._ready = self.all_reduce(tf.constant(1.0))
        self.barrier()

    def barrier(self) -> None:
        """A sum of one number, complete when all replicas have called."""
        self._ready().numpy()

    def all_reduce(self, source: Any) -> Callable[[], Any]:
        """``ReplicaContext.all_reduce`` within ``Strategy.run``, as a graph."""
        return self._exchange(lambda replica, values: replica.all_reduce("SUM", values), source)

    def all_gather(self, source: Any) -> Callable[[], Any]:
        """``ReplicaContext.all_gather``, likewise."""
        return self._exchange(lambda replica, values: replica.all_gather(values, axis=0), source)

    def _exchange(self, exchange: Callable[[Any, Any], Any], source: Any) -> Callable[[], Any]:
        def here(values: Any) -> Any:
            # A variable without a device of the strategy's would have no destination.
            return exchange(tf.distribute.get_replica_context(), tf.identity(values))

        def step(values: Any) -> Any:
            return self._strategy.run(here, args=(values,))

        return partial(tf.function(step), source)

    def learner(self, job: Job) -> ReplicatedLearner:
        """A model with mirrored variables."""
        return KerasReplica(MirroredLearner(job, self._strategy))


class MirroredLearner(TensorFlowLearner):
    """The usual step within ``Strategy.run``.

    Within a strategy a Keras loss is divided by the number of replicas
    (``scale_loss_for_distribution`` in keras/src/losses/loss.py), and the optimiser adds up.
    """

    def __init__(self, job: Job, strategy: Any) -> None:
        self.strategy = strategy
        with strategy.scope():
            super().__init__(job)

    def build(self) -> None:
        """Compile the step of all replicas, which reads when it is traced how layers normalize."""
        for layer in self.model.layers:
            if isinstance(layer, keras.layers.BatchNormalization):
                layer.synchronized = self.job.synchronized
        self._step = tf.function(partial(self._run, self._train))

    def _run(self, train: Callable[..., Any], examples: Any, labels: Any) -> Any:
        return self.strategy.run(train, args=(examples, labels))

    def reset(self, *, exact: bool) -> None:
        """Reset within the strategy: slots of the optimiser are mirrored, too."""
        with self.strategy.scope():
            super().reset(exact=exact)

    def losses(self, losses: Sequence[Any]) -> NDArray[Any]:
        """The mean loss of this replica's share."""
        return super().losses(losses) * self.strategy.num_replicas_in_sync


#: Once in a process: the collectives of another strategy would have the same keys.
_mirrored = cache(tf.distribute.MirroredStrategy)


class SplittingLearner(MirroredLearner):
    """Variables on each device, which train on parts of a batch: ``MirroredStrategy``."""

    executions = ("graph",)

    def __init__(self, job: Job) -> None:
        super().__init__(job, _mirrored(job.devices))

    def place(self, batch: Batch) -> Placed:
        """A part on each device."""
        parts = [np.split(array, self.job.data_parallel) for array in batch]
        examples, labels = self.strategy.experimental_distribute_values_from_function(
            lambda context: [tf.constant(p[context.replica_id_in_sync_group]) for p in parts]
        )
        return examples, labels

    def losses(self, losses: Sequence[Any]) -> NDArray[Any]:
        """The sum of what the parts of each batch contribute to its mean."""
        return np.asarray([float(sum(parts.values)) for parts in losses])


class KerasReplica(TracedLearner):
    """A model of Keras, whose optimiser's slots have the gradients of the first update."""

    def state(self) -> Sequence[NDArray[Any]]:
        """The slots of the rule of the optimiser, without a scaled loss.

        Keras' velocities are those of the decrease: by the learning rate, and with its sign.
        """
        learner = self.learner
        optimizer = learner.job.training.optimizer
        slots = getattr(learner.rule, _SLOTS[type(optimizer)])
        by_variable = dict(zip(map(id, learner.model.trainable_variables), slots, strict=True))
        scale = -optimizer.learning_rate if isinstance(optimizer, SGD) else 1.0
        return [by_variable[id(variable)].numpy() / scale for variable in learner.variables]


#: What TensorFlow calls the roles.
_JOBS = {WORKER: "worker", SERVER: "ps"}
_COORDINATOR = "chief"


def participant(place: Place) -> Participant:
    """This process as a task of a cluster with parameter servers."""
    return ServerTask(place) if place.role in _JOBS else Coordinator(place)


def _cluster(place: Place, addresses: Sequence[str]) -> Any:
    workers, servers, coordinator = place.by_role(addresses)
    jobs = {_JOBS[WORKER]: workers, _JOBS[SERVER]: servers, _COORDINATOR: coordinator}
    return tf.train.ClusterSpec({job: list(tasks) for job, tasks in jobs.items()})


class ServerTask(ClusterTask):
    """A worker or a parameter server: ``tf.distribute.Server``, which does what it is given."""

    def join(self, addresses: Sequence[str]) -> None:
        """Serve, in threads of TensorFlow's own."""
        threading = tf.config.threading
        config = tf.compat.v1.ConfigProto(
            intra_op_parallelism_threads=threading.get_intra_op_parallelism_threads(),
            # One that waits for another task must not keep others from answering that task.
            inter_op_parallelism_threads=self.place.replicas + 1,
        )
        self._server = tf.distribute.Server(
            _cluster(self.place, addresses),
            job_name=_JOBS[self.place.role],
            task_index=self.place.rank,
            protocol="grpc",
            config=config,
        )
        self._keeper.close()


class Coordinator(ClusterTask, Member):
    """``ClusterCoordinator``, which gives workers their steps."""

    _coordinator: Any = None

    @property
    def ranks(self) -> Sequence[int]:
        """All workers."""
        return range(self.place.replicas)

    def join(self, addresses: Sequence[str]) -> None:
        """Connect to the tasks, which are serving by then or soon."""
        resolver = tf.distribute.cluster_resolver.SimpleClusterResolver(
            _cluster(self.place, addresses), task_type=_COORDINATOR, task_id=0, rpc_layer="grpc"
        )
        strategy = tf.distribute.ParameterServerStrategy(resolver)
        self._coordinator = tf.distribute.coordinator.ClusterCoordinator(strategy)
        self._keeper.close()

    def barrier(self) -> None:
        """Wait for all workers, which alone take steps."""
        self._coordinator.join()

    def all_reduce(self, source: Any) -> Callable[[], Any]:
        """Not available: such workers exchange nothing."""
        raise NotImplementedError("workers of parameter servers exchange nothing with each other")

    def null_steps(self, shards: Sequence[NDArray[Any]]) -> ServedSteps:
        """A variable for each shard; a step reads all, then adds to all."""
        return NullSteps(self._coordinator, shards, self.place.replicas)

    def sparse_reads(self, table: NDArray[Any], sets: Sequence[NDArray[np.int64]]) -> ServedSteps:
        """``tf.gather`` from a variable, where that is."""
        return SparseReads(self._coordinator, table, sets)

    def learner(self, job: Job) -> ReplicatedLearner:
        """A model whose variables are on the servers, one server after the other."""
        return _Served(ServedLearner(job, self._coordinator))


class ServedLearner(TensorFlowLearner):
    """The usual step as a graph that any of the workers runs, in any order."""

    def __init__(self, job: Job, coordinator: Any) -> None:
        self.coordinator = coordinator
        self.sent = 0
        with coordinator.strategy.scope():
            # Keras reads its count of updates and writes it back, and so loses some of those that
            # workers make at once. This one is added to where it is, without any message.
            self.made = tf.Variable(0, dtype=tf.int64, trainable=False)
            super().__init__(job)

    def _train(self, examples: Any, labels: Any) -> Any:
        loss = super()._train(examples, labels)
        self.made.assign_add(1)
        return loss

    def build(self) -> None:
        """Compile the step of a worker."""
        run = self.coordinator.strategy.run
        self._step = tf.function(lambda *batch: run(self._train, args=batch))

    def reset(self, *, exact: bool) -> None:
        """Reset variables and slots on the servers."""
        with self.coordinator.strategy.scope():
            super().reset(exact=exact)
            self.made.assign(0)
        self.sent = 0

    def step(self, examples: Any, labels: Any) -> Any:
        """Schedule a step of some worker; the loss is the worker's until it is fetched."""
        return self.give(self._step, examples, labels)

    def give(self, step: Any, *arguments: Any) -> Any:
        """Schedule a step of some worker."""
        self.sent += 1
        return self.coordinator.schedule(step, args=arguments)

    def taking(self) -> Any:
        """The step on what an iterator of the worker's own gives."""
        return tf.function(lambda iterator: self._step(*next(iterator)))

    def losses(self, losses: Sequence[Any]) -> NDArray[Any]:
        """The loss of each step, fetched from its worker."""
        return super().losses([loss.fetch() for loss in losses])


class _Served(KerasReplica):
    def bound(self, batches: Sequence[Batch]) -> Callable[[], Any]:
        """A step for each worker; each has a data set of its own with the shares of all."""
        learner = self.learner
        examples, labels = (np.stack(parts) for parts in zip(*batches, strict=True))

        def shares() -> Any:
            options = tf.data.Options()
            options.autotune.enabled = False  # as everywhere
            data = tf.data.Dataset.from_tensor_slices((examples, labels)).repeat()
            return data.with_options(options)

        iterators = iter(learner.coordinator.create_per_worker_dataset(shares))
        give = partial(learner.give, learner.taking(), iterators)

        def run() -> None:
            for _ in batches:
                give()

        return run

    def synchronize(self) -> None:
        self.learner.coordinator.join()

    def updates(self) -> Updates:
        """By a count on a server."""
        return Updates(self.learner.sent, int(self.learner.made.numpy()))


class _Scheduled(ServedSteps):
    """Scheduled steps: what a worker does with an argument, some time later; it returns arrays."""

    def __init__(
        self, coordinator: Any, step: Callable[[Any], Any], arguments: Sequence[Any]
    ) -> None:
        self._coordinator = coordinator
        self._step = tf.function(step)
        self._arguments = [(tf.constant(argument),) for argument in arguments]

    def take(self, which: int) -> Any:
        """``ClusterCoordinator.schedule``."""
        return self._coordinator.schedule(self._step, args=self._arguments[which])

    def fetched(self, answer: Any) -> Sequence[NDArray[Any]]:
        """Copies of what the worker has."""
        return [np.asarray(array) for array in answer.fetch()]

    def synchronize(self) -> None:
        """``ClusterCoordinator.join``."""
        self._coordinator.join()


class NullSteps(_Scheduled):
    """Parameters in variables, one server after the other, which all workers fetch and update.

    Args:
        shards: the update, times the factor of a worker.
    """

    def __init__(self, coordinator: Any, shards: Sequence[NDArray[Any]], replicas: int) -> None:
        with coordinator.strategy.scope():
            parameters = [tf.Variable(np.zeros_like(shard)) for shard in shards]

        # A factor for each shard: of equal products grappler would make one, and send that once.
        def step(factors: Any) -> Any:
            updates = [tf.constant(shard) for shard in shards]
            fetched = [tf.identity(parameter) for parameter in parameters]
            # Nothing is sent before everything has come, as no gradient would be there.
            with tf.control_dependencies(fetched):
                for parameter, *product in zip(
                    parameters, tf.unstack(factors), updates, strict=True
                ):
                    parameter.assign_add(tf.multiply(*product))
            return fetched

        ranks = np.arange(1, replicas + 1, dtype=shards[0].dtype)
        super().__init__(coordinator, step, [np.full(len(shards), rank) for rank in ranks])


class SparseReads(_Scheduled):
    """A table in a variable on a server."""

    def __init__(
        self, coordinator: Any, table: NDArray[Any], sets: Sequence[NDArray[np.int64]]
    ) -> None:
        with coordinator.strategy.scope():
            variable = tf.Variable(table)
        # The server gathers; the copy is the worker's.
        super().__init__(coordinator, lambda rows: [tf.identity(tf.gather(variable, rows))], sets)
