"""``torch.profiler``: self times of operators, on the CPU or of the kernels that they launch."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import torch
from torch.profiler import ProfilerActivity, profile

from fwbench.frameworks import profiler
from fwbench.frameworks.profiler import Operator, Prefixes, Profiler


class TorchProfiler(Profiler):
    """Times of operators by PyTorch's profiler."""

    def __init__(self, device: str) -> None:
        self._on_gpu = device != "cpu"

    def profile(self, work: Callable[[], object], trace: Path) -> Sequence[Operator]:
        """With all that a step of an optimiser does as the optimiser's."""
        activities = [ProfilerActivity.CPU]
        if self._on_gpu:
            activities.append(ProfilerActivity.CUDA)
        with profile(activities=activities) as profiled:
            work()
        profiled.export_chrome_trace(str(trace))
        return [*self._operators(profiled.events())]

    def _operators(self, events: Any) -> Iterator[Operator]:
        for event in events:
            if event.device_type != torch.autograd.DeviceType.CPU:
                continue  # a kernel: its time is that of the operator which launched it
            time_us = event.self_device_time_total if self._on_gpu else event.self_cpu_time_total
            yield Operator(event.name, _class_of(event), time_us * 1e-6, 1)


def _class_of(event: Any) -> str:
    """Operators that an optimiser calls count as the optimiser's."""
    outer = event
    while outer is not None:
        if outer.name.startswith(OPTIMISER_RANGE):
            return profiler.OPTIMISER
        outer = outer.cpu_parent
    return profiler.class_of(event.name, PREFIXES)


#: What :class:`torch.optim.Optimizer` calls the range around its step, and zero_grad's.
OPTIMISER_RANGE = "Optimizer."

#: By class, how their names begin.
PREFIXES: Prefixes = {
    profiler.CONVOLUTION: (
        *("aten::_conv", "aten::conv", "aten::mkldnn_conv", "aten::cudnn_conv"),
        *("aten::slow_conv", "aten::thnn_conv", "aten::_slow_conv", "mkldnn::_convolution"),
        *("aten::_nnpack", "aten::im2col", "aten::col2im", "aten::miopen_conv"),
    ),
    profiler.MATMUL: (
        *("aten::mm", "aten::bmm", "aten::addmm", "aten::baddbmm", "aten::addmv", "aten::mv"),
        *("aten::matmul", "aten::linear", "aten::dot", "aten::einsum", "aten::addbmm"),
        *("aten::_addmm", "aten::mkldnn_linear", "mkldnn::_linear", "aten::tensordot"),
    ),
    profiler.FUSED: (
        *("aten::_scaled_dot_product", "aten::scaled_dot_product", "aten::_flash_attention"),
        *("aten::_efficient_attention", "aten::lstm", "aten::gru", "aten::rnn"),
        *("aten::mkldnn_rnn_layer", "aten::_cudnn_rnn", "aten::_thnn_fused", "aten::_fused"),
        *("Torch-Compiled Region", "CompiledFunction", "## Call CompiledFxGraph", "cpp_fused"),
        *("graph_", "triton_"),
    ),
    profiler.NORMALISATION: (
        *("aten::batch_norm", "aten::native_batch_norm", "aten::_batch_norm", "aten::cudnn_batch"),
        *("aten::layer_norm", "aten::native_layer_norm", "aten::group_norm", "aten::rms_norm"),
        *("aten::native_group_norm", "aten::instance_norm", "aten::_softmax", "aten::softmax"),
        "aten::_fused_rms_norm",
    ),
    profiler.POOLING: (
        *("aten::max_pool", "aten::avg_pool", "aten::adaptive", "aten::_adaptive"),
        *("aten::mkldnn_max_pool", "aten::mkldnn_avg_pool", "aten::mkldnn_adaptive"),
    ),
    profiler.LOSS: (
        *("aten::nll_loss", "aten::cross_entropy", "aten::log_softmax", "aten::_log_softmax"),
        *("aten::mse_loss", "aten::binary_cross_entropy", "aten::smooth_l1", "aten::huber_loss"),
        *("aten::_ctc_loss", "aten::ctc_loss", "aten::kl_div", "aten::l1_loss"),
    ),
    profiler.OPTIMISER: (OPTIMISER_RANGE, "aten::_fused_adam", "aten::_fused_sgd"),
    profiler.REDUCTION: (
        *("aten::sum", "aten::mean", "aten::amax", "aten::amin", "aten::argmax", "aten::argmin"),
        *("aten::max", "aten::min", "aten::prod", "aten::var", "aten::std", "aten::norm"),
        *("aten::linalg_vector_norm", "aten::cumsum", "aten::cumprod", "aten::logsumexp"),
        *("aten::any", "aten::all"),
    ),
    profiler.DATA_MOVEMENT: (
        *("aten::copy_", "aten::_to_copy", "aten::to", "aten::clone", "aten::contiguous"),
        *("aten::cat", "aten::_cat", "aten::stack", "aten::view", "aten::_unsafe_view"),
        *("aten::reshape", "aten::_reshape", "aten::transpose", "aten::t", "aten::permute"),
        *("aten::expand", "aten::as_strided", "aten::slice", "aten::select", "aten::narrow"),
        *("aten::unsqueeze", "aten::squeeze", "aten::flatten", "aten::split", "aten::chunk"),
        *("aten::index", "aten::gather", "aten::scatter", "aten::embedding", "aten::pad"),
        *("aten::constant_pad", "aten::empty", "aten::zeros", "aten::ones", "aten::full"),
        *("aten::fill_", "aten::zero_", "aten::resize", "aten::detach", "aten::alias"),
        *("aten::roll", "aten::flip", "aten::tril", "aten::triu", "aten::unbind", "detach"),
        *("aten::_pin_memory", "aten::pin_memory", "aten::lift", "aten::unfold", "aten::arange"),
        *("aten::new_", "aten::where", "aten::masked", "Memcpy", "Memset", "aten::repeat"),
        "aten::_embedding",
    ),
    profiler.ELEMENTWISE: (
        *("aten::add", "aten::sub", "aten::mul", "aten::div", "aten::neg", "aten::abs"),
        *("aten::relu", "aten::threshold", "aten::gelu", "aten::silu", "aten::sigmoid"),
        *("aten::tanh", "aten::exp", "aten::log", "aten::sqrt", "aten::rsqrt", "aten::pow"),
        *("aten::sin", "aten::cos", "aten::erf", "aten::clamp", "aten::reciprocal"),
        *("aten::square", "aten::sign", "aten::floor", "aten::ceil", "aten::round"),
        *("aten::addcmul", "aten::addcdiv", "aten::lerp", "aten::_foreach", "aten::elu"),
        *("aten::leaky_relu", "aten::softplus", "aten::hardtanh", "aten::native_dropout"),
        *("aten::dropout", "aten::bernoulli", "aten::maximum", "aten::minimum", "aten::eq"),
        *("aten::ne", "aten::gt", "aten::ge", "aten::lt", "aten::le", "aten::logical"),
        *("aten::bitwise", "aten::celu", "aten::selu", "aten::prelu", "aten::atan"),
        "aten::expm1",
    ),
}
