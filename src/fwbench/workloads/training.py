"""Training loops: model, data, optimiser, batch sizes, epochs. They name no framework."""

from abc import abstractmethod
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from fwbench.terms.manifest import Manifest
from fwbench.terms.presets import Schedule, Size, Sizes
from fwbench.workloads.models.graph import Graph
from fwbench.workloads.objective import (
    CHECK_ROWS,
    CHECKED_STEPS,
    DROPOUT_SEED,
    SGD,
    TRAJECTORY_STEPS,
    Adam,
    Batch,
    Objective,
    Optimizer,
    RMSprop,
    check_rows,
)
from fwbench.workloads.workload import Cost, Workload

__all__ = [
    "CHECKED_STEPS", "DROPOUT_SEED", "SGD", "TRAJECTORY_STEPS", "Adam", "Batch",
    "Checkpointing", "Loading", "Optimizer", "RMSprop", "Restoring", "Saving", "Schedule",
    "Step", "Training", "Trains", "TrainsInLoop", "WithNetwork", "check_rows",
    "cost_of_gradients", "order",
]  # fmt: skip

_ORDER_SEED = 21


class WithNetwork(Workload):
    """Work on a network, for which frameworks have executions of their own."""

    #: What is said of a framework that cannot do it, behind the framework's name.
    unable: ClassVar[str]

    @abstractmethod
    def offered(self, manifest: Manifest) -> tuple[str, ...]:
        """The executions in which a framework can do it; none if it cannot."""

    def executions(self, manifest: Manifest) -> tuple[str, ...]:
        """Offered executions; a framework without any has a gap in ``eager``."""
        return self.offered(manifest) or ("eager",)

    def executions_to_name(self, manifest: Manifest) -> Collection[str]:
        """In addition those of operations, which one may take for those of networks."""
        return dict.fromkeys((*self.executions(manifest), *manifest.executions))


class Trains(WithNetwork):
    """Work that trains a network."""

    directions: ClassVar = ("train",)
    unable = "trains no models"

    @abstractmethod
    def at(self, size: Size) -> Objective:
        """Training at a size."""

    def offered(self, manifest: Manifest) -> tuple[str, ...]:
        """Executions of training."""
        return manifest.training_executions


class TrainsInLoop(Trains):
    """Common base of loops and their parts."""

    @property
    @abstractmethod
    def loop(self) -> "Training":
        """The training loop that this is, or is a part of."""

    def at(self, size: Size) -> Objective:
        """The loop's objective, for any batch size."""
        return self.loop

    @property
    def by_preset(self) -> Sizes:
        """The batch sizes by preset."""
        return self.loop.batches

    @property
    def smallest(self) -> int:
        """Number of different examples in the check."""
        return CHECK_ROWS

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

    def grown(self, size: Size, replicas: int) -> Size:
        """The batch that gives each replica the examples of one."""
        assert isinstance(size, int)  # noqa: S101 (loops have no shapes)
        return replicas * size


@dataclass(frozen=True, eq=False)
class Training(Objective, TrainsInLoop):
    """One training loop: model, data, optimiser, batches and schedules.

    Args:
        schedules: how long to train, by preset; ``quick`` is also for sizes that are given.
        quick: whether the preset ``quick`` has it.
        representative: whether a session without options measures it.
    """

    dataset: str = field(kw_only=True)
    batches: Sizes = field(kw_only=True)
    schedules: Mapping[str, Schedule] = field(kw_only=True)
    quick: bool = field(default=True, kw_only=True)
    representative: bool = field(default=True, kw_only=True)

    shared: ClassVar = True
    cold: ClassVar = True

    @property
    def loop(self) -> "Training":
        """The loop itself: it is not a part of another."""
        return self

    @cached_property
    def step(self) -> "Step":
        """One batch on the device: forward pass, backward pass, update."""
        return Step(self)

    @cached_property
    def loader(self) -> "Loading":
        """The batches of an epoch, and nothing done with them."""
        return Loading(self)

    @cached_property
    def checkpoints(self) -> "tuple[Checkpointing, ...]":
        """A checkpoint that is saved, and one that is restored."""
        return Saving(self), Restoring(self)

    @property
    def data(self) -> str:
        """The name of the data set."""
        return self.dataset

    @property
    def toggles(self) -> frozenset[str]:
        """``sparse`` where there is an embedding."""
        return frozenset({"workers", "decay"} | ({"sparse"} if self.vocabulary else set()))

    def schedule(self, preset: str | None) -> Schedule:
        """Schedule of the preset; a few steps where sizes were given instead."""
        return self.schedules.get(preset or "quick", next(iter(self.schedules.values())))


@dataclass(frozen=True, eq=False)
class _PartOfLoop(TrainsInLoop):
    training: Training

    suffix: ClassVar[str]

    @property
    def name(self) -> str:  # type: ignore[override]
        """The loop's name with a suffix: ``lenet_step``."""
        return f"{self.training.name}_{self.suffix}"

    @property
    def representative(self) -> bool:  # type: ignore[override]
        return self.training.representative

    @property
    def loop(self) -> Training:
        return self.training


def cost_of_gradients(graph: Graph, batch: int) -> Cost:
    """The arithmetic of kernels alone; parameters are read, and as many numbers written.

    The gradients by results and by parameters are as much work each as the forward pass; that by
    the examples is not needed.
    """
    first = graph.nodes[0]
    needless = first.layer.multiply_adds(*first.shapes)
    multiply_adds = batch * (3 * graph.multiply_adds - needless)
    return Cost(flops=2.0 * multiply_adds, elements=2.0 * graph.parameters)


class Step(_PartOfLoop):
    """One step of a training loop, without its input pipeline."""

    suffix = "step"
    shared: ClassVar = True

    def cost_of(self, direction: str, size: Size) -> Cost | None:
        """Cost of the gradients, and of parameters that are read and written once."""
        assert isinstance(size, int)  # noqa: S101 (loops have no shapes)
        return cost_of_gradients(self.training.graph, size)

    @property
    def toggles(self) -> frozenset[str]:
        """``sparse`` where there is an embedding."""
        return self.training.toggles & {"sparse"}


class Loading(_PartOfLoop):
    """The input pipeline of a training loop, without its steps."""

    suffix = "loader"
    toggles: ClassVar = frozenset({"workers"})  # it loads, and trains nothing
    executions_to_name = Workload.executions_to_name

    @property
    def data(self) -> str:
        """The name of the data set."""
        return self.training.dataset

    def schedule(self, preset: str | None) -> Schedule:
        """The loop's, for the number of batches."""
        return self.training.schedule(preset)

    def executions(self, manifest: Manifest) -> tuple[str, ...]:
        """One: batches are loaded alike for all uses."""
        return ("eager",)


class Checkpointing(_PartOfLoop):
    """The state of a training, in files: it depends neither on the batch nor on the execution."""

    unable = "saves no checkpoints of its own"
    representative = False
    executions_to_name = Workload.executions_to_name

    @property
    def by_preset(self) -> Sizes:
        """The first batch size of the loop."""
        return Sizes(self.training.batches.quick[:1])

    def offered(self, manifest: Manifest) -> tuple[str, ...]:
        """One."""
        return ("eager",) if manifest.checkpoints else ()


class Saving(Checkpointing):
    """Weights and the optimiser's state to files."""

    suffix = "save"


class Restoring(Checkpointing):
    """The way back, into a model and an optimiser that are there."""

    suffix = "restore"


def order(examples: int, repetition: int, epoch: int) -> NDArray[np.int64]:
    """The order in which an epoch visits the training set: the same in every framework.

    Args:
        repetition: which repetition, from 0.
        epoch: which epoch of it, from 0.
    """
    return np.random.default_rng([_ORDER_SEED, repetition, epoch]).permutation(examples)
