"""What was timed is verified: frameworks that are right once, and then cheat, get no number.

Each cheats in one way, forward and backward. That every kind of cheat is caught when it comes as
another package is shown by the tests of :mod:`fwbench.testing`.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from fwbench import workloads
from fwbench.errors import (
    DeclarationError,
    FwbenchError,
    NotACopy,
    TooLargeToVerify,
    UnreadableResult,
    VerificationError,
    WrongGradient,
    WrongResult,
)
from fwbench.options.options import Selection
from fwbench.records.entry import identity
from fwbench.records.facts import CaseFacts
from fwbench.report import ranking
from fwbench.testing import FakeFramework
from fwbench.workloads import from_list, from_numpy, grid
from fwbench.workloads.gaps import value_gap
from fwbench.workloads.operation import Operation
from support.fakes import Immutable, case_of, cell, fails, operation, recorded, square
from support.grids import RICH

#: What makes a call out of an honest one, and what the one before that has returned.
Cheat = Callable[[Callable[[], Any]], Callable[[], Any]]

both_directions = pytest.mark.parametrize("direction", ["forward", "backward"])


def _by(cheat: Cheat, **facts: Any) -> FakeFramework:
    """A framework whose bound calls are what ``cheat`` makes of the honest ones."""

    class Cheating(FakeFramework):
        def forward(self, *arguments: Any) -> Any:
            return _slow(self, cheat(super().forward(*arguments)))

        def backward(self, *arguments: Any) -> Any:
            return _slow(self, cheat(super().backward(*arguments)))

    return Cheating(**facts)


def _slow(framework: FakeFramework, function: Callable[..., Any]) -> Callable[..., Any]:
    """The function, taking time: calls that take none are repeated forever."""

    def call(*arguments: Any) -> Any:
        framework.clock.spend(framework.dispatch_s)
        return function(*arguments)

    return call


# Cheats


def _cached(run: Callable[[], Any]) -> Callable[[], Any]:
    results: list[Any] = []

    def call() -> Any:
        if not results:
            results.append(run())
        return results[0]

    return call


def _folded(run: Callable[[], Any]) -> Callable[[], Any]:
    result = run()
    return lambda: result


def _every_second(run: Callable[[], Any]) -> Callable[[], Any]:
    results: list[Any] = []

    def call() -> Any:
        results.append(run() if len(results) % 2 == 0 else results[-1])
        return results[-1]

    return call


def _previous(run: Callable[[], Any]) -> Callable[[], Any]:
    results = [run()]

    def call() -> Any:
        results.append(run())
        return results.pop(0)

    return call


@both_directions
@pytest.mark.parametrize(
    "cheat", [_cached, _folded, _previous], ids=["cached", "folded", "of the previous call"]
)
def test_a_result_that_does_not_depend_on_the_inputs(cheat: Cheat, direction: str) -> None:
    """A call on changed inputs shows it, and the message says what it means."""
    said = "^a call on changed inputs is wrong though the first call was right, so results are kept"
    fails(square(direction, _by(cheat)), FwbenchError, said)


@both_directions
@pytest.mark.parametrize("before", [0, 1])
def test_work_that_is_done_every_second_time(direction: str, before: int) -> None:
    """Whichever of the two calls is skipped: each has inputs of its own."""

    def cheat(run: Callable[[], Any]) -> Callable[[], Any]:
        call = _every_second(run)
        for _ in range(before):
            call()
        return call

    said = "^a call on .* inputs.* is wrong though the first call was right"
    fails(square(direction, _by(cheat)), FwbenchError, said)


@pytest.mark.parametrize("what", ["result", "gradient"])
def test_half_of_it_is_cached(what: str) -> None:
    """The result alone, or the gradients alone: both are verified on changed inputs."""

    def cheat(run: Callable[[], Any]) -> Callable[[], Any]:
        result, gradients = run()
        if what == "result":
            return lambda: (result, run()[1])
        return lambda: (run()[0], gradients)

    error = WrongResult if what == "result" else WrongGradient
    fails(square("backward", _by(cheat)), error, "^a call on changed inputs is wrong")


def test_a_gradient_of_linear_work_is_cached() -> None:
    """It does not depend on the inputs, but on the cotangent, which changes with them."""

    def cheat(run: Callable[[], Any]) -> Callable[[], Any]:
        _, gradients = run()
        return lambda: (run()[0], gradients)

    case = case_of(cell(operation(), direction="backward"), _by(cheat))
    fails(case, WrongGradient, "^a call on changed inputs is wrong")


def _from_the_third(change: Callable[[Any], Any]) -> Cheat:
    """One that is honest twice."""

    def cheat(run: Callable[[], Any]) -> Callable[[], Any]:
        honest = iter(range(2))

        def call() -> Any:
            result = run()
            return result if next(honest, None) is not None else change(result)

        return call

    return cheat


def _tenth(result: Any) -> Any:
    """As if nine tenths of the elements had not been computed."""
    if isinstance(result, tuple):
        return _tenth(result[0]), [_tenth(gradient) for gradient in result[1]]
    return np.where(np.arange(result.size) < result.size / 10, result, 0.0)


def _narrow(result: Any) -> Any:
    if isinstance(result, tuple):
        return _narrow(result[0]), [_narrow(gradient) for gradient in result[1]]
    return np.asarray(result, dtype=np.float16).astype(result.dtype)


@both_directions
@pytest.mark.parametrize("change", [_tenth, _narrow], ids=["a tenth of the work", "float16"])
def test_less_work_once_it_was_verified(change: Callable[[Any], Any], direction: str) -> None:
    """The result of the last timed call is verified as the first was."""
    said = "^the result of the last timed call is wrong though the first was right: the result is"
    fails(square(direction, _by(_from_the_third(change))), WrongResult, said)


@both_directions
def test_float32_in_place_of_float64(direction: str) -> None:
    """From the third call on: too little for the difference that gradients are compared with."""

    def narrow(result: Any) -> Any:
        if isinstance(result, tuple):
            return result[0], [np.float32(gradient).astype(float) for gradient in result[1]]
        return np.float32(result).astype(float)

    of = operation(lambda x: x * x, lambda g, x: [2.0 * g * x], reference=np.square)
    case = case_of(cell(of, direction=direction, dtype="float64"), _by(_from_the_third(narrow)))
    error = WrongResult if direction == "forward" else WrongGradient
    fails(case, error, "^the result of the last timed call is wrong though the first was right")


@both_directions
def test_nothing_at_all_once_it_was_verified(direction: str) -> None:
    """None is no result; that is said of what was timed, not in the words of NumPy."""
    fails(square(direction, _by(_from_the_third(lambda _: None))), VerificationError, "None")


def test_an_input_that_is_changed_by_the_work() -> None:
    """Work in place is right once, and of something else ever after."""

    def in_place(x: Any) -> Any:
        x *= 2.0
        return x.copy()

    fails(case_of(cell(operation(in_place)), FakeFramework()), WrongResult, "changed input 0")


@both_directions
def test_honest_work_passes(direction: str) -> None:
    """On arrays that can be written; and the record has the largest error of all calls."""
    case = square(direction, FakeFramework())
    facts = recorded(case)
    assert facts["max_relative_error"] <= facts["tolerance"]
    assert facts["precision_bits"] == 23


# Arrays that cannot be written


class Frozen(FakeFramework):
    """Has read-only arrays, and calls whose arguments are arrays."""

    def creator(self, device: str, dtype: str) -> Callable[[Any], Any]:
        create = super().creator(device, dtype)

        def frozen(source: Any) -> Any:
            array = create(source)
            array.flags.writeable = False
            return array

        return frozen

    def forward(self, implementation: Any, inputs: Sequence[Any], execution: str) -> Any:
        return partial(_slow(self, self.called_with(implementation(np))), *inputs)

    def backward(
        self, implementation: Any, inputs: Any, variables: Any, cotangent: Any, execution: str
    ) -> Any:
        function = implementation(np)

        def call(inputs: Any, cotangent: Any) -> Any:
            return function(*inputs), function.gradient(cotangent, *inputs)

        return partial(_slow(self, self.called_with(call)), [*inputs], cotangent)

    def called_with(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """What is bound to the inputs."""
        return function


@both_directions
def test_honest_work_on_arrays_that_cannot_be_written(direction: str) -> None:
    """The same function is called with other arrays."""
    case = square(direction, Frozen())
    case.measure()
    assert case.benchmark.extra_info["fwbench"]["tolerance"] > 0


@both_directions
def test_a_cache_that_knows_no_inputs(direction: str) -> None:
    """The function is given others, and returns what it had."""

    class Cached(Frozen):
        def called_with(self, function: Callable[..., Any]) -> Callable[..., Any]:
            results: list[Any] = []

            def call(*inputs: Any) -> Any:
                if not results:
                    results.append(function(*inputs))
                return results[0]

            return call

    fails(square(direction, Cached()), FwbenchError, "^a call on changed inputs is wrong")


@both_directions
def test_arrays_that_are_closed_over(direction: str) -> None:
    """A call that cannot be given others is refused, and the message says what to return."""

    class Closed(Frozen):
        def forward(self, *arguments: Any) -> Any:
            return partial(operator.call, super().forward(*arguments))

        def backward(self, *arguments: Any) -> Any:
            return partial(operator.call, super().backward(*arguments))

    said = "return functools.partial"
    fails(square(direction, Closed()), DeclarationError, said)


def test_arrays_that_are_not_written() -> None:
    """A framework that says so is told."""

    class Lies(FakeFramework):
        def write(self, array: Any, source: Any) -> bool:
            return True

    fails(square("forward", Lies()), DeclarationError, "fake's write returned True, and the")


# Creations


@pytest.mark.parametrize("of", [from_numpy, from_list], ids=lambda of: str(of.name))
def test_a_creation_that_is_kept(of: Any) -> None:
    """The source changes, and the array that is made of it must be another one."""

    class Keeps(FakeFramework):
        def creator(self, device: str, dtype: str) -> Callable[[Any], Any]:
            create, made = super().creator(device, dtype), {}
            return lambda source: made.setdefault(id(source), create(source))

    fails(case_of(cell(of), Keeps()), WrongResult, "^a call on changed inputs is wrong")


def test_a_creation_that_copies_once() -> None:
    """The last one is verified to be a copy as the first was."""

    class Once(FakeFramework):
        def creator(self, device: str, dtype: str) -> Callable[[Any], Any]:
            create, copies = super().creator(device, dtype), iter([True, True])
            return lambda source: (create(source), np.asarray(source))[not next(copies, False)]

    said = "^the result of the last timed call is wrong though the first was right: the created"
    fails(case_of(cell(from_numpy), Once()), NotACopy, said)


# Results that cannot be verified


def test_a_result_that_is_freed() -> None:
    """An error while it is read fails the case, with the framework's own words."""

    class Freed(FakeFramework):
        def to_numpy(self, array: Any) -> Any:
            if array.flags.writeable is False:
                raise RuntimeError("array has been deleted\nat 0x1234")
            return super().to_numpy(array)

        def _rounded(self, result: Any) -> Any:
            result.flags.writeable = False
            return result

    said = r"the result \(ndarray\) cannot be read back: fake raised RuntimeError: array has been"
    fails(square("forward", Freed()), UnreadableResult, said)


def test_a_result_that_is_gone_when_it_is_waited_for() -> None:
    """Whatever is raised while an element is read is said of the result."""

    class Gone(FakeFramework):
        def read_element(self, array: Any) -> Any:
            return None.shape  # type: ignore[attr-defined]

    said = "cannot be read back: fake raised AttributeError: 'NoneType' object has no attribute"
    fails(square("forward", Gone()), UnreadableResult, said)


@pytest.mark.parametrize(
    ("value", "reference", "right"),
    [
        (lambda x: x + 1j * x, lambda x: x + 1j * x, True),
        (lambda x: x, lambda x: x + 1j * x, False),
        (lambda x: x + 1j * x, lambda x: x, False),
        (np.argsort, np.argsort, True),
        (lambda x: np.argsort(x) + (x == x.max()), np.argsort, False),
        (lambda x: np.full(4, 2**60), lambda x: np.full(4, 2**60 + 1), False),
        (lambda x: x > 0, lambda x: x > 0, True),
        (lambda x: x > 0, lambda x: x <= 0, False),
    ],
    ids=["complex", "real", "not real", "integer", "another", "large", "boolean", "opposite"],
)
def test_numbers_of_every_kind_are_compared(
    value: Callable[..., Any], reference: Callable[..., Any], right: bool
) -> None:
    """Complex ones in both parts; integers and booleans must be equal, however large."""
    case = case_of(cell(operation(value, reference=reference)), FakeFramework())
    if right:
        case.measure()
        assert case.benchmark.extra_info["fwbench"]["max_relative_error"] < 1e-6
    else:
        fails(case, WrongResult, "the result is wrong")


def test_a_case_too_large_to_verify(monkeypatch: pytest.MonkeyPatch) -> None:
    """The message has the sizes; nothing is timed."""
    memory = type("Memory", (), {"available": 100})
    monkeypatch.setattr("fwbench.cases.inputs.psutil.virtual_memory", lambda: memory)
    said = "to verify 4 elements of results against 4 of inputs takes 0.00 GiB of memory, and"
    fails(square("forward", FakeFramework()), TooLargeToVerify, said)


# Zeros


ZEROS = (("inputs", "zeros"),)


def facts(of: Operation, framework: FakeFramework, **changes: Any) -> dict[str, Any]:
    """What is recorded of a case that is timed on zeros."""
    case = case_of(cell(of, toggles=ZEROS, **changes), framework)
    return recorded(case)


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
    assert value_gap(of, "inputs", "zeros") == gap
    assert value_gap(of, "inputs", "normal") is None


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
        ranking.work(identity(cell(operation())) | CaseFacts(toggles=toggles))
        for toggles in ({"inputs": "zeros"}, {"inputs": "normal"}, {})
    )
    assert normal == earlier != zeros
