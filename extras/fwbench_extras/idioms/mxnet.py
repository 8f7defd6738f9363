"""Other public ways of MXNet to compute operations, and why they are not called."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fwbench.frameworks.layout import CHANNELS_FIRST, Arrays, Layout
from fwbench.frameworks.mxnet import kernels
from fwbench.frameworks.table import Call, Laid, Table
from fwbench.workloads.operation import Implementation
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
