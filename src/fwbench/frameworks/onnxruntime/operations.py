"""ONNX's functions for fwbench's operations, by family, where no single operator will do.

ONNX has no decompositions, no transforms and no random numbers worth the name, and what could be
composed of many operators is rarely written so: such operations are left out.
"""

import numpy as np

from fwbench.frameworks import layout
from fwbench.frameworks.onnxruntime import kernels
from fwbench.frameworks.table import CONVOLUTIONS, Call, Composed, Laid, Table, paths_of
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
    **paths_of(__package__),
    # Activations
    "silu": Composed(lambda op: lambda x: op.Mul(x, op.Sigmoid(x))),
    "hard_sigmoid": Call("HardSigmoid", alpha=1 / 6, beta=0.5),
    # As PyTorch's exporter writes it.
    "log_sigmoid": Composed(lambda op: lambda x: op.Log(op.Sigmoid(x))),
    # Elementwise arithmetic
    "rsqrt": Composed(lambda op: lambda x: op.Reciprocal(op.Sqrt(x))),
    "square": lambda op: lambda x: op.Mul(x, x),
    "clip": lambda op: lambda x: op.Clip(x, np.float32(-0.5), np.float32(0.5)),
    "cast_float16": kernels.cast(_FLOAT16),
    "cast_int32": kernels.cast(_INT32),
    "multiply_add": Composed(lambda op: lambda x, y, z: op.Add(op.Mul(x, y), z)),
    # Reductions
    "cumsum": lambda op: lambda x: op.CumSum(x, np.array(1, np.int64)),
    # Vectors and matrices
    "flatten": lambda op: lambda x: op.Reshape(x, np.array([-1], np.int64)),
    "outer": Composed(
        lambda op: lambda x, y: op.Mul(op.Unsqueeze(x, _SECOND), op.Unsqueeze(y, _FIRST))
    ),
    "linear": lambda op, n: lambda x, w, b: op.Gemm(x, w, b, transB=1),
    # Convolution
    **dict.fromkeys(CONVOLUTIONS, Laid(kernels.CONV, layout.CONV2D)),
    # Pooling
    # As exporters write the mean of an image, which Keras calls a pooling.
    "global_avg_pool": Laid(lambda op: lambda x: op.ReduceMean(x, _SPACE), layout.CHANNELS_FIRST),
    # Normalisation
    "batch_norm_inference": Laid(
        Call("BatchNormalization", epsilon=BATCH_EPSILON), layout.CHANNELS_FIRST
    ),
    "layer_norm": Call("LayerNormalization", axis=-1, epsilon=EPSILON),
    "instance_norm": Laid(Call("InstanceNormalization", epsilon=EPSILON), layout.CHANNELS_FIRST),
    # ONNX divides alpha by the number of channels.
    "lrn": Laid(
        Call("LRN", size=NEIGHBOURS, alpha=NEIGHBOURS * ALPHA, beta=BETA, bias=BIAS),
        layout.CHANNELS_FIRST,
    ),
    # Indexing
    "embedding": lambda op, n, d: lambda w, i: op.Gather(w, i, axis=0),
    # Shapes and orders of elements
    "tile": lambda op: lambda x: op.Tile(x, np.array([2, 3], np.int64)),
}
