"""Cheats about results and gradients: fewer bits, or other work."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from itertools import count
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fwbench import workloads
from fwbench.errors import WrongGradient, WrongResult
from fwbench.frameworks.contract import BoundCall
from fwbench_extras.cheats.cheat import Bind, Cheat, changed, map_arrays
from fwbench_extras.cheats.honest import Compute

# Fewer bits

#: The bits of a float32's mantissa, without the leading one.
_MANTISSA_BITS = 23


def rounded(array: NDArray[Any], bits: int) -> NDArray[Any]:
    """A float32 array with fewer bits in its mantissas, rounded to nearest.

    Args:
        bits: of the mantissas that are left: 10 for TF32 and float16, 7 for bfloat16.
    """
    dropped = _MANTISSA_BITS - bits
    half, mask = np.uint32(1 << (dropped - 1)), np.uint32(0xFFFFFFFF << dropped & 0xFFFFFFFF)
    whole = np.asarray(array, dtype=np.float32).view(np.uint32)
    return ((whole + half) & mask).view(np.float32)


def _narrowed(narrow: Callable[[NDArray[Any]], NDArray[Any]]) -> Bind:
    """Work on inputs of fewer bits, whose result looks like the dtype of the inputs."""

    def bind(compute: Compute, inputs: Sequence[Any]) -> BoundCall:
        restore = partial(np.asarray, dtype=inputs[0].dtype)
        return lambda: map_arrays(restore, compute(*map(narrow, inputs)))

    return bind


_single = _narrowed(lambda x: x.astype(np.float32))


def _narrow_from_third_call(compute: Compute, inputs: Sequence[Any]) -> BoundCall:
    calls, narrow = count(), _single(compute, inputs)
    return lambda: compute(*inputs) if next(calls) < 2 else narrow()  # noqa: PLR2004


def _eight_bit_integers(array: NDArray[Any]) -> NDArray[Any]:
    """Whole multiples of a 127th of the largest."""
    step = np.max(np.abs(array)) / 127
    return np.rint(array / step) * step


_imprecise = partial(Cheat, why="the first result is off by more than the tolerance of the dtype")

_TF32 = "a default of the library: NVIDIA's GPUs multiply float32 in TF32 unless told not to"

PRECISION = (
    _imprecise(
        name="half_precision",
        fakes="Computes in float16 and returns float32.",
        mistake="autocasting left on, or a model that was loaded in half precision",
        bind=_narrowed(lambda x: x.astype(np.float16)),
    ),
    _imprecise(
        name="tf32",
        fakes="Rounds factors to the 10 bits of TF32 and adds up in float32.",
        mistake=_TF32,
        bind=_narrowed(lambda x: rounded(x, 10)),
    ),
    _imprecise(
        name="tf32_sum",
        fakes="Rounds the factors of a dot product of a million terms to 10 bits.",
        mistake=_TF32,
        caught_by=None,
        why="a plain sum of a million terms in float32 may lose as many bits, and is honest; "
        "smaller sizes show it, as `tf32` does",
        bind=_narrowed(lambda x: rounded(x, 10)),
        workload=workloads.dot,
        size=1_000_000,
        directions=("forward",),
    ),
    _imprecise(
        name="bfloat16",
        fakes="Rounds factors to the 7 bits of bfloat16 and adds up in float32.",
        mistake="a 'fast math' mode of the CPU's library, such as oneDNN's default math mode",
        bind=_narrowed(lambda x: rounded(x, 7)),
    ),
    _imprecise(
        name="sixteen_bits",
        fakes="Keeps 16 bits of the mantissa: two bfloat16 products for one of float32.",
        mistake="a product split into two of bfloat16, sold as float32 ('bf16x2')",
        bind=_narrowed(lambda x: rounded(x, 16)),
    ),
    _imprecise(
        name="eight_bit_integers",
        fakes="Quantises inputs to 255 steps.",
        mistake="a quantised model compared with one that is not",
        bind=_narrowed(_eight_bit_integers),
    ),
    _imprecise(
        name="integer_truncation",
        fakes="Truncates inputs to whole numbers.",
        mistake="a dtype that was inferred from the first, whole numbers of a list",
        bind=_narrowed(np.trunc),
    ),
    _imprecise(
        name="single_for_double",
        fakes="Computes in float32 and returns float64.",
        mistake="a default dtype that wins over the dtype of the inputs, as in JAX without x64",
        bind=_single,
        dtype="float64",
    ),
    _imprecise(
        name="narrow_from_third_call",
        fakes="Computes two calls in float64, and in float32 from the third call on.",
        mistake="a compiler that replaces code once it is hot by code with other rules",
        why="the last timed call is off by more than the tolerance of the dtype",
        bind=_narrow_from_third_call,
        dtype="float64",
    ),
)

# Other work


def _every_tenth_term(compute: Compute, inputs: Sequence[Any]) -> BoundCall:
    left, right = inputs
    return lambda: 10 * compute(left[:, ::10], right[::10])


def _kernel_that_never_ran(compute: Compute, inputs: Sequence[Any]) -> BoundCall:
    template = compute(*inputs)
    return lambda: map_arrays(np.zeros_like, template)


def _first_row_for_all(compute: Compute, inputs: Sequence[Any]) -> BoundCall:
    shape = np.shape(compute(*inputs))
    return lambda: np.broadcast_to(compute(inputs[0][:1], *inputs[1:]), shape)


_wrong = partial(Cheat, why="the first result differs from NumPy's")

OTHER_WORK = (
    _wrong(
        name="every_tenth_term",
        fakes="Adds up every tenth term of a product, times ten.",
        mistake="sampling, pruning or 'loop perforation' that was left on",
        bind=_every_tenth_term,
        directions=("forward",),
    ),
    _wrong(
        name="kernel_that_never_ran",
        fakes="Returns zeros in the right shape.",
        mistake="a launch that failed, whose error was never read",
        bind=_kernel_that_never_ran,
    ),
    _wrong(
        name="not_numbers",
        fakes="Returns NaN everywhere: comparisons with NaN are never true, in a careless check "
        "either.",
        mistake="inputs that overflow, and a check written as `not error > tolerance`",
        bind=changed(lambda array: np.full_like(array, np.nan)),
    ),
    _wrong(
        name="first_row_for_all",
        fakes="Computes the first row, and broadcasts it to the shape of the result.",
        mistake="a stride of 0, or a batch dimension that was lost and broadcast again",
        bind=_first_row_for_all,
        directions=("forward",),
    ),
    _wrong(
        name="kept_dimension",
        fakes="Returns the right values with one dimension too many.",
        mistake="`keepdims`, or a scalar that became a vector of one element",
        bind=changed(lambda array: array[None]),
    ),
    _wrong(
        name="transposed",
        fakes="Returns the transpose, which has the right shape where matrices are square.",
        mistake="row-major data read as column-major",
        bind=changed(lambda array: array.T),
    ),
)

# Gradients


def _changed_gradients(change: Callable[[list[Any]], list[Any]]) -> Bind:
    """Work with an honest result and changed gradients."""

    def bind(compute: Compute, inputs: Sequence[Any]) -> BoundCall:
        def run() -> Any:
            result, gradients = compute(*inputs)
            return result, change(gradients)

        return run

    return bind


def _forward_once(compute: Compute, inputs: Sequence[Any]) -> BoundCall:
    result, _ = compute(*inputs)
    return lambda: (result, compute.gradients(*inputs))  # type: ignore[attr-defined]


def _accumulated_gradient(compute: Compute, inputs: Sequence[Any]) -> BoundCall:
    sums: list[Any] = []

    def add(gradients: list[Any]) -> list[Any]:
        before = sums or [0.0] * len(gradients)
        sums[:] = [sum_ + gradient for sum_, gradient in zip(before, gradients, strict=True)]
        return [*sums]

    return _changed_gradients(add)(compute, inputs)


_backward = partial(
    Cheat,
    caught_by=WrongGradient,
    why="the gradient's slope along a random direction is not the central difference",
    directions=("backward",),
)

GRADIENTS = (
    _backward(
        name="gradients_alone",
        fakes="Returns the gradients without the result, and so need not compute it.",
        mistake="a compiler that leaves out the forward product: its result is never used",
        why="the result is to be returned with the gradients",
        bind=lambda compute, inputs: partial(compute.gradients, *inputs),  # type: ignore[attr-defined]
    ),
    _backward(
        name="forward_once",
        fakes="Computes the result when it is bound, and the gradients in every call.",
        mistake="activations that are kept from one call to the next",
        caught_by=WrongResult,
        why="the call on changed inputs has the right gradients and the old result",
        bind=_forward_once,
    ),
    _backward(
        name="wrong_sign",
        fakes="Returns the gradient of the negative.",
        mistake="ascent for descent",
        bind=_changed_gradients(lambda gradients: [-gradient for gradient in gradients]),
    ),
    _backward(
        name="mean_for_sum",
        fakes="Divides gradients by the number of rows.",
        mistake="a loss reduced by its mean in one framework and by its sum in the other",
        bind=_changed_gradients(
            lambda gradients: [gradient / len(gradient) for gradient in gradients]
        ),
    ),
    _backward(
        name="detached_input",
        fakes="Returns zeros for the gradient of the last input, and saves that product.",
        mistake="an input that does not require a gradient, or was detached",
        bind=_changed_gradients(lambda gradients: [*gradients[:-1], np.zeros_like(gradients[-1])]),
    ),
    _backward(
        name="swapped_gradients",
        fakes="Returns the gradients in the order of the inputs turned round.",
        mistake="gradients that are matched with parameters by their place in a list",
        bind=_changed_gradients(lambda gradients: gradients[::-1]),
    ),
    _backward(
        name="accumulated_gradient",
        fakes="Adds every gradient to those of the calls before.",
        mistake="gradients that are not set to zero between steps",
        why="the last timed call's gradient is many times that of the first",
        bind=_accumulated_gradient,
    ),
)
