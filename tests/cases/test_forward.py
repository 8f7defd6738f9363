"""Operations with several results, parameters, other layouts, and results that may differ."""

from collections.abc import Callable, Sequence
from typing import Any, ClassVar

import numpy as np
import pytest
from numpy.typing import NDArray

from fwbench.cases import forward
from fwbench.cases.backward import Backward
from fwbench.cases.case import Case, bind
from fwbench.errors import WrongGradient, WrongResult
from fwbench.frameworks.layout import Layout, axes
from fwbench.frameworks.table import Composed, Laid
from fwbench.testing import FakeFramework
from fwbench.workloads import sqrt, square
from fwbench.workloads.operation import Implementation, Operation
from fwbench.workloads.workload import Cost
from support.fakes import Immutable, case_of, cell, fails, recorded, variant

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


def made(operation: Operation, direction: str = "forward", **changes: Any) -> Case:
    return case_of(cell(operation, direction=direction, **changes))


def both(x: NDArray[Any]) -> tuple[Any, ...]:
    return 3.0 * x, x.sum(axis=1)


@pytest.mark.parametrize(
    ("dtype", "expected_bytes"), [("float64", 6 * 8 + 6 * 8 + 6), ("float32", 6 * 4 + 6 * 8 + 6)]
)
def test_booleans_and_whole_numbers_move_bytes_of_their_own(
    dtype: str, expected_bytes: float
) -> None:
    """Six numbers of the case's dtype, six of int64 and six booleans, declared as 18 elements."""
    operation = computed(
        lambda np: lambda x, i: x > i,
        inputs=lambda size, rng: (rng.standard_normal((2, 3)), rng.integers(9, size=(2, 3))),
        reference=lambda x, i: x > i,
        cost=lambda size: Cost(6.0, 18.0),
    )
    work = bind(cell(operation, dtype=dtype), FakeFramework())
    assert work.verify(work.run()).bytes == expected_bytes


@each_direction
def test_every_result_is_verified(direction: str) -> None:
    """Lists and tuples are right, and so is the gradient, in which each has its share."""
    made(computed(lambda np: both, reference=both), direction).measure()
    made(computed(lambda np: lambda x: both(x)[::1], reference=both), direction).measure()


@each_direction
@pytest.mark.parametrize("wrong", [0, 1])
def test_one_wrong_result_is_found(wrong: int, direction: str) -> None:
    def value(x: Any) -> tuple[Any, ...]:
        results = [*both(x)]
        results[wrong] = results[wrong] + 0.001
        return tuple(results)

    fails(
        made(computed(lambda np: value, reference=both), direction),
        WrongResult,
        "the result is wrong",
    )


@pytest.mark.parametrize(
    ("value", "number"), [(lambda x: both(x)[0], 1), (lambda x: (*both(x), x), 3)]
)
def test_another_number_of_results_is_wrong(value: Any, number: int) -> None:
    message = f"returned {number} result{'s' * (number > 1)}, the NumPy reference 2"
    fails(made(computed(lambda np: value, reference=both)), WrongResult, message)


def test_the_cotangents_of_several_results() -> None:
    work = bind(
        cell(computed(lambda np: both, reference=both), direction="backward"), FakeFramework()
    )
    assert isinstance(work, Backward)
    assert [x.shape for x in work.cotangent] == [(2, 3), (2,)]


@each_direction
def test_parameters(direction: str) -> None:
    """The implementation gets them with its namespace, the reference behind the operands."""
    operation = computed(
        lambda np, times, more: lambda x: times * x + more,
        reference=lambda x, times, more: times * x + more,
        parameters=lambda size: (size, 0.5),
    )
    made(operation, direction).measure()


@each_direction
def test_toggles_that_switch_an_operation(direction: str) -> None:
    """The implementation gets the value by the toggle's name, and the reference does not."""
    loops = []

    def implementation(_: Any, times: int, *, loop: str) -> Any:
        loops.append(loop)
        return lambda x: times * x

    operation = computed(
        Laid(implementation, axes("rc->cr", results=["rc->cr"])),
        reference=lambda x, times: times * x,
        parameters=lambda size: (size,),
        switched_by=("loop",),
    )
    assert operation.toggles == {"inputs", "l2", "loop"}
    made(operation, direction).measure()
    assert {*loops} == {"native"}
    loops.clear()
    made(operation, direction, toggles=(("loop", "python"),)).measure()
    assert {*loops} == {"python"}


def test_only_the_variables_are_differentiated_by() -> None:
    operation = computed(
        lambda np: lambda x, y: x * y,
        inputs=lambda size, rng: (rng.standard_normal(3), rng.standard_normal(3)),
        reference=lambda x, y: x * y,
        variables=(1,),
    )
    work = bind(cell(operation, direction="backward"), FakeFramework())
    _, gradients = work.run()
    assert len(gradients) == 1
    work.verify(work.run())


def test_results_that_are_right_up_to_their_sign() -> None:
    operation = computed(
        lambda np: lambda x: -x, reference=lambda x: x, compared=lambda x: (np.abs(x),)
    )
    made(operation).measure()
    wrong = computed(
        lambda np: lambda x: -1.01 * x, reference=lambda x: x, compared=lambda x: (np.abs(x),)
    )
    fails(made(wrong), WrongResult, "is wrong")


def test_shapes_are_compared_before_results_are_prepared() -> None:
    """The preparation could hide that there are too many elements."""
    operation = computed(
        lambda np: lambda x: np.concatenate([x, x]),
        reference=lambda x: x,
        compared=lambda x: (np.max(x),),
    )
    fails(made(operation), WrongResult, "has the shape")


def columns_first(x: Any) -> Any:
    """The running sum of the rows of a matrix that lies with its columns first."""
    return np.cumsum(x, axis=0)


@each_direction
def test_another_layout(direction: str) -> None:
    seen: list[tuple[int, ...]] = []

    def value(x: Any) -> Any:
        seen.append(x.shape)
        return columns_first(x)

    laid = Laid(lambda np: value, axes("rc->cr", results=["rc->cr"]))
    operation = computed(laid, reference=lambda x: np.cumsum(x, axis=1))
    made(operation, direction).measure()
    assert {*seen} == {(3, 2)}


def test_a_wrong_layout_is_found() -> None:
    laid = Laid(lambda np: columns_first, axes("rc->cr"))
    fails(
        made(computed(laid, reference=lambda x: np.cumsum(x, axis=1))), WrongResult, "has the shape"
    )


@each_direction
def test_a_layout_that_makes_one_operand_of_two(direction: str) -> None:
    def packed(operands: Sequence[NDArray[Any]]) -> list[NDArray[Any]]:
        return [np.concatenate([x.ravel() for x in operands])]

    def unpacked(operands: Sequence[NDArray[Any]]) -> list[NDArray[Any]]:
        (both,) = operands
        return [both[:3], both[3:]]

    laid = Laid(lambda np: lambda p: p[:3] * p[3:] ** 2, Layout(place=packed, restore=unpacked))
    operation = computed(
        laid,
        inputs=lambda size, rng: (rng.standard_normal(3), rng.standard_normal(3)),
        reference=lambda x, y: x * y**2,
    )
    made(operation, direction).measure()


def test_a_gradient_of_another_shape_is_wrong_in_any_layout() -> None:
    """It is not converted before its shape is known to be right."""

    def transposing(self: Any, *arguments: Any) -> Any:
        result, gradients = FakeFramework.backward(self, *arguments)()
        return lambda: (result, [gradient.T for gradient in gradients])

    laid = Laid(lambda np: columns_first, axes("rc->cr", results=["rc->cr"]))
    operation = computed(laid, reference=lambda x: np.cumsum(x, axis=1))
    work = bind(cell(operation, direction="backward"), variant(backward=transposing)())
    with pytest.raises(WrongGradient, match=r"input 0 has the shape \(2, 3\), the input \(3, 2\)"):
        work.verify(work.run())


def in_place(x: NDArray[Any], g: NDArray[Any], m: NDArray[Any]) -> None:
    """Momentum, as a framework has it whose arrays can be written."""
    m *= 0.5
    m += g
    x -= m


def test_a_record_tells_that_an_operation_is_composed() -> None:
    """By the table of the framework."""

    class Composing(FakeFramework):
        operations: ClassVar = {"square": Composed(lambda np: lambda x: x * x), "sqrt": "sqrt"}

    for work, expected in ((square, True), (sqrt, None)):
        assert recorded(case_of(cell(work), Composing())).get("composed") is expected


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


def updating(step: Callable[..., Any], framework: FakeFramework | None = None) -> Case:
    return case_of(cell(momentum(step)), framework)


@pytest.mark.parametrize(
    ("step", "framework"),
    [(in_place, FakeFramework), (new_arrays, Immutable)],
    ids=["in place", "new arrays"],
)
def test_steps_are_measured(step: Callable[..., Any], framework: type[FakeFramework]) -> None:
    """An operation may change the operands that it declares; immutable ones stay as they are."""
    facts = recorded(updating(step, framework()))
    assert facts["max_relative_error"] <= facts["tolerance"]
    assert facts["result_is_view"] is False


def test_timed_calls_go_on_from_one_another() -> None:
    """Nothing is copied or written between the calls that are timed."""
    seen = []

    def step(x: NDArray[Any], g: NDArray[Any], m: NDArray[Any]) -> None:
        seen.append(x.copy())
        in_place(x, g, m)

    updating(step).measure()
    first, *timed = seen[:11]
    assert all(np.any(x != first) for x in timed)
    assert sum(np.array_equal(x, first) for x in seen[11:]) > 1  # restored


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
    fails(updating(step), WrongResult, "largest relative error")


def test_gradients_must_stay_as_they_are() -> None:
    def step(x: NDArray[Any], g: NDArray[Any], m: NDArray[Any]) -> None:
        in_place(x, g, m)
        g *= 0.5

    fails(updating(step), WrongResult, "the work changed input 1")


@pytest.mark.parametrize("honest_calls", [1, 2])
def test_steps_that_are_skipped_are_refused(honest_calls: int) -> None:
    """One step, and none later: the first verification alone would let it through."""
    calls = []

    def step(x: NDArray[Any], g: NDArray[Any], m: NDArray[Any]) -> None:
        calls.append(True)
        if len(calls) <= honest_calls:
            in_place(x, g, m)

    fails(updating(step), WrongResult, r"no step was made|did not make as many steps")


@pytest.mark.parametrize("at_most", [3_000, 5], ids=["timed", "as many again"])
def test_steps_that_become_less_work_are_refused(
    at_most: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After a write honest again, so that all results that are verified by themselves are right."""
    monkeypatch.setattr(forward, "_STEPS", at_most)
    calls: list[bool] = []

    class Telling(FakeFramework):
        def write(self, array: Any, values: Any) -> bool:
            calls.clear()
            return super().write(array, values)

    def step(x: NDArray[Any], g: NDArray[Any], m: NDArray[Any]) -> None:
        calls.append(True)
        if len(calls) <= 3 or len(calls) % 2:
            in_place(x, g, m)

    fails(updating(step, Telling()), WrongResult, "calls did not make as many steps: input 0")


def test_a_result_that_is_kept_is_refused() -> None:
    kept: list[Any] = []

    def step(*arrays: NDArray[Any]) -> Any:
        kept.append(new_arrays(*arrays))
        return kept[0]

    fails(updating(step, Immutable()), WrongResult, "a call on changed inputs is wrong")


def test_a_variable_stands_for_what_is_overwritten() -> None:
    """A framework with immutable arrays may have others, for what is overwritten alone."""
    given = []

    class Variables(FakeFramework):
        def variable(self, array: Any) -> Any:
            given.append(array.copy())
            return array

    operation = momentum(in_place)
    bind(cell(operation), Variables())
    operands = operation.operands(4)
    np.testing.assert_array_equal(given, [operands[0].astype("f4"), operands[2].astype("f4")])
