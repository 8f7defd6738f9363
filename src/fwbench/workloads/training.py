"""What a training loop is: model, data, optimiser, batch sizes, epochs. It names no framework."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from fwbench.manifest import Manifest
from fwbench.presets import Schedule, Sizes
from fwbench.workloads.models import layers
from fwbench.workloads.models.graph import Graph, Network, trace
from fwbench.workloads.models.layer import Arrays, Shape
from fwbench.workloads.workload import Workload, first

_WEIGHTS_SEED = 20
_ORDER_SEED = 21
_CHECK_SEED = 22
#: Draws differ between frameworks all the same; it makes the runs of each repeatable.
DROPOUT_SEED = 23

#: Steps of the stored trajectories; the first :data:`CHECKED_STEPS` are compared before timing.
TRAJECTORY_STEPS = 20
CHECKED_STEPS = 10

#: The most different examples in a batch of the check; larger batches repeat them.
_CHECK_ROWS = 8

Batch = tuple[NDArray[Any], NDArray[Any]]


@dataclass(frozen=True)
class Adam:
    """Adam (Kingma and Ba 2015), with epsilon added to sqrt(v) ("epsilon hat" in the paper).

    Attributes:
        learning_rate: alpha.
        beta_1: decay of the first moment.
        beta_2: decay of the second moment.
        epsilon: added to the square root of the second moment before its bias is corrected.
    """

    learning_rate: float = 1e-3
    beta_1: float = 0.9
    beta_2: float = 0.999
    epsilon: float = 1e-7


@dataclass(frozen=True)
class RMSprop:
    """RMSprop (Tieleman and Hinton 2012), with epsilon inside the square root.

    Attributes:
        learning_rate: of a step.
        rho: decay of the mean square.
        epsilon: added to the mean square before its root is taken.
    """

    learning_rate: float = 1e-4
    rho: float = 0.9
    epsilon: float = 1e-7


Optimizer = Adam | RMSprop


class Trains(Workload):
    """What loops and their parts have in common."""

    directions: ClassVar = ("train",)

    @property
    @abstractmethod
    def loop(self) -> Training:
        """The training loop that this is, or is a part of."""

    @property
    def by_preset(self) -> Sizes:
        """The batch sizes by preset."""
        return self.loop.batches

    @property
    def smallest(self) -> int:
        """As many examples as the check has different ones."""
        return _CHECK_ROWS

    def missing(self, preset: str | None) -> str | None:
        """Why the preset ``quick`` leaves out a loop that is too large for it."""
        if preset != "quick" or self.loop.quick:
            return None
        presets = ", ".join(name for name in self.loop.schedules if name != preset)
        batch = self.loop.batches.quick[0]
        return (
            f"{self.name} is not in the preset {preset}: ask for it by another --fw-size "
            f"({presets}) or by a batch size ({batch})"
        )

    def executions(self, manifest: Manifest) -> tuple[str, ...]:
        """Those of training; a framework without any has a gap in ``eager``."""
        return manifest.training_executions or ("eager",)

    def gap(
        self, manifest: Manifest, device: str, execution: str, direction: str, dtype: str
    ) -> str | None:
        """No training at all, no such device, no such dtype, or not offered."""
        framework = manifest.name
        cell = (execution, direction, dtype, device)
        return (
            first(
                {
                    f"{framework} trains no models": not manifest.training_executions,
                    f"{framework} sees no {device}": not manifest.has(device),
                    f"{framework} trains in no {dtype}": dtype not in manifest.training_dtypes,
                }
            )
            or manifest.gap(self.loop.name, *cell)
            or manifest.gap(self.name, *cell)
        )


@dataclass(frozen=True, eq=False)
class Training(Trains):
    """One training loop: model, data, optimiser, batches and schedules.

    Args:
        name: letters, digits and underscores; the first part of every case id.
        network: from an example to logits; the loss is the mean softmax cross-entropy of a batch.
        dataset: the name of a data set.
        shape: of one example: (height, width, channels), or (length,) for tokens.
        classes: how many labels there are.
        optimizer: with its constants.
        batches: batch sizes by preset.
        schedules: how long to train, by preset; ``quick`` is also for sizes that are given.
        quick: whether the preset ``quick`` has it.
    """

    name: str
    network: Network
    dataset: str
    shape: Shape
    classes: int
    optimizer: Optimizer
    batches: Sizes
    schedules: Mapping[str, Schedule]
    quick: bool = True

    @property
    def loop(self) -> Training:
        """The loop itself: it is not a part of another."""
        return self

    @cached_property
    def step(self) -> Step:
        """One batch that lies on the device: forward pass, backward pass, update."""
        return Step(self)

    @cached_property
    def loader(self) -> Loading:
        """The batches of an epoch, and nothing done with them."""
        return Loading(self)

    @property
    def data(self) -> str:
        """The name of the data set."""
        return self.dataset

    @property
    def toggles(self) -> frozenset[str]:
        """``sparse`` where there is an embedding."""
        return frozenset({"workers", "decay"} | ({"sparse"} if self.vocabulary else set()))

    def schedule(self, preset: str | None) -> Schedule:
        """That of the preset; a few steps where sizes were given instead."""
        return self.schedules.get(preset or "quick", next(iter(self.schedules.values())))

    @cached_property
    def graph(self) -> Graph:
        """What the network consists of."""
        return trace(self.network, self.shape)

    @property
    def vocabulary(self) -> int | None:
        """How many tokens there are; None for images."""
        first = self.graph.nodes[0].layer
        return first.vocabulary if isinstance(first, layers.Embedding) else None

    @property
    def unit(self) -> str:
        """What an example consists of, for rates: images, or tokens."""
        return "images" if self.vocabulary is None else "tokens"

    @property
    def units_per_example(self) -> int:
        """An image, or the tokens of a text."""
        return 1 if self.vocabulary is None else self.shape[0]

    def initial(self) -> list[Arrays]:
        """The initial parameters of each node of the graph: the same numbers in every process."""
        return self.graph.initial(_WEIGHTS_SEED)

    @property
    def parameters(self) -> int:
        """How many numbers are trained."""
        return self.graph.parameters

    def check_batches(self, batch: int) -> list[Batch]:
        """Batches for the check, with the losses of :func:`check_rows` different examples.

        A batch repeats its examples, so mean loss and gradient do not depend on its size: one
        stored trajectory serves every batch size that has as many different examples, and the
        code that is checked is the code that is timed, shapes included. They are repeated in a
        random order: no part of a batch has each as often, so a part has another loss.

        Args:
            batch: the batch size.

        Returns:
            (examples, labels) of each step: float32 images from 0 to 1 or int32 tokens, and int32
            labels.
        """
        rows = check_rows(batch)
        rng = np.random.default_rng([_CHECK_SEED, rows])
        batches = []
        for _ in range(TRAJECTORY_STEPS):
            x: NDArray[Any]
            if self.vocabulary is None:
                x = rng.random((rows, *self.shape), dtype=np.float32)
            else:
                x = rng.integers(1, self.vocabulary, (rows, *self.shape), dtype=np.int32)
            y = rng.integers(0, self.classes, rows, dtype=np.int32)
            batches.append((x, y))
        repeated = rng.permutation(np.tile(np.arange(rows), batch // rows))
        return [(x[repeated], y[repeated]) for x, y in batches]


@dataclass(frozen=True, eq=False)
class Step(Trains):
    """One step of a training loop, without its input pipeline."""

    training: Training

    @property
    def name(self) -> str:  # type: ignore[override]
        """The loop's name with a suffix: ``lenet_step``."""
        return f"{self.training.name}_step"

    @property
    def loop(self) -> Training:
        """The training loop that this is a step of."""
        return self.training

    @property
    def toggles(self) -> frozenset[str]:
        """``sparse`` where there is an embedding."""
        return self.training.toggles & {"sparse"}

    def gap(
        self, manifest: Manifest, device: str, execution: str, direction: str, dtype: str
    ) -> str | None:
        """As for the loop; in addition, a whole loop has no step of its own."""
        if execution in manifest.whole_loops:
            return f"{execution} is a whole loop: it has no step of its own"
        return super().gap(manifest, device, execution, direction, dtype)


@dataclass(frozen=True, eq=False)
class Loading(Trains):
    """The input pipeline of a training loop, without its steps."""

    training: Training

    @property
    def name(self) -> str:  # type: ignore[override]
        """The loop's name with a suffix: ``lenet_loader``."""
        return f"{self.training.name}_loader"

    @property
    def loop(self) -> Training:
        """The training loop that this loads batches for."""
        return self.training

    @property
    def data(self) -> str:
        """The name of the data set."""
        return self.training.dataset

    @property
    def toggles(self) -> frozenset[str]:
        """``workers``: it loads, and trains nothing."""
        return frozenset({"workers"})

    def schedule(self, preset: str | None) -> Schedule:
        """The loop's, for the number of batches."""
        return self.training.schedule(preset)

    def executions(self, manifest: Manifest) -> tuple[str, ...]:
        """One: batches are loaded alike whatever is done with them."""
        return ("eager",)


def check_rows(batch: int) -> int:
    """How many different examples a batch of the check has: 8, 4, 2 or 1."""
    return math.gcd(batch, _CHECK_ROWS)


def order(examples: int, repetition: int, epoch: int) -> NDArray[np.int64]:
    """The order in which an epoch visits the training set: the same in every framework.

    Args:
        examples: how many there are.
        repetition: which repetition, from 0.
        epoch: which epoch of it, from 0.
    """
    return np.random.default_rng([_ORDER_SEED, repetition, epoch]).permutation(examples)
