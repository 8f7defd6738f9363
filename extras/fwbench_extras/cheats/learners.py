"""Liars that train: fewer updates, fewer examples, other weights, other data."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from fwbench import workloads
from fwbench.errors import FwbenchError, WrongResult, WrongTraining
from fwbench.frameworks.learner import Job, Learner, Placed
from fwbench.workloads.models.layer import Arrays
from fwbench_extras.cheats.honest_learner import HonestLearner, HonestLoader
from fwbench_extras.cheats.liar import Liar

#: More than the check before timing takes.
_HONEST_STEPS = 12

#: More than the check after timing takes, in an epoch of its own.
_HONEST_IN_EPOCH = 6

_LOSSES = "the first losses are not those of the float64 reference"


class _Training(Liar):
    """A liar whose operations are honest, and whose learner is not.

    Attributes:
        learns: the class of its learners.
    """

    caught_by: ClassVar[type[FwbenchError] | None] = WrongTraining
    why = _LOSSES
    workload = workloads.mlp.step
    size = 8
    directions: ClassVar = ("train",)
    learns: ClassVar[type[HonestLearner]]

    def learner(self, job: Job) -> Learner:
        """The learner that lies."""
        return self.learns(job)


# Updates


class _SkipsEverySecond(HonestLearner):
    skips = True

    def update(self, gradients: Arrays) -> None:
        self.skips = not self.skips
        if not self.skips:
            super().update(gradients)


class EverySecondUpdate(_Training):
    """Computes the gradients of every step, and applies those of every second one."""

    mistake = "gradient accumulation that was left on"
    learns = _SkipsEverySecond


class _SkipsUnlessExact(_SkipsEverySecond):
    def reset(self, *, exact: bool) -> None:
        super().reset(exact=exact)
        self.exact = exact

    def update(self, gradients: Arrays) -> None:
        if self.exact:
            self.skips = True  # so that the update is made
        super().update(gradients)


class HonestWhileExamined(_Training):
    """Learns as it should during the check, and skips every second update afterwards."""

    mistake = "a switch for reproducibility that changes more than the seed"
    why = "the weights do not change at every step"
    learns = _SkipsUnlessExact


class _StopsLearning(HonestLearner):
    updates = 0

    def update(self, gradients: Arrays) -> None:
        self.updates += 1
        if self.updates <= _HONEST_STEPS:
            super().update(gradients)


class StopsLearning(_Training):
    """Applies the first 12 updates of its life, and none from then on."""

    mistake = "an optimiser that holds on to parameters which were replaced"
    why = "after the timed steps the weights do not change at every step any more"
    learns = _StopsLearning


class _StopsInEachEpoch(HonestLearner):
    left = _HONEST_STEPS

    def epoch(self, batches: Iterable[Placed]) -> Sequence[Any]:
        self.left = _HONEST_IN_EPOCH
        return super().epoch(batches)

    def update(self, gradients: Arrays) -> None:
        self.left -= 1
        if self.left >= 0:
            super().update(gradients)


class LateInTheEpoch(_Training):
    """Applies the first six updates of every epoch, and none of the others."""

    mistake = "a learning rate that is warmed down to zero within an epoch"
    caught_by = None
    why = (
        "what was timed is checked once more in epochs of four steps, which cost little; the "
        "losses of the epochs are kept, and where another framework trains the same, those that "
        "differ mark both as unequal, outside every ranking"
    )
    workload = workloads.mlp
    learns = _StopsInEachEpoch


# Examples


class _TrainsOnHalf(HonestLearner):
    def step(self, examples: Any, labels: Any) -> Any:
        half = len(labels) // 2
        return super().step(examples[:half], labels[:half])


class HalfOfTheBatch(_Training):
    """Trains on the first half of every batch."""

    mistake = "data parallelism of which one replica's share is lost"
    learns = _TrainsOnHalf


class _TrainsOnHalfLater(HonestLearner):
    steps = 0

    def step(self, examples: Any, labels: Any) -> Any:
        self.steps += 1
        share = 1 if self.steps <= _HONEST_STEPS else 2
        some = slice(len(labels) // share)
        return super().step(examples[some], labels[some])


class HalfOfTheBatchLater(_Training):
    """Trains on whole batches for 12 steps, and on their first half from then on."""

    mistake = "a batch size that a runtime adapts to memory or time"
    why = "after the timed steps the losses are not those of the reference any more"
    learns = _TrainsOnHalfLater


# The model


class _OtherWeights(HonestLearner):
    def initial(self) -> list[Arrays]:
        return [[0.5 * array for array in arrays] for arrays in super().initial()]


class OtherWeights(_Training):
    """Begins with weights of half the size."""

    mistake = "a default initialisation, which no two frameworks share"
    learns = _OtherWeights


class _Frozen(HonestLearner):
    def update(self, gradients: Arrays) -> None:
        frozen = 2  # kernel and bias of the first layer
        super().update(
            [np.zeros_like(gradient) for gradient in gradients[:frozen]] + gradients[frozen:]
        )


class FrozenLayer(_Training):
    """Never changes the first layer."""

    mistake = "transfer learning's frozen layers, or a parameter that was not registered"
    learns = _Frozen


class _OneClassLess(HonestLearner):
    def initial(self) -> list[Arrays]:
        *layers, (kernel, bias) = super().initial()
        return [*layers, [kernel[:, :-1], bias[:-1]]]


class SmallerModel(_Training):
    """Trains a model with one class less."""

    mistake = "a model of the same name from another library"
    why = "the number of parameters is not that of the description"
    learns = _OneClassLess


class _Plain(HonestLearner):
    def update(self, gradients: Arrays) -> None:
        rate = self.job.training.optimizer.learning_rate
        for gradient, array in zip(gradients, self.arrays, strict=True):
            np.subtract(array, rate * gradient, out=array)


class CheaperOptimizer(_Training):
    """Updates by plain gradient descent, which has no moments to keep."""

    mistake = "an optimiser looked up by a name that means something else"
    learns = _Plain


class _OneStep(HonestLearner):
    loss: float | None = None

    def step(self, examples: Any, labels: Any) -> Any:
        if self.loss is None:
            self.loss = super().step(examples, labels)
        return self.loss


class OneStep(_Training):
    """Takes one step, and returns its loss for all others."""

    mistake = "a compiled step whose state is a constant"
    learns = _OneStep


class _EvaluatesOnTenth(HonestLearner):
    def logits(self, examples: NDArray[Any]) -> NDArray[Any]:
        some = examples[: -(-len(examples) // 10)]
        return np.resize(super().logits(some), (len(examples), self.job.training.classes))


class TenthOfTheTest(_Training):
    """Answers for the first tenth of the examples, and repeats these answers for the others."""

    mistake = "a test set cut off after a few steps, whose accuracy is given as that of all"
    why = "after the timed epochs a step's loss is not that of the model's answers"
    workload = workloads.mlp
    learns = _EvaluatesOnTenth


# The loader


class _OneBatchLoader(HonestLoader):
    def __iter__(self) -> Iterator[Placed]:
        batches = list(islice(super().__iter__(), 1))
        yield from batches * (len(self.order) // self.learner.job.batch)


class _ShortLoader(HonestLoader):
    def __iter__(self) -> Iterator[Placed]:
        half = len(self.order) // self.learner.job.batch // 2
        return islice(super().__iter__(), half)


class _UnshuffledLoader(HonestLoader):
    def set_order(self, order: NDArray[Any]) -> None:
        super().set_order(np.arange(len(order)))


class _Loading(_Training):
    """A liar whose loader lies.

    Attributes:
        loads: the class of its loaders.
    """

    caught_by: ClassVar[type[FwbenchError] | None] = WrongResult
    why = "the last batch does not hold the examples that were asked for"
    workload = workloads.mlp.loader
    loads: ClassVar[type[HonestLoader]]

    def learner(self, job: Job) -> Learner:
        """An honest one with a loader that lies."""
        learner = HonestLearner(job)
        learner.loads = self.loads
        return learner


class OneBatchForAll(_Loading):
    """Loads the first batch, and repeats it."""

    mistake = "a cached or prefetched batch, as 'synthetic data' modes have it"
    loads = _OneBatchLoader


class HalfAnEpoch(_Loading):
    """Ends an epoch after half of its batches."""

    mistake = "a data set sharded by processes, of which there is one"
    why = "batches are counted"
    loads = _ShortLoader


class UnshuffledEpoch(_Loading):
    """Visits the examples in the order in which they are stored."""

    mistake = "a shuffle buffer smaller than the data, or none: reading in order is faster"
    loads = _UnshuffledLoader


LIARS = (
    EverySecondUpdate,
    HonestWhileExamined,
    StopsLearning,
    LateInTheEpoch,
    HalfOfTheBatch,
    HalfOfTheBatchLater,
    OtherWeights,
    FrozenLayer,
    SmallerModel,
    CheaperOptimizer,
    OneStep,
    TenthOfTheTest,
    OneBatchForAll,
    HalfAnEpoch,
    UnshuffledEpoch,
)
