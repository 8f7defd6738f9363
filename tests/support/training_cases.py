"""Cases of training loops and their parts, on the fake that trains."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from fwbench.cases.case import Case
from fwbench.cases.loops import LoopCase
from fwbench.cases.training import LoaderCase, StepCase
from fwbench.plugin import host
from fwbench.presets import Schedule
from fwbench.workloads import mlp
from fwbench.workloads.training import Loading, Step
from support.fake_learner import FOUND, Trainer
from support.fakes import case_of, cell

KINDS = {Step: StepCase, Loading: LoaderCase}
THREE_EPOCHS = Schedule(3)


def case(
    framework: Trainer | None = None,
    of: Any = mlp,
    schedule: Schedule = THREE_EPOCHS,
    toggles: tuple[tuple[str, str], ...] = (),
    tell: Callable[[Any], Any] = lambda _: None,
    device: str = "cpu",
    execution: str = "eager",
    dtype: str = "float32",
    **settings: Any,
) -> Any:
    """A case of a training loop or a part of one: batches of eight, two of them an epoch."""
    one = cell(
        of,
        size=8,
        direction="train",
        schedule=schedule,
        data=None if isinstance(of, Step) else FOUND,
        toggles=toggles,
        device=device,
        execution=execution,
        dtype=dtype,
    )
    kind = KINDS.get(type(of), LoopCase)
    return case_of(one, framework or Trainer(), kind=kind, tell=tell, **settings)


def measured(*arguments: Any, **more: Any) -> dict[str, Any]:
    """What the record of a case says after it has been measured."""
    one = case(*arguments, **more)
    one.measure()
    facts: dict[str, Any] = one.benchmark.extra_info["fwbench"]
    return facts


def assert_untouched(one: Case) -> None:
    """Nothing was timed or kept, and pytest-benchmark does not complain beside the failure."""
    assert one.benchmark.stats is None
    assert one.benchmark.extra_info == {}
    assert host.record(one.benchmark) is None
    one.benchmark._cleanup()
    one.benchmark._logger.warning.assert_not_called()


loops_and_steps = pytest.mark.parametrize("of", [mlp, mlp.step], ids=lambda of: str(of.name))
