"""Operations on complex numbers: each is two of the dtype, and compared as what it is."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from fwbench.cases import precision, timing, verify
from fwbench.cases.inputs import Inputs, in_dtype, widest
from fwbench.ceilings import Ceiling
from fwbench.errors import ImpossibleRate, WrongResult
from fwbench.measure.limits import Limits
from fwbench.records.facts import CaseFacts
from fwbench.report.ranking.condition import full_bits, reduced_bits
from fwbench.testing import FakeFramework
from fwbench.workloads.operation import Operation
from fwbench.workloads.workload import Cost
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
    (value,) = map(widest, inputs.check())
    assert value.dtype == np.complex128
    np.testing.assert_array_equal(value, placed)


def test_complex_results_are_compared_as_complex_numbers() -> None:
    """A right one passes, and also once the operands are changed; the conjugate does not."""
    case_of(cell(doubled(lambda x: x + x)), FakeFramework()).measure()
    with pytest.raises(WrongResult, match="the result is wrong"):
        case_of(cell(doubled(lambda x: 2 * np.conj(x))), FakeFramework()).measure()


@pytest.mark.parametrize(
    ("dtype", "part", "itemsize_bytes"), [("complex64", "float32", 4), ("complex128", "float64", 8)]
)
def test_a_complex_case_is_verified_as_its_two_parts(
    dtype: str, part: str, itemsize_bytes: int
) -> None:
    """Tolerance, bits and bytes are those of the real numbers; the record has the dtype itself."""
    of = replace(doubled(lambda x: x + x), cost=lambda n: Cost(2.0 * n, 4.0 * n))
    case = case_of(cell(of, dtype=dtype), FakeFramework(asynchronous=False))
    case.measure()
    facts = case.benchmark.extra_info["fwbench"]
    assert facts["dtype"] == dtype
    assert facts["tolerance"] == verify.tolerance(part, 1)
    assert facts["precision_bits"] == precision.DTYPES[part]
    assert facts["bytes"] == 4 * 4 * itemsize_bytes


def test_a_narrower_complex_dtype_is_noticed() -> None:
    """In complex128 the digits of complex64 are too few; elsewhere records say so."""
    coarse = doubled(lambda x: (x + x).astype(np.complex64).astype(x.dtype))
    case_of(cell(coarse, dtype="complex64"), FakeFramework()).measure()
    with pytest.raises(WrongResult):
        case_of(cell(coarse, dtype="complex128"), FakeFramework()).measure()
    halves = CaseFacts.unchecked({"dtype": "complex64", "precision_bits": 10})
    assert (reduced_bits(halves), full_bits(halves)) == (10, 23)


def test_impossible_rates_of_complex_numbers_are_those_of_their_parts() -> None:
    """An operation on a complex number is several on real ones."""
    facts = CaseFacts.unchecked({"dtype": "complex64", "flops": 2e9, "completion_s": 1.0})
    with pytest.raises(ImpossibleRate):
        timing.check_rates(facts, Limits({"float32": 1e9}))
    assert Ceiling({"float32": 1e9}, 1e9).attainable_s(2e9, 1.0, "complex64") == 2.0
