"""The classes of MXNet's operators, by the names that ``mx.profiler`` shows."""

from __future__ import annotations

from fwbench.frameworks import profiler
from fwbench.frameworks.profiler import Prefixes

#: By class, how their names begin.
PREFIXES: Prefixes = {
    profiler.CONVOLUTION: ("Convolution", "Deconvolution", "sg_mkldnn_conv", "im2col", "col2im"),
    profiler.MATMUL: (
        *("FullyConnected", "dot", "batch_dot", "linalg_gemm", "_linalg_gemm", "_npi_matmul"),
        *("sg_mkldnn_fully_connected", "_npi_dot", "_npi_einsum", "khatri_rao", "_linalg_syrk"),
        "_contrib_interleaved_matmul",
    ),
    profiler.FUSED: ("RNN", "_FusedOp", "_FusedOpHelper"),
    profiler.NORMALISATION: (
        *("BatchNorm", "LayerNorm", "GroupNorm", "InstanceNorm", "L2Normalization", "LRN"),
        *("softmax", "Softmax", "SoftmaxActivation", "masked_softmax", "_contrib_BatchNorm"),
    ),
    profiler.POOLING: ("Pooling", "_contrib_AdaptiveAvgPooling2D", "UpSampling", "ROIPooling"),
    profiler.LOSS: (
        *("SoftmaxOutput", "log_softmax", "pick", "softmax_cross_entropy", "ctc_loss", "CTCLoss"),
        *("MakeLoss", "smooth_l1", "LinearRegressionOutput"),
    ),
    profiler.OPTIMISER: (
        *("sgd_", "adam_", "rmsprop", "ftrl_", "nag_", "lamb_", "multi_sgd", "multi_mp_sgd"),
        *("preloaded_multi", "signsgd", "signum", "mp_sgd", "mp_nag", "ftml", "adagrad"),
        *("_adamw", "_sparse_adagrad", "_contrib_group_adagrad", "rmspropalex"),
    ),
    profiler.REDUCTION: (
        *("sum", "mean", "max", "min", "prod", "nansum", "nanprod", "norm", "argmax", "argmin"),
        *("moments", "_np_sum", "_npi_mean", "topk", "cumsum"),
    ),
    profiler.DATA_MOVEMENT: (
        *("Concat", "Flatten", "Reshape", "reshape", "transpose", "slice", "SliceChannel", "stack"),
        *("expand_dims", "squeeze", "broadcast_to", "broadcast_like", "broadcast_axis", "tile"),
        *("take", "Embedding", "gather", "scatter", "_scatter", "one_hot", "Pad", "pad", "Cast"),
        *("_copy", "_copyto", "CopyCPU2CPU", "CopyGPU", "CopyCPU2GPU", "_zeros", "_ones", "_full"),
        *("zeros_like", "ones_like", "_set_value", "SwapAxis", "swapaxes", "repeat", "flip"),
        *("reverse", "where", "batch_take", "_slice", "_identity", "identity", "BlockGrad"),
        *("SequenceMask", "Reorder", "_arange", "_contrib_arange", "amp_cast", "space_to_depth"),
        *("depth_to_space", "split", "FullLike", "crop", "Crop"),
    ),
    profiler.ELEMENTWISE: (
        *("Activation", "LeakyReLU", "relu", "sigmoid", "tanh", "exp", "log", "sqrt", "rsqrt"),
        *("square", "abs", "elemwise_", "_plus", "_minus", "_mul", "_div", "_rdiv", "_rminus"),
        *("broadcast_", "_power", "_rpower", "erf", "clip", "Dropout", "_maximum", "_minimum"),
        *("negative", "sign", "softsign", "hard_sigmoid", "_equal", "_greater", "_lesser"),
        *("_not_equal", "add_n", "ElementWiseSum", "_grad_add", "_hypot", "_mod", "_npi_add"),
        *("sin", "cos", "tan", "arc", "floor", "ceil", "round", "rint", "reciprocal", "cbrt"),
        *("_contrib_div_sqrt_dim", "gelu", "_random", "_sample"),
    ),
}
