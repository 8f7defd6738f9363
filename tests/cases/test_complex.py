"""Operations on complex numbers: each is two of the dtype, and compared as what it is."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from fwbench.cases.inputs import Inputs, in_dtype
from fwbench.errors import WrongResult
from fwbench.testing import FakeFramework
from fwbench.workloads.operation import Operation
from support.fakes import case_of, cell


def doubled(value: Any) -> Operation:
    """Twice a complex vector, which the fake framework computes with ``value``."""
    return Operation(
        name="doubled",
        inputs=lambda n, rng: (rng.standard_normal(n) + 1j * rng.standard_normal(n),),
        reference=lambda x: 2.0 * x,
        sizes=(8,),
        differentiable=False,
        implementations={"fake": lambda np: value},
    )


@pytest.mark.parametrize(("dtype", "of"), [("float32", "complex64"), ("float64", "complex128")])
def test_complex_operands_follow_the_dtype(dtype: str, of: str) -> None:
    """Each of their two numbers is one of the case's; the reference gets them in float64."""
    operand = np.array([1.0 + 1e-12j, 0.1 - 2.0j])
    placed = in_dtype(operand, dtype)
    assert placed.dtype == of
    inputs = Inputs(FakeFramework(), "cpu", dtype)
    inputs.place(placed)
    (value,) = inputs.values()
    assert value.dtype == np.complex128
    np.testing.assert_array_equal(value, placed)


def test_complex_results_are_compared_as_complex_numbers() -> None:
    """A right one passes, and also once the operands are changed; the conjugate does not."""
    case_of(cell(doubled(lambda x: x + x)), FakeFramework()).measure()
    with pytest.raises(WrongResult, match="the result is wrong"):
        case_of(cell(doubled(lambda x: 2 * np.conj(x))), FakeFramework()).measure()
