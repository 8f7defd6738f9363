"""Several processes in TensorFlow that exchange gradients: MultiWorkerMirroredStrategy."""

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
    Member,
    Participant,
    Place,
    ReplicatedLearner,
    TracedLearner,
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
