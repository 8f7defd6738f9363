"""PyTorch: the framework, its operations, its training."""

from typing import Any

from fwbench.frameworks.results import AwaitedArrays


def awaited() -> AwaitedArrays:
    """Its tensors; those on the CPU are there when the call returns."""
    import torch

    def is_pending(tensor: Any) -> bool:
        return tensor.device.type in ("cuda", "xpu", "mps")

    def wait(tensor: Any) -> None:
        if tensor.is_cuda:
            torch.cuda.current_stream(tensor.device).synchronize()
        elif tensor.device.type == "xpu":
            torch.xpu.synchronize(tensor.device)
        elif is_pending(tensor):
            torch.mps.synchronize()

    return AwaitedArrays(torch.Tensor, wait, is_pending=is_pending)
