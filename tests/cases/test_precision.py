"""The format that work was computed in shows in its error, in every operation."""

from contextlib import nullcontext
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from fwbench.cases import precision, timing, verify
from fwbench.cases.inputs import Inputs, in_dtype, widest
from fwbench.ceilings import Ceiling
from fwbench.errors import ImpossibleRate, WrongResult
from fwbench.frameworks.learner import Job
from fwbench.frameworks.numpy.framework import NumPy
from fwbench.measure.limits import Limits
from fwbench.records.facts import CaseFacts
from fwbench.report.condition import full_bits, reduced_bits
from fwbench.testing import FakeFramework
from fwbench.workloads import OPERATIONS, mlp
from fwbench.workloads.operation import Operation
from fwbench.workloads.workload import Cost
from support.fakes import case_of, cell, fails, operation, recorded, rounded
from support.grids import gap_of


def _rounds(workload: Operation) -> bool:
    """True if it computes one array of numbers from numbers, not few or coarse ones."""
    if workload.family == "sorting":
        return False
    operands = workload.operands(workload.smallest)
    numbers = operands and all(x.dtype == np.float64 for x in operands)
    if (
        workload.creates
        or workload.moments
        or workload.updates
        or workload.parameters(workload.smallest)
        or not numbers
    ):
        return False
    result = workload.reference(*operands)
    return not isinstance(result, tuple) and np.asarray(result).dtype == np.float64


_COMPUTED = [workload for workload in OPERATIONS if workload.representative and _rounds(workload)]

#: One number may be right by chance; many are not.
_ARRAYS = [
    workload
    for workload in _COMPUTED
    if np.size(workload.reference(*workload.operands(workload.smallest))) > 1
]

each_operation = pytest.mark.parametrize(
    "operation", _COMPUTED, ids=lambda workload: str(workload.name)
)


def precision_bits(
    workload: Operation, dtype: str, actual: Any, operands: list[NDArray[Any]]
) -> int:
    size = workload.by_preset.quick[0]
    reference = np.asarray(workload.reference(*operands))
    deviation = verify.compare(np.asarray(actual), reference, allowed=1.0)
    return precision.bits(dtype, deviation.rms, 0.0, workload.terms(size))


def is_reduced(dtype: str, bits: int | None) -> bool:
    return precision.is_reduced(CaseFacts.unchecked({"dtype": dtype, "precision_bits": bits}))


@each_operation
@pytest.mark.parametrize("bits", [10, 7])
def test_float32_that_is_computed_in_less(operation: Operation, bits: int) -> None:
    """Inputs and result in TF32 (float16, where nothing is too large for it) or bfloat16."""
    size = operation.by_preset.quick[0]
    operands = [x.astype(np.float32).astype(np.float64) for x in operation.operands(size)]
    actual = rounded(operation.reference(*(rounded(x, bits) for x in operands)), bits)
    assert precision_bits(operation, "float32", actual, operands) == bits
    assert is_reduced("float32", bits)


@pytest.mark.parametrize(
    ("workload", "dtype"),
    [
        pytest.param(workload, dtype, id=f"{workload.name}-{dtype}")
        for workload in _COMPUTED
        for dtype in ("float64", "float32", "float16")
        if gap_of(workload, NumPy().manifest(""), dtype=dtype) is None
    ],
)
def test_honest_work_has_the_bits_of_its_dtype(workload: Operation, dtype: str) -> None:
    """NumPy's own work in the dtype: approximations and sums cost bits, and no format."""
    framework = NumPy()
    on_device = [x.astype(dtype) for x in workload.operands(workload.by_preset.quick[0])]
    actual = framework.implementation(workload.name)(np)(*on_device)
    operands = [x.astype(np.float64) for x in on_device]
    own_format = precision.DTYPES[dtype]
    assert precision_bits(workload, dtype, actual, operands) == own_format
    assert not is_reduced(dtype, own_format)


@pytest.mark.parametrize("workload", _ARRAYS, ids=lambda workload: str(workload.name))
def test_float64_that_is_computed_in_float32(workload: Operation) -> None:
    operands = [*workload.operands(workload.by_preset.quick[0])]
    actual = workload.reference(*(x.astype(np.float32).astype(np.float64) for x in operands))
    assert precision_bits(workload, "float64", np.float32(actual), operands) == 23


@pytest.mark.parametrize(
    "workload",
    [workload for workload in _ARRAYS if workload.terms(workload.smallest) == 1],
    ids=lambda workload: str(workload.name),
)
def test_float16_that_is_computed_in_bfloat16(workload: Operation) -> None:
    """Three bits apart: it shows element by element, and not in sums, which may lose as much."""
    operands = [rounded(x, 10) for x in workload.operands(workload.by_preset.quick[0])]
    actual = rounded(workload.reference(*(rounded(x, 7) for x in operands)), 7)
    assert precision_bits(workload, "float16", actual, operands) == 7


def test_no_error_is_the_dtypes_own() -> None:
    for dtype, bits in precision.DTYPES.items():
        assert precision.bits(dtype, 0.0, 0.0, 1) == bits


def test_a_gradient_in_less_shows_in_float32() -> None:
    """The larger of both errors counts; of other dtypes a gradient's says too little."""
    tf32 = 2.0**-12
    assert precision.bits("float32", 1e-8, tf32, 1) == 10
    assert precision.bits("float64", 1e-17, tf32, 1) == 52
    assert precision.bits("float16", 1e-5, 2.0**-8, 1) == 10


def test_an_unknown_precision_is_not_reduced() -> None:
    """In records of earlier versions, and in dtypes of other packages."""
    assert not is_reduced("float32", None)
    assert not is_reduced("int8", 7)


_TF32 = (("tf32", "on"),)


@pytest.mark.parametrize(
    ("off_by", "toggles", "right"),
    [(2.0**-10, (), False), (2.0**-10, _TF32, True), (2.0**-7, _TF32, False)],
    ids=["TF32 unasked", "TF32", "less than TF32"],
)
def test_tf32_has_a_tolerance_of_its_own(
    off_by: float, toggles: tuple[tuple[str, str], ...], *, right: bool
) -> None:
    workload = operation(lambda x: 2.0 * x * (1.0 + off_by))
    case = case_of(cell(workload, device="gpu:0", toggles=toggles), FakeFramework(), disabled=True)
    with nullcontext() if right else pytest.raises(WrongResult, match="largest relative error"):
        case.measure()


def test_training_in_tf32_has_the_bounds_of_its_mantissa() -> None:
    job = Job(mlp, "gpu:0", "eager", "float32", 8)
    assert job.verified_as == "float32"
    assert replace(job, tf32=True).verified_as == "float16"


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


@pytest.mark.parametrize(
    ("dtype", "real_dtype"), [("float32", "complex64"), ("float64", "complex128")]
)
def test_complex_operands_follow_the_dtype(dtype: str, real_dtype: str) -> None:
    """Each of their two numbers is one of the case's; the reference gets them in float64."""
    operand = np.array([1.0 + 1e-12j, 0.1 - 2.0j])
    placed = in_dtype(operand, dtype)
    assert placed.dtype == real_dtype
    inputs = Inputs(FakeFramework(), "cpu", dtype)
    inputs.place(placed)
    (value,) = map(widest, inputs.check())
    assert value.dtype == np.complex128
    np.testing.assert_array_equal(value, placed)


def test_complex_results_are_compared_as_complex_numbers() -> None:
    """A right one passes, and also once the operands are changed; the conjugate does not."""
    case_of(cell(doubled(lambda x: x + x))).measure()
    conjugate = doubled(lambda x: 2 * np.conj(x))
    fails(case_of(cell(conjugate)), WrongResult, "the result is wrong")


@pytest.mark.parametrize(
    ("dtype", "part", "itemsize_bytes"), [("complex64", "float32", 4), ("complex128", "float64", 8)]
)
def test_a_complex_case_is_verified_as_its_two_parts(
    dtype: str, part: str, itemsize_bytes: int
) -> None:
    """Tolerance, bits and bytes are those of the real numbers; the record has the dtype itself."""
    workload = replace(doubled(lambda x: x + x), cost=lambda n: Cost(2.0 * n, 4.0 * n))
    case = case_of(cell(workload, dtype=dtype), FakeFramework(asynchronous=False))
    facts = recorded(case)
    assert facts["dtype"] == dtype
    assert facts["tolerance"] == verify.tolerance(part, 1)
    assert facts["precision_bits"] == precision.DTYPES[part]
    assert facts["bytes"] == 4 * 4 * itemsize_bytes


def test_a_narrower_complex_dtype_is_noticed() -> None:
    """In complex128 the digits of complex64 are too few; elsewhere records say so."""
    coarse = doubled(lambda x: (x + x).astype(np.complex64).astype(x.dtype))
    case_of(cell(coarse, dtype="complex64")).measure()
    fails(case_of(cell(coarse, dtype="complex128")), WrongResult, "is wrong")
    halves = CaseFacts.unchecked({"dtype": "complex64", "precision_bits": 10})
    assert (reduced_bits(halves), full_bits(halves)) == (10, 23)


def test_impossible_rates_of_complex_numbers_are_those_of_their_parts() -> None:
    facts = CaseFacts.unchecked({"dtype": "complex64", "flops": 2e9, "completion_s": 1.0})
    with pytest.raises(ImpossibleRate):
        timing.check_rates(facts, Limits({"float32": 1e9}))
    assert Ceiling({"float32": 1e9}, 1e9).attainable_s(2e9, 1.0, "complex64") == 2.0
