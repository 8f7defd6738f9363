"""Other public ways of ONNX Runtime to compute operations, and why they are not called."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from fwbench.frameworks.layout import CHANNELS_FIRST, CONV1D, CONV2D
from fwbench.frameworks.onnxruntime.operations import OPERATIONS
from fwbench.frameworks.table import Call, Laid, Table
from fwbench.workloads.operations.normalisation import BATCH_EPSILON, EPSILON
from fwbench_extras.idioms.table import Idiom, Idioms, beside

_FIRST, _SECOND, _THIRD = (np.array([axis], np.int64) for axis in (0, 1, 2))
_BEHIND, _SPACE, _ENDS = (np.array(axes, np.int64) for axes in ((1, 2), (2, 3), (0, 2)))

_EXPORTED = "PyTorch's exporter writes it"
_NOT_CHOSEN = "exporters write the operator; who runs their graphs does not choose"


def gelu_by_erf(op: Any) -> Any:
    """Exporters wrote it so before opset 20."""
    return lambda x: op.Mul(op.Mul(x, op.Add(op.Erf(op.Div(x, math.sqrt(2.0))), 1.0)), 0.5)


def gelu_by_tanh(op: Any) -> Any:
    def gelu(x: Any) -> Any:
        inner = op.Add(x, op.Mul(op.Pow(x, 3.0), 0.044715))
        return op.Mul(op.Mul(x, 0.5), op.Add(op.Tanh(op.Mul(inner, 0.79788456)), 1.0))

    return gelu


def layer_norm_by_parts(op: Any) -> Any:
    """Exporters wrote it so before opset 17."""
    last = np.array([-1], np.int64)

    def layer_norm(x: Any, gamma: Any, beta: Any) -> Any:
        y = op.Sub(x, op.ReduceMean(x, last))
        deviation = op.Sqrt(op.Add(op.ReduceMean(op.Pow(y, 2.0), last), EPSILON))
        return op.Add(op.Mul(op.Div(y, deviation), gamma), beta)

    return layer_norm


def batch_norm_by_factors(op: Any) -> Any:
    def batch_norm(x: Any, gamma: Any, beta: Any, mean: Any, variance: Any) -> Any:
        factor = op.Div(gamma, op.Sqrt(op.Add(variance, BATCH_EPSILON)))
        shift = op.Sub(beta, op.Mul(mean, factor))
        return op.Add(op.Mul(x, op.Unsqueeze(factor, _BEHIND)), op.Unsqueeze(shift, _BEHIND))

    return batch_norm


def instance_norm_by_moments(op: Any) -> Any:
    def instance_norm(x: Any, gamma: Any, beta: Any) -> Any:
        y = op.Sub(x, op.ReduceMean(x, _SPACE))
        deviation = op.Sqrt(op.Add(op.ReduceMean(op.Mul(y, y), _SPACE), EPSILON))
        scaled = op.Mul(op.Div(y, deviation), op.Unsqueeze(gamma, _BEHIND))
        return op.Add(scaled, op.Unsqueeze(beta, _BEHIND))

    return instance_norm


def softmax_by_hand(op: Any) -> Any:
    def softmax(x: Any) -> Any:
        y = op.Exp(op.Sub(x, op.ReduceMax(x, _SECOND)))
        return op.Div(y, op.ReduceSum(y, _SECOND))

    return softmax


def norm_by_product(op: Any) -> Any:
    def norm(x: Any) -> Any:
        vector = op.Reshape(x, np.array([-1], np.int64))
        return op.Sqrt(op.MatMul(vector, vector))

    return norm


def sequences_as_images(op: Any, window: Any) -> Any:
    pads = [0, window.padding] * 2
    return lambda x, w: op.Squeeze(
        op.Conv(op.Unsqueeze(x, _THIRD), op.Unsqueeze(w, _THIRD), pads=pads), _THIRD
    )


def pixels_by_product(op: Any, _: Any) -> Any:
    def convolution(x: Any, w: Any) -> Any:
        rows = op.Reshape(x, np.array([0, 0, -1], np.int64))
        y = op.MatMul(op.Squeeze(w, _SPACE), rows)
        shape = op.Concat(np.array([0, -1], np.int64), op.Shape(x, start=2), axis=0)
        return op.Reshape(y, shape)

    return convolution


def tril_by_where(op: Any) -> Any:
    def tril(x: Any) -> Any:
        n = op.Shape(x, end=1)
        places = op.Range(np.int64(0), op.Squeeze(n), np.int64(1))
        within = op.GreaterOrEqual(op.Unsqueeze(places, _SECOND), places)
        return op.Where(within, x, 0.0)

    return tril


#: Other operators than those that exporters write, by the operation.
_OTHERS: dict[str, Table] = {
    # Activations
    "sigmoid": {
        "Tanh": lambda op: lambda x: op.Add(op.Mul(op.Tanh(op.Mul(x, 0.5)), 0.5), 0.5),
        "Exp": lambda op: lambda x: op.Reciprocal(op.Add(op.Exp(op.Neg(x)), 1.0)),
    },
    "relu": {
        "Max": lambda op: lambda x: op.Max(x, 0.0),
        "Clip": lambda op: lambda x: op.Clip(x, 0.0),
    },
    "tanh": {"Sigmoid": lambda op: lambda x: op.Sub(op.Mul(op.Sigmoid(op.Mul(x, 2.0)), 2.0), 1.0)},
    "softsign": {"Div": lambda op: lambda x: op.Div(x, op.Add(op.Abs(x), 1.0))},
    "gelu": {"Erf": gelu_by_erf},
    "gelu_tanh": {"Tanh": gelu_by_tanh},
    "elu": {
        "Where": lambda op: lambda x: op.Where(op.Greater(x, 0.0), x, op.Sub(op.Exp(x), 1.0)),
        "Max": lambda op: lambda x: op.Max(x, op.Sub(op.Exp(op.Min(x, 0.0)), 1.0)),
    },
    "selu": {"Elu": lambda op: lambda x: op.Mul(op.Elu(x, alpha=1.67326324), 1.05070099)},
    "leaky_relu": {
        "PRelu": lambda op: lambda x: op.PRelu(x, np.array([0.25], np.float32)),
        "Max": lambda op: lambda x: op.Max(x, op.Mul(x, 0.25)),
    },
    "silu": {"Div": lambda op: lambda x: op.Div(x, op.Add(op.Exp(op.Neg(x)), 1.0))},
    "hard_sigmoid": {"Clip": lambda op: lambda x: op.Clip(op.Add(op.Mul(x, 1 / 6), 0.5), 0.0, 1.0)},
    # Elementwise arithmetic
    "abs": {"Max": lambda op: lambda x: op.Max(x, op.Neg(x))},
    "negative": {
        "Mul": lambda op: lambda x: op.Mul(x, -1.0),
        "Sub": lambda op: lambda x: op.Sub(0.0, x),
    },
    "sign": {
        "Where": lambda op: (
            lambda x: op.Where(op.Greater(x, 0.0), 1.0, op.Where(op.Less(x, 0.0), -1.0, 0.0))
        )
    },
    "exp": {"Pow": lambda op: lambda x: op.Pow(math.e, x)},
    "sqrt": {"Pow": lambda op: lambda x: op.Pow(x, 0.5)},
    "rsqrt": {
        "Pow": lambda op: lambda x: op.Pow(x, -0.5),
        "Div": lambda op: lambda x: op.Div(1.0, op.Sqrt(x)),
    },
    "square": {"Pow": lambda op: lambda x: op.Pow(x, 2.0)},
    "reciprocal": {"Div": lambda op: lambda x: op.Div(1.0, x)},
    "sin": {"Cos": lambda op: lambda x: op.Cos(op.Sub(x, math.pi / 2))},
    "cos": {"Sin": lambda op: lambda x: op.Sin(op.Add(x, math.pi / 2))},
    "clip": {"Min, Max": lambda op: lambda x: op.Min(op.Max(x, -0.5), 0.5)},
    "floor": {"Ceil": lambda op: lambda x: op.Neg(op.Ceil(op.Neg(x)))},
    "round": {"Floor": lambda op: lambda x: op.Floor(op.Add(x, 0.5))},
    "isnan": {"Equal": lambda op: lambda x: op.Not(op.Equal(x, x))},
    "logical_not": {"Xor": lambda op: lambda x: op.Xor(x, np.array(True))},
    "add": {"Sum": "Sum"},
    "subtract": {"Add": lambda op: lambda x, y: op.Add(x, op.Neg(y))},
    "divide": {"Reciprocal": lambda op: lambda x, y: op.Mul(x, op.Reciprocal(y))},
    "maximum": {"Where": lambda op: lambda x, y: op.Where(op.Greater(x, y), x, y)},
    "minimum": {"Where": lambda op: lambda x, y: op.Where(op.Less(x, y), x, y)},
    "power": {"Exp": lambda op: lambda x, y: op.Exp(op.Mul(y, op.Log(x)))},
    "greater": {"Less": lambda op: lambda x, y: op.Less(y, x)},
    "equal": {"Sub": lambda op: lambda x, y: op.Equal(op.Sub(x, y), 0.0)},
    "multiply_add": {"Sum": lambda op: lambda x, y, z: op.Sum(op.Mul(x, y), z)},
    "add_row": {"Sum": "Sum"},
    # Reductions
    "sum": {
        "rows first": lambda op: (
            lambda x: op.ReduceSum(op.ReduceSum(x, _SECOND, keepdims=0), keepdims=0)
        ),
        "Einsum": Call("Einsum", equation="ij->"),
    },
    "sum_columns": {"Einsum": Call("Einsum", equation="ij->j")},
    "sum_rows": {"Einsum": Call("Einsum", equation="ij->i")},
    "mean": {
        "GlobalAveragePool": lambda op: (
            lambda x: op.Squeeze(op.GlobalAveragePool(op.Unsqueeze(x, _FIRST)), _ENDS)
        )
    },
    "max": {
        "GlobalMaxPool": lambda op: (
            lambda x: op.Squeeze(op.GlobalMaxPool(op.Unsqueeze(x, _FIRST)), _ENDS)
        )
    },
    "min": {"ReduceMax": lambda op: lambda x: op.Neg(op.ReduceMax(op.Neg(x), _SECOND, keepdims=0))},
    "norm": {
        "ReduceSumSquare": lambda op: lambda x: op.Sqrt(op.ReduceSumSquare(x, keepdims=0)),
        "MatMul": norm_by_product,
    },
    "argmax": {
        "TopK": lambda op: (
            lambda x: op.Squeeze(op.TopK(x, np.array([1]), results=2, axis=1)[1], _SECOND)
        )
    },
    "argmin": {"ArgMax": lambda op: lambda x: op.ArgMax(op.Neg(x), axis=1, keepdims=0)},
    # Vectors and matrices
    "flatten": {"Flatten": lambda op: lambda x: op.Squeeze(op.Flatten(x, axis=0), _FIRST)},
    "gemv": {
        "Gemm": lambda op: lambda x, y: op.Squeeze(op.Gemm(x, op.Unsqueeze(y, _SECOND)), _SECOND)
    },
    "gemm_tn": {"MatMul": lambda op: lambda x, y: op.MatMul(op.Transpose(x, perm=[1, 0]), y)},
    "gemm_nt": {"MatMul": lambda op: lambda x, y: op.MatMul(x, op.Transpose(y, perm=[1, 0]))},
    "batch_gemm": {"Einsum": Call("Einsum", equation="bmk,bkn->bmn")},
    "linear": {
        "MatMul": lambda op, _: (
            lambda x, w, b: op.Add(op.MatMul(x, op.Transpose(w, perm=[1, 0])), b)
        )
    },
    # Convolution
    "conv2d_1x1": {"MatMul": Laid(pixels_by_product, CONV2D)},
    "conv1d": {"images": Laid(sequences_as_images, CONV1D)},
    # Normalisation
    "batch_norm_inference": {"Mul, Add": Laid(batch_norm_by_factors, CHANNELS_FIRST)},
    "layer_norm": {"ReduceMean": layer_norm_by_parts},
    "instance_norm": {"ReduceMean": Laid(instance_norm_by_moments, CHANNELS_FIRST)},
    # Softmax
    "softmax": {"Exp": softmax_by_hand},
    "log_softmax": {
        "Log": lambda op: lambda x: op.Log(op.Softmax(x, axis=-1)),
        "ReduceLogSumExp": lambda op: lambda x: op.Sub(x, op.ReduceLogSumExp(x, _SECOND)),
    },
    # Indexing
    "gather_rows": {"GatherND": lambda op: lambda x, i: op.GatherND(x, op.Unsqueeze(i, _SECOND))},
    "embedding": {"GatherND": lambda op, *_: lambda w, i: op.GatherND(w, op.Unsqueeze(i, _THIRD))},
    "gather_elements": {
        "GatherND": lambda op: lambda x, i: op.GatherND(x, op.Unsqueeze(i, _THIRD), batch_dims=1)
    },
    # Shapes and orders of elements
    "transpose": {"Einsum": Call("Einsum", equation="ij->ji")},
    "permute_nhwc_nchw": {"Einsum": Call("Einsum", equation="nhwc->nchw")},
    "tile": {"Concat": lambda op: lambda x: op.Concat(*[op.Concat(x, x, x, axis=1)] * 2, axis=0)},
    "slice": {
        "one axis at a time": lambda op, begin, end: (
            lambda x: op.Slice(
                op.Slice(x, np.array([begin]), np.array([end]), _FIRST),
                np.array([begin]),
                np.array([end]),
                _SECOND,
            )
        )
    },
    "tril": {"Where": tril_by_where},
}


def _exported(called: str, alternatives: Table, accepted: str = "") -> Idiom:
    return Idiom(called, _EXPORTED, alternatives, accepted)


IDIOMS: Idioms = {
    **beside(OPERATIONS, _EXPORTED, _OTHERS, dict.fromkeys(_OTHERS, _NOT_CHOSEN)),
    # Activations
    "softplus": _exported(
        "Softplus",
        {"Log": lambda op: lambda x: op.Log(op.Add(op.Exp(x), np.float32(1)))},
        _NOT_CHOSEN,
    ),
    "log_sigmoid": _exported(
        "Log", {"Softplus": lambda op: lambda x: op.Neg(op.Softplus(op.Neg(x)))}
    ),
    # Reductions
    "logsumexp": _exported(
        "ReduceLogSumExp",
        {
            "LogSoftmax": lambda op: (
                lambda x: op.Squeeze(
                    op.Slice(op.Sub(x, op.LogSoftmax(x, axis=1)), _FIRST, _SECOND, _SECOND), _SECOND
                )
            )
        },
        _NOT_CHOSEN,
    ),
    # Products
    "dot": _exported(
        "MatMul",
        {"ReduceSum": lambda op: lambda x, y: op.ReduceSum(op.Mul(x, y), keepdims=0)},
        _NOT_CHOSEN,
    ),
    **dict.fromkeys(("gemm", "gemm_nn"), _exported("MatMul", {"Gemm": "Gemm"})),
    "outer": _exported("Mul", {"Einsum": Call("Einsum", equation="i,j->ij")}),
    "einsum": _exported(
        "Einsum",
        {"MatMul": lambda op: lambda x, y: op.MatMul(x, op.Transpose(y, perm=[0, 2, 1]))},
        "the notation is what is measured; batch_gemm is the product without it",
    ),
    # Pooling
    "global_avg_pool": _exported(
        "ReduceMean", {"GlobalAveragePool": Laid("GlobalAveragePool", CHANNELS_FIRST)}
    ),
}
