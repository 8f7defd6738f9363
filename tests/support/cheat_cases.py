"""Cheats as cases of this process, on its real clock."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import Any

import numpy as np

from fwbench.cases.case import Case
from fwbench.cases.loops import LoopCase
from fwbench.measure.clock import Clock
from fwbench.plugin.host import FixtureBenchmark
from fwbench.presets import Schedule
from fwbench.workloads import mlp
from fwbench.workloads.data import DataSet, Split
from fwbench.workloads.training import Loading, Step, Training
from fwbench.workloads.workload import Workload
from fwbench_extras.cheats import Cheat
from support.fake_learner import FOUND, data_set
from support.fakes import cell, fixture
from support.training_cases import KINDS

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
