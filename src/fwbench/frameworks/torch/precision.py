"""The precision of float32 on NVIDIA's GPUs: PyTorch has two interfaces for it, which must agree.

``allow_tf32`` is the older one; ``fp32_precision`` came with PyTorch 2.9. To read one of them is an
error where the other was set to something else ("CUDA semantics", section on TensorFloat-32), and
PyTorch's own compiler reads the older one. So both are set, the older one first, as it sets both.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from typing import Any

import torch

#: What else changes the precision or the algorithm of an operation on a GPU.
_SWITCHES: Mapping[str, Callable[[], Any]] = {
    "float32_matmul_precision": torch.get_float32_matmul_precision,
    "cudnn_benchmark": lambda: torch.backends.cudnn.benchmark,
    "cudnn_deterministic": lambda: torch.backends.cudnn.deterministic,
    "fp16_reduced_precision_reduction": lambda: (
        torch.backends.cuda.matmul.allow_fp16_reduced_precision_reduction
    ),
    "bf16_reduced_precision_reduction": lambda: (
        torch.backends.cuda.matmul.allow_bf16_reduced_precision_reduction
    ),
}


def set_tf32(*, allowed: bool) -> None:
    """Compute float32 on GPUs in TF32, or in float32, regardless of the environment.

    Args:
        allowed: whether in TF32.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that the older names will go
        torch.backends.cuda.matmul.allow_tf32 = allowed
        torch.backends.cudnn.allow_tf32 = allowed
    for place in _places().values():
        place.fp32_precision = "tf32" if allowed else "ieee"


def switches() -> dict[str, Any]:
    """The precision of float32 on GPUs, and what else changes precision or algorithm there.

    A setting that PyTorch refuses to tell, because its two interfaces were used against each other,
    is ``mixed``.
    """
    precisions = {f"{name}_precision": place.fp32_precision for name, place in _places().items()}
    return {**precisions, **{name: _setting(get) for name, get in _SWITCHES.items()}}


def _places() -> dict[str, Any]:
    """Settings with a precision each: products, convolutions, recurrent layers; none before 2.9.

    cuDNN computes the latter two in TF32 unless it is told not to.
    """
    cudnn = torch.backends.cudnn
    places = {
        "cuda_matmul": torch.backends.cuda.matmul,
        "cudnn_conv": getattr(cudnn, "conv", None),
        "cudnn_rnn": getattr(cudnn, "rnn", None),
    }
    return {name: place for name, place in places.items() if hasattr(place, "fp32_precision")}


def _setting(get: Callable[[], Any]) -> Any:
    try:
        return get()
    except RuntimeError:
        return "mixed"
