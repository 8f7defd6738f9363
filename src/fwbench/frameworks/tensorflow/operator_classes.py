"""The classes of TensorFlow's operators, by the types of their kernels."""

from __future__ import annotations

from fwbench.frameworks import profiler
from fwbench.frameworks.profiler import Prefixes

#: By class, how their names begin.
PREFIXES: Prefixes = {
    profiler.CONVOLUTION: (
        *("Conv2D", "Conv3D", "DepthwiseConv", "_FusedConv", "_MklConv", "_MklNativeConv"),
        *("_MklFusedConv", "_MklNativeFusedConv", "Conv1D", "Dilation2D", "_MklDepthwise"),
        *("_MklNativePadWithConv", "_FusedDepthwise", "_MklNativeDepthwise"),
    ),
    profiler.MATMUL: (
        *("MatMul", "BatchMatMul", "Einsum", "_FusedMatMul", "_MklMatMul", "_MklNativeMatMul"),
        *("_MklNativeFusedMatMul", "_MklFusedMatMul", "_MklBatchMatMul", "_FusedBatchMatMul"),
        *("_MklNativeBatchMatMul", "_MklFusedBatchMatMul", "SparseMatMul"),
    ),
    profiler.FUSED: ("CudnnRNN", "LSTMBlock", "_XlaRun", "XlaLaunch", "XlaCompile"),
    profiler.NORMALISATION: (
        *("FusedBatchNorm", "_FusedBatchNorm", "_MklFusedBatchNorm", "_MklNativeFusedBatchNorm"),
        *("LRN", "Softmax", "_MklLayerNorm", "_MklSoftmax", "_MklNativeSoftmax", "L2Loss"),
        "_MklNativeLRN",
    ),
    profiler.POOLING: (
        *("MaxPool", "AvgPool", "FractionalMaxPool", "_MklMaxPool", "_MklAvgPool"),
        *("_MklNativeMaxPool", "_MklNativeAvgPool"),
    ),
    profiler.LOSS: (
        *("SparseSoftmaxCrossEntropy", "SoftmaxCrossEntropy", "LogSoftmax", "CTCLoss", "NLLLoss"),
        "_MklLogSoftmax",
    ),
    profiler.OPTIMISER: ("ResourceApply", "ResourceSparseApply", "Apply", "_FusedApply"),
    profiler.REDUCTION: (
        *("Sum", "Mean", "Max", "Min", "Prod", "All", "Any", "ArgMax", "ArgMin", "BiasAddGrad"),
        *("Cumsum", "Cumprod", "TopK", "EuclideanNorm", "SegmentSum", "UnsortedSegment"),
    ),
    profiler.DATA_MOVEMENT: (
        *("Transpose", "Reshape", "Concat", "Split", "Slice", "StridedSlice", "Pack", "Unpack"),
        *("Pad", "MirrorPad", "Gather", "Scatter", "ResourceGather", "ResourceScatter", "Tile"),
        *("ExpandDims", "Squeeze", "Shape", "Cast", "Identity", "ReadVariable", "AssignVariable"),
        *("Fill", "ZerosLike", "OnesLike", "Const", "BroadcastTo", "OneHot", "Reverse", "Range"),
        *("_Arg", "_Retval", "_Send", "_Recv", "_HostSend", "_HostRecv", "NoOp", "Snapshot"),
        *("ConjugateTranspose", "_MklTranspose", "_MklNativeTranspose", "InvertPermutation"),
        *("TensorScatter", "DynamicStitch", "Where", "BroadcastGradientArgs", "BroadcastArgs"),
        *("AssignAdd", "AssignSub", "VarHandle", "SelectV2", "EnsureShape", "StopGradient"),
        *("ConcatOffset", "Size", "Rank", "VarIsInitialized"),
    ),
    profiler.ELEMENTWISE: (
        *("Add", "Sub", "Mul", "Div", "RealDiv", "BiasAdd", "Relu", "Sigmoid", "Tanh", "Exp"),
        *("Log", "Sqrt", "Rsqrt", "Square", "Neg", "Abs", "Pow", "Maximum", "Minimum", "Erf"),
        *("Elu", "Selu", "LeakyRelu", "Softplus", "Greater", "Less", "Equal", "NotEqual"),
        *("Logical", "Select", "Sign", "Floor", "Ceil", "Round", "Rint", "Reciprocal", "Inv"),
        *("DivNoNan", "Xdivy", "Sin", "Cos", "ClipByValue", "RandomUniform", "StatelessRandom"),
        *("_FusedBinary", "_MklAdd", "_MklNative", "SquaredDifference", "AddN", "Addons"),
        *("_UnaryOpsComposition", "FloorDiv", "FloorMod", "Gelu", "BitwiseAnd"),
    ),
}
