"""Other public ways of NumPy to compute operations, and why they are not called."""

from __future__ import annotations

from array import array
from functools import partial
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from fwbench.frameworks.layout import Layout, axes, transposed_factors
from fwbench.frameworks.numpy import kernels
from fwbench.frameworks.table import CONVOLUTIONS, Call, Laid, Table
from fwbench.workloads.operations.normalisation import (
    ALPHA,
    BATCH_EPSILON,
    BETA,
    BIAS,
    EPSILON,
    GROUPS,
    NEIGHBOURS,
)
from fwbench_extras.idioms.table import Idiom, Idioms, by, creations

_PADDING = ((0, 0), (1, 1), (2, 2), (0, 0))


def added_in_place(x: Any, y: Any, z: Any) -> Any:
    product = x * y
    product += z
    return product


def by_float64(function: Any) -> Any:
    return lambda x: function(x.astype(float)).astype(x.dtype)


def svd_by_eigh(x: Any) -> Any:
    squares, vectors = np.linalg.eigh(x.T @ x)
    values, vectors = np.sqrt(squares[::-1]), vectors[:, ::-1]
    return x @ vectors / values, values, vectors.T


def qr_by_cholesky(x: Any) -> Any:
    factor = np.linalg.cholesky(x.T @ x).T
    return np.linalg.solve(factor.T, x.T).T, factor


def groups_by_methods(x: Any, gamma: Any, beta: Any) -> Any:
    grouped = x.reshape(*x.shape[:3], GROUPS, -1)
    mean, variance = (moment((1, 2, 4), keepdims=True) for moment in (grouped.mean, grouped.var))
    return ((grouped - mean) / np.sqrt(variance + EPSILON)).reshape(x.shape) * gamma + beta


def with_rows_put(x: Any, i: Any, rows: Any) -> Any:
    result = x.copy()
    np.put_along_axis(result, i[:, None], rows, 0)
    return result


def blocks_by_assignment(x: Any) -> Any:
    n, h, w, c = x.shape
    y = np.empty((n, h, 2, w, 2, c // 4), x.dtype)
    parts = x.reshape(n, h, w, 2, 2, c // 4)
    for i in range(2):
        y[:, :, i] = parts[:, :, :, i]
    return y.reshape(n, 2 * h, 2 * w, c // 4)


def windows(x: Any, window: tuple[int, int]) -> Any:
    return sliding_window_view(x, window, axis=(1, 2))  # type: ignore[call-overload]


def blocks(x: Any) -> Any:
    """Pixels in blocks of 2 x 2."""
    n, h, w, c = x.shape
    return x.reshape(n, h // 2, 2, w // 2, 2, c)


def columns_first(x: Any) -> Any:
    y = np.maximum(x[:, :, ::2], x[:, :, 1::2])
    return np.maximum(y[:, ::2], y[:, 1::2])


def mean_square(x: Any) -> Any:
    return np.einsum("ij,ij->i", x, x) / x.shape[1]


def log_of_sums(x: Any) -> Any:
    peaks = x.max(1)
    return np.log(np.einsum("ij->i", np.exp(x - peaks[:, None]))) + peaks


def sorted_copy(x: Any) -> Any:
    y = x.copy()
    y.sort(1)
    return y


def convolution_by_position(_: Any, window: Any) -> Any:
    """The sum of a product for each position of the kernel, without groups."""

    def convolution(x: Any, w: Any) -> Any:
        windows = np.moveaxis(kernels.windows(x, window), range(-window.rank, 0), range(w.ndim - 2))
        products = (np.ascontiguousarray(windows[i]) @ w[i] for i in np.ndindex(*window.kernel))
        return sum(products)

    return convolution


def convolution_by_tensordot(_: Any, window: Any) -> Any:
    """A product of windows with the channels first, for each group."""
    rank = window.rank
    axes = (range(1 + rank, 2 + 2 * rank), (rank, *range(rank)))

    def convolution(x: Any, w: Any) -> Any:
        windows = np.split(kernels.windows(x, window), window.groups, 1 + rank)
        groups = zip(windows, np.split(w, window.groups, -1), strict=True)
        return np.concatenate([np.tensordot(*group, axes) for group in groups], -1)

    return convolution


def depthwise_by_einsum(_: Any, window: Any) -> Any:
    return lambda x, w: np.einsum("nhwcrs,rsc->nhwc", kernels.windows(x, window), w[:, :, 0])


def transposed_of_all(_: Any, window: Any) -> Any:
    """The products of all positions are computed before the first one is added."""
    stride, edge = window.stride, window.padding

    def convolution(x: Any, w: Any) -> Any:
        n, h, width, _ = x.shape
        products = np.tensordot(x, w, (3, 3))
        rows, columns = stride * (h - 1), stride * (width - 1)
        y = np.zeros((n, rows + w.shape[0], columns + w.shape[1], w.shape[2]), x.dtype)
        for i, j in np.ndindex(*w.shape[:2]):
            y[:, i : i + rows + 1 : stride, j : j + columns + 1 : stride] += products[:, :, :, i, j]
        return y[:, edge:-edge, edge:-edge].copy()

    return convolution


def standard_by_methods(*axes: int, epsilon: float = EPSILON) -> Any:
    def standard(x: Any, gamma: Any, beta: Any) -> Any:
        mean, variance = x.mean(axes, keepdims=True), x.var(axes, keepdims=True)
        return (x - mean) / np.sqrt(variance + epsilon) * gamma + beta

    return standard


def lrn_by_power(x: Any) -> Any:
    edge = NEIGHBOURS // 2
    squares = np.pad(np.square(x), ((0, 0),) * 3 + ((edge, edge),))
    total = sum(squares[..., i : i + x.shape[-1]] for i in range(NEIGHBOURS))
    return x / (BIAS + ALPHA * total) ** BETA


def lrn_by_product(x: Any) -> Any:
    channels = np.arange(x.shape[-1])
    near = np.abs(channels[:, None] - channels) <= NEIGHBOURS // 2
    total = BIAS + ALPHA * (np.square(x) @ near.astype(x.dtype))
    root = np.sqrt(total)
    return x / (root * np.sqrt(root))


def softmax_by_einsum(x: Any) -> Any:
    y = np.exp(x - x.max(-1, keepdims=True))
    y /= np.einsum("...j->...", y)[..., None]
    return y


def softmax_unguarded(x: Any) -> Any:
    y = np.exp(x)
    return y / y.sum(-1, keepdims=True)


def huber_by_where(x: Any, y: Any) -> Any:
    distance = np.abs(x - y)
    return np.where(distance < 1, 0.5 * distance * distance, distance - 0.5).mean()


def scattered_sums(_: Any, n: int, d: int) -> Any:
    def scatter_add(x: Any, i: Any) -> Any:
        sums = np.zeros((n, d), x.dtype)
        np.add.at(sums, i, x)
        return sums

    return scatter_add


def counted_sums(_: Any, n: int, d: int) -> Any:
    def scatter_add(x: Any, i: Any) -> Any:
        places = (d * i[:, None] + np.arange(d)).ravel()
        return np.bincount(places, x.ravel(), n * d).reshape(n, d).astype(x.dtype)

    return scatter_add


def sorted_top(x: Any) -> Any:
    places = x.argsort(1)[:, :-6:-1]
    return np.take_along_axis(x, places, 1), places


def tiled_by_hand(x: Any) -> Any:
    n, d = x.shape
    y = np.empty((2, n, 3, d), x.dtype)
    y[...] = x[:, None]
    return y.reshape(2 * n, 3 * d)


def repeated_by_hand(x: Any) -> Any:
    y = np.empty((len(x), 3 * x.shape[1]), x.dtype)
    y[:, ::3] = y[:, 1::3] = y[:, 2::3] = x
    return y


def patches_by_position(_: Any, h: int, w: int) -> Any:
    places = [(i, j) for i in range(3) for j in range(3)]
    return lambda x: np.concatenate([x[:, i : i + h, j : j + w] for i, j in places], 3)


def patches_by_strides(_: Any, h: int, w: int) -> Any:
    def im2col(x: Any) -> Any:
        n, _, _, c = x.shape
        image, row, column, channel = x.strides
        strides = image, row, column, row, channel
        patches = np.lib.stride_tricks.as_strided(x, (n, h, w, 3, 3 * c), strides)
        return patches.reshape(n, h, w, 9 * c)

    return im2col


def legacy(draw: Any) -> Any:
    """An implementation by the generator that NumPy had before ``default_rng``."""

    def implementation(_: Any, *parameters: int) -> Any:
        state = np.random.RandomState()
        return lambda operand: draw(state, operand, *parameters)

    return implementation


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
_SQUARES = "squares the condition number: what is nearly dependent loses its digits"
_FORESEEN = "faster while the processor remembers which way each of few elements goes"
_HALF = "adds up in the dtype of the arrays: float16 overflows"
_LAZY = "gets pages that the system fills with zeros when they are used"
_OVERFLOW = "overflows where numbers are large"
_OPERATOR = "what x @ y calls; faster by a microsecond a call alone"
_BY_HAND = "NumPy's own function; the other fills an empty array by hand"
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

_drawn = kernels.drawn

#: By the operation: the method that is called, the others, and the reason.
_RANDOM: dict[str, tuple[str, Table, str]] = {
    "random_uniform": (
        "random",
        {"RandomState": legacy(lambda state, like, n: state.random_sample(n).astype(like.dtype))},
        "",
    ),
    "random_normal": (
        "standard_normal",
        {"RandomState": legacy(lambda state, like, n: state.standard_normal(n).astype(like.dtype))},
        "",
    ),
    "random_bernoulli": ("random", {"binomial": _drawn(lambda rng, p: rng.binomial(1, p))}, ""),
    "random_integers": (
        "integers",
        {
            "RandomState": legacy(lambda state, like, n: state.randint(0, 100, n, "int32")),
            "uint16": _drawn(
                lambda rng, like, n: rng.integers(100, size=n, dtype="uint16").astype("int32")
            ),
            "product": _drawn(lambda rng, like, n: (100 * rng.random(n, "f")).astype("int32")),
        },
        "16 bits are enough for small integers alone, and a product is not quite uniform",
    ),
    "random_gamma": (
        "standard_gamma",
        {
            "RandomState": legacy(
                lambda state, shapes: state.standard_gamma(shapes).astype(shapes.dtype)
            )
        },
        "",
    ),
    "random_poisson": (
        "poisson",
        {"RandomState": legacy(lambda state, rates: state.poisson(rates))},
        "",
    ),
    "random_exponential": (
        "standard_exponential",
        {"log": _drawn(lambda rng, like, n: np.log(1 - rng.random(n, like.dtype)) / -2)},
        "of 24 random bits each, its large numbers are few, and none is above 8.4",
    ),
    "random_shuffle": (
        "permutation of places",
        {
            "permutation": _drawn(lambda rng, x: rng.permutation(x)),
            "permuted": _drawn(lambda rng, x: rng.permuted(x)),
        },
        "",
    ),
    "random_categorical": (
        "choice",
        {
            "searchsorted": _drawn(
                lambda rng, p, n: p.cumsum().searchsorted(rng.random(n), side="right")
            )
        },
        _CALLS,
    ),
}

#: Other ways to make arrays of host data.
_CREATIONS: dict[str, Table] = {
    "from_numpy": {
        "the method": lambda *_: np.ndarray.copy,
        "astype": lambda _, __, dtype: lambda values: values.astype(dtype),
    },
    "from_list": {
        "fromiter": lambda _, __, dtype: lambda values: np.fromiter(values, dtype, len(values)),
        "array.array": lambda *_: lambda values: np.frombuffer(array("f", values), "float32"),
    },
}

IDIOMS: Idioms = {
    **creations(
        *("np.array", "NumPy's manual", _CREATIONS),
        {
            "from_numpy": "for whatever users have; the methods are for arrays alone",
            "from_list": "for nested lists, too; the others are for vectors alone",
        },
    ),
    "zeros_like": _own("zeros_like", _LAZY, zeros=lambda x: np.zeros(x.shape, x.dtype)),
    "arange": Idiom(
        "arange of int32",
        "NumPy has it",
        {"astype": lambda np, n: lambda x: np.arange(n).astype(np.int32)},
    ),
    # Activations
    "sigmoid": _composed("by exp", _TAIL, by_tanh=lambda x: 0.5 * np.tanh(0.5 * x) + 0.5),
    "silu": _composed("by exp", _TAIL, by_tanh=lambda x: 0.5 * x * (1 + np.tanh(0.5 * x))),
    "softsign": _composed(
        "abs",
        fabs=lambda x: x / (1 + np.fabs(x)),
        reciprocal=lambda x: x * np.reciprocal(1 + np.abs(x)),
    ),
    "tanh": _own("tanh", by_exp=lambda x: 2 / (1 + np.exp(-2 * x)) - 1),
    "gelu_tanh": _composed(
        "by exp", by_tanh=lambda x: 0.5 * x * (1 + np.tanh(0.79788456 * (x + 0.044715 * x * x * x)))
    ),
    "relu": _composed(
        "maximum",
        "makes NaN of minus infinity",
        clip=lambda x: np.clip(x, 0, None),
        product=lambda x: x * (x > 0),
        where=lambda x: np.where(x > 0, x, 0),
    ),
    "softplus": _composed(
        *("log1p", f"{_SHORT} (logaddexp); {_OVERFLOW} (unguarded)"),
        logaddexp=lambda x: np.logaddexp(x, x.dtype.type(0)),
        unguarded=lambda x: np.log1p(np.exp(x)),
    ),
    "log_sigmoid": _composed(
        *("log1p", _OVERFLOW),
        logaddexp=lambda x: -np.logaddexp(-x, x.dtype.type(0)),
        unguarded=lambda x: -np.log1p(np.exp(-x)),
    ),
    "elu": _composed("maximum", where=lambda x: np.where(x > 0, x, np.expm1(x))),
    "selu": _composed(
        *("maximum", _FORESEEN),
        where=lambda x: 1.05070099 * np.where(x > 0, x, 1.67326324 * np.expm1(x)),
    ),
    "leaky_relu": _composed("maximum", where=lambda x: np.where(x > 0, x, 0.25 * x)),
    "hard_sigmoid": _composed("clip", maximum=lambda x: np.minimum(np.maximum(x / 6 + 0.5, 0), 1)),
    # Elementwise arithmetic
    "abs": _own("abs", fabs="fabs"),
    "sign": _own("sign", "is 0 for NaN", comparisons=lambda x: (x > 0).astype(x.dtype) - (x < 0)),
    "negative": _own("negative", product=lambda x: x * -1, difference=lambda x: 0 - x),
    "exp": _own("exp", _LONG, exp2=lambda x: np.exp2(x * 1.44269504)),
    "expm1": _own("expm1", float64=by_float64(lambda x: np.exp(x) - 1)),
    "log": _own("log", _LONG, log2=lambda x: np.log2(x) * 0.69314718),
    "log1p": _own("log1p", float64=by_float64(lambda x: np.log(1 + x))),
    "sin": _own("sin", cos=lambda x: np.cos(x - 1.57079633)),
    "cos": _own("cos", sin=lambda x: np.sin(x + 1.57079633)),
    "arctan": _own(
        "arctan",
        arctan2=lambda x: np.arctan2(x, x.dtype.type(1)),
        arcsin=lambda x: np.arcsin(x / np.sqrt(1 + x * x)),
    ),
    "floor": _own("floor", quotient=lambda x: x // 1, ceil=lambda x: -np.ceil(-x)),
    "isnan": _own("isnan", comparison=lambda x: np.not_equal(x, x)),
    "logical_not": _own(
        "logical_not",
        invert="invert",
        comparison=lambda x: np.equal(x, False),
        xor=lambda x: x ^ True,
    ),
    "logical_and": _own("logical_and", bitwise_and="bitwise_and", product="multiply"),
    "multiply": _own("multiply", einsum=lambda x, y: np.einsum("i,i->i", x, y)),
    "arctan2": _own("arctan2", angle=lambda x, y: np.angle(y + 1j * x)),
    "greater": _own("greater", difference=lambda x, y: x - y > 0),
    "equal": _own("equal", difference=lambda x, y: x - y == 0),
    "multiply_add": _composed(
        *("x * y + z", "NumPy itself reuses the temporary array of an expression, if it is large"),
        in_place=added_in_place,
    ),
    "add_row": _own("add", tile=lambda x, y: x + np.tile(y, (len(x), 1))),
    "square": _own("square", product=lambda x: x * x, power=lambda x: x**2),
    "sqrt": _own("sqrt", power=lambda x: x**0.5),
    "power": _own("power", exp=lambda x, y: np.exp(y * np.log(x))),
    "divide": _own("divide", reciprocal=lambda x, y: x * np.reciprocal(y)),
    "maximum": _own("maximum", fmax="fmax"),
    "minimum": _own("minimum", fmin="fmin"),
    "rsqrt": _composed("1 / sqrt", _SHORT, reciprocal=lambda x: np.reciprocal(np.sqrt(x))),
    "reciprocal": _own("reciprocal", _LONG, quotient=lambda x: 1 / x),
    "clip": _method(
        function=Call("clip", a_min=-0.5, a_max=0.5),
        maximum=lambda x: np.minimum(np.maximum(x, -0.5), 0.5),
    ),
    **dict.fromkeys(("round", "round_half_even"), _own("rint", round="round")),
    "cast_int32": _method(_SHORT, int32="int32"),
    "cast_float16": _method(float16="float16"),
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
    "sum_columns": _method(
        _BLAS,
        product=lambda x: np.ones(len(x), x.dtype) @ x,
        einsum=lambda x: np.einsum("ij->j", x),
    ),
    "mean": _method(
        f"{_PAIRWISE} (einsum); {_CALLS} (sum)",
        einsum=lambda x: np.einsum("ij->i", x) / x.shape[1],
        sum=lambda x: x.sum(1) / x.shape[1],
    ),
    "variance": _method(
        f"{_LOST} (moments); {_PAIRWISE} (einsum)",
        moments=lambda x: np.square(x).mean(1) - np.square(x.mean(1)),
        einsum=lambda x: mean_square(x - x.mean(1, keepdims=True)),
    ),
    "std": _method(_PAIRWISE, einsum=lambda x: np.sqrt(mean_square(x - x.mean(1, keepdims=True)))),
    "max": _method(
        "leaves NaN out", nanmax=Call("nanmax", axis=1), fmax=lambda x: np.fmax.reduce(x, 1)
    ),
    "min": _method(
        "leaves NaN out", nanmin=Call("nanmin", axis=1), fmin=lambda x: np.fmin.reduce(x, 1)
    ),
    "prod": _method(function=Call("prod", axis=1), reduce=lambda x: np.multiply.reduce(x, 1)),
    "cumsum": _method(function=Call("cumsum", axis=1), reduce=lambda x: np.add.accumulate(x, 1)),
    "any": _method(
        function=Call("any", axis=1),
        max=lambda x: x.max(1),
        reduce=lambda x: np.logical_or.reduce(x, 1),
    ),
    **{name: _method(function=Call(name, axis=1)) for name in ("argmax", "argmin")},
    "norm": _own("linalg.norm", _CALLS, vdot=lambda x: np.sqrt(np.vdot(x, x))),
    "logsumexp": _composed(
        *("exp and sum", f"{_OVERFLOW} (unguarded); {_PAIRWISE} (einsum)"),
        logaddexp=Call("logaddexp.reduce", axis=1),
        einsum=log_of_sums,
        unguarded=lambda x: np.log(np.exp(x).sum(1)),
    ),
    # Vectors and matrices
    "dot": _own("dot", vdot="vdot", inner="inner", matmul="matmul"),
    **dict.fromkeys(
        ("gemm", "gemm_nn"), _own("matmul", _OPERATOR, dot="dot", method=lambda x, y: x.dot(y))
    ),
    "gemm_tn": _own("matmul", _OPERATOR, method=lambda x, y: x.T.dot(y)),
    "gemm_nt": _own("matmul", _OPERATOR, method=lambda x, y: x.dot(y.T), inner="inner"),
    "gemv": _own("dot", matmul="matmul", inner="inner"),
    "batch_gemm": _own(
        "matmul", loop=lambda x, y: np.stack([a.dot(b) for a, b in zip(x, y, strict=True)])
    ),
    "linear": _composed("matmul", inner=lambda x, w, b: np.inner(x, w) + b),
    "l2_normalize": _composed(
        "einsum",
        norm=lambda x: x / np.linalg.norm(x, axis=1, keepdims=True),
        sum=lambda x: x / np.sqrt(np.square(x).sum(1, keepdims=True)),
    ),
    # The manual of numpy.outer names both.
    "outer": _own("einsum", outer="outer", product=lambda x, y: x[:, None] * y),
    "einsum": _own(
        *("einsum", _NOTATION),
        matmul=lambda x, y: x @ y.swapaxes(1, 2),
        optimize=lambda x, y: np.einsum("bmk,bnk->bmn", x, y, optimize=True),
    ),
    "tensordot": _own(
        *("tensordot", _CALLS),
        matmul=lambda x, y: x.reshape(len(x), -1) @ y.reshape(-1, y.shape[-1]),
    ),
    "flatten": _method(
        reshape=lambda x: x.reshape(-1), function="ravel", copy=lambda x: x.flatten()
    ),
    "svd": _own("linalg.svd", _SQUARES, eigh=svd_by_eigh),
    "qr": _own("linalg.qr", _SQUARES, cholesky=qr_by_cholesky),
    "lq": Idiom(
        "linalg.qr",
        "NumPy has it",
        {
            "cholesky": Laid(
                by(lambda x: qr_by_cholesky(x.T)), Layout(restore_results=transposed_factors)
            )
        },
        _SQUARES,
    ),
    "eigh": _own("linalg.eigh", UPLO=Call("linalg.eigh", UPLO="U")),
    "solve": _own("linalg.solve", inverse=lambda a, b: np.linalg.inv(a) @ b),
    "inverse": _own(
        "linalg.inv", solve=lambda x: np.linalg.solve(x, np.eye(len(x), dtype=x.dtype))
    ),
    "slogdet": _own(
        "linalg.slogdet", qr=lambda x: np.log(np.abs(np.diagonal(np.linalg.qr(x, "r")))).sum()
    ),
    "svd_values": _own(
        *("linalg.svd", "squares the condition number: small values have no digits"),
        eigvalsh=lambda x: np.sqrt(np.linalg.eigvalsh(x.T @ x)[::-1]),
    ),
    # Convolution
    **{
        name: Idiom(
            "windows",
            _COMPOSED,
            {"tensordot": convolution_by_tensordot, "positions": convolution_by_position},
        )
        for name in (*CONVOLUTIONS[:-1], "conv1d", "conv3d")
    },
    "conv2d_grouped": Idiom("windows", _COMPOSED, {"tensordot": convolution_by_tensordot}),
    "depthwise_conv2d": Idiom("products", _COMPOSED, {"einsum": depthwise_by_einsum}),
    "conv2d_transposed": Idiom(
        "a product a position",
        _COMPOSED,
        {"one product": transposed_of_all},
        "takes sixteen times the memory of the result, and longer where that is large",
    ),
    # Pooling
    "max_pool2d": _composed(
        "rows first", columns_first=columns_first, reshape=lambda x: blocks(x).max((2, 4))
    ),
    "avg_pool2d": _composed("rows first", reshape=lambda x: blocks(x).mean((2, 4))),
    "max_pool1d": _composed(
        *("maximum", _LONG), reshape=lambda x: x.reshape(len(x), -1, 2, x.shape[-1]).max(2)
    ),
    "max_pool2d_3x3_s2": _composed(
        "rows first", windows=lambda x: windows(x, (3, 3))[:, ::2, ::2].max((-2, -1))
    ),
    "global_avg_pool": _composed("a product", mean=Call("mean", axis=(1, 2), keepdims=True)),
    # Normalisation
    "batch_norm_training": _composed(
        "products", methods=standard_by_methods(0, 1, 2, epsilon=BATCH_EPSILON)
    ),
    "batch_norm_inference": _composed(
        "factors first", in_order=lambda x, g, b, m, v: (x - m) / np.sqrt(v + BATCH_EPSILON) * g + b
    ),
    "layer_norm": _composed("products", methods=standard_by_methods(-1)),
    "rms_norm": _composed(
        "a product",
        mean=lambda x, g: x / np.sqrt(np.square(x).mean(-1, keepdims=True) + EPSILON) * g,
    ),
    "group_norm": _composed("products", methods=groups_by_methods),
    "instance_norm": _composed("products", methods=standard_by_methods(1, 2)),
    "lrn": _composed(
        *("roots", "takes as much longer as there are more channels, of which networks have many"),
        power=lrn_by_power,
        product=lrn_by_product,
    ),
    # Softmax and losses
    "softmax": _composed(
        *("exp and sum", _OVERFLOW), einsum=softmax_by_einsum, unguarded=softmax_unguarded
    ),
    "log_softmax": _composed(
        *("exp and sum", _OVERFLOW),
        logaddexp=lambda x: x - np.logaddexp.reduce(x, -1, keepdims=True),
        unguarded=lambda x: x - np.log(np.exp(x).sum(-1, keepdims=True)),
    ),
    "cross_entropy": _composed(
        "log of sums", log_softmax=lambda x, i: -kernels.log_softmax(x)[np.arange(len(x)), i].mean()
    ),
    "cross_entropy_sum": _composed(
        "log of sums", log_softmax=lambda x, i: -kernels.log_softmax(x)[np.arange(len(x)), i].sum()
    ),
    "binary_cross_entropy": _composed(
        *("log1p", _OVERFLOW),
        logaddexp=lambda x, y: np.mean(np.logaddexp(0, x) - x * y),
        unguarded=lambda x, y: np.mean(np.log1p(np.exp(x)) - x * y),
    ),
    "mse": _composed(
        *("** 2", _HALF),
        square=lambda x, y: np.mean(np.square(x - y)),
        vdot=lambda x, y: np.vdot(x - y, x - y) / x.size,
        norm=lambda x, y: np.linalg.norm(x - y) ** 2 / x.size,
    ),
    "huber": _composed("minimum", where=huber_by_where),
    # Indexing
    "gather_rows": _method(function=Call("take", axis=0), index=lambda x, i: x[i]),
    "embedding": _method(function=lambda w, i: np.take(w, i, 0), index=lambda w, i: w[i]),
    "gather_elements": _own(
        *("take_along_axis", _FLAT),
        flat=lambda x, i: x.take(i + x.shape[1] * np.arange(len(x))[:, None]),
    ),
    "pick": _own(
        *("index", _FLAT),
        flat=lambda x, i: x.take(i + x.shape[1] * np.arange(len(x))),
        take_along_axis=lambda x, i: np.take_along_axis(x, i[:, None], 1)[:, 0],
    ),
    "gather_nd": Idiom(
        "index",
        "NumPy has it",
        {"flat": Laid(by(lambda x, i: x.take(i[0] * x.shape[1] + i[1])), axes("", "kc->ck"))},
        _FLAT,
    ),
    "scatter_add": Idiom(
        "add.at of the flat table", _COMPOSED, {"add.at": scattered_sums, "bincount": counted_sums}
    ),
    "scatter_nd_update": _composed("index", put_along_axis=with_rows_put),
    "one_hot": Idiom(
        "index",
        _COMPOSED,
        {
            "eye": lambda np, d: lambda i: np.eye(d, dtype=np.float32)[i],
            "comparison": lambda np, d: lambda i: (i[:, None] == np.arange(d)).astype(np.float32),
        },
    ),
    "sequence_mask": Idiom(
        "comparison of int32",
        _COMPOSED,
        {
            "int64": lambda np, d: lambda x, n: x * (np.arange(d) < n[:, None]),
            "where": lambda np, d: lambda x, n: np.where(np.arange(d) < n[:, None], x, 0),
        },
    ),
    "boolean_mask": _own(
        *("compress", _SHORT),
        index=lambda x, mask: x[mask],
        take=lambda x, mask: x.take(mask.nonzero()[0], 0),
    ),
    # Sorting and searching
    "sort": _own("sort", stable=Call("sort", axis=1, kind="stable"), in_place=sorted_copy),
    "argsort": _method(
        function=Call("argsort", axis=1), stable=Call("argsort", axis=1, kind="stable")
    ),
    "top_k": _composed("argpartition", argsort=sorted_top),
    "searchsorted": _method(
        function="searchsorted", digitize=lambda x, y: np.digitize(y, x, right=True)
    ),
    "unique": _own(
        *("unique", "of counts alone"),
        bincount=lambda x: np.flatnonzero(np.bincount(x)),
        set=lambda x: np.array(sorted(set(x.tolist()))),
    ),
    # Shapes and orders of elements
    "transpose": _method(function=lambda x: np.ascontiguousarray(x.T)),
    "permute_nhwc_nchw": _method(function=lambda x: np.ascontiguousarray(np.moveaxis(x, 3, 1))),
    "concat": _own(
        "concatenate", hstack=lambda x, y: np.hstack([x, y]), append=lambda x, y: np.append(x, y, 1)
    ),
    "stack": _own(
        *("stack", _CALLS),
        concatenate=lambda x, y: np.concatenate([x, y], 1).reshape(len(x), 2, -1),
    ),
    "split": _own(
        *("split", _CALLS),
        reshape=lambda x: [*x.reshape(len(x), 4, -1).swapaxes(0, 1).copy()],
        hsplit=lambda x: [part.copy() for part in np.hsplit(x, 4)],
    ),
    "pad_constant": _composed("zeros", _LONG, pad=Call("pad", pad_width=_PADDING)),
    "pad_reflect": _composed("slices", _LONG, pad=Call("pad", pad_width=_PADDING, mode="reflect")),
    "tile": _own(
        *("tile", _BY_HAND),
        assignment=tiled_by_hand,
        concatenate=lambda x: np.concatenate([np.concatenate([x] * 3, 1)] * 2),
    ),
    "repeat": _own(
        "repeat", _BY_HAND, assignment=repeated_by_hand, method=lambda x: x.repeat(3, 1)
    ),
    "slice": Idiom(
        "copy of a view",
        "NumPy has it",
        {
            "ascontiguousarray": lambda np, begin, end: (
                lambda x: np.ascontiguousarray(x[begin:end, begin:end])
            ),
            "take": lambda np, begin, end: lambda x: x[begin:end].take(range(begin, end), 1),
        },
    ),
    "strided_slice": _own(
        "copy of a view",
        take=lambda x: x[::2].take(np.arange(0, x.shape[1], 3), 1),
        columns_first=lambda x: x[:, ::3][::2].copy(),
    ),
    "depth_to_space": _composed("a transposed copy", assignment=blocks_by_assignment),
    "flip": _composed("a slice", function=lambda x: np.flip(x, 1).copy()),
    "roll": _own("roll", _CALLS, concatenate=lambda x: np.concatenate([x[:, -3:], x[:, :-3]], 1)),
    "broadcast_to": _own(
        "repeat",
        tile=lambda x: np.tile(x, (x.shape[1], 1)),
        copy=lambda x: np.broadcast_to(x, (x.shape[1],) * 2).copy(),
    ),
    "tril": _own("tril", _NAN, product=lambda x: x * np.tri(len(x), dtype=bool)),
    "diag_part": _method(function=lambda x: np.diag(x).copy()),
    # Random numbers
    **{
        name: Idiom(f"Generator.{called}", "NumPy's manual recommends it", ways, accepted)
        for name, (called, ways, accepted) in _RANDOM.items()
    },
    # Fourier transforms
    "fft": _own("fft.fft", fftn=Call("fft.fftn", axes=(1,))),
    "rfft": _own("fft.rfft", fft=lambda x: np.fft.fft(x)[..., : x.shape[-1] // 2 + 1]),
    "fft2": _own("fft.fft2", _CALLS, fft=lambda x: np.fft.fft(np.fft.fft(x), axis=-2)),
    # Images
    "resize_nearest": _composed("columns first", rows_first=lambda x: x.repeat(2, 1).repeat(2, 2)),
    "im2col": Idiom(
        "sliding_window_view",
        "NumPy's manual recommends it",
        {"positions": patches_by_position, "as_strided": patches_by_strides},
        "the manual says to avoid as_strided, which checks nothing",
    ),
}
