"""Cases that are timed on zeros: verified on ordinary numbers before and after."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from fwbench import workloads
from fwbench.errors import WrongResult
from fwbench.options.options import Selection
from fwbench.records.entry import identity
from fwbench.records.facts import CaseFacts
from fwbench.report.ranking import contests
from fwbench.testing import FakeFramework
from fwbench.workloads import grid
from fwbench.workloads.operation import Operation
from support.fakes import Immutable, case_of, cell, fails, operation
from support.grids import RICH

ZEROS = (("inputs", "zeros"),)

both_directions = pytest.mark.parametrize("direction", ["forward", "backward"])


def facts(of: Operation, framework: FakeFramework, **changes: Any) -> dict[str, Any]:
    """What is recorded of a case that is timed on zeros."""
    case = case_of(cell(of, toggles=ZEROS, **changes), framework)
    case.measure()
    found: dict[str, Any] = case.benchmark.extra_info["fwbench"]
    return found


def watched(seen: list[bool], compute: Callable[..., Any] = lambda x: 2.0 * x) -> Operation:
    """An operation that notes of each call whether all its inputs are zeros."""

    def value(x: NDArray[Any]) -> Any:
        seen.append(not np.any(x))
        return compute(x)

    return operation(value)


@pytest.mark.parametrize("framework", [FakeFramework, Immutable])
def test_all_that_is_timed_are_zeros(framework: type[FakeFramework]) -> None:
    """The first call is verified on ordinary numbers, and so are two after the rounds."""
    seen: list[bool] = []
    found = facts(watched(seen), framework())
    first, *timed, changed, restored = seen
    assert (first, changed, restored) == (False, False, False)
    assert len(timed) > 10
    assert all(timed)
    assert found["toggles"]["inputs"] == found["inputs"] == "zeros"
    assert found["max_relative_error"] <= found["tolerance"]


def test_cotangents_are_zeros_too() -> None:
    """A gradient of ordinary numbers would move them through the same kernels."""
    seen = []

    def gradient(g: NDArray[Any], x: NDArray[Any]) -> list[NDArray[Any]]:
        seen.append((np.any(g), np.any(x)))
        return [2.0 * g]

    facts(operation(gradient=gradient), FakeFramework(), direction="backward")
    first, *timed, changed, restored = seen
    assert {first, changed, restored} == {(True, True)}
    assert {*timed} == {(False, False)}


@both_directions
def test_what_is_right_of_zeros_alone_is_wrong(direction: str) -> None:
    """Three times nothing is twice nothing: the first call tells."""
    case = case_of(
        cell(operation(lambda x: 3.0 * x), toggles=ZEROS, direction=direction), FakeFramework()
    )
    fails(case, WrongResult, "^the result is wrong: largest relative error")


def test_work_that_ends_with_the_first_call_is_wrong() -> None:
    """What is kept from the rounds is zeros, and the call on changed inputs has others."""
    calls = []

    def lazy(x: NDArray[Any]) -> Any:
        calls.append(True)
        return 2.0 * x if len(calls) == 1 else np.zeros_like(x)

    case = case_of(cell(operation(lazy), toggles=ZEROS), FakeFramework())
    fails(case, WrongResult, "^a call on changed inputs is wrong though the first call was right")


def test_inputs_that_calls_change_are_found() -> None:
    """Also zeros must stay as they are."""

    def careless(x: NDArray[Any]) -> Any:
        if not np.any(x):
            x += 1.0
        return 2.0 * x

    case = case_of(cell(operation(careless), toggles=ZEROS), FakeFramework())
    fails(case, WrongResult, "the work changed input 0")


def test_zeros_are_created() -> None:
    """An array from host data, which is still a copy."""
    framework = FakeFramework()
    found = facts(workloads.from_numpy, framework)
    assert found["result_is_view"] is False


def test_steps_on_zeros_are_not_counted() -> None:
    """An operand that calls overwrite; the step that is verified is the first again."""

    def step(x: NDArray[Any], g: NDArray[Any]) -> None:
        x -= g

    of = Operation(
        name="steps",
        inputs=lambda size, rng: tuple(rng.standard_normal((2, size))),
        reference=lambda x, g: x - g,
        sizes=(4,),
        differentiable=False,
        updates=(0,),
        implementations={"fake": lambda np: step},
    )
    found = facts(of, FakeFramework())
    assert found["max_relative_error"] <= found["tolerance"]


@pytest.mark.parametrize(
    ("name", "gap"),
    [
        ("gemm", None),
        ("cross_entropy", None),
        ("log", "log of zeros is not defined (inputs=normal)"),
        ("cholesky", "cholesky of zeros is not defined (inputs=normal)"),
        ("any", "any has no floating-point inputs (inputs=normal)"),
        ("dropout", "dropout is random, and its parameters cannot be zeros (inputs=normal)"),
    ],
)
def test_not_every_operation_takes_zeros(name: str, gap: str | None) -> None:
    """The reference tells; the inputs that it draws are always taken."""
    of = getattr(workloads, name)
    assert of.toggle_gap("inputs", "zeros") == gap
    assert of.toggle_gap("inputs", "normal") is None


def test_only_zeros_are_a_part_of_the_id() -> None:
    """A case that nobody asked it of has the id that it always had; networks do not take zeros."""
    selection = Selection(devices=("cpu",), executions=("eager",), sizes=(8,))
    asked = grid.GridRequest({"inputs": ("normal", "zeros")})
    found = [*grid.cells([workloads.gemm], selection, {"rich": RICH}, more=asked)]
    plain = "gemm-rich-cpu-eager-forward-float32-8"
    assert [each.id for each in found] == [f"{plain}-inputs:normal", f"{plain}-inputs:zeros"]
    assert [each.gap for each in found] == [None, None]
    (unasked,) = grid.cells([workloads.gemm], selection, {"rich": RICH})
    assert unasked.id == plain
    assert "inputs" not in workloads.mlp.toggles


def test_zeros_are_ranked_among_themselves() -> None:
    """They are other work; a record of an earlier version was of ordinary numbers."""
    zeros, normal, earlier = (
        contests.work(identity(cell(operation())) | CaseFacts(toggles=toggles))
        for toggles in ({"inputs": "zeros"}, {"inputs": "normal"}, {})
    )
    assert normal == earlier != zeros
