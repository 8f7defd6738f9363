"""Operands and references are computed once for all cases that need them, and only for those."""

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from fwbench.cases.inputs import OPERAND_CACHE, Inputs, OperandCache, drawn_operands, widest
from fwbench.errors import WrongGradient, WrongResult
from fwbench.testing import FakeFramework
from support.fakes import case_of, cell, operation


def of_bytes(count: int) -> Callable[[], list[NDArray[Any]]]:
    return lambda: [np.zeros(count, np.uint8)]


def unknown() -> list[NDArray[Any]]:
    pytest.fail("it was computed again")


def test_what_is_known_is_not_computed_again() -> None:
    some = OperandCache(100)
    first = some.arrays("key", of_bytes(10))
    assert some.arrays("key", unknown) is first
    assert some.size_bytes == 10


def test_what_was_asked_for_longest_ago_goes_first() -> None:
    """The limit of all together holds at any time."""
    some = OperandCache(100)
    for key in "abc":
        some.arrays(key, of_bytes(40))
        some.arrays("a", of_bytes(40))
        assert some.size_bytes <= 100
    some.arrays("a", unknown)
    some.arrays("c", unknown)
    some.arrays("b", of_bytes(60))
    assert some.size_bytes == 100


def test_what_is_too_large_is_not_kept() -> None:
    some = OperandCache(100)
    some.arrays("small", of_bytes(10))
    assert some.arrays("large", of_bytes(101))[0].size == 101
    some.arrays("small", unknown)
    assert some.size_bytes == 10


def test_what_is_kept_stays_as_it_is() -> None:
    """Its arrays are read-only, and parts of no others."""
    some = OperandCache(100)
    source = np.ones(4)
    (array,) = some.arrays("key", lambda: [source[::-1]])
    source[:] = 0.0
    np.testing.assert_array_equal(array, np.ones(4))
    with pytest.raises(ValueError, match="read-only"):
        array[0] = 2.0


class Counted:
    """An operation whose draws and references are counted."""

    def __init__(self) -> None:
        self.draws = self.references = 0
        self.operation = operation(np.square, self.gradient, inputs=self.draw, reference=self.value)

    def draw(self, size: int, rng: np.random.Generator) -> tuple[NDArray[Any], ...]:
        self.draws += 1
        return (rng.standard_normal(size),)

    def value(self, x: NDArray[Any]) -> NDArray[Any]:
        self.references += 1
        return np.square(x)

    def gradient(self, cotangent: Any, x: Any) -> list[Any]:
        return [2 * x * cotangent]


def test_cases_of_the_same_operands_draw_them_once() -> None:
    """The first ones and the changed ones, in every direction and dtype; each has new ones, too."""
    counted = Counted()
    for direction in ("forward", "backward"):
        for dtype in ("float32", "float64"):
            tested_cell = cell(counted.operation, direction=direction, dtype=dtype)
            case_of(tested_cell).measure()
    assert counted.draws == 2 + 4
    case_of(cell(counted.operation, size=5)).measure()
    assert counted.draws == 2 + 4 + 2 + 1


def test_executions_share_their_references() -> None:
    counted = Counted()
    for _ in range(3):
        case_of(cell(counted.operation)).measure()
    assert counted.references == 2
    case_of(cell(counted.operation, dtype="float64")).measure()
    assert counted.references == 4


def test_executions_share_the_slopes_of_their_references() -> None:
    """Three directions, each from two ends, for either operands."""
    counted = Counted()
    for _ in range(3):
        case_of(cell(counted.operation, direction="backward")).measure()
    assert counted.references == 2 * (1 + 3 * 2)


@pytest.mark.parametrize("direction", ["forward", "backward"])
def test_what_is_wrong_is_found_with_what_is_known(direction: str) -> None:
    counted = Counted()
    case_of(cell(counted.operation, direction=direction)).measure()

    class Wrong(FakeFramework):
        def forward(self, *arguments: Any) -> Callable[[], Any]:
            run = super().forward(*arguments)
            return lambda: 1.001 * run()

        def backward(self, *arguments: Any) -> Callable[[], Any]:
            run = super().backward(*arguments)

            def call() -> Any:
                value, (gradient,) = run()
                return value, [1.001 * gradient]

            return call

    with pytest.raises((WrongResult, WrongGradient), match="is wrong"):
        case_of(cell(counted.operation, direction=direction), Wrong()).measure()


def test_other_operations_of_the_same_name_share_nothing() -> None:
    workload = operation(lambda x: 2.0 * x)
    other = operation(lambda x: 3.0 * x, reference=lambda x: 3.0 * x)
    case_of(cell(workload)).measure()
    case_of(cell(other)).measure()


def test_operands_that_are_needed_once_are_not_kept() -> None:
    workload = operation()
    first, before_bytes = drawn_operands(workload, 4), OPERAND_CACHE.size_bytes
    with OPERAND_CACHE.keeping_nothing():
        assert drawn_operands(workload, 4) is first
        assert not np.array_equal(drawn_operands(workload, 4, 7), drawn_operands(workload, 4, 8))
    assert OPERAND_CACHE.size_bytes == before_bytes


def test_operands_have_their_place_among_what_is_kept() -> None:
    workload = operation()
    before_bytes = OPERAND_CACHE.size_bytes
    first = drawn_operands(workload, 4)
    changed = drawn_operands(workload, 4, 1)
    np.testing.assert_array_equal(first, workload.operands(4))
    np.testing.assert_array_equal(changed, workload.changed_operands(4, 1, first))
    assert OPERAND_CACHE.size_bytes == before_bytes + 2 * 4 * 8


@pytest.mark.parametrize("dtype", ["float32", "float64", "int32"])
def test_references_have_inputs_of_their_own(dtype: str) -> None:
    """A reference may return one of them, and what was placed changes."""
    placed = np.ones(3, dtype)
    assert not np.shares_memory(widest(placed), placed)


def test_operands_that_stay_are_not_placed_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """Changes that were prepared together are right one after the other all the same."""
    framework, placed = FakeFramework(), []
    inputs = Inputs(framework, "cpu", "float32")
    one, two, five = (np.full(3, value, np.float32) for value in (1.0, 2.0, 5.0))
    run = partial(np.subtract, inputs.place(one), inputs.place(two))
    place = framework.place
    monkeypatch.setattr(framework, "place", lambda x, *more: placed.append(x) or place(x, *more))
    same, other = inputs.change(run, [one, two]), inputs.change(run, [one, five])
    assert [array is five for array in placed] == [True]
    for change, result in ((other, -4.0), (same, -1.0), (other, -4.0)):
        np.testing.assert_array_equal(change()(), np.full(3, result))
        inputs.check()
