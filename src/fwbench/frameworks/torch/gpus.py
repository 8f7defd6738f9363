"""PyTorch's copies between the host and a GPU."""

from __future__ import annotations

from operator import methodcaller
from typing import Any

import torch
from numpy.typing import NDArray

from fwbench.frameworks.copies import PINNED, Copies


class TorchCopies(Copies):
    """``Tensor.to``; with pinned memory it does not wait, and gives pinned memory, too.

    That is where PyTorch puts what it copies to the CPU without waiting (``_to_copy`` in
    aten/src/ATen/native/TensorConversions.cpp).

    Args:
        device: the GPU.
        pinned: whether the memory of the host is page-locked.
    """

    def __init__(self, device: str, *, pinned: bool) -> None:
        self._pinned = pinned
        # In C: a lambda would take a part of the time of short copies.
        self.to_device = methodcaller("to", device.replace("gpu", "cuda"), non_blocking=pinned)
        self.to_host = methodcaller("to", "cpu", non_blocking=pinned)

    def on_host(self, values: NDArray[Any], dtype: str) -> Any:
        """``torch.tensor``, pinned where that is asked for."""
        return torch.tensor(values, dtype=getattr(torch, dtype), pin_memory=self._pinned)

    def place(self, array: Any) -> str:
        """By the tensor's device; of one in the host's memory CUDA knows whether it is pinned."""
        if array.device.type == "cpu":
            return PINNED if array.is_pinned() else "cpu"
        return f"gpu:{array.device.index}"
