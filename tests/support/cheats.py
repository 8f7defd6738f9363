"""Mistakes that replicas make on purpose, alike in every framework."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, ClassVar, TypeVar

import numpy as np

from fwbench.cases.case import Case
from fwbench.cases.training import LoopCase
from fwbench.measure.clock import Clock
from fwbench.plugin.host import FixtureBenchmark
from fwbench.terms.presets import Schedule
from fwbench.workloads import mlp
from fwbench.workloads.data import DataSet, Split
from fwbench.workloads.training import Loading, Step, Training
from fwbench.workloads.workload import Workload
from fwbench_extras.cheats import Cheat
from support.fake_learner import FOUND, KINDS, data_set
from support.fakes import cell, fixture

T = TypeVar("T")

#: What is done to the steps of a worker.
Tamper = Callable[[Any], None]


def skips_a_step(
    learner: Any, taken: Callable[[], T], put_back: Callable[[T], None], number: int = 3
) -> None:
    """One step of a learner does not update its weights.

    Args:
        number: which step, from 1 on.
    """
    steps, step = [0], learner.step

    def wrong(*batch: Any) -> Any:
        steps[0] += 1
        before = taken()
        loss = step(*batch)
        if steps[0] == number:
            put_back(before)
        return loss

    learner.step = wrong


def reads_the_step_before(steps: Any) -> None:
    """A step's answer is that of the step before."""
    take = steps.take
    steps.take = lambda which: take(which - 1)


def served_cheats(fetches_nothing: Tamper, loses_an_update: Tamper) -> Mapping[int, Tamper]:
    """By the length of a shard, or of a table; others are honest."""
    return {2: fetches_nothing, 3: loses_an_update, 96: reads_the_step_before}


class LeavingOut:
    """A member whose null steps and sparse reads leave something out, by their size.

    The first worker is honest if it is the only one of its process.

    Attributes:
        served_cheats: what is done to them.
    """

    served_cheats: ClassVar[Mapping[int, Tamper]]
    ranks: Sequence[int]

    def null_steps(self, shards: Sequence[Any]) -> Any:
        """The framework's steps, unless the length of a shard is a cheat's."""
        return self._tampered(super().null_steps(shards), len(shards[0]))  # type: ignore[misc]

    def sparse_reads(self, table: Any, sets: Sequence[Any]) -> Any:
        """The framework's steps, unless the length of the table is a cheat's."""
        return self._tampered(super().sparse_reads(table, sets), len(table))  # type: ignore[misc]

    def _tampered(self, steps: Any, length: int) -> Any:
        if max(self.ranks) and length in self.served_cheats:
            self.served_cheats[length](steps)
        return steps


_WARMUP_S = 1e-3
_ROUNDS_S = 5e-3


def case_of(cheat: Cheat, direction: str) -> Case:
    """The case that shows a cheat in one of its directions, as the plugin would make it."""
    framework, workload = cheat.framework(), cheat.workload
    clock = Clock(time.perf_counter, framework.waiter("cpu"))
    one = cell(
        workload,
        framework=cheat.name,
        direction=direction,
        dtype=cheat.dtype,
        size=cheat.size,
        schedule=Schedule(epochs=2, warmup_epochs=0, steps=8),
        data=FOUND,
    )
    settings: dict[str, Any] = {"max_time": _ROUNDS_S, "min_time": 1e-5}
    return _kind(workload)(
        one,
        framework,
        framework.manifest("a CPU"),
        clock,
        FixtureBenchmark(fixture(clock, one, **settings)),
        _WARMUP_S,
    )


def images() -> DataSet:
    """Sixty-four images of noise to train on, and as many to test with."""
    some = _split(64)
    return replace(data_set(), train=some, validation=some, test=some)


def _split(examples: int) -> Split:
    rng = np.random.default_rng(0)
    pixels = rng.integers(0, 256, (examples, *mlp.shape), dtype=np.uint8)
    return Split(pixels, rng.integers(0, mlp.classes, examples, dtype=np.int32))


def _kind(workload: Workload) -> type[Case]:
    if isinstance(workload, Step | Loading):
        return KINDS[type(workload)]
    return LoopCase if isinstance(workload, Training) else Case
