"""Results of plain functions of PyTorch."""

from typing import Any

import torch

from fwbench.frameworks.results import AwaitedArrays


def awaited() -> AwaitedArrays:
    """Its tensors; those on the CPU are there when the call returns."""
    return AwaitedArrays(torch.Tensor, _wait, is_pending=lambda tensor: bool(tensor.is_cuda))


def _wait(tensor: Any) -> None:
    if tensor.is_cuda:
        torch.cuda.current_stream(tensor.device).synchronize()
