"""A case is bound, verified, warmed up and measured, and its record is right to the digit."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from unittest.mock import Mock

import numpy as np
import pytest
from numpy.typing import NDArray

from fwbench.cases.backward import Backward
from fwbench.cases.case import bind
from fwbench.errors import FwbenchError, NotACopy, WrongGradient, WrongResult
from fwbench.measure.warmup import HANDED_OVER_S
from fwbench.plugin import host
from fwbench.records import entry as record
from fwbench.testing import FakeFramework
from fwbench.workloads import from_list, from_numpy
from support.fakes import case_of, cell, operation, recorded

DISPATCH_S = 2.0**-10
WORK_S = 2.0**-4


def two_vectors(size: int, rng: np.random.Generator) -> tuple[NDArray[Any], ...]:
    """Operands of an operation of two variables."""
    return rng.standard_normal(size), rng.standard_normal(size)


# Times


def test_completion_and_dispatch_of_an_asynchronous_framework() -> None:
    """A round lasts until the results exist, and the record keeps when its call returned."""
    case = case_of(
        cell(operation()), FakeFramework(dispatch_s=DISPATCH_S, work_s=WORK_S), max_time=1.0
    )
    facts = recorded(case)
    # As many rounds of 65 / 1024 s as fill a second.
    assert case.benchmark.stats.stats.data == [DISPATCH_S + WORK_S] * 16
    assert case.benchmark.stats.iterations == 1
    assert facts["completion_s"] == DISPATCH_S + WORK_S
    assert facts["dispatch_s"] == DISPATCH_S


def test_completion_and_dispatch_are_one_for_a_synchronous_framework() -> None:
    """Where calls return when their work is done, both times are the time of the call."""
    framework = FakeFramework(dispatch_s=DISPATCH_S, work_s=WORK_S, asynchronous=False)
    facts = recorded(case_of(cell(operation()), framework))
    assert facts["completion_s"] == facts["dispatch_s"] == DISPATCH_S + WORK_S


def test_rounds_of_several_calls() -> None:
    """Both times are per call where pytest-benchmark puts several calls into a round."""
    dispatch_s, work_s = 2.0**-12, 2.0**-11
    # Two calls are the fewest that make a round this long.
    round_s = dispatch_s + 2 * work_s
    framework = FakeFramework(dispatch_s=dispatch_s, work_s=work_s)
    case = case_of(cell(operation()), framework, min_time=round_s, max_time=0.01)
    facts = recorded(case)
    assert case.benchmark.stats.iterations == 2
    assert facts["completion_s"] == round_s / 2
    assert facts["dispatch_s"] == dispatch_s


def test_first_call_is_kept_apart() -> None:
    """What the first call costs beside, such as compiling, is in the record and in no round."""
    facts = recorded(case_of(cell(operation()), FakeFramework(first_s=8.0)))
    assert facts["first_call_in_process_s"] == 8.0 + DISPATCH_S + WORK_S
    assert facts["completion_s"] == DISPATCH_S + WORK_S


def test_placing_inputs_is_not_timed() -> None:
    """Work that binding has enqueued is waited for before the first call is timed."""
    framework = FakeFramework()
    facts = recorded(case_of(cell(operation()), framework))
    assert framework.created_from  # which cost as much as a call
    assert facts["first_call_in_process_s"] == DISPATCH_S + WORK_S


def test_warm_up_is_kept_apart() -> None:
    """The record says how many calls warmed the case up, how long they took, and how it ended."""
    facts = recorded(case_of(cell(operation()), FakeFramework()))
    assert facts["warmup_calls"] == 10
    assert facts["warmup_s"] == 10 * (DISPATCH_S + WORK_S)
    assert facts["steady"] is True


@pytest.mark.parametrize(("asynchronous", "is_long"), [(True, True), (False, False)])
def test_calls_that_are_handed_over_are_warmed_up_for_longer(
    asynchronous: bool, is_long: bool
) -> None:
    """The kernel moves the thread that computes later than times seem to have settled."""
    framework = FakeFramework(dispatch_s=0.0, work_s=2.0**-12, asynchronous=asynchronous)
    facts = recorded(case_of(cell(operation()), framework))
    assert (facts["warmup_s"] >= HANDED_OVER_S) is is_long


def test_verification_has_left_no_thread_spinning(monkeypatch: pytest.MonkeyPatch) -> None:
    """They are waited for after the first call and what it is compared with, before the others."""
    framework, calls = FakeFramework(), list[int]()
    idle = "fwbench.cases.case.wait_until_idle"
    monkeypatch.setattr(idle, lambda: calls.append(len(framework.called)))
    recorded(case_of(cell(operation()), framework))
    assert calls == [1]


def test_without_a_warm_up_the_record_says_so() -> None:
    """Without a warm-up no call is made for one, and steadiness is not claimed."""
    facts = recorded(case_of(cell(operation()), FakeFramework(), warmup_s=0.0))
    assert (facts["warmup_calls"], facts["warmup_s"], facts["steady"]) == (0, 0.0, None)


def test_all_calls_are_accounted_for() -> None:
    """First call, warm-up, whether it waits, calibration, rounds, and what is verified then."""
    framework = FakeFramework()
    case = case_of(cell(operation()), framework)
    facts = recorded(case)
    rounds = len(case.benchmark.stats.stats.data)
    waits, calibration, pytest_benchmarks_own, changed, restored = 3, 1, 1, 1, 1
    before = 1 + facts["warmup_calls"] + waits
    assert len(framework.called) == (
        before + calibration + rounds + pytest_benchmarks_own + changed + restored
    )


@pytest.mark.parametrize("device", ["cpu", "gpu:0"])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_every_call_is_made_in_the_scope_of_its_case(device: str, dtype: str) -> None:
    """First call, warm-up and rounds have the case's device and dtype, and nothing has after."""
    framework = FakeFramework()
    case_of(cell(operation(), device=device, dtype=dtype), framework).measure()
    assert {*framework.called} == {(device, dtype)}
    assert framework.entered is None


def test_measure_returns_what_the_work_returned() -> None:
    """A test can look at the result itself."""
    returned = case_of(cell(operation()), FakeFramework()).measure()
    (x,) = operation().operands(4)
    np.testing.assert_array_equal(returned, 2 * x.astype("float32"))


def test_disabled_means_bound_and_verified_only() -> None:
    """With --benchmark-disable only what is verified is called, and nothing is kept of it."""
    framework = FakeFramework()
    case = case_of(cell(operation()), framework, disabled=True)
    case.measure()
    assert len(framework.called) == 4  # first, pytest-benchmark's, on changed inputs, on the first
    assert case.benchmark.stats is None
    assert case.benchmark.extra_info == {}


def test_disabled_still_fails_what_is_wrong() -> None:
    """With --benchmark-disable a wrong result fails the case all the same."""
    with pytest.raises(WrongResult):
        case_of(cell(operation(lambda x: 3.0 * x)), FakeFramework(), disabled=True).measure()


# Facts


def test_the_record_says_what_was_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    """The record names the cell, the framework's build, its device, its switches and its cost."""
    monkeypatch.setenv("FAKE_MODE", "fast")
    monkeypatch.setenv("FAKE_MODE_KEY", "begins like a variable of the framework")
    of = operation(cost=lambda n: from_list.cost_of("forward", n))
    facts = recorded(case_of(cell(of, device="gpu:0", dtype="float16"), FakeFramework()))
    expected = {
        "schema": record.SCHEMA,
        "workload": "double",
        "framework": "fake",
        "framework_version": "1.2",
        "device": "gpu:0",
        "device_name": "Fake 9000",
        "execution": "eager",
        "direction": "forward",
        "dtype": "float16",
        "size": 4,
        "threads": 2,
        "toggles": {"FAKE_MODE": "fast", "inputs": "normal", "l2": "hot"},
        "flops": 0.0,
        "bytes": 4 * 2 + 4 * 32,
    }
    assert facts.items() >= expected.items()


def test_an_unknown_cost_is_none() -> None:
    """An operation that declares no cost has none in its record, rather than zero."""
    facts = recorded(case_of(cell(operation()), FakeFramework()))
    assert (facts["flops"], facts["bytes"]) == (None, None)


# Verification


@pytest.mark.parametrize("direction", ["forward", "backward"])
def test_what_is_wrong_is_never_timed(direction: str) -> None:
    """A wrong result fails the case after one call: no round, no record, no warning of its own."""
    framework = FakeFramework()
    of = operation(lambda x: 3.0 * x, lambda g, x: [3.0 * g])
    case = case_of(cell(of, direction=direction), framework)
    with pytest.raises((WrongResult, WrongGradient)):
        case.measure()
    assert len(framework.called) == 1
    assert case.benchmark.stats is None
    assert case.benchmark.extra_info == {}
    assert host.record(case.benchmark) is None
    case.benchmark._cleanup()
    case.benchmark._logger.warning.assert_not_called()


def test_an_interrupted_case_gives_no_warning_beside() -> None:
    """Ctrl-C during the first call is passed on without a complaint about the fixture."""

    interrupted = Mock(side_effect=KeyboardInterrupt)
    case = case_of(cell(operation(interrupted)), FakeFramework())
    with pytest.raises(KeyboardInterrupt):
        case.measure()
    case.benchmark._cleanup()
    case.benchmark._logger.warning.assert_not_called()


@pytest.mark.parametrize("dtype", FakeFramework.capabilities.dtypes)
def test_the_reference_gets_the_numbers_that_the_framework_got(dtype: str) -> None:
    """The reference computes in float64 on the rounded inputs, so that rounding is no error."""
    seen = []

    def reference(x: NDArray[Any]) -> NDArray[Any]:
        seen.append(x)
        return x

    facts = recorded(
        case_of(cell(operation(np.copy, reference=reference), dtype=dtype), FakeFramework())
    )
    assert {str(x.dtype) for x in seen} == {"float64"}
    assert facts["max_relative_error"] == 0.0


@pytest.mark.parametrize(
    ("dtype", "sent"),
    [
        ("float64", "float64"),
        ("float32", "float32"),
        ("float16", "float16"),
        ("bfloat16", "float32"),
    ],
)
def test_operands_are_sent_in_the_dtype_of_the_case(dtype: str, sent: str) -> None:
    """Creators get NumPy arrays of the case's dtype, of float32 where NumPy has not that one."""
    framework = FakeFramework()
    case_of(cell(operation(), dtype=dtype), framework).measure()
    assert {*framework.created_from} == {(sent, dtype)}


def test_integers_stay_integers() -> None:
    """Operands that are not floating-point are placed as they are, for the reference too."""
    of = operation(
        np.take,
        inputs=lambda size, rng: (rng.standard_normal(size), np.arange(size)[::-1].copy()),
        reference=np.take,
    )
    framework = FakeFramework()
    facts = recorded(case_of(cell(of), framework))
    assert framework.created_from[:2] == [("float32", "float32"), ("int64", "int64")]
    assert facts["max_relative_error"] == 0.0


def test_the_tolerance_is_the_operations() -> None:
    """The operation's own factor decides what is still right, and the record says what it was."""
    slightly_wrong = operation(lambda x: 2.0 * x * (1 + 1e-5))
    with pytest.raises(WrongResult):
        case_of(cell(slightly_wrong), FakeFramework()).measure()
    lenient = operation(lambda x: 2.0 * x * (1 + 1e-5), tolerance=10.0)
    facts = recorded(case_of(cell(lenient), FakeFramework()))
    assert 0 < facts["max_relative_error"] <= facts["tolerance"] < 1e-4


def test_the_operations_own_implementation_comes_first() -> None:
    """What an operation declares for a framework wins over what the framework's file has."""
    of = operation(np.matmul, name="gemm", reference=np.square)
    of.implementations["fake"] = lambda np: np.square
    case_of(cell(of), FakeFramework()).measure()


def test_the_frameworks_implementation_serves_where_the_operation_has_none() -> None:
    """An operation without an implementation of its own is the framework's of that name."""
    of = operation(name="noop", reference=np.asarray, implementations={})
    assert recorded(case_of(cell(of), FakeFramework()))["max_relative_error"] == 0.0


# Creation


@pytest.mark.parametrize("of", [from_numpy, from_list], ids=lambda of: str(of.name))
def test_creation_copies_values(of: Any) -> None:
    """Creating from an array and from a list is the framework's creator, on the source itself."""
    framework = FakeFramework()
    case = case_of(cell(of), framework)
    created = case.measure()
    facts = case.benchmark.extra_info["fwbench"]
    np.testing.assert_array_equal(created, of.operands(4)[0].astype("float32"))
    assert facts["completion_s"] == DISPATCH_S + WORK_S
    assert facts["result_is_view"] is False
    timed = framework.created_from[-4]
    assert timed == ("float32" if of is from_numpy else "list", "float32")


def test_creation_that_aliases_is_refused() -> None:
    """An array that shares memory with its source is no creation: nothing is timed."""
    case = case_of(cell(from_numpy), FakeFramework(copies=False))
    with pytest.raises(NotACopy, match="shares memory"):
        case.measure()
    assert case.benchmark.stats is None


@pytest.mark.parametrize("of", [from_numpy, from_list], ids=lambda of: str(of.name))
@pytest.mark.parametrize("copies", [True, False])
def test_the_source_is_as_before_once_it_is_verified(of: Any, copies: bool) -> None:
    """Verifying a creation leaves the source as it was, so that the timed calls copy the same."""
    work = bind(cell(of, dtype="float64"), FakeFramework(copies=copies))
    try:
        work.verify(work.run())
    except NotACopy:
        assert not copies
    np.testing.assert_array_equal(work.run(), of.operands(4)[0])


def test_creation_of_other_values_is_wrong() -> None:
    """A creator that changes values is found out."""

    class Rounding(FakeFramework):
        def creator(self, device: str, dtype: str) -> Callable[[Any], Any]:
            return lambda source: np.round(np.array(source, dtype=dtype))

    with pytest.raises(WrongResult, match="largest relative error"):
        case_of(cell(from_numpy), Rounding()).measure()


@pytest.mark.parametrize("kind", ["float", "int"])
def test_inputs_that_change_on_their_way_are_refused(kind: str) -> None:
    """A framework whose creator loses precision or range is found out before the first call."""

    class Lossy(FakeFramework):
        def creator(self, device: str, dtype: str) -> Callable[[Any], Any]:
            return lambda source: np.array(source, dtype="float16" if kind == "float" else "int8")

    operand = {"float": np.array([1.0 / 3.0]), "int": np.array([300])}[kind]
    framework = Lossy()
    of = operation(np.copy, inputs=lambda size, rng: (operand,), reference=np.copy)
    with pytest.raises(WrongResult):
        case_of(cell(of), framework).measure()
    assert framework.called == []


# Backward


def product(gradient: Callable[..., Any], **changes: Any) -> Any:
    """A case of the gradient of a product of two vectors, element by element."""
    of = operation(np.multiply, gradient, inputs=two_vectors, reference=np.multiply)
    return case_of(cell(of, direction="backward", **changes), FakeFramework())


def right_gradient(g: Any, x: Any, y: Any) -> list[Any]:
    """Of the product of two vectors."""
    return [g * y, g * x]


@pytest.mark.parametrize("dtype", FakeFramework.capabilities.dtypes)
def test_a_right_gradient_is_measured(dtype: str) -> None:
    """The gradient by every input is verified and timed like any work."""
    facts = recorded(product(right_gradient, dtype=dtype))
    assert facts["direction"] == "backward"
    assert facts["completion_s"] == DISPATCH_S + WORK_S
    assert facts["max_relative_error"] <= facts["tolerance"]
    assert facts["result_is_view"] is False


@pytest.mark.parametrize(
    ("gradient", "position"),
    [
        (lambda g, x, y: [g * x, g * y], 0),
        (lambda g, x, y: [g * y, g * y], 1),
        (lambda g, x, y: [y, x], 0),
        (lambda g, x, y: [0 * g, g * x], 0),
        (lambda g, x, y: [g * y, 2 * g * x], 1),
    ],
    ids=["swapped", "second is wrong", "cotangent ignored", "zero", "counted twice"],
)
def test_a_wrong_gradient_names_its_input(gradient: Callable[..., Any], position: int) -> None:
    """Whichever gradient is wrong, the case fails and the message says by which input."""
    with pytest.raises(WrongGradient, match=f"the gradient of input {position} is wrong"):
        product(gradient).measure()


@pytest.mark.parametrize(
    "returned",
    [lambda result, gradients: gradients, lambda result, gradients: result, lambda *_: None],
    ids=["gradients", "result", "nothing"],
)
def test_backward_without_its_result_is_refused(returned: Callable[..., Any]) -> None:
    """A forward pass that nobody asks for would be left out; the message says what to return."""

    class Alone(FakeFramework):
        def backward(self, *arguments: Any) -> Any:
            run = super().backward(*arguments)
            return lambda: returned(*run())

    with pytest.raises(WrongGradient, match=r"return \(result, \[gradient, ...\]\)"):
        case_of(cell(operation(), direction="backward"), Alone()).measure()


def test_the_result_of_backward_is_verified() -> None:
    """Beside right gradients there may be a wrong result, or the other way round."""
    of = operation(lambda x: 3.0 * x, lambda g, x: [2.0 * g])
    with pytest.raises(WrongResult):
        case_of(cell(of, direction="backward"), FakeFramework()).measure()


def test_only_floating_point_inputs_are_differentiated_by() -> None:
    """Indices get no gradient and are not moved by the central difference."""
    indices = np.array([3, 0, 0, 1])

    def gradient(g: Any, picked: Any, x: Any) -> list[Any]:
        by_x = np.zeros_like(x)
        np.add.at(by_x, picked, g)
        return [None, by_x]

    of = operation(
        lambda picked, x: np.take(x, picked),
        gradient,
        inputs=lambda size, rng: (indices, rng.standard_normal(size)),
        reference=lambda picked, x: np.take(x, picked),
    )
    work = bind(cell(of, direction="backward"), FakeFramework())
    assert isinstance(work, Backward)
    assert work.variables == [1]
    assert work.verify(work.run())["max_relative_error"] < 1e-6


def test_the_cotangent_has_the_shape_and_dtype_of_the_result() -> None:
    """A gradient begins with an array like the result, of the case's dtype, never with ones."""
    of = operation(
        np.dot,
        right_gradient,
        inputs=two_vectors,
        reference=np.dot,
    )
    work = bind(cell(of, direction="backward", dtype="float16"), FakeFramework())
    assert isinstance(work, Backward)
    assert (work.cotangent.shape, work.cotangent.dtype) == ((), np.dtype("float16"))
    assert work.cotangent != 1.0
    work.verify(work.run())


def test_cotangents_are_the_same_every_time() -> None:
    """Every framework's gradient begins with the same numbers."""
    first, second = (
        bind(cell(operation(), direction="backward"), FakeFramework()) for _ in range(2)
    )
    np.testing.assert_array_equal(first.cotangent, second.cotangent)  # type: ignore[attr-defined]


def test_an_error_of_the_framework_is_passed_on() -> None:
    """What a framework raises while it binds reaches the user as it is, not as fwbench's."""

    class Failing(FakeFramework):
        def forward(self, *arguments: Any) -> Any:
            raise MemoryError("out of memory")

    with pytest.raises(MemoryError, match="out of memory") as caught:
        case_of(cell(operation()), Failing()).measure()
    assert not isinstance(caught.value, FwbenchError)


# Views


@pytest.mark.parametrize(
    ("value", "addressable", "view"),
    [
        (lambda x: x, True, True),
        (lambda x: x.reshape(2, 2), True, True),
        (np.copy, True, False),
        (lambda x: x, False, None),
    ],
    ids=["the input itself", "a view of it", "a copy", "cannot be told"],
)
def test_a_view_is_told_from_a_copy(
    value: Callable[..., Any], addressable: bool, view: bool | None
) -> None:
    """The record says whether the result is a view of an input, where that can be told."""
    of = operation(value, reference=value)
    facts = recorded(case_of(cell(of), FakeFramework(addressable=addressable)))
    assert facts["result_is_view"] is view


@pytest.mark.parametrize(
    ("value", "gradient", "addressable", "view"),
    [
        (lambda x: 2.0 * x, lambda g, x: [2.0 * g], True, False),
        (lambda x: x, lambda g, x: [g.copy()], True, True),
        (lambda x: x.copy(), lambda g, x: [g], True, True),
        (lambda x: x.copy(), lambda g, x: [g[::-1][::-1]], True, True),
        (lambda x: x.copy(), lambda g, x: [g.copy()], False, None),
    ],
    ids=["copies", "result", "gradient", "view of the cotangent", "cannot be told"],
)
def test_a_view_is_told_from_a_copy_in_backward(
    value: Callable[..., Any], gradient: Callable[..., Any], addressable: bool, view: bool | None
) -> None:
    """The result and every gradient are compared with the inputs and the cotangent."""
    of = operation(value, gradient, reference=value)
    framework = FakeFramework(addressable=addressable)
    facts = recorded(case_of(cell(of, direction="backward"), framework))
    assert facts["result_is_view"] is view


def test_a_view_from_the_second_call_on_is_a_view() -> None:
    """What was timed counts: one call that copies makes no copies of the others."""
    copies = iter([True])
    of = operation(lambda x: x.copy() if next(copies, False) else x, reference=np.copy)
    assert recorded(case_of(cell(of), FakeFramework()))["result_is_view"] is True
