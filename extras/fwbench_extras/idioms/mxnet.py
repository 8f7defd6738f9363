"""Other public ways of MXNet to compute operations, and why they are not called."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fwbench.frameworks.layout import (
    CHANNELS_FIRST,
    CONV1D,
    SEQUENCE_CHANNELS_FIRST,
    Arrays,
    Layout,
)
from fwbench.frameworks.mxnet import kernels
from fwbench.frameworks.table import Call, Laid, Table
from fwbench.workloads.operation import Implementation
from fwbench.workloads.operations.normalisation import BATCH_EPSILON, EPSILON
from fwbench.workloads.operations.optimisers import L1, MOMENTUM, RHO, TINY
from fwbench_extras.idioms.table import Idiom, Idioms


def gelu_by_tanh(F: Any, x: Any) -> Any:
    return 0.5 * x * (1 + F.tanh(0.7978845608028654 * (x + 0.044715 * x**3)))


def rows_by_dot(F: Any) -> Any:
    def summed(x: Any) -> Any:
        ones = F.ones_like(F.slice_axis(x, axis=0, begin=0, end=1))
        return F.reshape(F.dot(x, ones, transpose_b=True), shape=(-1,))

    return summed


def log_of_sum(F: Any, x: Any) -> Any:
    peaks = F.max(x, axis=1, keepdims=True)
    sums = F.sum(F.exp(F.broadcast_sub(x, peaks)), axis=1, keepdims=True)
    return F.reshape(F.log(sums) + peaks, shape=(-1,))


def labels_in_dtype(arrays: Arrays) -> list[NDArray[Any]]:
    """Labels in the dtype of the numbers."""
    x, labels = arrays
    return [x, labels.astype(x.dtype)]


def labels_int64(arrays: Arrays) -> list[NDArray[Any]]:
    x, labels = arrays
    return [x, labels.astype(np.int64)]


def attention_by_batch_dot(F: Any) -> Callable[..., Any]:
    """Its batches have one axis for batch and heads."""

    def attend(*projections: Any) -> Any:
        q, k, v = (x.reshape((-3, 0, 0)) for x in projections)
        weights = F.softmax(F.batch_dot(F.contrib.div_sqrt_dim(q), k, transpose_b=True))
        return F.reshape_like(F.batch_dot(weights, v), projections[0])

    return attend


def masked_by_product(F: Any, d: int) -> Any:
    def masked(x: Any, lengths: Any) -> Any:
        ends = F.expand_dims(F.cast(lengths, dtype="float32"), axis=1)
        return F.broadcast_lesser(F.expand_dims(F.arange(d), axis=0), ends) * x

    return masked


def convolution_as_images(F: Any, window: Any) -> Any:
    """Sequences as images of one row."""
    options: dict[str, Any] = {"kernel": (1, *window.kernel), "pad": (0, window.padding)}
    convolve = partial(F.Convolution, num_filter=window.filters, no_bias=True, **options)
    as_images = partial(F.expand_dims, axis=2)
    return lambda x, w: F.squeeze(convolve(as_images(x), as_images(w)), axis=2)


def pooling_as_images(F: Any) -> Any:
    pool = partial(F.Pooling, kernel=(1, 2), stride=(1, 2), pool_type="max")
    return lambda x: F.squeeze(pool(F.expand_dims(x, axis=2)), axis=2)


def factors_first(F: Any) -> Any:
    """Batch normalisation by a product and a sum of vectors that are combined first."""

    def batch_norm(x: Any, gamma: Any, beta: Any, mean: Any, variance: Any) -> Any:
        factor = gamma * F.rsqrt(variance + BATCH_EPSILON)
        vectors = (F.reshape(y, shape=(1, -1, 1, 1)) for y in (factor, beta - mean * factor))
        product, offset = vectors
        return F.broadcast_add(F.broadcast_mul(x, product), offset)

    return batch_norm


def layer_norm_of_parts(F: Any) -> Any:
    def layer_norm(x: Any, gamma: Any, beta: Any) -> Any:
        deviation = F.broadcast_sub(x, F.mean(x, axis=-1, keepdims=True))
        variance = F.mean(F.square(deviation), axis=-1, keepdims=True)
        standard = F.broadcast_mul(deviation, F.rsqrt(variance + EPSILON))
        return F.broadcast_add(F.broadcast_mul(standard, gamma), beta)

    return layer_norm


def rms_norm_by_l2(F: Any) -> Any:
    """The operator divides by the root of the sum of squares, in which its epsilon is."""

    def rms_norm(x: Any, gamma: Any) -> Any:
        count = gamma.shape[0]
        rows = F.reshape(x, shape=(-3, 0))
        unit = F.L2Normalization(rows, eps=EPSILON * count, mode="instance")
        return F.broadcast_mul(F.reshape_like(unit, x), gamma * count**0.5)

    return rms_norm


_NP = kernels.NumPyCall

_GLUON = "Gluon's layers call it"
_ND = "of the operators of mx.nd, which Gluon's blocks call, it is the one for this"
_COMPOSED = "composed: MXNet has no operator for it"
_TRAINER = "gluon.Trainer calls the optimizer, which calls the operator"
_SHORT = "faster in arrays of some thousand numbers alone, by microseconds"
_NAN = "what is not chosen counts where it is infinite or not a number"
_LOST = "is off, or overflows, where numbers are large"
_NOTATION = "the notation is what is measured; batch_gemm is the product without it"
_EACH = "tens of microseconds of Python in each call, which every user of the optimizer has"


def _nd(alternatives: Table, accepted: str = "") -> Idiom:
    return Idiom("the operator of mx.nd", _ND, alternatives, accepted)


def _composed(called: str, alternatives: Table, accepted: str = "") -> Idiom:
    return Idiom(called, _COMPOSED, alternatives, accepted)


def _step(optimizer: str, operator: Implementation) -> Idiom:
    return Idiom(f"mx.optimizer.{optimizer}", _TRAINER, {"the operator": operator}, _EACH)


IDIOMS: Idioms = {
    # Activations
    **{
        name: Idiom(f'Activation("{name}")', _GLUON, {f"nd.{name}": name}, _SHORT)
        for name in ("sigmoid", "relu", "tanh", "softsign")
    },
    "softplus": Idiom("Activation", _GLUON, {"log1p": lambda F: lambda x: F.log1p(F.exp(x))}),
    "gelu": Idiom(
        "LeakyReLU", _GLUON, {"erf": lambda F: lambda x: 0.5 * x * (1 + F.erf(0.70710678 * x))}
    ),
    "gelu_tanh": _composed("by sigmoid", {"by tanh": lambda F: partial(gelu_by_tanh, F)}),
    "elu": Idiom("LeakyReLU", _GLUON, {"where": lambda F: lambda x: F.where(x > 0, x, F.expm1(x))}),
    "leaky_relu": Idiom(
        "LeakyReLU",
        _GLUON,
        {"maximum": lambda F: lambda x: F.broadcast_maximum(x, 0.25 * x)},
        _SHORT,
    ),
    "silu": _composed("Activation", {"nd.sigmoid": lambda F: lambda x: x * F.sigmoid(x)}, _SHORT),
    "hard_sigmoid": _nd({"clip": lambda F: lambda x: F.clip(x / 6 + 0.5, a_min=0, a_max=1)}),
    "log_sigmoid": _composed(
        "Activation of -x",
        {"log": lambda F: lambda x: F.log(F.Activation(x, act_type="sigmoid"))},
        "is minus infinity below -104",
    ),
    # Elementwise arithmetic
    **{
        name: _nd({f"np.{name}": _NP(name)})
        for name in (
            *("abs", "negative", "sign", "exp", "expm1", "log", "log1p", "sqrt", "square"),
            *("reciprocal", "sin", "cos", "arctan", "floor", "subtract", "multiply", "divide"),
            *("maximum", "minimum", "power"),
        )
    },
    "add": Idiom("x + y", "users write it so", {"add_n": "add_n"}, "a sum of two is x + y"),
    **{
        name: Idiom(f"np.{name}", "its results are booleans", {"nd": f"broadcast_{name}"}, _SHORT)
        for name in ("greater", "equal")
    },
    "mod": _nd({"floor": lambda F: lambda x, y: x - F.floor(x / y) * y}, _LOST),
    "hypot": _nd({"sqrt": lambda F: lambda x, y: F.sqrt(F.square(x) + F.square(y))}, _LOST),
    "logical_and": _nd({"product": Laid("elemwise_mul", kernels.as_numbers(2))}, "of 0 and 1"),
    "where": _nd(
        {"products": Laid(lambda F: lambda c, x, y: c * (x - y) + y, kernels.as_numbers(1))}, _NAN
    ),
    # Reductions
    **{
        name: _nd({f"np.{name}": _NP(name, axis=1)})
        for name in ("mean", "max", "min", "prod", "cumsum", "sort", "argsort")
    },
    "sum_rows": _nd(
        {"product with ones": rows_by_dot}, "nobody writes a sum so; float16 has no product"
    ),
    "variance": _composed(
        "two means",
        {"moments": lambda F: lambda x: F.mean(F.square(x), axis=1) - F.square(F.mean(x, axis=1))},
        _LOST,
    ),
    "norm": Idiom("dot", "gluon.utils.clip_global_norm calls it", {"nd.norm": "norm"}, _SHORT),
    "logsumexp": _composed("log_softmax", {"sum": lambda F: partial(log_of_sum, F)}),
    # Vectors and matrices
    **{
        name: _nd({"linalg.gemm2": Call("linalg.gemm2", **transposed)})
        for name, transposed in (
            *(("gemm", {}), ("gemm_nn", {}), ("batch_gemm", {})),
            *(("gemm_tn", {"transpose_a": True}), ("gemm_nt", {"transpose_b": True})),
        )
    },
    "einsum": Idiom(
        *("np.einsum", "mx.nd has none", {"batch_dot": Call("batch_dot", transpose_b=True)}),
        _NOTATION,
    ),
    "l2_normalize": _nd(
        {"norm": lambda F: lambda x: F.broadcast_div(x, F.norm(x, axis=1, keepdims=True))}
    ),
    # Softmax, losses and attention
    "softmax": _nd({"SoftmaxActivation": "SoftmaxActivation"}),
    "log_softmax": _nd({"log": lambda F: lambda x: F.log(F.softmax(x))}),
    "cross_entropy_sum": Idiom(
        "log_softmax, pick",
        _GLUON,
        {
            "softmax_cross_entropy": Laid(
                "softmax_cross_entropy", Layout(labels_in_dtype, labels_int64)
            )
        },
        _SHORT,
    ),
    "binary_cross_entropy": Idiom(
        *("four terms", _GLUON),
        {"softrelu": lambda F: lambda x, y: F.mean(F.Activation(x, act_type="softrelu") - x * y)},
        "keeps no digits of small losses of large numbers",
    ),
    "attention": _composed(
        "linalg.gemm2", {"batch_dot": attention_by_batch_dot}, "slower in eleven cells of twelve"
    ),
    # Indexing and random numbers
    "gather_rows": _nd(
        {"gather_nd": lambda F: lambda x, i: F.gather_nd(x, F.expand_dims(i, axis=0))}, _SHORT
    ),
    "embedding": Idiom("Embedding", _GLUON, {"take": lambda F, n, d: F.take}, _SHORT),
    "sequence_mask": _nd({"broadcast_lesser": masked_by_product}, _NAN),
    "random_exponential": _nd(
        {"np.random": lambda F, n: lambda _: F.np.random.exponential(0.5, (n,)).as_nd_ndarray()},
        "float32 alone",
    ),
    "random_normal": Idiom(
        "np.random.normal", "twice as fast", {"nd.random_normal": kernels.drawn("normal")}
    ),
    # Pooling
    "global_avg_pool": Idiom(
        "Pooling",
        _GLUON,
        {
            "AdaptiveAvgPooling2D": Laid(
                Call("contrib.AdaptiveAvgPooling2D", output_size=1), CHANNELS_FIRST
            )
        },
        "oneDNN lacks a fast gradient for images with 16 channels, and Gluon's layer calls it so",
    ),
    # Shapes and orders of elements
    "flip": _nd({"nd.flip": Call("flip", axis=1)}, _SHORT),
    "tile": Idiom("nd.concat", "ten times as fast", {"nd.tile": Call("tile", reps=(2, 3))}, _SHORT),
    "split": Idiom(
        "nd.slice_axis",
        "ten times as fast",
        {"nd.split": Call("split", num_outputs=4, axis=1)},
        "eager gradients by slices are added up one by one; all else is up to ten times as fast",
    ),
    "broadcast_to": _nd({"nd.broadcast_to": lambda F, n: Call("broadcast_to", shape=(n, n))(F)}),
    "tril": Idiom(
        "np.tril",
        "mx.nd has none",
        {"linalg": lambda F: lambda x: F.linalg.maketrian(F.linalg.extracttrian(x))},
    ),
    # Reductions, vectors and matrices that Gluon's layers do not call
    "multiply_add": Idiom(
        "x * y + z",
        "users write it so",
        {"elemwise_add": lambda F: lambda x, y, z: F.elemwise_add(F.elemwise_mul(x, y), z)},
    ),
    "sum_columns": _nd(
        {"product with ones": lambda F: lambda x: F.dot(F.ones_like(x[:, 0]), x)},
        "nobody writes a sum so; float16 has no product",
    ),
    "gemv": _nd(
        {
            "np.dot": _NP("dot"),
            "linalg.gemm2": lambda F: (
                lambda a, x: F.reshape(F.linalg.gemm2(a, F.expand_dims(x, axis=1)), shape=(-1,))
            ),
        }
    ),
    "outer": Idiom(
        "np.outer",
        "mx.nd has none",
        {
            "broadcast_mul": lambda F: (
                lambda x, y: F.broadcast_mul(F.expand_dims(x, axis=1), F.expand_dims(y, axis=0))
            ),
            "dot": lambda F: lambda x, y: F.dot(F.expand_dims(x, axis=1), F.expand_dims(y, axis=0)),
        },
    ),
    "tensordot": Idiom(
        "np.tensordot",
        "mx.nd has none",
        {
            "dot": lambda F: (
                lambda x, y: F.dot(F.reshape(x, shape=(0, -1)), F.reshape(y, shape=(-3, 0)))
            )
        },
    ),
    "linear": Idiom(
        "FullyConnected",
        _GLUON,
        {"dot": lambda F, n: lambda x, w, b: F.broadcast_add(F.dot(x, w, transpose_b=True), b)},
    ),
    # Convolution, pooling and normalisation
    "conv1d": Idiom("Convolution", _GLUON, {"of images": Laid(convolution_as_images, CONV1D)}),
    "max_pool1d": Idiom(
        "Pooling", _GLUON, {"of images": Laid(pooling_as_images, SEQUENCE_CHANNELS_FIRST)}
    ),
    "batch_norm_inference": Idiom(
        "BatchNorm", _GLUON, {"factors first": Laid(factors_first, CHANNELS_FIRST)}
    ),
    "layer_norm": Idiom("LayerNorm", _GLUON, {"parts": layer_norm_of_parts}),
    "rms_norm": _composed(
        "mean",
        {"L2Normalization": rms_norm_by_l2},
        "its epsilon is in a sum over the channels, whose number a symbol does not know",
    ),
    "mse": Idiom(
        "x - y",
        _GLUON,
        {"elemwise_sub": lambda F: lambda x, y: F.mean(F.square(F.elemwise_sub(x, y)))},
    ),
    "pick": _nd({"batch_take": lambda F: lambda x, i: F.batch_take(x, F.cast(i, dtype="int32"))}),
    # Optimisers
    "sgd": _step("SGD", kernels.operator("sgd_update")),
    "momentum": _step(
        "SGD", Laid(kernels.operator("sgd_mom_update", momentum=MOMENTUM), kernels.VELOCITY)
    ),
    "nesterov": _step(
        "NAG", Laid(kernels.operator("nag_mom_update", momentum=MOMENTUM), kernels.VELOCITY)
    ),
    "adam": _step("Adam", kernels.operator("adam_update", **kernels.ADAM)),
    "rmsprop": _step("RMSProp", kernels.operator("rmsprop_update", gamma1=RHO, epsilon=TINY)),
    "ftrl": _step("Ftrl", kernels.operator("ftrl_update", lamda1=L1, beta=0.0)),
}
