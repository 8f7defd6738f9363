"""Gradients of results with free signs, of results without gradients, and of complex numbers."""

import re
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from fwbench.cases import verify
from fwbench.cases.backward import Backward, directions, gradient
from fwbench.cases.case import Case, bind
from fwbench.cases.precision import is_float32
from fwbench.errors import DeclarationError, WrongGradient
from fwbench.frameworks.contract import differentiated
from fwbench.frameworks.layout import Layout
from fwbench.frameworks.table import Laid
from fwbench.testing import Differentiable, FakeFramework
from fwbench.workloads.operation import Operation
from support.fakes import case_of, cell, fails, variant


def backward(operation: Operation, framework: FakeFramework | None = None, **changes: Any) -> Case:
    return case_of(cell(operation, direction="backward", **changes), framework)


def computed(value: Any, **facts: Any) -> Operation:
    """An operation on four numbers, which the fake framework computes with ``value``."""
    declared: dict[str, Any] = {
        "name": "computed",
        "inputs": lambda size, rng: (rng.standard_normal(4),),
        "sizes": (4,),
        "implementations": {"fake": value if isinstance(value, Laid) else lambda np: value},
    }
    return Operation(**{**declared, **facts})


def factors(x: Any, sign: float = 1.0) -> tuple[Any, ...]:
    """Two numbers whose product is the square of the sum; the sign of both is free."""
    total = x.sum()
    return sign * total * 2.0, sign * total / 2.0


def aligned(expected: Sequence[Any], results: Sequence[Any]) -> list[Any]:
    """The reference's factors with the signs of others."""
    sign = np.copysign(1.0, expected[0] * results[0])
    return [sign * factor for factor in expected]


def up_to_sign(value: Callable[..., Any], **facts: Any) -> Operation:
    return computed(value, reference=factors, compared=lambda a, b: (a * b, abs(a)), **facts)


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_a_gradient_is_that_of_the_signs_which_the_framework_has_chosen(sign: float) -> None:
    """Also once the operands are changed, where the same choice means other signs."""
    backward(up_to_sign(lambda x: factors(x, sign), aligned=aligned)).measure()


def test_without_alignment_other_signs_are_another_gradient() -> None:
    fails(
        backward(up_to_sign(lambda x: factors(x, -1.0))),
        WrongGradient,
        "the gradient of input 0 is wrong",
    )


def test_a_wrong_gradient_is_found_whatever_the_signs() -> None:
    wrong = Differentiable(
        lambda x: factors(x, -1.0), lambda g, x: [-1.01 * (2.0 * g[0] + g[1] / 2.0) * np.ones(4)]
    )
    fails(
        backward(up_to_sign(wrong, aligned=aligned)),
        WrongGradient,
        "the gradient of input 0 is wrong",
    )


def largest(x: Any) -> tuple[Any, ...]:
    place = np.argmax(x.real)
    return np.asarray(x[place]), np.asarray(place)


def test_whole_numbers_among_the_results_have_no_cotangent() -> None:
    """The others have theirs, and their gradient is verified."""
    operation = computed(largest, reference=largest)
    work = bind(cell(operation, direction="backward"), FakeFramework())
    assert isinstance(work, Backward)
    value, place = work.cotangent
    assert value is not None
    assert place is None
    backward(operation).measure()
    wrong = Differentiable(largest, lambda g, x: [np.full(4, g[0] / 4.0)])
    fails(backward(computed(wrong, reference=largest)), WrongGradient, "is wrong")


def test_they_may_lie_otherwise() -> None:
    """A layout converts all results, so it is given zeros in their place."""
    seen: list[list[Any]] = []

    def reversed_(results: Sequence[NDArray[Any]]) -> list[NDArray[Any]]:
        seen.append([np.shape(result) for result in results])
        return [*reversed(results)]

    layout = Layout(place_results=reversed_, restore_results=reversed_)
    implementation = Laid(lambda np: lambda x: largest(x)[::-1], layout)
    backward(computed(implementation, reference=largest)).measure()
    assert all(shapes == [(), ()] for shapes in seen)


def test_a_gradient_of_whole_numbers_alone_is_refused() -> None:
    operation = computed(np.argmax, reference=lambda x: np.argmax(x.real))
    message = "computed returns no floating-point numbers.*declare differentiable=False"
    fails(backward(operation), DeclarationError, message)


def test_what_is_differentiated() -> None:
    assert differentiated("result", "cotangent") == ("result", "cotangent")
    assert differentiated(("a", "b"), ("x", "y")) == (("a", "b"), ("x", "y"))
    assert differentiated(("a", "b", "c"), ("x", None, "z")) == (["a", "c"], ["x", "z"])


TURN = 0.6 + 0.8j


def turned(gradient: Callable[..., Sequence[Any]]) -> Operation:
    """Complex numbers times one; the gradient begins with complex numbers, too."""
    return computed(
        Differentiable(lambda z: TURN * z, gradient),
        inputs=lambda size, rng: (rng.standard_normal(4) + 1j * rng.standard_normal(4),),
        reference=lambda z: TURN * z,
    )


#: Its gradients are JAX's.
UNCONJUGATED = variant(conjugates=False)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_gradients_by_complex_numbers_follow_the_framework(dtype: str) -> None:
    conjugate = turned(lambda g, z: [g * np.conj(TURN)])
    plain = turned(lambda g, z: [g * TURN])
    backward(conjugate, FakeFramework(), dtype=dtype).measure()
    backward(plain, UNCONJUGATED(), dtype=dtype)
    for operation, framework in ((plain, FakeFramework()), (conjugate, UNCONJUGATED())):
        fails(
            backward(operation, framework, dtype=dtype),
            WrongGradient,
            "the gradient of input 0 is wrong",
        )


@pytest.mark.parametrize("part", ["real", "imag"])
def test_both_parts_of_a_complex_gradient_are_verified(part: str) -> None:
    def one_part(g: Any, z: Any) -> list[Any]:
        return [getattr(g * np.conj(TURN), part).astype(z.dtype)]

    fails(backward(turned(one_part)), WrongGradient, "is wrong")


def test_real_operands_of_complex_results_have_real_gradients() -> None:
    """The sign of the imaginary part is the framework's convention."""
    for framework, sign in ((FakeFramework(), 1.0), (UNCONJUGATED(), -1.0)):
        gradient = lambda g, x, sign=sign: [  # noqa: E731
            TURN.real * g.real + sign * TURN.imag * g.imag
        ]
        operation = computed(
            Differentiable(lambda x: TURN * x, gradient), reference=lambda x: TURN * x
        )
        backward(operation, framework, dtype="float64").measure()


@pytest.mark.parametrize("part", [1.0, 1j])
def test_complex_digits_are_those_of_both_parts(part: complex) -> None:
    """A gradient of float64 that was computed in float32 has too few, and one part shows more."""
    coarse = (np.linspace(0.1, 0.9, 9) * (1.0 + 1j)).astype(np.complex64).astype(np.complex128)
    assert is_float32(coarse)
    assert not is_float32(coarse + part * 1e-12)


X = np.array([0.5, -1.5, 2.0, 3.0])
Y = np.array([1.0, 2.0, -0.5, 0.25])
G = np.array([0.3, -0.7, 1.1, 0.9])


def product(x: Any, y: Any) -> Any:
    return x * y


def alone(reference: Callable[..., Any]) -> Callable[..., list[Any]]:
    """A reference that returns its only result in a list."""
    return lambda *inputs: [reference(*inputs)]


def checked(gradients: Sequence[NDArray[Any]], variables: Sequence[int] = (0, 1)) -> float:
    """The largest error of gradients of the product by these inputs."""
    verify.gradient_count(gradients, variables)
    by_position = dict(zip(variables, gradients, strict=True))
    return gradient(by_position, alone(product), [X, Y], [G], 1e-6)


def test_gradients_are_compared_by_their_positions() -> None:
    """The same numbers get the same verdict every time."""
    assert checked([G * Y, G * X]) < 1e-9
    assert checked([G * X], [1]) < 1e-9
    with pytest.raises(WrongGradient, match="input 1"):
        checked([G * Y], [1])
    slightly_wrong = G * X * (1 + 1e-8)
    assert checked([G * Y, slightly_wrong]) == checked([G * Y, slightly_wrong]) > 0


@pytest.mark.parametrize("place", range(3))
def test_an_error_that_one_direction_hides_is_found(place: int) -> None:
    """Two errors that cancel along the first direction do not along all three."""
    first = next(directions(0, X, lambda direction: direction))
    error = np.zeros_like(X)
    error[place], error[place + 1] = 1e-3 * first[place], -1e-3 * first[place + 1]
    with pytest.raises(WrongGradient, match="the gradient of input 0 is wrong"):
        checked([G * Y + error], [0])


def test_one_wrong_element_among_many_is_found() -> None:
    rng = np.random.default_rng(3)
    x, cotangent = rng.standard_normal(10_000), rng.standard_normal(10_000)
    wrong = 2 * x * cotangent
    allowed = verify.tolerance("float32", 1)
    assert gradient({0: wrong}, alone(np.square), [x], [cotangent], allowed) < allowed
    wrong[np.argmin(np.abs(wrong - np.median(np.abs(wrong))))] = 0.0
    with pytest.raises(WrongGradient):
        gradient({0: wrong}, alone(np.square), [x], [cotangent], allowed)


@pytest.mark.parametrize(
    "change",
    [
        lambda right: np.full_like(right, np.nan),
        lambda right: np.array([*right[:3], np.nan]),
        lambda right: np.array([*right[:3], np.inf]),
        np.zeros_like,
        lambda right: -right,
        lambda right: 2 * right,
        lambda right: right[::-1],
        lambda right: right + 1e-3,
        *(lambda right, place=place: right + 1e-4 * np.eye(4)[place] for place in range(4)),
    ],
    ids=[
        *("nan", "one nan", "infinite", "zero", "sign", "factor", "order", "offset"),
        *("first", "second", "third", "last"),
    ],
)
def test_wrong_gradients_are_found(change: Callable[[NDArray[Any]], NDArray[Any]]) -> None:
    with pytest.raises(WrongGradient, match="the gradient of input 1 is wrong"):
        checked([G * Y, change(G * X)])


@pytest.mark.parametrize("shape", [(4, 1), (1, 4), (1,), (), (5,)])
def test_a_gradient_of_another_shape_is_wrong(shape: tuple[int, ...]) -> None:
    both = f"the gradient of input 0 has the shape {shape}, the input (4,)"
    with pytest.raises(WrongGradient, match=re.escape(both)):
        checked([np.ones(shape), G * X])


@pytest.mark.parametrize("count", [0, 1, 3])
def test_another_number_of_gradients_is_wrong(count: int) -> None:
    with pytest.raises(WrongGradient, match=f"{count} gradient"):
        checked([G * Y, G * X, G * X][:count])


def test_the_message_says_slope_expectation_and_tolerance() -> None:
    expected = r"along a random direction it is \S+, the central difference .* \S+; relative error"
    with pytest.raises(WrongGradient, match=f"{expected} .*, 1e-06 is allowed"):
        checked([2 * G * Y, G * X])


def test_inputs_without_elements_and_constant_results_have_gradients_of_zero() -> None:
    empty = np.zeros(0)
    assert gradient({0: empty}, alone(np.square), [empty], [empty], 1e-6) == 0.0
    assert gradient({0: np.zeros(4)}, alone(np.ones_like), [X], [G], 1e-6) == 0.0


def test_a_gradient_of_several_results() -> None:
    right = {0: G * Y + 2 * Y}
    reference = lambda x, y: [x * y, 2 * x]  # noqa: E731
    assert gradient(right, reference, [X, Y], [G, Y], 1e-6) < 1e-9
    with pytest.raises(WrongGradient):
        gradient(right, reference, [X, Y], [G, G], 1e-6)


def test_a_gradient_along_directions_of_one_kind() -> None:
    """Errors in all other directions are ignored."""
    x = np.array([[2.0, 0.5], [0.5, 3.0]])
    skew = np.array([[0.0, 1.0], [-1.0, 0.0]])
    wrong, cotangent = {0: 2 * x + skew}, [np.ones((2, 2))]
    symmetric = lambda direction: direction + direction.T  # noqa: E731
    assert gradient(wrong, alone(np.square), [x], cotangent, 1e-6, symmetric) < 1e-9
    with pytest.raises(WrongGradient):
        gradient(wrong, alone(np.square), [x], cotangent, 1e-6)


def test_integer_inputs_stay_where_they_are() -> None:
    picked = np.array([1, 1, 3])
    by_x = np.array([0.0, 2.0, 0.0, 1.0])
    assert gradient({0: by_x}, alone(np.take), [X, picked], [np.ones(3)], 1e-6) < 1e-9
