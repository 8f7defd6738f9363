"""MXNet on GPUs: copies from and to the host."""

from __future__ import annotations

from operator import methodcaller
from typing import Any

import mxnet as mx
from numpy.typing import NDArray

from fwbench.frameworks.copies import PINNED, Copies

#: MXNet's names of contexts.
_PLACES = {"cpu": "cpu", "cpu_pinned": PINNED}


class MXNetCopies(Copies):
    """``NDArray.copyto``, which makes a new array in a context.

    Args:
        pinned: whether the memory of the host is page-locked.
    """

    def __init__(self, gpu: Any, *, pinned: bool) -> None:
        self._host = mx.cpu_pinned() if pinned else mx.cpu()
        # In C: a lambda would take a part of the time of short copies.
        self.to_device = methodcaller("copyto", gpu)
        self.to_host = methodcaller("copyto", self._host)

    def on_host(self, values: NDArray[Any], dtype: str) -> Any:
        """``mx.nd.array`` in the context of the CPU, or of pinned memory."""
        return mx.nd.array(values, ctx=self._host, dtype=dtype)

    def place(self, array: Any) -> str:
        """By the array's context."""
        context = array.context
        return _PLACES.get(context.device_type) or f"{context.device_type}:{context.device_id}"
