"""Large products are verified by sums of their columns, and wrong ones are refused as before."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from fwbench import workloads
from fwbench.cases import products, verify
from fwbench.cases.case import Case, bind
from fwbench.cases.products import Product, ProductGradient
from fwbench.errors import VerificationError, WrongGradient, WrongResult
from fwbench.terms.presets import Size
from fwbench.testing import Differentiable, FakeFramework
from fwbench.testing.fake import to_bfloat16
from fwbench.workloads import gemm
from fwbench.workloads.operation import Operation
from support.fakes import case_of, cell, fails, recorded

Array = NDArray[Any]

_N = 150  # columns of two groups and of a part of one


@pytest.fixture(autouse=True)
def _all_are_large(monkeypatch: pytest.MonkeyPatch) -> None:
    """Verify every product by sums: no test waits for a large one."""
    monkeypatch.setattr(products, "LEAST", 0.0)


def _verify(case: Case) -> None:
    work = bind(case.cell, case.framework)
    work.verify(work.run())


def _tf32(x: Array) -> Array:
    """Rounded to ten bits of mantissa."""
    bits = np.asarray(x, np.float32).view(np.uint32)
    return ((bits + np.uint32(0x1000)) & np.uint32(0xFFFFE000)).view(np.float32)


def _gradients(g: Array, x: Array, y: Array) -> list[Array]:
    return [g @ y.T, x.T @ g]


def _case(
    value: Callable[..., Any] = np.matmul,
    gradient: Callable[..., Any] = _gradients,
    operation: Operation = gemm,
    **changes: Any,
) -> Case:
    operation = replace(
        operation, implementations={"fake": lambda np: Differentiable(value, gradient)}
    )
    case = case_of(cell(operation, **{"size": _N, **changes}), FakeFramework())
    assert products.is_large(operation, case.cell)
    return case


@pytest.mark.parametrize("direction", ["forward", "backward"])
@pytest.mark.parametrize("dtype", ["float32", "float64", "bfloat16", "float16"])
def test_right_products_pass(dtype: str, direction: str) -> None:
    """In every dtype; the record says how they were verified, and in how many bits computed."""

    def value(x: Array, y: Array) -> Array:
        return np.matmul(x.astype(np.float32), y.astype(np.float32)).astype(x.dtype)

    def gradient(g: Array, x: Array, y: Array) -> list[Array]:
        result = _gradients(*(np.asarray(array, np.float32) for array in (g, x, y)))
        return [to_bfloat16(array) if dtype == "bfloat16" else array for array in result]

    exact = dtype == "float64"
    case = _case(*(() if exact else (value, gradient)), dtype=dtype, direction=direction)
    facts = recorded(case)
    assert facts["verified_against"] == "NumPy, by Freivalds' method"
    assert facts["max_relative_error"] < 0.5 * facts["tolerance"]
    bits = {"float64": 52, "float32": 23, "bfloat16": 7, "float16": 10}
    assert facts["precision_bits"] == bits[dtype]


_SHAPES: dict[str, Size] = {
    name: getattr(workloads, name).size_of(size)
    for size, names in {
        "70x130x90": ("gemm_nn", "gemm_tn", "gemm_nt"),
        "3x20x70x40": ("batch_gemm", "einsum"),
        "30x70x8x6": ("tensordot",),
    }.items()
    for name in names
}


@pytest.mark.parametrize("name", _SHAPES)
def test_factors_are_those_of_the_product(name: str) -> None:
    operation, size = getattr(workloads, name), _SHAPES[name]
    operands = operation.operands(size)
    np.testing.assert_allclose(
        np.matmul(*operation.factors(*operands)), operation.reference(*operands)
    )


_BY: dict[str, Callable[[Array, Array, Array], list[Array]]] = {
    "gemm_nn": _gradients,
    "gemm_tn": lambda g, x, y: [y @ g.T, x @ g],
    "gemm_nt": lambda g, x, y: [g @ y, g.T @ x],
    "batch_gemm": lambda g, x, y: [g @ y.transpose(0, 2, 1), x.transpose(0, 2, 1) @ g],
    "einsum": lambda g, x, y: [g @ y, g.transpose(0, 2, 1) @ x],
    "tensordot": lambda g, x, y: [np.einsum("mn,kln->mkl", g, y), np.einsum("mkl,mn->kln", x, g)],
}


@pytest.mark.parametrize("direction", ["forward", "backward"])
@pytest.mark.parametrize("name", _SHAPES)
def test_every_product_is_verified_so(name: str, direction: str) -> None:
    """And its gradients, each as it lies; a wrong one is refused."""
    operation, size = getattr(workloads, name), _SHAPES[name]
    _verify(_case(operation.reference, _BY[name], operation, size=size, direction=direction))

    def doubled(*arrays: Array) -> list[Array]:
        first, second = _BY[name](*arrays)
        return [first, 2.0 * second]

    if direction == "backward":
        with pytest.raises(WrongGradient, match="the gradient of input 1 is wrong: the columns"):
            _verify(_case(operation.reference, doubled, operation, size=size, direction=direction))


def _one_wrong(change: Callable[[float], float]) -> Callable[..., Array]:
    def value(x: Array, y: Array) -> Array:
        result = np.matmul(x, y)
        result[101, 77] = change(float(result[101, 77]))
        return result

    return value


def _swapped(x: Array, y: Array) -> Array:
    result = np.matmul(x, y)
    result[:, [3, 5]] = result[:, [5, 3]]
    return result


_WRONG: dict[str, Callable[..., Any]] = {
    "transposed": lambda x, y: x @ y.T,
    "the other order": lambda x, y: y @ x,
    "TF32": lambda x, y: _tf32(x) @ _tf32(y),
    "float16": lambda x, y: (x.astype(np.float16) @ y.astype(np.float16)).astype(np.float32),
    "a term is missing": lambda x, y: x[:, 1:] @ y[1:],
    "one element is 0": _one_wrong(lambda _: 0.0),
    "one element is off": _one_wrong(lambda x: x + 2e-3),
    "one element is NaN": _one_wrong(lambda _: np.nan),
    "one element is infinite": _one_wrong(lambda _: np.inf),
    "columns are swapped": _swapped,
    "another shape": lambda x, y: (x @ y)[:-1],
    "zeros": lambda x, y: 0.0 * x,
    "two results": lambda x, y: (x @ y, x @ y),
}


@pytest.mark.parametrize("wrong", _WRONG.values(), ids=_WRONG)
@pytest.mark.parametrize("direction", ["forward", "backward"])
def test_wrong_products_are_refused(wrong: Callable[..., Any], direction: str) -> None:
    case = _case(wrong, direction=direction)
    with pytest.raises(VerificationError, match="result"):
        _verify(case)


def test_the_message_says_where() -> None:
    """Row and columns, both sums, the error and what is allowed, in a sentence."""
    message = (
        r"the result is wrong: the columns 64 to 127 of row \[101\], weighted at random "
        r"\(Freivalds' method, weights . of 4\), add up to .* and those of the NumPy reference to "
        r".*; relative to an element the error is .*, and .* is allowed$"
    )
    with pytest.raises(WrongResult, match=message):
        _verify(_case(_one_wrong(lambda x: x + 1.0)))


_WRONG_GRADIENTS: dict[str, Callable[..., Any]] = {
    "exchanged": lambda g, x, y: _gradients(g, x, y)[::-1],
    "not transposed": lambda g, x, y: [g @ y, x @ g],
    "without the cotangent": lambda g, x, y: _gradients(np.ones_like(g), x, y),
    "TF32": lambda g, x, y: _gradients(*map(_tf32, (g, x, y))),
    "another shape": lambda g, x, y: [array[1:] for array in _gradients(g, x, y)],
    "zeros": lambda g, x, y: [np.zeros_like(x), np.zeros_like(y)],
}


@pytest.mark.parametrize("wrong", _WRONG_GRADIENTS.values(), ids=_WRONG_GRADIENTS)
def test_wrong_gradients_are_refused(wrong: Callable[..., Any]) -> None:
    """Differences of the reference would find them, too, in a hundred times the time."""
    with pytest.raises(WrongGradient):
        _verify(_case(gradient=wrong, direction="backward"))


def test_a_product_that_is_kept_is_refused() -> None:
    first: list[Array] = []

    def value(x: Array, y: Array) -> Array:
        first.append(x @ y)
        return first[0]

    fails(_case(value), WrongResult, "a call on changed inputs is wrong")


def test_swapped_columns_are_found() -> None:
    """Weights are random so that errors do not cancel: every pair is found."""
    rng = np.random.default_rng(5)
    left, right = rng.standard_normal((40, 64)), rng.standard_normal((64, 64))
    product = left @ right
    limit = products.sum_tolerance(verify.tolerance("float32", 64), tf32=False)
    assert products.compare(product, left, right, limit, WrongResult).largest < limit
    for i in range(0, 64, 5):
        for j in range(0, i, 2):
            wrong = product.copy()
            wrong[:, [i, j]] = wrong[:, [j, i]]
            with pytest.raises(WrongResult):
                products.compare(wrong, left, right, limit, WrongResult)


def test_weights_are_not_known_before_the_product(monkeypatch: pytest.MonkeyPatch) -> None:
    """A product of which every element is wrong can have the sums of four sets of weights."""
    rng = np.random.default_rng(7)
    left, right = rng.standard_normal((40, 64)), rng.standard_normal((64, 64))
    drawn = products._drawn_weights(64)
    expected = (left @ right) @ drawn.T
    wrong = expected @ np.linalg.pinv(drawn.T)  # the smallest numbers with such sums
    limit = products.sum_tolerance(verify.tolerance("float32", 64), tf32=False)
    with pytest.raises(WrongResult):
        products.compare(wrong, left, right, limit, WrongResult)
    monkeypatch.setattr(products, "_drawn_weights", lambda _: drawn)
    products.compare(wrong, left, right, limit, WrongResult)


@pytest.mark.parametrize("cut_off", [False, True])
def test_tf32_passes_where_it_was_asked_for(cut_off: bool) -> None:
    """Rounded, or with its bits cut off, which moves all elements towards zero."""
    rng = np.random.default_rng(6)
    left, right = (rng.standard_normal((600, 600)).astype(np.float32) for _ in range(2))
    bits = [x.view(np.uint32) & np.uint32(0xFFFFE000) for x in (left, right)]
    coarse = [x.view(np.float32) for x in bits] if cut_off else [*map(_tf32, (left, right))]
    allowed = verify.tolerance("float32", 600) + 2.0**-8
    limit = products.sum_tolerance(allowed, tf32=True)
    result = products.compare(np.matmul(*coarse), left, right, limit, WrongResult)
    assert result.largest < 0.6 * limit


def test_small_products_and_others_are_compared_as_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    """Below the bound; in complex numbers; and what is more than a product."""
    large, complex64 = cell(gemm, size=2_048), cell(gemm, size=2_048, dtype="complex64")
    monkeypatch.undo()
    assert products.is_large(gemm, large)
    assert not products.is_large(gemm, cell(gemm, size=1_024))
    assert not products.is_large(gemm, complex64)
    linear = workloads.linear
    assert not products.is_large(linear, cell(linear, size=linear.size_of("2048x2048x2048")))


def test_the_reference_is_not_computed() -> None:
    def never(*_: Any) -> Any:
        raise AssertionError("the product was computed in NumPy")

    operation = replace(gemm, reference=never)
    for direction, kind in (("forward", Product), ("backward", ProductGradient)):
        case = _case(operation=operation, direction=direction)
        assert type(bind(case.cell, case.framework)) is kind
        _verify(case)
