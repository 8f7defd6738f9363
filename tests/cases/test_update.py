"""Operands that calls overwrite: verified on fresh values, timed on what calls have left."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from fwbench.cases.case import bind
from fwbench.errors import WrongResult
from fwbench.testing import FakeFramework
from fwbench.workloads.operation import Operation
from support.fakes import Immutable, case_of, cell


def in_place(x: NDArray[Any], g: NDArray[Any], m: NDArray[Any]) -> None:
    """Momentum, as a framework has it whose arrays can be written."""
    m *= 0.5
    m += g
    x -= m


def new_arrays(x: NDArray[Any], g: NDArray[Any], m: NDArray[Any]) -> tuple[NDArray[Any], ...]:
    """The same, of immutable arrays; it is the reference, too."""
    return x - (0.5 * m + g), 0.5 * m + g


def momentum(step: Callable[..., Any], **changes: Any) -> Operation:
    """An operation that the fake framework computes with ``step``."""
    facts: dict[str, Any] = {
        "name": "steps",
        "inputs": lambda size, rng: tuple(rng.standard_normal((3, size))),
        "reference": new_arrays,
        "sizes": (4,),
        "differentiable": False,
        "updates": (0, 2),
        "implementations": {"fake": lambda np: step},
    }
    return Operation(**{**facts, **changes})


def measured(step: Callable[..., Any], framework: FakeFramework | None = None) -> dict[str, Any]:
    """What the record of a case says."""
    case = case_of(cell(momentum(step)), framework or FakeFramework())
    case.measure()
    facts: dict[str, Any] = case.benchmark.extra_info["fwbench"]
    return facts


def test_steps_in_place_are_measured() -> None:
    """The operation may change what it says that it changes, over and over."""
    facts = measured(in_place)
    assert facts["max_relative_error"] <= facts["tolerance"]
    assert facts["result_is_view"] is False


def test_steps_to_new_arrays_are_measured() -> None:
    """Immutable arrays are left as they are, and so every call is the first step."""
    facts = measured(new_arrays, Immutable())
    assert facts["max_relative_error"] <= facts["tolerance"]


def test_timed_calls_go_on_from_one_another() -> None:
    """Nothing is copied or written between the calls that are timed."""
    seen = []

    def step(x: NDArray[Any], g: NDArray[Any], m: NDArray[Any]) -> None:
        seen.append(x.copy())
        in_place(x, g, m)

    measured(step)
    *timed, changed, restored = seen
    assert len(timed) > 10
    np.testing.assert_array_equal(restored, timed[0])
    assert all(np.any(x != timed[0]) for x in timed[1:])
    assert np.any(changed != timed[0])


def wrong_weights(x: NDArray[Any], g: NDArray[Any], m: NDArray[Any]) -> None:
    """The step is made of the momentum before."""
    x -= m
    m *= 0.5
    m += g


def wrong_state(x: NDArray[Any], g: NDArray[Any], m: NDArray[Any]) -> None:
    """The weights are right in this step, and wrong in the next one."""
    x -= 0.5 * m + g


@pytest.mark.parametrize("step", [wrong_weights, wrong_state, lambda x, g, m: None])
def test_a_wrong_step_is_refused(step: Callable[..., Any]) -> None:
    """Weights and state are compared, both."""
    with pytest.raises(WrongResult, match="largest relative error"):
        measured(step)


def test_gradients_must_stay_as_they_are() -> None:
    """What the operation does not say that it overwrites it must not change."""

    def step(x: NDArray[Any], g: NDArray[Any], m: NDArray[Any]) -> None:
        in_place(x, g, m)
        g *= 0.5

    with pytest.raises(WrongResult, match="the work changed input 1"):
        measured(step)


@pytest.mark.parametrize("honest_calls", [1, 2])
def test_steps_that_are_skipped_are_refused(honest_calls: int) -> None:
    """One step, and none later: the first verification alone would let it through."""
    calls = []

    def step(x: NDArray[Any], g: NDArray[Any], m: NDArray[Any]) -> None:
        calls.append(True)
        if len(calls) <= honest_calls:
            in_place(x, g, m)

    with pytest.raises(WrongResult, match=r"no step was made|a call on changed inputs is wrong"):
        measured(step)


def test_a_result_that_is_kept_is_refused() -> None:
    """New arrays from the first call, whatever the operands are now."""
    kept: list[Any] = []

    def step(*arrays: NDArray[Any]) -> Any:
        kept.append(new_arrays(*arrays))
        return kept[0]

    with pytest.raises(WrongResult, match="a call on changed inputs is wrong"):
        measured(step, Immutable())


def test_a_call_that_is_made_twice_is_two_steps() -> None:
    """Whoever looks for results that are kept makes a call on changed inputs twice."""
    work = bind(cell(momentum(in_place)), FakeFramework())
    work.verify(work.run())
    last = work.run()

    def twice(run: Callable[[], Any]) -> Any:
        run()
        return run()

    for _ in range(3):  # as on a busy machine
        work.verify_again(last, twice)


def test_a_variable_stands_for_what_is_overwritten() -> None:
    """A framework with immutable arrays may have others, for what is overwritten alone."""
    given = []

    class Variables(FakeFramework):
        def variable(self, array: Any) -> Any:
            given.append(array.copy())
            return array

    of = momentum(in_place)
    bind(cell(of), Variables())
    operands = of.operands(4)
    np.testing.assert_array_equal(given, [operands[0].astype("f4"), operands[2].astype("f4")])
