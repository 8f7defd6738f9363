"""Training as cases: a step, a loader, and loops, of which a round is an epoch."""

import itertools
import secrets
import statistics
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from functools import lru_cache, partial
from pathlib import Path
from typing import Any, NamedTuple, cast

import numpy as np
from numpy.typing import NDArray

from fwbench.cases import learning, verify
from fwbench.cases.case import Case, host_memory
from fwbench.cases.epochs import Alone, Epochs, steps_of, whole
from fwbench.cases.inputs import Change, check_device
from fwbench.cases.references import InNumPy, Reference
from fwbench.cases.work import NO_TURNS, Turns, Work
from fwbench.errors import IsolationError, WrongResult
from fwbench.frameworks.contract import Array, Framework
from fwbench.frameworks.learner import Job, Learner, Predictor
from fwbench.measure.clock import Clock
from fwbench.measure.resources import PeakMemory
from fwbench.processes import scratch
from fwbench.records.facts import CaseFacts, Data, Epoch
from fwbench.terms.names import compiles
from fwbench.terms.presets import Schedule
from fwbench.workloads.data import DataSet, Split, load
from fwbench.workloads.grid import Cell
from fwbench.workloads.objective import Batch, Objective
from fwbench.workloads.training import Trains, order


def data_facts(data: DataSet) -> Data:
    """Where the numbers came from, for the record."""
    return Data(
        name=data.name,
        source=data.source,
        origin=data.origin,
        digest=data.digest,
        train=len(data.train),
        validation="test" if data.validation_is_test else len(data.validation),
        test=len(data.test),
    )


class _Step(Work):
    """One step on a batch on the device, of a few by turns."""

    def __init__(
        self,
        learner: Learner,
        reference: Reference,
        steps: int,
        framework: Framework,
        *,
        timed: bool,
    ) -> None:
        self._learner = learner
        self._framework = framework
        self._reference = reference
        self._steps = steps
        self._timed = timed
        learner.reset(exact=False)
        # Before the first call: a smaller model may not know what to do with all labels.
        verify.parameters(learner.parameters(), reference.parameters)
        job = learner.job
        self._batches = job.training.timed_batches(job.batch, learning.TURNS)
        placed = [learner.place(batch) for batch in self._batches]
        self._check_device("a batch", *placed[0])
        self._turns = turns = enumerate(itertools.cycle(placed))
        step = learner.step
        self.run = lambda: step(*next(turns)[1])
        self.read_state = learner.checksum
        self._first = 0

    def verify(self, result: Any) -> CaseFacts:
        """The first losses are the reference's, and every step changes the weights.

        Raises:
            WrongTraining: they are not, or one does not.
        """
        self._check_device("the loss", result)
        checked = learning.check(self._learner, self._steps, self._reference)
        self._first = next(self._turns)[0] + 1
        return checked

    def verify_again(self, last: Any, turns: Turns = NO_TURNS) -> CaseFacts:
        """The same once more, after the steps that were timed, whose updates are all there.

        Raises:
            WrongTraining: it is not the training that was checked before.
        """
        if not self._timed:
            return CaseFacts()
        job, made = self._learner.job, range(self._first, next(self._turns)[0])
        # Not the batches that were timed: they have been learned by heart, and parts of them alike.
        others = job.training.check_batches(job.batch, learning.UPDATES_TIMED)
        batches = [self._batches[turn % learning.TURNS] for turn in made]
        is_exact = not self._reference.drops_out
        learning.check_repeated(self._learner, batches, is_exact=is_exact)
        checked = learning.check_timed(self._learner, others, self._train, self._reference)
        for _ in turns(self._others):
            pass
        return checked

    @property
    def data_bytes(self) -> int:  # type: ignore[override]
        """A batch is new in each turn."""
        return sum(array.nbytes for part in self._batches[0] for array in _arrays(part))

    def _others(self, seed: int) -> Change:
        """A step on a batch of other examples, which is placed before."""
        job = self._learner.job
        batch = job.training.other_batch(job.batch, seed) if seed else self._batches[0]
        step = partial(self._learner.step, *self._learner.place(batch))
        return lambda: step

    def _check_device(self, what: str, *arrays: Any) -> None:
        """Check the place of arrays; of several devices, that of every parameter is known."""
        for array in arrays:
            check_device(self._framework, array, self._learner.job.only_device, what)

    def _train(self, batches: Sequence[Batch]) -> list[Any]:
        return [self._learner.step(*self._learner.place(batch)) for batch in batches]


def _arrays(part: Any) -> Sequence[np.ndarray[Any, Any]]:
    """The arrays of a part of a batch: models of users may take several."""
    return part if isinstance(part, tuple) else (part,)


class _Visited(NamedTuple):
    """Batches of a pass, which were kept, and the examples that each must hold."""

    batches: list[Any]
    examples: NDArray[Any]


def any_and_last(steps: int) -> list[int]:
    """Numbers of the batches that passes keep, of so many, from 0.

    One is drawn, since the last may be made more eagerly; the last has the examples that a pass
    would lack which left some out.
    """
    return sorted({secrets.randbelow(max(1, steps - 1)), steps - 1})


def kept(batches: Iterable[Any], numbers: Sequence[int]) -> list[Any]:
    """The batches of some numbers, of a pass over all of them.

    Raises:
        WrongResult: it ended before.
    """
    found = [batch for number, batch in enumerate(batches) if number in numbers]
    if len(found) < len(numbers):
        raise WrongResult(
            f"a pass of the loader ended before batch {numbers[-1] + 1}: its length or its "
            "treatment of the last examples is wrong"
        )
    return found


#: What placing may round examples by, relative to them; in narrower dtypes by the other.
_PLACED, _PLACED_NARROW = {"float64": 1e-6, "float32": 1e-6}, 1e-2


class _Pass(Work):
    """One pass over the batches of an epoch; ``run`` returns two of them."""

    def __init__(
        self, learner: Learner, data: DataSet, steps: int, to_numpy: Callable[[Any], Any]
    ) -> None:
        self._learner = learner
        self._data = data
        self._steps = steps
        self._to_numpy = to_numpy
        self._loader = learner.loader(whole(data.train), steps)
        self.pieces = steps
        self._order = order(len(data.train), 0, 0)[: steps * learner.job.batch]
        self._kept = any_and_last(steps)
        # As users shuffle before each epoch: batches of an order that was there may be kept.
        self.before = self._shuffle
        self.run = self._pass

    def _shuffle(self) -> None:
        self._order = np.random.default_rng().permutation(self._order)

    def _pass(self) -> _Visited:
        # In time, as users' samplers shuffle: nothing can be gathered before.
        self._loader.set_order(self._order)
        return _Visited(kept(self._loader, self._kept), self._rows[self._kept])

    @property
    def _rows(self) -> NDArray[Any]:
        """The examples of each batch, by the order that was set last."""
        return self._order.reshape(self._steps, -1)

    def arrays(self, result: Any) -> Sequence[Array]:
        """The parts of the drawn batch: they are there, and not made when they are read."""
        return [*result.batches[0]]

    def verify(self, result: Any) -> CaseFacts:
        """Verify the number of batches, and the examples in each.

        Raises:
            WrongResult: they differ.
        """
        rows = self._rows
        self._check_placed(secrets.choice(rows))
        self._loader.set_order(self._order)
        count = 0
        for count, batch in enumerate(self._loader, 1):
            if count <= self._steps:
                self._compare(batch, rows[count - 1])
        if count != self._steps:
            raise WrongResult(
                f"the loader gives {count} batches, and {self._steps} were asked for: its length "
                "or its treatment of the last examples is wrong"
            )
        return CaseFacts(steps_per_epoch=self._steps, data=data_facts(self._data))

    def verify_again(self, last: Any, turns: Turns = NO_TURNS) -> CaseFacts:
        """Batches of the last timed pass are right, and so is a pass in an order that is new.

        Raises:
            WrongResult: it gives other batches.
        """
        with verify.within("after the timing"):
            if last is not None:
                for batch, examples in zip(last.batches, last.examples, strict=True):
                    self._compare(batch, examples)
            self._shuffle()
            return self.verify(last)

    def _batch(self, chosen: NDArray[Any]) -> Batch:
        train = self._data.train
        examples, labels = whole(Split(train.x[chosen], train.y[chosen]))
        return examples, labels.ravel()

    def _check_placed(self, chosen: NDArray[Any]) -> None:
        """The learner's own way to place a batch keeps all numbers, in whatever layout."""
        batch = self._batch(chosen)
        rounding = _PLACED.get(self._learner.job.dtype, _PLACED_NARROW)
        for part, placed in zip(batch, self._learner.place(batch), strict=True):
            actual, expected = np.sort(self._to_numpy(placed), None), np.sort(part, None)
            if actual.shape != expected.shape or not np.allclose(actual, expected, rounding):
                raise WrongResult(
                    f"the learner places other numbers than it is given: {actual.size:,} of "
                    f"{actual.min():.4g} to {actual.max():.4g} instead of {expected.size:,} of "
                    f"{expected.min():.4g} to {expected.max():.4g}; return from `place` all "
                    "examples and labels, unchanged but for their layout and dtype"
                )

    def _compare(self, batch: Any, chosen: NDArray[Any]) -> None:
        expected = self._learner.place(self._batch(chosen))
        for actual, placed in zip(batch, expected, strict=True):
            if not np.array_equal(self._to_numpy(actual), self._to_numpy(placed)):
                raise WrongResult(
                    "a batch of the loader does not hold the examples that it was asked for: "
                    "their order or their layout is wrong"
                )


class TrainingCase(Case):
    """Common base of cases of training."""

    def measure(self) -> Any:
        """Time the training.

        Raises:
            IsolationError: the system does not start the processes that are to load data.
        """
        try:
            return super().measure()
        except OSError as error:
            workers = self.cell.toggle("workers")
            if workers == "0":
                raise
            raise IsolationError(
                f"the data loader (--fw-toggle workers={workers}) cannot start its processes: "
                f"{error}; they need a /dev/shm with room (docker run --shm-size=1g) and further "
                "processes (ulimit -u), or measure with workers=0"
            ) from None

    @property
    def training(self) -> Objective:
        """The training."""
        return cast("Trains", self.cell.workload).at(self.cell.size)

    @property
    def schedule(self) -> Schedule:
        """Epochs, repetitions and steps, as the grid has chosen them."""
        assert self.cell.schedule is not None  # noqa: S101 (the grid's duty)
        return self.cell.schedule

    @property
    def checked_steps(self) -> int:
        """Number of losses that are compared with the reference's."""
        timed = self._benchmark.enabled
        return self.training.checked_steps if timed else learning.CHECKED_UNTIMED

    @property
    def typical_s(self) -> float:
        """The median time of a call, once it was timed."""
        return statistics.median(self._benchmark.rounds_s)

    def compiled(self, facts: CaseFacts) -> CaseFacts:
        """Extra time of the first call over a typical one, where it compiled alone, once timed."""
        first_s = facts.first_call_in_process_s
        if first_s is None or self._is_first is False or not compiles(self.cell.execution):
            return CaseFacts()
        return CaseFacts(compile_s=max(0.0, first_s - self.typical_s))

    def throughput(self) -> CaseFacts:
        """The images, or tokens, that go through in a second, once it was timed."""
        units = self.cell.batch * self.training.units_per_example
        rate: dict[str, Any] = {f"{self.training.unit}_per_s": units / self.typical_s}
        return CaseFacts(**rate)

    @property
    def job(self) -> Job:
        """Description of the training for the learner."""
        cell = self.cell
        return Job(
            self.training,
            cell.device,
            cell.execution,
            cell.dtype,
            cell.batch,
            workers=int(cell.toggle("workers")),
            sparse=cell.toggle("sparse") == "on",
            tf32=cell.toggle("tf32") == "on",
            recompute=cell.toggle("recompute") == "on",
            model_parallel=int(cell.toggle("model_parallel")),
            data_parallel=int(cell.toggle("data_parallel")),
        )

    def learner(self) -> Learner:
        """The framework's learner, with its model built and its weights the initial ones."""
        return self.framework.learner(self.job)

    def reference(self, learner: Learner) -> Reference:
        """Reference that the learner is compared with."""
        return InNumPy(learner)

    def predictor(self) -> Predictor:
        """The framework's network in use, with the initial weights."""
        return self.framework.predictor(self.job)

    def bind(self) -> Work:
        """A batch on the device, and a learner that has not seen it; of a loop, a step."""
        timed = self._benchmark.enabled
        learner = self.learner()
        reference = self.reference(learner)
        return _Step(learner, reference, self.checked_steps, self.framework, timed=timed)

    def _record(self, facts: CaseFacts) -> None:
        """With the segments that are recomputed, where that was asked for."""
        if self.cell.toggle("recompute") == "on":
            segments = self.training.graph.segments
            facts |= CaseFacts(recomputed_segments=len(segments) - 1)
        super()._record(facts)

    def data(self) -> DataSet:
        """The data set, read once in a process."""
        assert self.cell.data is not None  # noqa: S101 (the grid's duty)
        return read(self.cell.data, self._cache)


class FolderCase(TrainingCase):
    """Common base of cases with files."""

    _folder: Path

    def measure(self) -> Any:
        """Time it in a temporary folder."""
        with scratch.folder() as self._folder:
            return super().measure()


class ThroughputCase(TrainingCase):
    """The case of calls on whole batches."""

    def _record(self, facts: CaseFacts) -> None:
        """With throughput, and with what the first call took beyond a typical one."""
        if self._benchmark.timed:
            facts |= self.compiled(facts) | self.throughput()
        super()._record(facts)


class StepCase(ThroughputCase):
    """The case of one training step on a batch on the device."""


class LoaderCase(TrainingCase):
    """The case of one pass of a loader over the training set."""

    def bind(self) -> Work:
        """The framework's loader over the training set."""
        data = self.data()
        steps = steps_of(self.schedule, data, self.cell.batch)
        return _Pass(self.learner(), data, steps, self.framework.to_numpy)


#: A process may train on two data sets by turns; more would only take memory.
read = lru_cache(maxsize=2)(load)


class LoopCase(TrainingCase):
    """A training loop: a round is an epoch, and the median epoch stands for a launch."""

    statistic = "median"

    def _measure(self) -> None:
        with self._unused_on_failure(), self.framework.scope(self.cell.device, self.cell.dtype):
            stored = self.data()
            data = replace(stored, train=Split(*whole(stored.train)))
            memory = PeakMemory()
            device_peak_bytes = self.framework.watch_memory(self.cell.device)
            learner = self.learner()
            # Of its own: only rounds may be seen by the one that gives dispatch times.
            clock = Clock(self._clock.read, self._clock.wait)
            verify.parameters(learner.parameters(), self.training.parameters)
            epochs = self._epochs(learner, data, clock)
        watch = self._watch()
        self._train(epochs)
        condition = self._watched(watch) if watch else CaseFacts()
        memory.pause()
        used = host_memory(memory) | CaseFacts(
            peak_device_memory_bytes=device_peak_bytes(),
            data_memory_bytes=_size_bytes(stored, data),
        )
        # Not before: the first epoch would find everything compiled and warm.
        checked = self._check(learner, data)
        if self._benchmark.timed:
            trained = loop_facts(epochs, self.schedule, data, is_first=self._is_first)
            self._record(used | checked | condition | trained)

    def _epochs(self, learner: Learner, data: DataSet, clock: Clock) -> Epochs:
        steps = steps_of(self.schedule, data, self.cell.batch)
        course = Alone(learner, data, steps, clock, self.framework.threads() or 1)
        return Epochs(
            course,
            data,
            self.schedule,
            clock,
            self.gpu,
            decay=self.cell.toggle("decay") == "on",
            timed_s=lambda: self._benchmark.rounds_s,
            tell=lambda epoch, steps: self._tell(epoch_progress(epoch, steps, self.cell)),
        )

    def _train(self, epochs: Epochs) -> None:
        schedule = self.schedule
        rounds = (schedule.epochs - schedule.warmup_epochs) * schedule.repetitions
        with self.framework.scope(self.cell.device, self.cell.dtype), self._other_processes:
            with self._run_queue:
                self._benchmark.time_rounds(epochs.round, setup=epochs.prepare, rounds=rounds)
            with self._discarded_on_failure():
                epochs.finish()

    def _check(self, learner: Learner, data: DataSet) -> CaseFacts:
        """Whole epochs were timed, so it is checked in whole epochs: of one batch, or a few."""
        schedule, batch = self.schedule, self.cell.batch
        unseen = order(len(data.train), schedule.repetitions, schedule.epochs)
        chosen = np.resize(unseen, learning.UPDATES_TIMED * batch)
        examples, labels = whole(Split(data.train.x[chosen], data.train.y[chosen]))
        batches = [
            (examples[i : i + batch], labels[i : i + batch].ravel())
            for i in range(0, chosen.size, batch)
        ]
        with self.framework.scope(self.cell.device, self.cell.dtype), self._discarded_on_failure():
            timed = CaseFacts()
            if self._benchmark.timed:
                timed = learning.check_timed(learner, batches, partial(one_epoch, learner))
            return timed | learning.check(learner, self.checked_steps)


def loop_facts(
    epochs: Epochs, schedule: Schedule, data: DataSet, *, is_first: bool | None
) -> CaseFacts:
    """Facts of a loop that was timed; of its first epoch only where no case ran before it."""
    warmup = [epoch for epoch in epochs.epochs if epoch.warmup]
    about = CaseFacts(
        warmup_calls=len(warmup) * epochs.steps,
        warmup_s=sum(epoch.seconds for epoch in warmup),
        steady=None,
        warmup_epochs=schedule.warmup_epochs,
        repetitions=schedule.repetitions,
        data=data_facts(data),
    )
    known = about | epochs.facts()
    return (
        known | CaseFacts(first_epoch_excess=None, compile_s=None) if is_first is False else known
    )


def epoch_progress(epoch: Epoch, steps: int, cell: Cell) -> dict[str, Any]:
    """Text of an epoch for a live line."""
    training, schedule = cast("Trains", cell.workload).at(cell.size), cell.schedule
    assert schedule is not None  # noqa: S101 (the grid's duty)
    units = steps * cell.batch * training.units_per_example
    return {
        **epoch,
        "epochs": schedule.epochs,
        "repetitions": schedule.repetitions,
        "rate": units / epoch.seconds if epoch.seconds else 0.0,
        "unit": training.unit,
    }


def _size_bytes(*sets: DataSet) -> int:
    """Memory of data sets; parts that they share count once."""
    splits = (split for data in sets for split in (data.train, data.validation, data.test))
    arrays = {id(array): array for split in splits for array in (split.x, split.y)}
    return sum(array.nbytes for array in arrays.values())


def one_epoch(learner: Learner, batches: Sequence[Batch]) -> Sequence[Any]:
    """Train by an epoch over these batches; returns what :meth:`Learner.losses` takes.

    They are stored in another order than they are visited in.
    """
    examples, labels = (np.concatenate(parts) for parts in zip(*batches, strict=True))
    labels = labels.reshape(len(examples), *learner.job.training.labels_shape)
    visited = np.random.default_rng().permutation(len(examples))
    stored = np.argsort(visited)
    loader = learner.loader((examples[stored], labels[stored]), len(batches))
    loader.set_order(visited)
    return learner.epoch(loader)
