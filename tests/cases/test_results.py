"""Operations with several results, parameters, other layouts, and results that may differ."""

from __future__ import annotations

from collections.abc import Sequence
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
from support.fakes import case_of, cell

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
