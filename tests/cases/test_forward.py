"""Operations with several results, parameters, other layouts, and results that may differ."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from fwbench.cases.backward import Backward
from fwbench.cases.case import bind
from fwbench.errors import WrongGradient, WrongResult
from fwbench.frameworks.layout import Layout, axes
from fwbench.frameworks.table import Laid
from fwbench.testing import FakeFramework
from fwbench.workloads.operation import Implementation, Operation
from fwbench.workloads.workload import Cost
from support.fakes import Immutable, case_of, cell, recorded

each_direction = pytest.mark.parametrize("direction", ["forward", "backward"])


def computed(implementation: Implementation, **facts: Any) -> Operation:
    """An operation on a 2 x 3 matrix, which the fake framework computes with an implementation."""
    declared: dict[str, Any] = {
        "name": "matrix",
        "inputs": lambda size, rng: (rng.standard_normal((2, 3)),),
        "sizes": (4,),
        "implementations": {"fake": implementation},
    }
    return Operation(**{**declared, **facts})


def measure(of: Operation, direction: str) -> None:
    """Verify the first call, time some, and verify again."""
    case_of(cell(of, direction=direction), FakeFramework()).measure()


def both(x: NDArray[Any]) -> tuple[Any, ...]:
    """Two results of different shapes."""
    return 3.0 * x, x.sum(axis=1)


@pytest.mark.parametrize(
    ("dtype", "expected_bytes"), [("float64", 6 * 8 + 6 * 8 + 6), ("float32", 6 * 4 + 6 * 8 + 6)]
)
def test_booleans_and_whole_numbers_move_bytes_of_their_own(
    dtype: str, expected_bytes: float
) -> None:
    """Six numbers of the case's dtype, six of int64 and six booleans, declared as 18 elements."""
    of = computed(
        lambda np: lambda x, i: x > i,
        inputs=lambda size, rng: (rng.standard_normal((2, 3)), rng.integers(9, size=(2, 3))),
        reference=lambda x, i: x > i,
        cost=lambda size: Cost(6.0, 18.0),
    )
    work = bind(cell(of, dtype=dtype), FakeFramework())
    assert work.verify(work.run()).bytes == expected_bytes


# Several results


@each_direction
def test_every_result_is_verified(direction: str) -> None:
    """A list or a tuple is right, and so is the gradient, in which each has its share."""
    measure(computed(lambda np: both, reference=both), direction)
    measure(computed(lambda np: lambda x: both(x)[::1], reference=both), direction)


@each_direction
@pytest.mark.parametrize("wrong", [0, 1])
def test_one_wrong_result_is_found(wrong: int, direction: str) -> None:
    """Whichever it is."""

    def value(x: Any) -> tuple[Any, ...]:
        results = [*both(x)]
        results[wrong] = results[wrong] + 0.001
        return tuple(results)

    with pytest.raises(WrongResult, match="the result is wrong"):
        measure(computed(lambda np: value, reference=both), direction)


@pytest.mark.parametrize(
    ("value", "number"), [(lambda x: both(x)[0], 1), (lambda x: (*both(x), x), 3)]
)
def test_another_number_of_results_is_wrong(value: Any, number: int) -> None:
    """It is said of both sides."""
    said = f"returned {number} results, the NumPy reference 2"
    with pytest.raises(WrongResult, match=said):
        measure(computed(lambda np: value, reference=both), "forward")


def test_the_cotangents_of_several_results() -> None:
    """The gradient begins with one for each, of its shape."""
    work = bind(cell(computed(lambda np: both, reference=both), direction="backward"), _fake())
    assert isinstance(work, Backward)
    assert [x.shape for x in work.cotangent] == [(2, 3), (2,)]


# Parameters, variables


@each_direction
def test_parameters(direction: str) -> None:
    """The implementation gets them with its namespace, the reference behind the operands."""
    of = computed(
        lambda np, times, more: lambda x: times * x + more,
        reference=lambda x, times, more: times * x + more,
        parameters=lambda size: (size, 0.5),
    )
    measure(of, direction)


@each_direction
def test_toggles_that_switch_an_operation(direction: str) -> None:
    """The implementation gets the value by the toggle's name, and the reference does not."""
    loops = []

    def implementation(_: Any, times: int, *, loop: str) -> Any:
        loops.append(loop)
        return lambda x: times * x

    of = computed(
        Laid(implementation, axes("rc->cr", results=["rc->cr"])),
        reference=lambda x, times: times * x,
        parameters=lambda size: (size,),
        switched_by=("loop",),
    )
    assert of.toggles == {"inputs", "l2", "loop"}
    measure(of, direction)
    assert {*loops} == {"native"}
    loops.clear()
    switched = replace(cell(of, direction=direction), toggles=(("loop", "python"),))
    case_of(switched, FakeFramework()).measure()
    assert {*loops} == {"python"}


def test_only_the_variables_are_differentiated_by() -> None:
    """Other floating-point operands stay as they are."""
    of = computed(
        lambda np: lambda x, y: x * y,
        inputs=lambda size, rng: (rng.standard_normal(3), rng.standard_normal(3)),
        reference=lambda x, y: x * y,
        variables=(1,),
    )
    work = bind(cell(of, direction="backward"), _fake())
    _, gradients = work.run()
    assert len(gradients) == 1
    work.verify(work.run())


# Results that may rightly differ


def test_results_that_are_right_up_to_their_sign() -> None:
    """What is compared is the same of both, and other errors are found."""
    of = computed(lambda np: lambda x: -x, reference=lambda x: x, compared=lambda x: (np.abs(x),))
    measure(of, "forward")
    wrong = computed(
        lambda np: lambda x: -1.01 * x, reference=lambda x: x, compared=lambda x: (np.abs(x),)
    )
    with pytest.raises(WrongResult):
        measure(wrong, "forward")


def test_shapes_are_compared_before_what_is_made_of_results() -> None:
    """What is compared could hide that there are too many elements."""
    of = computed(
        lambda np: lambda x: np.concatenate([x, x]),
        reference=lambda x: x,
        compared=lambda x: (np.max(x),),
    )
    with pytest.raises(WrongResult, match="has the shape"):
        measure(of, "forward")


# Layouts


def columns_first(x: Any) -> Any:
    """The running sum of the rows of a matrix that lies with its columns first."""
    return np.cumsum(x, axis=0)


@each_direction
def test_another_layout(direction: str) -> None:
    """Operands, results, cotangents and gradients are converted, and what is computed is right."""
    seen: list[tuple[int, ...]] = []

    def value(x: Any) -> Any:
        seen.append(x.shape)
        return columns_first(x)

    laid = Laid(lambda np: value, axes("rc->cr", results=["rc->cr"]))
    of = computed(laid, reference=lambda x: np.cumsum(x, axis=1))
    measure(of, direction)
    assert {*seen} == {(3, 2)}


def test_a_wrong_layout_is_found() -> None:
    """The result has another shape, or other values."""
    laid = Laid(lambda np: columns_first, axes("rc->cr"))
    with pytest.raises(WrongResult, match="has the shape"):
        measure(computed(laid, reference=lambda x: np.cumsum(x, axis=1)), "forward")


@each_direction
def test_a_layout_that_makes_one_operand_of_two(direction: str) -> None:
    """Gradients come back as those of both."""

    def packed(operands: Sequence[NDArray[Any]]) -> list[NDArray[Any]]:
        return [np.concatenate([x.ravel() for x in operands])]

    def unpacked(operands: Sequence[NDArray[Any]]) -> list[NDArray[Any]]:
        (both,) = operands
        return [both[:3], both[3:]]

    laid = Laid(lambda np: lambda p: p[:3] * p[3:] ** 2, Layout(place=packed, restore=unpacked))
    of = computed(
        laid,
        inputs=lambda size, rng: (rng.standard_normal(3), rng.standard_normal(3)),
        reference=lambda x, y: x * y**2,
    )
    measure(of, direction)


def test_a_gradient_of_another_shape_is_wrong_in_any_layout() -> None:
    """It is not converted before its shape is known to be right."""

    class Transposing(FakeFramework):
        def backward(self, *arguments: Any) -> Any:
            run = super().backward(*arguments)

            def transposed() -> Any:
                result, gradients = run()
                return result, [gradient.T for gradient in gradients]

            return transposed

    laid = Laid(lambda np: columns_first, axes("rc->cr", results=["rc->cr"]))
    of = computed(laid, reference=lambda x: np.cumsum(x, axis=1))
    work = bind(cell(of, direction="backward"), Transposing())
    with pytest.raises(WrongGradient, match=r"input 0 has the shape \(2, 3\), the input \(3, 2\)"):
        work.verify(work.run())


def _fake() -> FakeFramework:
    return FakeFramework(asynchronous=False)


# In place


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
    return recorded(case)


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
