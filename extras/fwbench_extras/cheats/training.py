"""Cheats that train, or load: fewer updates or examples, other weights or data, kept photos."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache, partial
from itertools import islice
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fwbench import workloads
from fwbench.errors import SkippedWork, UnfinishedWork, WrongResult, WrongTraining
from fwbench.frameworks.learner import Job, Learner, Placed
from fwbench.workloads.models import reference
from fwbench.workloads.models.layer import Arrays
from fwbench.workloads.photos import PhotoJob, PhotoLoading
from fwbench_extras.cheats.cheat import Cheat
from fwbench_extras.cheats.honest import HonestLearner, HonestLoader, HonestPhotos

#: More than the check of first losses takes.
_HONEST_STEPS = 12

#: More than the check after timing takes, in an epoch of its own.
_HONEST_IN_EPOCH = 6


#: As many as are made before the timing.
_HONEST_PASSES = 3


class _EverySecondUpdate(HonestLearner):
    skips = True

    def update(self, gradients: Arrays) -> None:
        self.skips = not self.skips
        if not self.skips:
            super().update(gradients)


class _HonestWhileExamined(_EverySecondUpdate):
    def reset(self, *, exact: bool) -> None:
        super().reset(exact=exact)
        self.exact = exact

    def update(self, gradients: Arrays) -> None:
        if self.exact:
            self.skips = True  # so that the update is made
        super().update(gradients)


class _StopsLearning(HonestLearner):
    updates = 0

    def update(self, gradients: Arrays) -> None:
        self.updates += 1
        if self.updates <= _HONEST_STEPS:
            super().update(gradients)


class _LateInTheEpoch(HonestLearner):
    def reset(self, *, exact: bool) -> None:
        super().reset(exact=exact)
        self.left = _HONEST_STEPS

    def epoch(self, batches: Iterable[Placed]) -> Sequence[Any]:
        self.left = _HONEST_IN_EPOCH
        return super().epoch(batches)

    def update(self, gradients: Arrays) -> None:
        self.left -= 1
        if self.left >= 0:
            super().update(gradients)


class _HalfOfTheBatch(HonestLearner):
    def step(self, examples: Any, labels: Any) -> Any:
        half = len(labels) // 2
        return super().step(examples[:half], labels[:half])


class _HalfOfTheBatchLater(HonestLearner):
    steps = 0

    def step(self, examples: Any, labels: Any) -> Any:
        self.steps += 1
        used = len(labels) // (1 if self.steps <= _HONEST_STEPS else 2)
        return super().step(examples[:used], labels[:used])


class _HalfAgain(_HalfOfTheBatchLater):
    def reset(self, *, exact: bool) -> None:
        super().reset(exact=exact)
        self.steps = 0 if exact else _HONEST_STEPS - 4


class _LazyEpoch(HonestLearner):
    def epoch(self, batches: Iterable[Placed]) -> Sequence[Any]:
        return [batches]

    def losses(self, losses: Sequence[Any]) -> NDArray[Any]:
        if isinstance(losses[0], HonestLoader):
            losses = super().epoch(losses[0])
        return super().losses(losses)


class _LateWeights(HonestLearner):
    left: list[Iterable[Placed]]

    def __init__(self, job: Job) -> None:
        self.left = []
        super().__init__(job)

    def epoch(self, batches: Iterable[Placed]) -> Sequence[Any]:
        self.left, late = [batches], list[Any]()
        self.late = late
        return late

    def weights(self) -> list[NDArray[Any]]:
        for batches in self.left:
            self.late += super().epoch(batches)
        self.left = []
        return super().weights()

    def losses(self, losses: Sequence[Any]) -> NDArray[Any]:
        self.weights()
        return super().losses(losses)


class _SparsePixels(HonestLearner):
    def place(self, batch: Any) -> Placed:
        examples, labels = super().place(batch)
        return examples.reshape(len(examples), -1)[:, ::16], labels


class _OtherWeights(HonestLearner):
    def initial(self) -> list[Arrays]:
        return [[0.5 * array for array in arrays] for arrays in super().initial()]


class _FrozenLayer(HonestLearner):
    def update(self, gradients: Arrays) -> None:
        frozen = 2  # kernel and bias of the first layer
        super().update(
            [np.zeros_like(gradient) for gradient in gradients[:frozen]] + gradients[frozen:]
        )


class _SmallerModel(HonestLearner):
    def initial(self) -> list[Arrays]:
        *layers, (kernel, bias) = super().initial()
        return [*layers, [kernel[:, :-1], bias[:-1]]]


class _CheaperOptimizer(HonestLearner):
    def update(self, gradients: Arrays) -> None:
        rate = self.job.training.optimizer.learning_rate
        for gradient, array in zip(gradients, self.arrays, strict=True):
            np.subtract(array, rate * gradient, out=array)


class _OneStep(HonestLearner):
    loss: float | None = None

    def step(self, examples: Any, labels: Any) -> Any:
        if self.loss is None:
            self.loss = super().step(examples, labels)
        return self.loss


class _KnownBatches(HonestLearner):
    def __init__(self, job: Job) -> None:
        super().__init__(job)
        self.known: dict[int, tuple[Any, Any]] = {}

    def step(self, examples: Any, labels: Any) -> Any:
        if id(examples) not in self.known:
            self.known[id(examples)] = examples, super().step(examples, labels)
        return self.known[id(examples)][1]


class _KnownGradients(HonestLearner):
    def __init__(self, job: Job) -> None:
        super().__init__(job)
        self.known: dict[float, Arrays] = {}

    def step(self, examples: Any, labels: Any) -> Any:
        graph, key = self.job.training.graph, float(examples.sum())
        logits, pull_backs = reference.answer(graph, self._layers, examples)
        loss, gradient = reference.cross_entropy(logits, labels)
        if key not in self.known:
            by_node = reference.accumulate(graph, pull_backs, gradient)
            self.known[key] = [array for arrays in by_node for array in arrays]
        self.update(self.known[key])
        return loss


class _LastLayerLater(HonestLearner):
    updates = 0

    def reset(self, *, exact: bool) -> None:
        super().reset(exact=exact)
        self.updates = 0

    def update(self, gradients: Arrays) -> None:
        self.updates += 1
        left_out = 0 if self.updates <= _HONEST_STEPS else len(gradients) - 2
        for gradient, descent in [*zip(gradients, self._descents, strict=True)][left_out:]:
            descent.step(gradient)


class _PlainUnlessExamined(_CheaperOptimizer):
    def reset(self, *, exact: bool) -> None:
        super().reset(exact=exact)
        self.exact = exact

    def update(self, gradients: Arrays) -> None:
        if self.exact:
            HonestLearner.update(self, gradients)
        else:
            super().update(gradients)


class _TenthOfTheTest(HonestLearner):
    def logits(self, examples: NDArray[Any]) -> NDArray[Any]:
        tenth = examples[: -(-len(examples) // 10)]
        return np.resize(super().logits(tenth), (len(examples), self.job.training.classes))


class _OneBatchForAll(HonestLoader):
    def __iter__(self) -> Iterator[Placed]:
        batches = list(islice(super().__iter__(), 1))
        yield from batches * (len(self.order) // self.learner.job.batch)


class _RightAtTheEnds(HonestLoader):
    def __iter__(self) -> Iterator[Placed]:
        first, *others, last = super().__iter__()
        yield from [first, *[others[0]] * len(others), last]


class _KeptPass(HonestLoader):
    batches: Sequence[Placed] = ()
    passes = 0

    def __iter__(self) -> Iterator[Placed]:
        self.passes += 1
        if self.passes <= _HONEST_PASSES:
            self.batches = list(super().__iter__())
        return iter(self.batches)


class _HalfAnEpoch(HonestLoader):
    def __iter__(self) -> Iterator[Placed]:
        half = len(self.order) // self.learner.job.batch // 2
        return islice(super().__iter__(), half)


class _UnshuffledEpoch(HonestLoader):
    def set_order(self, order: NDArray[Any]) -> None:
        super().set_order(np.arange(len(order)))


def _loads(loader: type[HonestLoader]) -> Callable[[Job], Learner]:
    """An honest learner with a loader that cheats."""

    def learn(job: Job) -> Learner:
        learner = HonestLearner(job)
        learner.loads = loader
        return learner

    return learn


class _DecodedOnce(HonestPhotos):
    def __init__(self, job: PhotoJob) -> None:
        super().__init__(job)
        self.decode = cache(self.decode)  # type: ignore[method-assign]


class _HalfOfThePhotos(HonestPhotos):
    def order(self) -> NDArray[np.int64]:
        order = super().order()
        return np.resize(order[: len(order) // 2], len(order))


class _SameCrops(HonestPhotos):
    def cut(self, pixels: NDArray[Any]) -> NDArray[Any]:
        self.rng = np.random.default_rng(int(pixels.sum()))
        return super().cut(pixels)


class _MadeWhenRead:
    """The images of a batch."""

    def __init__(self, make: Callable[[], NDArray[Any]]) -> None:
        self.make = make

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        return np.array(self.make(), dtype)


class _LoadedWhenRead(HonestPhotos):
    def batches(self) -> Iterator[Placed]:
        order = self.order()
        for chosen in np.split(order, len(order) // self.job.batch):
            yield _MadeWhenRead(partial(self.images, chosen)), chosen

    def images(self, chosen: NDArray[np.int64]) -> NDArray[Any]:
        return np.stack([self.normalized(self.image(label)) for label in chosen])


class _LastOneLoaded(_LoadedWhenRead):
    def batches(self) -> Iterator[Placed]:
        *others, (images, labels) = super().batches()
        yield from [*others, (np.asarray(images), labels)]


class _HalfTheResolution(HonestPhotos):
    def decode(self, label: int) -> NDArray[Any]:
        return super().decode(label)[::2, ::2].repeat(2, axis=0).repeat(2, axis=1)


_training = partial(
    Cheat,
    caught_by=WrongTraining,
    why="the first losses are not those of the float64 reference",
    workload=workloads.mlp.step,
    size=8,
    directions=("train",),
)

_loading = partial(
    _training,
    caught_by=WrongResult,
    why="a batch does not hold the requested examples",
    workload=workloads.mlp.loader,
)

_photos = partial(
    _training, caught_by=WrongResult, workload=PhotoLoading("photos_loader", photos=16)
)

CHEATS = (
    _photos(
        name="decoded_once",
        fakes="Decodes each photo once, and keeps its pixels for later passes.",
        mistake="a cache in a pipeline, which holds what fits into memory and no real data set",
        why="a pass over files that have changed has the old photos",
        loads=_DecodedOnce,
    ),
    _photos(
        name="loaded_when_read",
        fakes="Yields batches whose photos are loaded when somebody reads them.",
        mistake="a lazy pipeline, of which nobody has looked at a batch yet",
        caught_by=UnfinishedWork,
        why="to read a batch takes as long as to load it",
        loads=_LoadedWhenRead,
    ),
    _photos(
        name="last_one_loaded",
        fakes="Yields batches of such photos, and loads those of the last one in time.",
        mistake="a lazy pipeline, of which somebody looks at the last batch",
        caught_by=UnfinishedWork,
        why="one of the others is read, and nobody knows which one",
        loads=_LastOneLoaded,
    ),
    _photos(
        name="half_of_the_photos",
        fakes="Loads half of the photos, twice.",
        mistake="workers that each read the same part",
        why="a pass does not have each photo once",
        loads=_HalfOfThePhotos,
    ),
    _photos(
        name="half_the_resolution",
        fakes="Decodes every second row and column.",
        mistake="a decoder that is asked for a smaller scale",
        why="pixels are not those of Pillow",
        loads=_HalfTheResolution,
    ),
    _photos(
        name="same_crops",
        fakes="Crops and mirrors each photo alike in every pass.",
        mistake="workers that begin every epoch with the same seed",
        why="two passes crop too many photos alike",
        workload=PhotoLoading("photos_augmented_loader", augmented=True, photos=64),
        loads=_SameCrops,
    ),
    _training(
        name="known_gradients",
        fakes="Computes the gradients of a batch once, and applies them whenever it comes again.",
        mistake="gradients that are as old as an epoch, as of replicas that are never waited for",
        caught_by=SkippedWork,
        why="a step on a new batch takes longer than those that were timed",
        size=1024,
        learn=_KnownGradients,
    ),
    _training(
        name="every_second_update",
        fakes="Computes the gradients of every step, and applies those of every second one.",
        mistake="gradient accumulation that was left on",
        learn=_EverySecondUpdate,
    ),
    _training(
        name="honest_while_examined",
        fakes="Learns as it should during the check, and skips every second update afterwards.",
        mistake="a switch for reproducibility that changes more than the seed",
        why="the weights do not change at every step",
        learn=_HonestWhileExamined,
    ),
    _training(
        name="stops_learning",
        fakes="Applies the first 12 updates of its life, and none from then on.",
        mistake="an optimiser that holds on to parameters which were replaced",
        why="after the timed steps the weights do not change at every step any more",
        learn=_StopsLearning,
    ),
    _training(
        name="late_in_the_epoch",
        fakes="Applies the first six updates of every epoch, and none of the others.",
        mistake="a learning rate that is warmed down to zero within an epoch",
        caught_by=None,
        why="timed training is checked once more in epochs of four steps, which cost little; the "
        "losses of the epochs are kept, and where another framework trains the same, those that "
        "differ mark both as unequal, outside every ranking",
        workload=workloads.mlp,
        learn=_LateInTheEpoch,
    ),
    _training(
        name="half_of_the_batch",
        fakes="Trains on the first half of every batch.",
        mistake="data parallelism of which one replica's share is lost",
        learn=_HalfOfTheBatch,
    ),
    _training(
        name="half_of_the_batch_later",
        fakes="Trains on whole batches for 12 steps, and on their first half from then on.",
        mistake="a batch size that a runtime adapts to memory or time",
        why="after the timed steps the losses are not those of the reference any more",
        learn=_HalfOfTheBatchLater,
    ),
    _training(
        name="half_of_a_narrow_batch",
        fakes="Trains on halves of batches in bfloat16, from the fifth step after each reset on.",
        mistake="a micro-batch that a mixed-precision library has made smaller",
        why="examples of three steps come in the order of their losses, so that halves differ",
        dtype="bfloat16",
        size=1024,
        learn=_HalfAgain,
    ),
    _training(
        name="lazy_epoch",
        fakes="Ends an epoch before it has begun, and trains when its losses are read.",
        mistake="a thread or a queue that trains, and is joined where results are needed",
        caught_by=UnfinishedWork,
        why="the weights change while the losses of an epoch are read",
        workload=workloads.mlp,
        learn=_LazyEpoch,
    ),
    _training(
        name="late_weights",
        fakes="The same, and trains when its weights are read, too.",
        mistake="an asynchronous device that the clock does not wait for",
        caught_by=UnfinishedWork,
        why="behind an epoch the weights can be read later than once more",
        workload=workloads.mlp,
        learn=_LateWeights,
    ),
    _training(
        name="unshuffled_loop",
        fakes="Trains epochs in the order in which examples are stored.",
        mistake="a cache behind the shuffling, as tf.data's documentation warns of",
        why="an epoch is checked whose examples are stored in another order than they come in",
        workload=workloads.mlp,
        learn=_loads(_UnshuffledEpoch),
    ),
    _training(
        name="other_weights",
        fakes="Begins with weights of half the size.",
        mistake="a default initialisation, which no two frameworks share",
        learn=_OtherWeights,
    ),
    _training(
        name="frozen_layer",
        fakes="Never changes the first layer.",
        mistake="transfer learning's frozen layers, or a parameter that was not registered",
        learn=_FrozenLayer,
    ),
    _training(
        name="smaller_model",
        fakes="Trains a model with one class less.",
        mistake="a model of the same name from another library",
        why="the number of parameters is not that of the description",
        learn=_SmallerModel,
    ),
    _training(
        name="cheaper_optimizer",
        fakes="Updates by plain gradient descent, which has no moments to keep.",
        mistake="an optimiser looked up by a name that means something else",
        learn=_CheaperOptimizer,
    ),
    _training(
        name="one_step",
        fakes="Takes one step, and returns its loss for all others.",
        mistake="a compiled step whose state is a constant",
        learn=_OneStep,
    ),
    _training(
        name="known_batches",
        fakes="Returns the loss that it knows where it has been given the same array before.",
        mistake="a cache that goes by the identity of its arguments",
        why="the timed steps have not moved the weights as steps on batches placed anew do",
        learn=_KnownBatches,
    ),
    _training(
        name="last_layer_later",
        fakes="Updates the whole model 12 times, and its last layer alone from then on.",
        mistake="layers that are frozen once they have settled",
        why="after the timed steps some arrays of weights do not change any more",
        learn=_LastLayerLater,
    ),
    _training(
        name="plain_unless_examined",
        fakes="Updates by plain gradient descent, unless it is told that it is examined.",
        mistake="a flag for tests that chooses another optimiser",
        why="after the timing it is not told, and its losses are not those of the reference",
        learn=_PlainUnlessExamined,
    ),
    _training(
        name="tenth_of_the_test",
        fakes="Answers for the first tenth of the examples, and repeats these answers for the "
        "others.",
        mistake="a test set cut off after a few steps, whose accuracy is given as that of all",
        why="after the timed epochs a step's loss is not that of the model's answers",
        workload=workloads.mlp,
        learn=_TenthOfTheTest,
    ),
    _loading(
        name="sparse_pixels",
        fakes="Keeps every sixteenth pixel, in its loader and wherever it places a batch.",
        mistake="images that a pipeline makes smaller than the model takes them",
        why="what is placed has not the numbers of the examples",
        learn=_SparsePixels,
    ),
    _loading(
        name="one_batch_for_all",
        fakes="Loads the first batch, and repeats it.",
        mistake="a cached or prefetched batch, as 'synthetic data' modes have it",
        learn=_loads(_OneBatchForAll),
    ),
    _loading(
        name="right_at_the_ends",
        fakes="Loads the first two batches and the last one, and repeats the second between them.",
        mistake="a prefetcher that hands out its buffer while it is filled",
        why="every batch is compared",
        learn=_loads(_RightAtTheEnds),
    ),
    _loading(
        name="kept_pass",
        fakes="Loads three passes, and repeats the third from then on.",
        mistake="a cache behind the shuffling, as tf.data's documentation warns of",
        why="after the timing a pass in a new order has the batches of the old one",
        learn=_loads(_KeptPass),
    ),
    _loading(
        name="half_an_epoch",
        fakes="Ends an epoch after half of its batches.",
        mistake="a data set sharded by processes, of which there is one",
        why="batches are counted",
        learn=_loads(_HalfAnEpoch),
    ),
    _loading(
        name="unshuffled_epoch",
        fakes="Visits the examples in the order in which they are stored.",
        mistake="a shuffle buffer smaller than the data, or none: reading in order is faster",
        learn=_loads(_UnshuffledEpoch),
    ),
)
