"""ONNX's functions for fwbench's operations, by family: names of its operators.

ONNX has no decompositions, no transforms and no random numbers worth the name, and what could be
composed of many operators is rarely written so: such operations are left out.
"""

from __future__ import annotations

import numpy as np

from fwbench.frameworks.layout import (
    CHANNELS_FIRST,
    CONV1D,
    CONV2D,
    CONV2D_TRANSPOSED,
    CONV3D,
    SEQUENCE_CHANNELS_FIRST,
)
from fwbench.frameworks.onnxruntime import kernels
from fwbench.frameworks.table import CONVOLUTIONS, Call, Composed, Laid, Table
from fwbench.workloads.operations.normalisation import (
    ALPHA,
    BATCH_EPSILON,
    BETA,
    BIAS,
    EPSILON,
    NEIGHBOURS,
)

#: ``TensorProto.DataType``, whose numbers the format of the file fixes.
_FLOAT16 = 10

_INT32 = 6

_FIRST, _SECOND, _SPACE = (np.array(axes, np.int64) for axes in ((0,), (1,), (2, 3)))

OPERATIONS: Table = {
    # Activations
    "sigmoid": "Sigmoid",
    "relu": "Relu",
    "tanh": "Tanh",
    "softplus": "Softplus",
    "softsign": "Softsign",
    "gelu": "Gelu",
    "gelu_tanh": Call("Gelu", approximate="tanh"),
    "elu": "Elu",
    "selu": "Selu",
    "leaky_relu": Call("LeakyRelu", alpha=0.25),
    "silu": Composed(lambda op: lambda x: op.Mul(x, op.Sigmoid(x))),
    "hard_sigmoid": Call("HardSigmoid", alpha=1 / 6, beta=0.5),
    # As PyTorch's exporter writes it.
    "log_sigmoid": Composed(lambda op: lambda x: op.Log(op.Sigmoid(x))),
    # Elementwise arithmetic
    "abs": "Abs",
    "negative": "Neg",
    "sign": "Sign",
    "exp": "Exp",
    "log": "Log",
    "sqrt": "Sqrt",
    "rsqrt": Composed(lambda op: lambda x: op.Reciprocal(op.Sqrt(x))),
    "square": lambda op: lambda x: op.Mul(x, x),
    "reciprocal": "Reciprocal",
    "sin": "Sin",
    "cos": "Cos",
    "arctan": "Atan",
    "erf": "Erf",
    "clip": lambda op: lambda x: op.Clip(x, np.float32(-0.5), np.float32(0.5)),
    "floor": "Floor",
    "round": "Round",
    "round_half_even": "Round",
    "isnan": "IsNaN",
    "logical_not": "Not",
    "cast_float16": kernels.cast(_FLOAT16),
    "cast_int32": kernels.cast(_INT32),
    "add": "Add",
    "subtract": "Sub",
    "multiply": "Mul",
    "divide": "Div",
    "maximum": "Max",
    "minimum": "Min",
    "power": "Pow",
    "greater": "Greater",
    "equal": "Equal",
    "logical_and": "And",
    "where": "Where",
    "multiply_add": Composed(lambda op: lambda x, y, z: op.Add(op.Mul(x, y), z)),
    "add_row": "Add",
    # Reductions
    "sum": Call("ReduceSum", keepdims=0),
    "sum_columns": kernels.reduction("ReduceSum", 0),
    "sum_rows": kernels.reduction("ReduceSum", 1),
    "mean": kernels.reduction("ReduceMean", 1),
    "max": kernels.reduction("ReduceMax", 1),
    "min": kernels.reduction("ReduceMin", 1),
    "prod": kernels.reduction("ReduceProd", 1),
    "norm": Call("ReduceL2", keepdims=0),
    "logsumexp": kernels.reduction("ReduceLogSumExp", 1),
    "cumsum": lambda op: lambda x: op.CumSum(x, np.array(1, np.int64)),
    "argmax": Call("ArgMax", axis=1, keepdims=0),
    "argmin": Call("ArgMin", axis=1, keepdims=0),
    # Vectors and matrices
    "dot": "MatMul",
    "gemm": "MatMul",
    "flatten": lambda op: lambda x: op.Reshape(x, np.array([-1], np.int64)),
    "gemv": "MatMul",
    "outer": Composed(
        lambda op: lambda x, y: op.Mul(op.Unsqueeze(x, _SECOND), op.Unsqueeze(y, _FIRST))
    ),
    "gemm_nn": "MatMul",
    "gemm_tn": Call("Gemm", transA=1),
    "gemm_nt": Call("Gemm", transB=1),
    "batch_gemm": "MatMul",
    "einsum": Call("Einsum", equation="bmk,bnk->bmn"),
    "linear": lambda op, n: lambda x, w, b: op.Gemm(x, w, b, transB=1),
    # Convolution
    **dict.fromkeys(CONVOLUTIONS, Laid(kernels.CONV, CONV2D)),
    "depthwise_conv2d": Laid(kernels.CONV, CONV2D),
    "conv2d_transposed": Laid(kernels.convolving("ConvTranspose"), CONV2D_TRANSPOSED),
    "conv1d": Laid(kernels.CONV, CONV1D),
    "conv3d": Laid(kernels.CONV, CONV3D),
    # Pooling
    "max_pool2d": Laid(kernels.pool("MaxPool", 2, 2), CHANNELS_FIRST),
    "max_pool2d_3x3_s2": Laid(kernels.pool("MaxPool", 3, 2), CHANNELS_FIRST),
    "avg_pool2d": Laid(kernels.pool("AveragePool", 2, 2), CHANNELS_FIRST),
    # As exporters write the mean of an image, which Keras calls a pooling.
    "global_avg_pool": Laid(lambda op: lambda x: op.ReduceMean(x, _SPACE), CHANNELS_FIRST),
    "max_pool1d": Laid(kernels.pool("MaxPool", 2, 2, rank=1), SEQUENCE_CHANNELS_FIRST),
    # Normalisation
    "batch_norm_inference": Laid(Call("BatchNormalization", epsilon=BATCH_EPSILON), CHANNELS_FIRST),
    "layer_norm": Call("LayerNormalization", axis=-1, epsilon=EPSILON),
    "instance_norm": Laid(Call("InstanceNormalization", epsilon=EPSILON), CHANNELS_FIRST),
    # ONNX divides alpha by the number of channels.
    "lrn": Laid(
        Call("LRN", size=NEIGHBOURS, alpha=NEIGHBOURS * ALPHA, beta=BETA, bias=BIAS), CHANNELS_FIRST
    ),
    # Softmax
    "softmax": Call("Softmax", axis=-1),
    "log_softmax": Call("LogSoftmax", axis=-1),
    # Indexing
    "gather_rows": Call("Gather", axis=0),
    "embedding": lambda op, n, d: lambda w, i: op.Gather(w, i, axis=0),
    "gather_elements": Call("GatherElements", axis=1),
    "gather_nd": "GatherND",
    # Shapes and orders of elements
    "transpose": Call("Transpose", perm=[1, 0]),
    "permute_nhwc_nchw": Call("Transpose", perm=[0, 3, 1, 2]),
    "concat": Call("Concat", axis=1),
    "split": Call("Split", axis=1, num_outputs=4, results=4),
    "tile": lambda op: lambda x: op.Tile(x, np.array([2, 3], np.int64)),
    "slice": kernels.slice_square,
    "tril": Call("Trilu", upper=0),
    # No operation
    # A session returns no input itself: it is copied.
    "noop": "Identity",
}
