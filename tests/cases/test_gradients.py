"""Gradients of results with free signs, of results without gradients, and of complex numbers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from fwbench.cases.backward import Backward
from fwbench.cases.case import bind
from fwbench.cases.precision import is_float32
from fwbench.errors import DeclarationError, WrongGradient
from fwbench.frameworks.contract import differentiated
from fwbench.frameworks.layout import Layout
from fwbench.frameworks.table import Laid
from fwbench.testing import Differentiable, FakeFramework
from fwbench.workloads.operation import Operation
from support.fakes import case_of, cell


def backward(of: Operation, framework: FakeFramework | None = None, **changes: Any) -> None:
    """Verify the gradient of the first call, time some, and verify again."""
    case_of(cell(of, direction="backward", **changes), framework or FakeFramework()).measure()


def computed(value: Any, **facts: Any) -> Operation:
    """An operation on four numbers, which the fake framework computes with ``value``."""
    declared: dict[str, Any] = {
        "name": "computed",
        "inputs": lambda size, rng: (rng.standard_normal(4),),
        "sizes": (4,),
        "implementations": {"fake": value if isinstance(value, Laid) else lambda np: value},
    }
    return Operation(**{**declared, **facts})


# Signs


def factors(x: Any, sign: float = 1.0) -> tuple[Any, ...]:
    """Two numbers whose product is the square of the sum; the sign of both is free."""
    total = x.sum()
    return sign * total * 2.0, sign * total / 2.0


def aligned(expected: Sequence[Any], results: Sequence[Any]) -> list[Any]:
    """The reference's factors with the signs of others."""
    sign = np.copysign(1.0, expected[0] * results[0])
    return [sign * factor for factor in expected]


def up_to_sign(value: Callable[..., Any], **facts: Any) -> Operation:
    """The factors, whose product is compared."""
    return computed(value, reference=factors, compared=lambda a, b: (a * b, abs(a)), **facts)


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_a_gradient_is_that_of_the_signs_which_the_framework_has_chosen(sign: float) -> None:
    """Also once the operands are changed, where the same choice means other signs."""
    backward(up_to_sign(lambda x: factors(x, sign), aligned=aligned))


def test_without_alignment_other_signs_are_another_gradient() -> None:
    """So the alignment is what lets them pass."""
    with pytest.raises(WrongGradient, match="the gradient of input 0 is wrong"):
        backward(up_to_sign(lambda x: factors(x, -1.0)))


def test_a_wrong_gradient_is_found_whatever_the_signs() -> None:
    """Aligned results do not make it right."""
    wrong = Differentiable(
        lambda x: factors(x, -1.0), lambda g, x: [-1.01 * (2.0 * g[0] + g[1] / 2.0) * np.ones(4)]
    )
    with pytest.raises(WrongGradient, match="the gradient of input 0 is wrong"):
        backward(up_to_sign(wrong, aligned=aligned))


# Results without gradients


def largest(x: Any) -> tuple[Any, ...]:
    """The largest number, and its place."""
    place = np.argmax(x.real)
    return np.asarray(x[place]), np.asarray(place)


def test_whole_numbers_among_the_results_have_no_cotangent() -> None:
    """The others have theirs, and their gradient is verified."""
    of = computed(largest, reference=largest)
    work = bind(cell(of, direction="backward"), FakeFramework())
    assert isinstance(work, Backward)
    value, place = work.cotangent
    assert value is not None
    assert place is None
    backward(of)
    wrong = Differentiable(largest, lambda g, x: [np.full(4, g[0] / 4.0)])
    with pytest.raises(WrongGradient):
        backward(computed(wrong, reference=largest))


def test_they_may_lie_otherwise() -> None:
    """A layout converts all results, so it is given zeros in their place."""
    seen: list[list[Any]] = []

    def reversed_(results: Sequence[NDArray[Any]]) -> list[NDArray[Any]]:
        seen.append([np.shape(result) for result in results])
        return [*reversed(results)]

    layout = Layout(place_results=reversed_, restore_results=reversed_)
    implementation = Laid(lambda np: lambda x: largest(x)[::-1], layout)
    backward(computed(implementation, reference=largest))
    assert all(shapes == [(), ()] for shapes in seen)


def test_a_gradient_of_whole_numbers_alone_is_refused() -> None:
    """The message says what to declare."""
    of = computed(np.argmax, reference=lambda x: np.argmax(x.real))
    said = "computed returns no floating-point numbers.*declare differentiable=False"
    with pytest.raises(DeclarationError, match=said):
        backward(of)


def test_what_is_differentiated() -> None:
    """All results as they are, or those that have a cotangent."""
    assert differentiated("result", "cotangent") == ("result", "cotangent")
    assert differentiated(("a", "b"), ("x", "y")) == (("a", "b"), ("x", "y"))
    assert differentiated(("a", "b", "c"), ("x", None, "z")) == (["a", "c"], ["x", "z"])


# Complex numbers

TURN = 0.6 + 0.8j


def turned(gradient: Callable[..., Sequence[Any]]) -> Operation:
    """Complex numbers times one; the gradient begins with complex numbers, too."""
    return computed(
        Differentiable(lambda z: TURN * z, gradient),
        inputs=lambda size, rng: (rng.standard_normal(4) + 1j * rng.standard_normal(4),),
        reference=lambda z: TURN * z,
    )


class Unconjugated(FakeFramework):
    """Its gradients are JAX's."""

    conjugates = False


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_gradients_by_complex_numbers_follow_the_framework(dtype: str) -> None:
    """With the conjugate of the factor, or with the factor itself; and not the other way round."""
    conjugate = turned(lambda g, z: [g * np.conj(TURN)])
    plain = turned(lambda g, z: [g * TURN])
    backward(conjugate, FakeFramework(), dtype=dtype)
    backward(plain, Unconjugated(), dtype=dtype)
    for of, framework in ((plain, FakeFramework()), (conjugate, Unconjugated())):
        with pytest.raises(WrongGradient, match="the gradient of input 0 is wrong"):
            backward(of, framework, dtype=dtype)


@pytest.mark.parametrize("part", ["real", "imag"])
def test_both_parts_of_a_complex_gradient_are_verified(part: str) -> None:
    """One of them does not do."""

    def one(g: Any, z: Any) -> list[Any]:
        return [getattr(g * np.conj(TURN), part).astype(z.dtype)]

    with pytest.raises(WrongGradient):
        backward(turned(one))


def test_real_operands_of_complex_results_have_real_gradients() -> None:
    """As the real transform's; the sign of the imaginary part is the convention."""
    for framework, sign in ((FakeFramework(), 1.0), (Unconjugated(), -1.0)):
        gradient = lambda g, x, sign=sign: [  # noqa: E731
            TURN.real * g.real + sign * TURN.imag * g.imag
        ]
        of = computed(Differentiable(lambda x: TURN * x, gradient), reference=lambda x: TURN * x)
        backward(of, framework, dtype="float64")


@pytest.mark.parametrize("part", [1.0, 1j])
def test_complex_digits_are_those_of_both_parts(part: complex) -> None:
    """A gradient of float64 that was computed in float32 has too few, and one part shows more."""
    coarse = (np.linspace(0.1, 0.9, 9) * (1.0 + 1j)).astype(np.complex64).astype(np.complex128)
    assert is_float32(coarse)
    assert not is_float32(coarse + part * 1e-12)
