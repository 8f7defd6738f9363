"""``mx.profiler``: the times of operators, added up by MXNet itself.

Its engine runs operators of a hybridized block in bulks, which the profiler knows by one name made
of all of theirs; :mod:`fwbench.frameworks.mxnet.framework` switches bulks off before the import
where a case is to be profiled.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from pathlib import Path

import mxnet as mx

from fwbench.frameworks import profiler
from fwbench.frameworks.profiler import Operator, Prefixes, Profiler, class_of

#: How the gradient of an operator is named: by this and the operator.
_BACKWARD = "_backward_"

#: Events in what MXNet dumps; it begins and ends an object in a process' first and last dump only.
_EVENTS = re.compile(r" {4}\{\n.*\n {4}\}", re.DOTALL)

#: What the engine does in addition to operators.
_NO_OPERATORS = ("WaitForVar", "DeleteVariable", "ResourceParallelRandomSetSeed", "SetValueOp")


class MXNetProfiler(Profiler):
    """Times of operators by MXNet's profiler."""

    def profile(self, work: Callable[[], object], trace: Path) -> Sequence[Operator]:
        """From the table that MXNet adds up."""
        mx.profiler.set_config(
            profile_symbolic=True,
            profile_imperative=True,
            profile_memory=False,
            profile_api=False,
            aggregate_stats=True,
            filename=str(trace),
        )
        mx.profiler.set_state("run")
        work()
        mx.nd.waitall()
        mx.profiler.set_state("stop")
        table = json.loads(mx.profiler.dumps(reset=True, format="json"))
        mx.profiler.dump(finished=False)
        events = _EVENTS.search(trace.read_text(encoding="utf-8"))
        trace.write_text(f'{{"traceEvents": [{events[0] if events else ""}]}}', encoding="utf-8")
        milliseconds = table["Unit"]["Time"] == "ms"
        seconds = 1e-3 if milliseconds else 1e-6
        return [
            Operator(name, _class_of(name), row["Total"] * seconds, row["Count"])
            for name, row in table["Time"].get("operator", {}).items()
            if not name.startswith(_NO_OPERATORS)
        ]


def _class_of(name: str) -> str:
    """A gradient is of its operator's class."""
    return class_of(name.removeprefix(_BACKWARD), PREFIXES)


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
