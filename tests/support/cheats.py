"""Mistakes that replicas make on purpose, alike in every framework."""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from itertools import count
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from fwbench import workloads
from fwbench.cases.case import Case
from fwbench.cases.kinds import case_class
from fwbench.frameworks.learner import Job
from fwbench.frameworks.member import Place
from fwbench.measure.clock import Clock
from fwbench.plugin.host import FixtureBenchmark
from fwbench.terms.presets import Form, Schedule, Shape
from fwbench.workloads import mlp
from fwbench.workloads.data import DataSet, Split
from fwbench.workloads.models.graph import sequential
from fwbench.workloads.models.layers import BatchNorm, Conv, Dense, GlobalAveragePool, Relu
from fwbench.workloads.models.steps import ModelStep
from fwbench.workloads.objective import SGD, Objective
from fwbench_extras.cheats import Cheat
from support.fake_learner import FOUND, data_set
from support.fakes import cell, fixture


def _normalized(size: Shape) -> Objective:
    layers = (
        Conv(4, 3, relu=False, bias=False),
        BatchNorm(),
        Relu(),
        GlobalAveragePool(),
        Dense(10, relu=False),
    )
    shape = (size["image"], size["image"], 3)
    return Objective("normalized", sequential(*layers), shape, 10, SGD(), (0.4, 1.0, 1.0, 2.0))


#: A network that normalizes by batch, smaller than the suite's; replicas look for it there.
_PICTURES = Form("b{batch}i{image}d{divisor}")
normalized_step = ModelStep("normalized", _normalized, _PICTURES.sizes(("b12i6d1",), paper=()))
workloads.normalized_step = normalized_step

#: Changes the learner of a replica, given its rank.
LearnerCheat = Callable[[Any, int], None]

#: Changes the steps of a worker.
Tamper = Callable[[Any], None]


def replica_cheats(
    exchanges_nothing: LearnerCheat,
    adds_up: LearnerCheat,
    write: Callable[[Any, list[NDArray[Any]]], None],
    skipped: int = 3,
) -> Mapping[int, LearnerCheat]:
    """Mistakes by the batch of a replica; others are honest.

    Args:
        exchanges_nothing: has every replica train alone, by the gradients of its own share.
        adds_up: sums gradients that should be averaged.
        write: gives a learner other weights.
        skipped: the step that is left out, from 1 on.
    """

    def read(learner: Any) -> list[NDArray[Any]]:
        return [*map(np.array, learner.weights())]

    def begins_otherwise(learner: Any, rank: int) -> None:
        """The second replica has one other weight."""
        reset = learner.reset

        def wrong(*, exact: bool) -> None:
            reset(exact=exact)
            weights = read(learner)
            weights[0].flat[0] += 1e-4
            write(learner, weights)

        if rank:
            learner.reset = wrong

    def skips(learner: Any, rank: int) -> None:
        """The second replica does not update its weights in one step."""
        steps, step = count(1), learner.step

        def wrong(*batch: Any) -> Any:
            before = read(learner)
            loss = step(*batch)
            if next(steps) == skipped:
                write(learner, before)
            return loss

        if rank:
            learner.step = wrong

    return {8: exchanges_nothing, 16: adds_up, 24: begins_otherwise, 32: skips}


def reads_the_step_before(steps: Any) -> None:
    """A step's answer is that of the step before."""
    take = steps.take
    steps.take = lambda which: take(which - 1)


def served_cheats(fetches_nothing: Tamper, loses_an_update: Tamper) -> Mapping[int, Tamper]:
    """Mistakes by the length of a shard, or of a table; others are honest."""
    return {2: fetches_nothing, 3: loses_an_update, 96: reads_the_step_before}


class CheatingMember:
    """A member that makes mistakes, by the sizes of its work.

    The first worker is honest in null steps and sparse reads if it is the only one of its process.

    Attributes:
        replica_cheats: change learners, before those that are compiled are.
        served_cheats: change null steps and sparse reads.
    """

    replica_cheats: ClassVar[Mapping[int, LearnerCheat]]
    served_cheats: ClassVar[Mapping[int, Tamper]] = {}
    place: Place
    ranks: Sequence[int]

    def learner(self, job: Job) -> Any:
        made = super().learner(job)  # type: ignore[misc]
        if job.batch in self.replica_cheats:
            self.replica_cheats[job.batch](made.learner, self.place.rank)
            if hasattr(made.learner, "build"):
                made.learner.build()
        return made

    def null_steps(self, shards: Sequence[Any]) -> Any:
        return self._tampered(super().null_steps(shards), len(shards[0]))  # type: ignore[misc]

    def sparse_reads(self, table: Any, sets: Sequence[Any]) -> Any:
        return self._tampered(super().sparse_reads(table, sets), len(table))  # type: ignore[misc]

    def _tampered(self, steps: Any, length: int) -> Any:
        if max(self.ranks) and length in self.served_cheats:
            self.served_cheats[length](steps)
        return steps


#: For the warm-up and for rounds. Steps are few: those that are not done take next to no time, and
#: as many are done after the timing, to compare.
_OPERATIONS_S, _STEPS_S = (1e-3, 5e-3), (5e-5, 1e-4)


def case_of(cheat: Cheat, direction: str) -> Case:
    """The case that shows a cheat in one of its directions, as the plugin would make it."""
    framework, workload = cheat.framework(), cheat.workload
    clock = Clock(time.perf_counter, framework.waiter("cpu"))
    tested_cell = cell(
        workload,
        framework=cheat.name,
        direction=direction,
        dtype=cheat.dtype,
        size=cheat.size,
        schedule=Schedule(epochs=2, warmup_epochs=0, steps=8),
        data=FOUND,
    )
    warmup_s, rounds_s = _STEPS_S if direction == "train" else _OPERATIONS_S
    settings: dict[str, Any] = {"max_time": rounds_s, "min_time": 1e-5}
    return case_class(workload)(
        tested_cell,
        framework,
        framework.manifest("a CPU"),
        clock,
        FixtureBenchmark(fixture(clock, tested_cell, **settings)),
        warmup_s,
    )


def images() -> DataSet:
    """Sixty-four images of noise to train on, and as many to test with."""
    some = _split(64)
    return replace(data_set(), train=some, validation=some, test=some)


def _split(examples: int) -> Split:
    rng = np.random.default_rng(0)
    pixels = rng.integers(0, 256, (examples, *mlp.shape), dtype=np.uint8)
    return Split(pixels, rng.integers(0, mlp.classes, examples, dtype=np.int32))
