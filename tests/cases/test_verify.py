"""Wrong results are found, wherever they are; right ones are accepted, up to rounding."""

import re
from contextlib import nullcontext
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from fwbench.cases import verify
from fwbench.errors import NotACopy, WrongResult, WrongTraining
from fwbench.terms.names import FLOAT8
from support.tables import tabled

NAN, INF = float("nan"), float("inf")


def array(*values: Any) -> NDArray[Any]:
    return np.array(values)


def numbers(values: Any) -> Any:
    """An array of nested tuples, or a scalar."""
    return np.array(values) if isinstance(values, tuple) else np.float64(values)


def error(actual: Any, reference: Any, allowed: float) -> float:
    return verify.compare(actual, reference, allowed).largest


@tabled
@pytest.mark.filterwarnings("error")
def test_equal_values_have_no_error(values: Any) -> None:
    assert error(np.copy(numbers(values)), numbers(values), 1e-6) == 0.0


@tabled
def test_other_values_are_wrong(actual: tuple[float, ...], reference: tuple[float, ...]) -> None:
    with pytest.raises(WrongResult):
        error(array(*actual), array(*reference), 1e-6)


@pytest.mark.parametrize("place", [0, 49, 99])
def test_one_wrong_element_is_found_wherever_it_is(place: int) -> None:
    reference = np.linspace(1.0, 2.0, 100)
    actual = reference.copy()
    actual[place] *= 1 + 2e-6
    assert error(reference * (1 + 0.5e-6), reference, 1e-6) > 0
    with pytest.raises(WrongResult):
        error(actual, reference, 1e-6)


@tabled
def test_errors_are_relative_to_the_scale_of_elements(
    actual: Any, reference: Any, allowed: float, largest: float | None, dtype: str | None
) -> None:
    given = numbers(actual).astype(dtype or "float64")
    if largest is not None:
        assert error(given, numbers(reference), allowed) == pytest.approx(largest, rel=1e-5)
        return
    with pytest.raises(WrongResult):
        error(given, numbers(reference), allowed)


def test_the_message_says_where_what_and_how_many() -> None:
    reference = np.full((3, 4), 2.0)
    actual = reference.copy()
    actual[1, 2] = 3.0
    actual[0, 0] = 2.5
    expected = (
        "largest relative error 0.5 at [1, 2], where it is 3 and the NumPy reference 2; "
        "0.001 is allowed. 2 of 12 elements are off by more"
    )
    with pytest.raises(WrongResult, match=re.escape(expected)):
        error(actual, reference, 1e-3)


def test_the_message_of_a_scalar_has_no_place() -> None:
    with pytest.raises(WrongResult, match="inf at the only element, where it is nan"):
        error(np.float64(NAN), np.float64(1.0), 1e-3)


@tabled
def test_another_shape_is_wrong(actual: tuple[int, ...], reference: tuple[int, ...]) -> None:
    """Values that would broadcast to the reference are no substitute for its shape."""
    both = f"shape {actual}, the NumPy reference {reference}"
    given, wanted = (np.ones(shape) if shape else np.float64(1.0) for shape in (actual, reference))
    with pytest.raises(WrongResult, match=re.escape(both)):
        error(given, wanted, 1e-6)


def test_tolerances_follow_the_precision_of_the_dtype() -> None:
    by_dtype = [verify.tolerance(d, 1) for d in ("float64", "float32", "float16", "bfloat16")]
    assert by_dtype == sorted(by_dtype)
    assert len({*by_dtype}) == 4


@pytest.mark.parametrize("dtype", verify.TOLERANCES)
def test_a_rounded_result_is_within_tolerance(dtype: str) -> None:
    """Rounding the result itself once is always allowed, with room to spare."""
    unit = {"float64": 2.0**-53, "float32": 2.0**-24, "float16": 2.0**-11, "bfloat16": 2.0**-8}
    unit[FLOAT8] = unit["bfloat16"]  # which its results are in
    assert unit[dtype] < verify.tolerance(dtype, 1) / 4


def test_a_result_of_another_precision_is_beyond_tolerance() -> None:
    """float32 in place of float64, and TF32's 10 bits in place of float32's 23, are noticed."""
    assert verify.tolerance("float64", 1) < 2.0**-24
    assert verify.tolerance("float32", 1_000) < 2.0**-11


@pytest.mark.parametrize("dtype", verify.TOLERANCES)
def test_tolerances_grow_with_the_root_of_the_terms(dtype: str) -> None:
    """A hundred times the terms add ten times the error of their sum, in the accumulator."""
    one, hundred, ten_thousand = (verify.tolerance(dtype, n) for n in (1, 100, 10_000))
    epsilon = 2.0**-52 if dtype == "float64" else 2.0**-23
    assert hundred - one == pytest.approx(8 * epsilon * 9, rel=1e-3)
    assert ten_thousand - one == pytest.approx(8 * epsilon * 99, rel=1e-3)


def test_an_operations_factor_multiplies_its_tolerance() -> None:
    assert verify.tolerance("float32", 64, 3.0) == 3 * verify.tolerance("float32", 64)


@tabled
def test_inputs_may_be_rounded_to_their_dtype_alone(
    actual: tuple[Any, ...], wanted: tuple[Any, ...], right: bool, dtype: str | None
) -> None:
    with nullcontext() if right else pytest.raises(WrongResult):
        verify.placed(np.array(actual, dtype), array(*wanted), "float32")


def test_an_array_that_changes_with_its_source_is_no_copy() -> None:
    verify.copied(array(1.0, 2.0), array(1.0, 2.0))
    with pytest.raises(NotACopy, match="use the framework's copying constructor"):
        verify.copied(array(1.0, 2.0), array(1.0, 0.0))


@pytest.mark.parametrize("actual", [0, 60_169, 60_171, 120_340])
def test_another_number_of_parameters_is_another_model(actual: int) -> None:
    verify.parameters(60_170, 60_170)
    with pytest.raises(WrongTraining) as caught:
        verify.parameters(actual, 60_170)
    assert str(caught.value) == (
        f"the model trains {actual} parameters, and its description has 60170: it is another "
        "model; fix the framework's layers"
    )


LOSSES = [2.5, 2.25, 2.0, 1.75]


@pytest.mark.parametrize("dtype", verify.LOSS_TOLERANCES)
def test_the_same_losses_pass(dtype: str) -> None:
    """In every precision that a framework gives; the largest deviation is returned."""
    allowed = verify.LOSS_TOLERANCES[dtype]
    assert verify.losses(array(*LOSSES), LOSSES, [allowed]) == (0.0, allowed)
    assert verify.losses(array(*LOSSES).astype(np.float32), LOSSES, [allowed]) == (0.0, allowed)
    actual = array(*LOSSES) + array(0.25, -0.5, 0.125, 0.0) * allowed
    nearest = verify.losses(actual, LOSSES, [allowed])
    assert nearest == pytest.approx((allowed / 2, allowed), rel=1e-5)


def test_each_loss_may_have_a_tolerance_of_its_own() -> None:
    """The loss that comes closest to its own is returned; one that is off by more is named."""
    allowed = verify.LOSS_TOLERANCES["float64"]
    actual = array(*LOSSES) + array(0.5, 0.0, 3.0, 0.0) * allowed
    nearest = verify.losses(actual, LOSSES, allowed * array(1.0, 1.0, 4.0, 8.0))
    assert nearest == pytest.approx((3 * allowed, 4 * allowed), rel=1e-5)
    with pytest.raises(WrongTraining, match=r"at step 3 the loss is .*; 2e-08 is allowed"):
        verify.losses(actual, LOSSES, allowed * array(1.0, 1.0, 2.0, 8.0))


def test_losses_may_be_off_by_the_tolerance_and_no_more() -> None:
    """Either way; in nats, however large the loss."""
    allowed = verify.LOSS_TOLERANCES["bfloat16"]
    for sign in (1, -1):
        assert verify.losses(array(sign * allowed), [0.0], [allowed]) == (allowed, allowed)
        with pytest.raises(WrongTraining):
            verify.losses(array(sign * allowed * 1.0001), [0.0], [allowed])
    with pytest.raises(WrongTraining):
        verify.losses(array(1000.0), [1000.0 + 2 * allowed], [allowed])


@pytest.mark.parametrize("step", [1, 2, 4])
@pytest.mark.parametrize("value", [NAN, INF, -INF, 2.5e9, -2.0])
@pytest.mark.filterwarnings("error")
def test_one_wrong_loss_is_found_wherever_it_is(step: int, value: float) -> None:
    actual = array(*LOSSES)
    actual[step - 1] = value
    with pytest.raises(WrongTraining, match=re.escape(f"at step {step} the loss is {value:.9g}, ")):
        verify.losses(actual, LOSSES, [5e-5])


def test_the_first_wrong_loss_is_named_and_the_largest_deviation_is_said() -> None:
    """Where losses drift apart, the first step that shows it is the one to look at."""
    actual = array(2.5, 2.25 + 1e-3, 2.0 + 0.5, 1.75)
    with pytest.raises(WrongTraining) as caught:
        verify.losses(actual, LOSSES, [5e-5])
    assert str(caught.value) == (
        "this is not the same training: at step 2 the loss is 2.251, and the float64 reference "
        "has 2.25; 5e-05 is allowed, and the largest deviation in 4 steps is 0.5. Weights, order "
        "of batches, loss, optimiser or random numbers differ"
    )


def test_every_dtype_that_can_be_verified_has_a_tolerance_of_losses() -> None:
    """Otherwise a framework's dtype would fail in its check with an error of Python's."""
    assert {*verify.LOSS_TOLERANCES} == {*verify.TOLERANCES} - {FLOAT8}
