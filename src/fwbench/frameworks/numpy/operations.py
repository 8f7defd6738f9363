"""NumPy's functions for fwbench's operations, by family: paths below ``np``."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from fwbench.frameworks.layout import Layout, axes
from fwbench.frameworks.numpy import kernels
from fwbench.frameworks.table import CONVOLUTIONS, Call, Idiom, Idioms, Laid, Table, named
from fwbench.workloads.operations.normalisation import BATCH_EPSILON

_PADDING = ((0, 0), (1, 1), (2, 2), (0, 0))

#: Where a product for each position of the kernel is faster than one of all windows.
_BY_POSITION = ("conv2d_3x3", "conv2d_dilated", "conv1d", "conv3d")

OPERATIONS: Table = {
    # New arrays that are not made of host data
    "zeros_like": "zeros_like",
    "arange": lambda np, n: lambda x: np.arange(n, dtype=np.int32),
    # Activations
    "sigmoid": lambda np: kernels.sigmoid,
    "relu": lambda np: lambda x: np.maximum(x, 0),
    "tanh": "tanh",
    "softplus": lambda np: lambda x: np.maximum(x, 0) + np.log1p(np.exp(-np.abs(x))),
    "softsign": lambda np: kernels.softsign,
    # By sigmoid(2 y), which is (1 + tanh(y)) / 2.
    "gelu_tanh": lambda np: (
        lambda x: x / (1 + np.exp(x * (-1.5957691216057308 - 0.07135481627159744 * x * x)))
    ),
    "elu": lambda np: lambda x: np.maximum(x, np.expm1(np.minimum(x, 0))),
    "selu": lambda np: kernels.selu,
    "leaky_relu": lambda np: lambda x: np.maximum(x, 0.25 * x),
    "silu": lambda np: lambda x: x / (1 + np.exp(-x)),
    "hard_sigmoid": lambda np: lambda x: (x / 6 + 0.5).clip(0, 1),
    "log_sigmoid": lambda np: lambda x: np.minimum(x, 0) - np.log1p(np.exp(-np.abs(x))),
    # Elementwise arithmetic
    **named("abs", "negative", "sign", "exp", "expm1", "log", "log1p", "sqrt", "square"),
    **named("reciprocal", "sin", "cos", "arctan", "floor", "isnan", "logical_not", "add"),
    **named("subtract", "multiply", "divide", "maximum", "minimum", "power", "mod", "hypot"),
    **named("arctan2", "greater", "equal", "logical_and", "where"),
    "rsqrt": lambda np: lambda x: 1 / np.sqrt(x),
    # Methods, which NumPy's functions of these names call by way of Python.
    "clip": lambda np: lambda x: x.clip(-0.5, 0.5),
    **dict.fromkeys(("round", "round_half_even"), "rint"),
    "cast_float16": kernels.cast("float16"),
    "cast_int32": kernels.cast("int32"),
    "multiply_add": lambda np: kernels.multiply_add,
    "add_row": "add",
    # Reductions
    "sum": "ndarray.sum",
    "sum_columns": Call("ndarray.sum", axis=0),
    "sum_rows": Call("ndarray.sum", axis=1),
    "mean": Call("ndarray.mean", axis=1),
    "variance": Call("ndarray.var", axis=1),
    "std": Call("ndarray.std", axis=1),
    "max": Call("ndarray.max", axis=1),
    "min": Call("ndarray.min", axis=1),
    "prod": Call("ndarray.prod", axis=1),
    "norm": "linalg.norm",
    "logsumexp": lambda np: kernels.logsumexp,
    "cumsum": Call("ndarray.cumsum", axis=1),
    "any": Call("ndarray.any", axis=1),
    "argmax": Call("ndarray.argmax", axis=1),
    "argmin": Call("ndarray.argmin", axis=1),
    # Vectors and matrices
    "dot": "dot",
    "gemm": "matmul",
    "flatten": "ndarray.ravel",
    "l2_normalize": lambda np: kernels.l2_normalize,
    "gemv": "dot",
    "outer": lambda np: partial(np.einsum, "i,j->ij"),
    "gemm_nn": "matmul",
    # Transposed views, which BLAS reads as they are.
    **named("cholesky", "solve", "qr", "eigh", below="linalg"),
    "gemm_tn": lambda np: lambda x, y: np.matmul(x.T, y),
    "gemm_nt": lambda np: lambda x, y: np.matmul(x, y.T),
    "batch_gemm": "matmul",
    "einsum": lambda np: partial(np.einsum, "bmk,bnk->bmn"),
    "tensordot": Call("tensordot", axes=2),
    "linear": lambda np, n: lambda x, weight, bias: np.matmul(x, weight.T) + bias,
    "inverse": "linalg.inv",
    "slogdet": lambda np: lambda x: np.linalg.slogdet(x)[1],
    "svd_values": Call("linalg.svd", compute_uv=False),
    "svd": Call("linalg.svd", full_matrices=False),
    "lq": Laid(
        lambda np: lambda x: np.linalg.qr(x.T),
        Layout(restore_results=lambda results: [results[1].T, results[0].T]),
    ),
    # Convolution
    **dict.fromkeys(CONVOLUTIONS, kernels.convolution),
    **dict.fromkeys(_BY_POSITION, kernels.convolution_by_position),
    "depthwise_conv2d": kernels.depthwise_conv2d,
    "conv2d_transposed": kernels.conv2d_transposed,
    # Pooling
    "max_pool2d": lambda np: kernels.max_pool2d,
    "max_pool2d_3x3_s2": lambda np: kernels.max_pool2d_3x3_s2,
    "avg_pool2d": lambda np: kernels.avg_pool2d,
    "global_avg_pool": lambda np: kernels.global_avg_pool,
    "max_pool1d": lambda np: lambda x: np.maximum(x[:, ::2], x[:, 1::2]),
    # Normalisation
    "batch_norm_training": lambda np: kernels.normalisation(1, BATCH_EPSILON),
    "batch_norm_inference": lambda np: kernels.batch_norm_inference,
    "layer_norm": lambda np: kernels.layer_norm,
    "rms_norm": lambda np: kernels.rms_norm,
    "group_norm": lambda np: kernels.normalisation(means=kernels.group_means),
    "instance_norm": lambda np: kernels.normalisation(),
    "lrn": lambda np: kernels.lrn,
    # Softmax and losses
    "softmax": lambda np: kernels.softmax,
    "log_softmax": lambda np: kernels.log_softmax,
    "cross_entropy": lambda np: lambda x, labels: np.mean(kernels.cross_entropies(x, labels)),
    "cross_entropy_sum": lambda np: lambda x, labels: np.sum(kernels.cross_entropies(x, labels)),
    "binary_cross_entropy": lambda np: kernels.binary_cross_entropy,
    "mse": lambda np: lambda x, y: np.mean(np.square(x - y)),
    "huber": lambda np: kernels.huber,
    "ctc_loss": lambda np, *_: kernels.ctc_loss,
    # Recurrent layers
    "dynamic_rnn": lambda np, units, steps, loop: kernels.dynamic_rnn,
    # Indexing
    "gather_rows": Call("ndarray.take", axis=0),
    "embedding": lambda np, n, d: lambda w, i: w.take(i, axis=0),
    "gather_elements": Call("take_along_axis", axis=1),
    "pick": lambda np: lambda x, i: x[np.arange(len(i)), i],
    "gather_nd": Laid(lambda np: lambda x, i: x[i[0], i[1]], axes("", "kc->ck")),
    "scatter_add": lambda np, n, d: lambda x, i: kernels.scatter_add(x, i, shape=(n, d)),
    "scatter_nd_update": lambda np: kernels.scatter_nd_update,
    "one_hot": lambda np, d: lambda i: kernels.one_hot(i, depth=d),
    "boolean_mask": lambda np: lambda x, mask: x.compress(mask, axis=0),
    "sequence_mask": lambda np, d: (
        lambda x, lengths: x * (np.arange(d, dtype="i4") < lengths.astype("i4")[:, None])
    ),
    # Sorting and searching
    "sort": Call("sort", axis=1),
    "argsort": Call("ndarray.argsort", axis=1),
    "top_k": lambda np: kernels.top_k,
    "unique": "unique",
    "searchsorted": "ndarray.searchsorted",
    # Shapes and orders of elements
    "transpose": lambda np: lambda x: x.T.copy(),
    "permute_nhwc_nchw": lambda np: lambda x: x.transpose(0, 3, 1, 2).copy(),
    "concat": lambda np: lambda x, y: np.concatenate([x, y], 1),
    "stack": lambda np: lambda x, y: np.stack([x, y], 1),
    "split": lambda np: lambda x: [part.copy() for part in np.split(x, 4, 1)],
    "pad_constant": lambda np: kernels.pad_constant,
    "pad_reflect": Call("pad", pad_width=_PADDING, mode="reflect"),
    "tile": Call("tile", reps=(2, 3)),
    "repeat": Call("repeat", repeats=3, axis=1),
    "slice": lambda np, begin, end: lambda x: x[begin:end, begin:end].copy(),
    "strided_slice": lambda np: lambda x: x[::2, ::3].copy(),
    "flip": lambda np: lambda x: x[:, ::-1].copy(),
    "roll": Call("roll", shift=3, axis=1),
    "broadcast_to": lambda np, n: lambda x: x.repeat(n, axis=0),
    "depth_to_space": lambda np: kernels.depth_to_space,
    "tril": "tril",
    "diag_part": lambda np: lambda x: x.diagonal().copy(),
    # Random numbers
    "random_uniform": kernels.drawn(lambda rng, like, n: rng.random(n, like.dtype)),
    "random_normal": kernels.drawn(lambda rng, like, n: rng.standard_normal(n, like.dtype)),
    "random_bernoulli": kernels.drawn(lambda rng, p: rng.random(p.size, p.dtype) < p),
    "random_integers": kernels.drawn(lambda rng, like, n: rng.integers(100, size=n, dtype="int32")),
    "random_gamma": kernels.drawn(lambda rng, alpha: rng.standard_gamma(alpha, dtype=alpha.dtype)),
    "random_poisson": kernels.drawn(lambda rng, rates: rng.poisson(rates)),
    "random_exponential": kernels.drawn(
        lambda rng, like, n: rng.standard_exponential(n, like.dtype) / 2
    ),
    "random_shuffle": kernels.drawn(lambda rng, x: rng.permutation(x)),
    "random_categorical": kernels.drawn(lambda rng, p, n: rng.choice(4, n, p=p)),
    # Fourier transforms
    # NumPy 1 computes them in float64 in every dtype.
    "fft": "fft.fft",
    "rfft": "fft.rfft",
    "fft2": "fft.fft2",
    # Images
    "resize_nearest": lambda np, h, w: kernels.resize_nearest,
    "im2col": lambda np, h, w: kernels.im2col,
    # No operation
    "noop": lambda np: lambda x: x,
}

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
        "by exp",
        by_tanh=lambda x: 0.5 * x * (1 + np.tanh(0.79788456 * (x + 0.044715 * x * x * x))),
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
        for name in _BY_POSITION
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
    "pad_constant": _composed("zeros", _LONG, pad=Call("pad", pad_width=_PADDING)),
    "roll": _own("roll", _CALLS, concatenate=lambda x: np.concatenate([x[:, -3:], x[:, :-3]], 1)),
    "broadcast_to": _own("repeat", tile=lambda x: np.tile(x, (x.shape[1], 1))),
    "tril": _own("tril", _NAN, product=lambda x: x * np.tri(len(x), dtype=bool)),
    # Images
    "resize_nearest": _composed("columns first", rows_first=lambda x: x.repeat(2, 1).repeat(2, 2)),
}
