"""Steps of TensorFlow's workers with parameter servers that compute nothing.

A coordinator gives a worker a graph; whichever worker is free takes the next one. What a step has
fetched stays with its worker until somebody asks for it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import tensorflow as tf
from numpy.typing import NDArray

from fwbench.frameworks.member import ServedSteps


class _Scheduled(ServedSteps):
    """Steps that are scheduled, and taken some time later.

    Args:
        coordinator: ``ClusterCoordinator``.
        step: what a worker does with an argument; it returns arrays.
        arguments: of the steps, as :meth:`take` counts them.
    """

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

    def settle(self) -> None:
        """``ClusterCoordinator.join``."""
        self._coordinator.join()


class NullSteps(_Scheduled):
    """Parameters in variables, one server after the other, which all workers fetch and update.

    Args:
        coordinator: ``ClusterCoordinator``.
        shards: the update, times the factor of a worker.
        replicas: how many workers there are.
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
    """A table in a variable on a server.

    Args:
        coordinator: ``ClusterCoordinator``.
        table: its initial value.
        sets: numbers of rows.
    """

    def __init__(
        self, coordinator: Any, table: NDArray[Any], sets: Sequence[NDArray[np.int64]]
    ) -> None:
        with coordinator.strategy.scope():
            variable = tf.Variable(table)
        # The server gathers; the copy is the worker's.
        super().__init__(coordinator, lambda rows: [tf.identity(tf.gather(variable, rows))], sets)
