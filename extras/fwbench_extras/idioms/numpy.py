"""Other public ways of NumPy to compute operations, and why they are not called."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from fwbench.frameworks.numpy import kernels
from fwbench.frameworks.numpy.operations import BY_POSITION, PADDING
from fwbench.frameworks.table import CONVOLUTIONS, Call
from fwbench_extras.idioms.table import Idiom, Idioms

# NumPy's own function or method is called where it has one for the operation; where it has none,
# the fastest of those that are composed of a few calls.
_COMPOSED = "composed: NumPy has no function for it"
_CALLS = "some microseconds of Python in each call, which matter in small arrays alone"
_SHORT = "faster in arrays of some hundred numbers alone"
_LONG = "faster in arrays beyond the caches alone"
_PAIRWISE = "NumPy's sums add in pairs, and lose less of the numbers (manual of numpy.sum)"
_BLAS = "NumPy's sums are of all dtypes, BLAS' products of four"
_NAN = "what is not chosen counts where it is infinite or not a number"
_FLAT = "places in the flat array suit arrays that lie in one piece alone"
_TAIL = "keeps no digits of results close to 0"
_LOST = "is off, or overflows, where numbers are large"
_FORESEEN = "faster while the processor remembers which way each of few elements goes"
_CHANNELS = "which is faster depends on the channels: of one to three it is many times slower"
_HALF = "adds up in the dtype of the arrays: float16 overflows"
_LAZY = "gets pages that the system fills with zeros when they are used"
_NOTATION = "the notation is what is measured; batch_gemm is the product without it"


def _idiom(because: str, called: str, accepted: str = "", **others: Any) -> Idiom:
    """Alternatives are functions of the arrays, or paths."""
    table = {
        name.replace("_", " "): other
        if isinstance(other, str | Call)
        else lambda *_, other=other: other
        for name, other in others.items()
    }
    return Idiom(called, because, table, accepted)


_own = partial(_idiom, "NumPy has it")
_composed = partial(_idiom, _COMPOSED)
_method = partial(_own, "the method")

IDIOMS: Idioms = {
    "zeros_like": _own("zeros_like", _LAZY, zeros=lambda x: np.zeros(x.shape, x.dtype)),
    # Activations
    "sigmoid": _composed("by exp", _TAIL, by_tanh=lambda x: 0.5 * np.tanh(0.5 * x) + 0.5),
    "silu": _composed("by exp", _TAIL, by_tanh=lambda x: 0.5 * x * (1 + np.tanh(0.5 * x))),
    "gelu_tanh": _composed(
        "by exp", by_tanh=lambda x: 0.5 * x * (1 + np.tanh(0.79788456 * (x + 0.044715 * x * x * x)))
    ),
    "relu": _composed("maximum", clip=lambda x: np.clip(x, 0, None)),
    "softplus": _composed("log1p", _SHORT, logaddexp=lambda x: np.logaddexp(x, x.dtype.type(0))),
    "log_sigmoid": _composed("log1p", logaddexp=lambda x: -np.logaddexp(-x, x.dtype.type(0))),
    "elu": _composed("maximum", where=lambda x: np.where(x > 0, x, np.expm1(x))),
    "selu": _composed(
        *("maximum", _FORESEEN),
        where=lambda x: 1.05070099 * np.where(x > 0, x, 1.67326324 * np.expm1(x)),
    ),
    "leaky_relu": _composed("maximum", where=lambda x: np.where(x > 0, x, 0.25 * x)),
    # Elementwise arithmetic
    "rsqrt": _composed("1 / sqrt", _SHORT, reciprocal=lambda x: np.reciprocal(np.sqrt(x))),
    "reciprocal": _own("reciprocal", _LONG, quotient=lambda x: 1 / x),
    "clip": _method(function=Call("clip", a_min=-0.5, a_max=0.5)),
    **dict.fromkeys(("round", "round_half_even"), _own("rint", round="round")),
    "mod": _own("mod", _LOST, floor=lambda x, y: x - np.floor(x / y) * y),
    "hypot": _own("hypot", _LOST, sqrt=lambda x, y: np.sqrt(x * x + y * y)),
    "where": _own("where", _NAN, products=lambda c, x, y: c * x + ~c * y),
    # Reductions
    "sum": _method(_PAIRWISE, function="sum", einsum=lambda x: np.einsum("ij->", x)),
    "sum_rows": _method(
        _PAIRWISE,
        einsum=lambda x: np.einsum("ij->i", x),
        product=lambda x: x @ np.ones(x.shape[1], x.dtype),
    ),
    "sum_columns": _method(_BLAS, product=lambda x: np.ones(len(x), x.dtype) @ x),
    "mean": _method(_PAIRWISE, einsum=lambda x: np.einsum("ij->i", x) / x.shape[1]),
    "variance": _method(_LOST, moments=lambda x: np.square(x).mean(1) - np.square(x.mean(1))),
    "max": _method("leaves NaN out", nanmax=Call("nanmax", axis=1)),
    **{name: _method(function=Call(name, axis=1)) for name in ("any", "argmax", "argsort")},
    "logsumexp": _composed("exp and sum", logaddexp=Call("logaddexp.reduce", axis=1)),
    # Vectors and matrices
    "dot": _own("dot", vdot="vdot", inner="inner", matmul="matmul"),
    **dict.fromkeys(("gemm", "gemm_nn"), _own("matmul", dot="dot")),
    "gemv": _own("dot", matmul="matmul", inner="inner"),
    "l2_normalize": _composed(
        "einsum", norm=lambda x: x / np.linalg.norm(x, axis=1, keepdims=True)
    ),
    "outer": _own("einsum", outer="outer"),  # the manual of numpy.outer names both
    "einsum": _own("einsum", _NOTATION, matmul=lambda x, y: x @ y.swapaxes(1, 2)),
    "tensordot": _own(
        *("tensordot", _CALLS),
        matmul=lambda x, y: x.reshape(len(x), -1) @ y.reshape(-1, y.shape[-1]),
    ),
    # Convolution
    **{
        name: Idiom("windows", _COMPOSED, {"positions": kernels.convolution_by_position}, _CHANNELS)
        for name in CONVOLUTIONS[:-1]  # not of groups
    },
    **{
        name: Idiom("positions", _COMPOSED, {"windows": kernels.convolution}, _CHANNELS)
        for name in BY_POSITION
    },
    "global_avg_pool": _composed("a product", mean=Call("mean", axis=(1, 2), keepdims=True)),
    # Losses
    "mse": _composed("mean", _HALF, vdot=lambda x, y: np.vdot(x - y, x - y) / x.size),
    # Indexing
    "gather_rows": _method(function=Call("take", axis=0), index=lambda x, i: x[i]),
    "embedding": _method(function=lambda w, i: np.take(w, i, 0), index=lambda w, i: w[i]),
    "gather_elements": _own(
        *("take_along_axis", _FLAT),
        flat=lambda x, i: x.take(i + x.shape[1] * np.arange(len(x))[:, None]),
    ),
    "pick": _own("index", _FLAT, flat=lambda x, i: x.take(i + x.shape[1] * np.arange(len(x)))),
    "boolean_mask": _own("compress", index=lambda x, mask: x[mask]),
    # Sorting and searching
    "unique": _own("unique", "of counts alone", bincount=lambda x: np.flatnonzero(np.bincount(x))),
    # Shapes and orders of elements
    "transpose": _method(function=lambda x: np.ascontiguousarray(x.T)),
    "pad_constant": _composed("zeros", _LONG, pad=Call("pad", pad_width=PADDING)),
    "roll": _own("roll", _CALLS, concatenate=lambda x: np.concatenate([x[:, -3:], x[:, :-3]], 1)),
    "broadcast_to": _own("repeat", tile=lambda x: np.tile(x, (x.shape[1], 1))),
    "tril": _own("tril", _NAN, product=lambda x: x * np.tri(len(x), dtype=bool)),
    # Images
    "resize_nearest": _composed("columns first", rows_first=lambda x: x.repeat(2, 1).repeat(2, 2)),
}
