"""Products of matrices, vectors and batches of matrices: a part of the family linalg."""

import math
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fwbench.terms.names import FLOAT8
from fwbench.terms.presets import Shape, sizes_of
from fwbench.workloads.operation import Operation
from fwbench.workloads.workload import Cost

Arrays = tuple[NDArray[Any], ...]


_SIZES = sizes_of("products")


def _numbers(arrays: tuple[str, ...], size: Shape, rng: np.random.Generator) -> Arrays:
    """An array for each text, as long along each axis as its letter says."""
    return tuple(rng.standard_normal([size[letter] for letter in array]) for array in arrays)


def _product_cost(
    operands: tuple[str, ...], result: str, size: Shape, *, backward: bool = False
) -> Cost:
    """Forward; backward one more product for each gradient, with the same three arrays."""
    arrays = (*operands, result)
    products = arrays if backward else (result,)
    letters = {*"".join(arrays)}
    every = math.prod(size[letter] for letter in letters)
    moved = sum(math.prod(size[letter] for letter in array) for array in arrays)
    # A multiplication for all combinations of indices, an addition where one is summed over.
    flops = sum(every * (2 if letters - {*array} else 1) for array in products)
    return Cost(flops=float(flops), elements=float(moved * len(products)))


def _product(
    name: str,
    indices: str,
    reference: Callable[..., NDArray[Any]],
    factors: Callable[..., Arrays] | None = None,
) -> Operation:
    """A product of two arrays.

    Args:
        indices: a letter for each axis of the operands, and of the result behind the arrow.
        factors: of :attr:`fwbench.Operation.factors`.
    """
    left, result = indices.split("->")
    operands = tuple(left.split(","))
    summed = {*left} - {*result, ","}
    return Operation(
        name=name,
        inputs=partial(_numbers, operands),
        reference=reference,
        sizes=_SIZES[name],
        cost=partial(_product_cost, operands, result),
        backward_cost=partial(_product_cost, operands, result, backward=True),
        terms=lambda size: math.prod(size[letter] for letter in summed),
        factors=factors,
    )


def in_float8(array: NDArray[Any]) -> NDArray[Any]:
    """Numbers rounded to those of float8_e4m3fn: four bits, the first of which is not stored.

    Args:
        array: numbers below 448, the largest that it has.
    """
    exponent = np.maximum(np.frexp(array)[1] - 1, -6)  # below, they are subnormal
    step = np.ldexp(1.0, exponent - 3)
    rounded: NDArray[Any] = np.round(array / step) * step
    return rounded


def _float8_factors(size: Shape, rng: np.random.Generator) -> Arrays:
    """Factors of float8, the second one transposed: the one layout that GPUs have."""
    return tuple(map(in_float8, _numbers(("mk", "nk"), size, rng)))


def _linear_cost(size: Shape, *, backward: bool) -> Cost:
    """The product and the bias, whose gradient adds up the columns of the result's."""
    product = _product_cost(("mk", "nk"), "mn", size, backward=backward)
    results = float(size["m"] * size["n"])
    return Cost(
        flops=product.flops + (2 if backward else 1) * results,
        elements=product.elements + (2 if backward else 1) * size["n"],
    )


PRODUCTS = (
    _product("gemv", "mk,k->m", np.matmul),
    _product("outer", "m,n->mn", np.outer),
    # Rectangular products, by whether an operand is transposed (t) or not (n).
    _product("gemm_nn", "mk,kn->mn", np.matmul, lambda x, y: (x, y)),
    _product("gemm_tn", "km,kn->mn", lambda x, y: x.T @ y, lambda x, y: (x.T, y)),
    _product("gemm_nt", "mk,nk->mn", lambda x, y: x @ y.T, lambda x, y: (x, y.T)),
    _product("batch_gemm", "bmk,bkn->bmn", np.matmul, lambda x, y: (x, y)),
    # Factors of float8 with a scale for either, here 1; results in bfloat16. Gradients are
    # made of another format, which has a wider range.
    Operation(
        name="scaled_gemm",
        inputs=_float8_factors,
        reference=lambda x, y: x @ y.T,
        sizes=_SIZES["scaled_gemm"],
        # A number of the result has two bytes, one more than those of the factors.
        cost=lambda size: replace(
            _product_cost(("mk", "nk"), "mn", size), other_bytes=float(size["m"] * size["n"])
        ),
        differentiable=False,
        terms=lambda size: size["k"],
        factors=lambda x, y: (x, y.T),
        dtypes=(FLOAT8,),
    ),
    # A notation that is parsed in every call; the product is the one of queries and keys.
    _product(
        "einsum",
        "bmk,bnk->bmn",
        lambda x, y: x @ y.transpose(0, 2, 1),
        lambda x, y: (x, y.transpose(0, 2, 1)),
    ),
    # Summed over two axes.
    _product(
        "tensordot",
        "mkl,kln->mn",
        np.tensordot,
        lambda x, y: (x.reshape(len(x), -1), y.reshape(-1, y.shape[-1])),
    ),
    # A dense layer: m vectors of k features become n of them; weights are n x k. MXNet takes n.
    Operation(
        name="linear",
        inputs=partial(_numbers, ("mk", "nk", "n")),
        reference=lambda x, weight, bias, n: x @ weight.T + bias,
        sizes=_SIZES["linear"],
        cost=partial(_linear_cost, backward=False),
        backward_cost=partial(_linear_cost, backward=True),
        terms=lambda size: size["k"],
        parameters=lambda size: (size["n"],),
    ),
)
