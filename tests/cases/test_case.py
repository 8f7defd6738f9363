"""A case is bound, verified, warmed up and measured, and its record is right to the digit."""

from collections.abc import Callable
from typing import Any
from unittest.mock import Mock

import numpy as np
import pytest
from numpy.typing import NDArray

from fwbench.cases.backward import Backward
from fwbench.cases.case import Case, bind
from fwbench.errors import (
    DeclarationError,
    NotACopy,
    UsageError,
    VerificationError,
    WrongGradient,
    WrongResult,
)
from fwbench.measure.warmup import HANDED_OVER_S
from fwbench.records import entry as record
from fwbench.testing import FakeFramework
from fwbench.workloads import from_list, from_numpy
from support.fakes import assert_not_recorded, case_of, cell, fails, operation, recorded, variant

DISPATCH_S = 2.0**-10
WORK_S = 2.0**-4


def two_vectors(size: int, rng: np.random.Generator) -> tuple[NDArray[Any], ...]:
    return rng.standard_normal(size), rng.standard_normal(size)


# Times


def test_completion_and_dispatch_of_an_asynchronous_framework() -> None:
    """A round lasts until the results exist, and the record keeps when its call returned."""
    case = case_of(cell(), FakeFramework(dispatch_s=DISPATCH_S, work_s=WORK_S), max_time=1.0)
    facts = recorded(case)
    # As many rounds of 65 / 1024 s as fill a second.
    assert case.benchmark.stats.stats.data == [DISPATCH_S + WORK_S] * 16
    assert case.benchmark.stats.iterations == 1
    assert (facts["completion_s"], facts["dispatch_s"]) == (DISPATCH_S + WORK_S, DISPATCH_S)
    # The warm-up is kept apart.
    assert (facts["warmup_calls"], facts["warmup_s"]) == (4, 4 * (DISPATCH_S + WORK_S))
    assert facts["steady"] is True


def test_completion_and_dispatch_are_one_for_a_synchronous_framework() -> None:
    framework = FakeFramework(dispatch_s=DISPATCH_S, work_s=WORK_S, asynchronous=False)
    facts = recorded(case_of(cell(), framework))
    assert facts["completion_s"] == facts["dispatch_s"] == DISPATCH_S + WORK_S


def test_rounds_of_several_calls() -> None:
    """Both times are per call where pytest-benchmark puts several calls into a round.

    Each is waited for, so that their work does not overlap.
    """
    dispatch_s, work_s = 2.0**-12, 2.0**-11
    round_s = 2 * (dispatch_s + work_s)
    framework = FakeFramework(dispatch_s=dispatch_s, work_s=work_s)
    case = case_of(cell(), framework, min_time=round_s, max_time=0.01)
    facts = recorded(case)
    assert case.benchmark.stats.iterations == 2
    assert (facts["completion_s"], facts["dispatch_s"]) == (dispatch_s + work_s, dispatch_s)


@pytest.mark.parametrize("first_s", [0.0, 8.0])
def test_first_call_is_kept_apart(first_s: float) -> None:
    """It includes compiling, and no work that placing the inputs has enqueued."""
    framework = FakeFramework(first_s=first_s)
    facts = recorded(case_of(cell(), framework))
    assert framework.created_from  # each of which costs as much as a call
    assert facts["first_call_in_process_s"] == first_s + DISPATCH_S + WORK_S
    assert facts["completion_s"] == DISPATCH_S + WORK_S


@pytest.mark.parametrize("asynchronous", [True, False])
def test_calls_that_are_handed_over_are_warmed_up_for_longer(asynchronous: bool) -> None:
    """The kernel moves the thread that computes later than times seem to have settled."""
    framework = FakeFramework(dispatch_s=0.0, work_s=2.0**-12, asynchronous=asynchronous)
    facts = recorded(case_of(cell(), framework))
    assert (facts["warmup_s"] >= HANDED_OVER_S) is asynchronous


@pytest.mark.parametrize(("spin", "waits"), [(True, [1]), (False, [])])
def test_verification_has_left_no_thread_spinning(
    spin: bool, waits: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """They are waited for after the first call and what it is compared with, before the others."""
    framework, calls = FakeFramework(), list[int]()
    monkeypatch.setattr("fwbench.cases.case.REFERENCES_SPIN", spin)
    idle = "fwbench.cases.case.wait_until_idle"
    monkeypatch.setattr(idle, lambda: calls.append(len(framework.called)))
    recorded(case_of(cell(), framework))
    assert calls == waits


def test_without_a_warm_up_the_record_says_so() -> None:
    facts = recorded(case_of(cell(), warmup_s=0.0))
    assert (facts["warmup_calls"], facts["warmup_s"], facts["steady"]) == (0, 0.0, None)


def test_what_is_done_before_the_first_call_is_recorded() -> None:
    """A framework may compile while it is bound."""

    class Compiles(FakeFramework):
        def forward(self, *arguments: Any) -> Any:
            self.clock.spend(2.0)
            return super().forward(*arguments)

    facts = recorded(case_of(cell(), Compiles()))
    assert 2.0 <= facts["bind_s"] < 2.5
    assert facts["first_call_in_process_s"] < 0.5


def test_all_calls_are_accounted_for() -> None:
    """First call, warm-up, whether it waits, calibration, rounds, and what is verified then."""
    framework = FakeFramework()
    case = case_of(cell(), framework)
    facts = recorded(case)
    rounds = len(case.benchmark.stats.stats.data)
    waits, calibration, pytest_benchmarks_own, changed, restored = 2, 1, 1, 1, 1
    before = 1 + facts["warmup_calls"] + waits
    turns, repeated, new = 1, 2, 1  # of calls that take long
    assert len(framework.called) == (
        before
        + calibration
        + rounds
        + pytest_benchmarks_own
        + changed
        + restored
        + turns * (repeated + new)
    )


@pytest.mark.parametrize("device", ["cpu", "gpu:0"])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_every_call_is_made_in_the_scope_of_its_case(device: str, dtype: str) -> None:
    """First call, warm-up and rounds have the case's device and dtype, and nothing has after."""
    framework = FakeFramework()
    case_of(cell(device=device, dtype=dtype), framework).measure()
    assert {*framework.called} == {(device, dtype)}
    assert framework.entered is None


def test_measure_returns_what_the_work_returned() -> None:
    returned = case_of(cell()).measure()
    (x,) = operation().operands(4)
    np.testing.assert_array_equal(returned, 2 * x.astype("float32"))


def test_a_test_measures_one_case_once() -> None:
    case = case_of(cell())
    case.measure()
    with pytest.raises(UsageError, match="measured a second time in one test"):
        case.measure()


def test_disabled_means_bound_and_verified_only() -> None:
    """With --benchmark-disable only what is verified is called, and nothing is recorded of it."""
    framework = FakeFramework()
    case = case_of(cell(), framework, disabled=True)
    case.measure()
    assert len(framework.called) == 4  # first, pytest-benchmark's, on changed inputs, on the first
    assert case.benchmark.stats is None
    assert_not_recorded(case)
    fails(case_of(cell(operation(lambda x: 3.0 * x)), disabled=True), WrongResult, "is wrong")


# Facts


def test_the_record_says_what_was_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FAKE_MODE", "fast")
    monkeypatch.setenv("FAKE_MODE_KEY", "begins like a variable of the framework")
    workload = operation(cost=lambda n: from_list.cost_of("forward", n))
    facts = recorded(case_of(cell(workload, device="gpu:0", dtype="float16"), FakeFramework()))
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
    facts = recorded(case_of(cell()))
    assert (facts["flops"], facts["bytes"]) == (None, None)


# Verification


@pytest.mark.parametrize("direction", ["forward", "backward"])
def test_what_is_wrong_is_never_timed(direction: str) -> None:
    """A wrong result fails the case after one call: no round, no record, no warning of its own."""
    framework = FakeFramework()
    workload = operation(lambda x: 3.0 * x, lambda g, x: [3.0 * g])
    case = case_of(cell(workload, direction=direction), framework)
    fails(case, VerificationError, "is wrong")
    assert len(framework.called) == 1
    assert case.benchmark.stats is None


def test_an_interrupted_case_gives_no_warning() -> None:
    case = case_of(cell(operation(Mock(side_effect=KeyboardInterrupt))))
    with pytest.raises(KeyboardInterrupt):
        case.measure()
    assert_not_recorded(case)


@pytest.mark.parametrize("dtype", FakeFramework.capabilities.dtypes)
def test_the_reference_gets_the_numbers_that_the_framework_got(dtype: str) -> None:
    """The reference computes in float64 on the rounded inputs, so that rounding is no error."""
    seen = []

    def reference(x: NDArray[Any]) -> NDArray[Any]:
        seen.append(x)
        return x

    framework = FakeFramework()
    case = case_of(cell(operation(np.copy, reference=reference), dtype=dtype), framework)
    assert recorded(case)["max_relative_error"] == 0.0
    assert {str(x.dtype) for x in seen} == {"float64"}
    # Creators get the dtype of the case, and float32 where NumPy does not have that one.
    sent = "float32" if dtype == "bfloat16" else dtype
    assert {*framework.created_from} == {(sent, dtype)}


def test_integers_stay_integers() -> None:
    """Operands of other kinds are placed as they are, for the reference too."""
    workload = operation(
        np.take,
        inputs=lambda size, rng: (rng.standard_normal(size), np.arange(size)[::-1].copy()),
        reference=np.take,
    )
    framework = FakeFramework()
    facts = recorded(case_of(cell(workload), framework))
    assert framework.created_from[:2] == [("float32", "float32"), ("int64", "int64")]
    assert facts["max_relative_error"] == 0.0


def test_the_tolerance_is_the_operations() -> None:
    """It multiplies that of the dtype, and is in the record."""
    fails(case_of(cell(operation(lambda x: 2.0 * x * (1 + 1e-5)))), WrongResult, "is wrong")
    lenient = operation(lambda x: 2.0 * x * (1 + 1e-5), tolerance=10.0)
    facts = recorded(case_of(cell(lenient)))
    assert 0 < facts["max_relative_error"] <= facts["tolerance"] < 1e-4


def test_an_operations_own_implementation_comes_before_the_frameworks() -> None:
    workload = operation(np.matmul, name="gemm", reference=np.square)
    workload.implementations["fake"] = lambda np: np.square
    case_of(cell(workload)).measure()
    without = operation(name="noop", reference=np.asarray, implementations={})
    assert recorded(case_of(cell(without)))["max_relative_error"] == 0.0


def test_several_results_may_be_a_list() -> None:
    ends = operation(lambda x: [x[0], x[-1]], reference=lambda x: [x[0], x[-1]])
    assert recorded(case_of(cell(ends)))["max_relative_error"] < 1e-6


def test_an_implementation_returns_a_function() -> None:
    """Not to return it is a slip that must not end in an error of the framework's."""
    nothing = operation(implementations={"fake": lambda np: None})
    with pytest.raises(DeclarationError, match="double in fake returned None; return the function"):
        case_of(cell(nothing)).measure()


# Creation


@pytest.mark.parametrize(
    "workload", [from_numpy, from_list], ids=lambda workload: str(workload.name)
)
def test_creation_copies_values(workload: Any) -> None:
    """Creating from an array and from a list is the framework's creator, on the source itself."""
    framework = FakeFramework()
    case = case_of(cell(workload), framework)
    created = case.measure()
    facts = case.benchmark.extra_info["fwbench"]
    np.testing.assert_array_equal(created, workload.operands(4)[0].astype("float32"))
    assert facts["completion_s"] == DISPATCH_S + WORK_S
    assert facts["result_is_view"] is False
    timed = framework.created_from[-4]
    assert timed == ("float32" if workload is from_numpy else "list", "float32")


def test_creation_that_aliases_is_refused() -> None:
    case = case_of(cell(from_numpy), FakeFramework(copies=False))
    fails(case, NotACopy, "shares memory")
    assert case.benchmark.stats is None


@pytest.mark.parametrize(
    "workload", [from_numpy, from_list], ids=lambda workload: str(workload.name)
)
@pytest.mark.parametrize("copies", [True, False])
def test_the_source_is_as_before_once_it_is_verified(workload: Any, copies: bool) -> None:
    work = bind(cell(workload, dtype="float64"), FakeFramework(copies=copies))
    try:
        work.verify(work.run())
    except NotACopy:
        assert not copies
    np.testing.assert_array_equal(work.run(), workload.operands(4)[0])


def test_creation_of_other_values_is_wrong() -> None:
    rounding = variant(creator=lambda *_: lambda source: np.round(np.array(source)))
    fails(case_of(cell(from_numpy), rounding()), WrongResult, "largest relative error")


@pytest.mark.parametrize(("operand", "narrow"), [(1.0 / 3.0, "float16"), (300, "int8")])
def test_inputs_that_change_on_their_way_are_refused(operand: float, narrow: str) -> None:
    """A creator that loses precision or range is found before the first call."""
    lossy = variant(creator=lambda *_: lambda source: np.array(source, dtype=narrow))()
    workload = operation(
        np.copy, inputs=lambda size, rng: (np.array([operand]),), reference=np.copy
    )
    fails(case_of(cell(workload), lossy), WrongResult, "is wrong|an input changed")
    assert lossy.called == []


# Backward


def product(gradient: Callable[..., Any], **changes: Any) -> Case:
    """A case of the gradient of a product of two vectors, element by element."""
    workload = operation(np.multiply, gradient, inputs=two_vectors, reference=np.multiply)
    return case_of(cell(workload, direction="backward", **changes))


def right_gradient(g: Any, x: Any, y: Any) -> list[Any]:
    return [g * y, g * x]


@pytest.mark.parametrize("dtype", FakeFramework.capabilities.dtypes)
def test_a_right_gradient_is_measured(dtype: str) -> None:
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
    fails(product(gradient), WrongGradient, f"the gradient of input {position} is wrong")


@pytest.mark.parametrize(
    "returned",
    [lambda result, gradients: gradients, lambda result, gradients: result, lambda *_: None],
    ids=["gradients", "result", "nothing"],
)
def test_backward_without_its_result_is_refused(returned: Callable[..., Any]) -> None:
    """Its forward pass could be left out; the message says what to return."""

    def alone(self: Any, *arguments: Any) -> Any:
        run = FakeFramework.backward(self, *arguments)
        return lambda: returned(*run())

    case = case_of(cell(direction="backward"), variant(backward=alone)())
    fails(case, WrongGradient, r"return \(result, \[gradient, ...\]\)")


def test_the_result_of_backward_is_verified() -> None:
    workload = operation(lambda x: 3.0 * x, lambda g, x: [2.0 * g])
    fails(case_of(cell(workload, direction="backward")), WrongResult, "is wrong")


def test_only_floating_point_inputs_are_differentiated_by() -> None:
    indices = np.array([3, 0, 0, 1])

    def gradient(g: Any, picked: Any, x: Any) -> list[Any]:
        by_x = np.zeros_like(x)
        np.add.at(by_x, picked, g)
        return [None, by_x]

    workload = operation(
        lambda picked, x: np.take(x, picked),
        gradient,
        inputs=lambda size, rng: (indices, rng.standard_normal(size)),
        reference=lambda picked, x: np.take(x, picked),
    )
    work = bind(cell(workload, direction="backward"), FakeFramework())
    assert isinstance(work, Backward)
    assert work.variables == [1]
    assert work.verify(work.run())["max_relative_error"] < 1e-6


def test_the_cotangent_has_the_shape_and_dtype_of_the_result() -> None:
    """Its numbers are not ones, and the same every time."""
    workload = operation(np.dot, right_gradient, inputs=two_vectors, reference=np.dot)
    backward = cell(workload, direction="backward", dtype="float16")
    work, repeated = (bind(backward, FakeFramework()) for _ in range(2))
    assert isinstance(work, Backward)
    assert isinstance(repeated, Backward)
    assert (work.cotangent.shape, work.cotangent.dtype) == ((), np.dtype("float16"))
    assert work.cotangent == repeated.cotangent != 1.0
    work.verify(work.run())


def test_threads_that_the_work_sets_are_refused() -> None:
    """Other frameworks have those asked for; ``torch.set_num_threads`` is called in functions."""
    framework = FakeFramework()

    def alone(x: Any) -> Any:
        framework.set_threads(framework.threads() + 1)
        return 2.0 * x

    case = case_of(cell(operation(alone)), framework)
    fails(case, VerificationError, "^fake computes with .* threads by now, and began with 2: ")


def test_an_error_of_the_framework_is_passed_on() -> None:
    failing = variant(forward=Mock(side_effect=MemoryError("out of memory")))()
    with pytest.raises(MemoryError, match="out of memory"):
        case_of(cell(), failing).measure()


# Views


@pytest.mark.parametrize(
    ("value", "addressable", "view"),
    [
        (lambda x: x, True, True),
        (lambda x: x.reshape(2, 2), True, True),
        (np.copy, True, False),
        (lambda x: x, False, None),
    ],
    ids=["the input itself", "a view of it", "a copy", "unknown"],
)
def test_views_are_recorded(value: Any, addressable: bool, view: bool | None) -> None:
    workload = operation(value, reference=value)
    facts = recorded(case_of(cell(workload), FakeFramework(addressable=addressable)))
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
    ids=["copies", "result", "gradient", "view of the cotangent", "unknown"],
)
def test_views_in_backward_are_recorded(
    value: Callable[..., Any], gradient: Callable[..., Any], addressable: bool, view: bool | None
) -> None:
    """The result and every gradient are compared with the inputs and the cotangent."""
    workload = operation(value, gradient, reference=value)
    framework = FakeFramework(addressable=addressable)
    facts = recorded(case_of(cell(workload, direction="backward"), framework))
    assert facts["result_is_view"] is view


def test_a_view_from_the_second_call_on_is_a_view() -> None:
    copies = iter([True])
    workload = operation(lambda x: x.copy() if next(copies, False) else x, reference=np.copy)
    assert recorded(case_of(cell(workload)))["result_is_view"] is True
