"""A network whose layers are on several devices, in MXNet: a block in each context."""

from __future__ import annotations

import copy
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from mxnet import gluon

from fwbench.frameworks.learner import Job
from fwbench.frameworks.mxnet.layers import Network
from fwbench.frameworks.mxnet.training import MXNetLearner


class _Chain(gluon.Block):  # type: ignore[misc]
    """Networks one after the other, each in a context.

    Args:
        job: what to train, and how.
        contexts: of the networks.
    """

    def __init__(self, job: Job, contexts: Sequence[Any]) -> None:
        super().__init__()
        graphs = job.training.graph.divided(len(contexts))
        self.parts = [
            (context, Network(graph, job)) for context, graph in zip(contexts, graphs, strict=True)
        ]
        for _, network in self.parts:
            self.register_child(network)
        self.blocks = [block for _, network in self.parts for block in network.blocks]

    def initialize(self, **_: Any) -> None:
        """Each network's parameters in its context."""
        for context, network in self.parts:
            network.initialize(ctx=context)

    def forward(self, x: Any) -> Any:
        """The logits of a batch, in the last context."""
        for context, network in self.parts:
            x = network(x.as_in_context(context))
        return x


class _Trainers:
    """A trainer for each network, as one: a trainer takes parameters of one context.

    Args:
        networks: each in its context.
        optimizer: with its constants; each trainer has one of its own, which counts its updates.
    """

    def __init__(self, networks: Sequence[Any], optimizer: Any) -> None:
        self._trainers = [
            gluon.Trainer(network.collect_params(), copy.deepcopy(optimizer))
            for network in networks
        ]

    def step(self, batch: int) -> None:
        """Update the parameters of all.

        Args:
            batch: what gradients are divided by.
        """
        for trainer in self._trainers:
            trainer.step(batch)

    def set_learning_rate(self, learning_rate: float) -> None:
        """Of all."""
        for trainer in self._trainers:
            trainer.set_learning_rate(learning_rate)


class DividedLearner(MXNetLearner):
    """Blocks in several contexts, each hybridized by itself and with a trainer of its own.

    Args:
        job: what to train, and how.
        contexts: of the parts of the network.
    """

    def __init__(self, job: Job, contexts: Sequence[Any]) -> None:
        self._contexts = contexts
        super().__init__(job, contexts[0])
        self._labels_context = contexts[-1]

    def _network(self) -> Any:
        return _Chain(self.job, self._contexts)

    def _trainer_of(self, optimizer: Any) -> Any:
        return _Trainers([network for _, network in self._net.parts], optimizer)

    def placement(self) -> Mapping[str, int]:
        """By the context of each parameter's array."""
        numbers: Counter[str] = Counter()
        for parameter in self._parameters:
            context = parameter.data().context
            numbers[f"{context.device_type}:{context.device_id}"] += parameter.data().size
        return numbers

    def planned_bytes(self, *, training: bool) -> int | None:
        """Nobody plans for all contexts."""
        return None

    def planned_by_strategy(self, *, training: bool) -> dict[str, int] | None:
        """Nor by any strategy."""
        return None
