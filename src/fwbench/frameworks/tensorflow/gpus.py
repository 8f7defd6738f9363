"""TensorFlow on GPUs: copies from and to the host."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import tensorflow as tf
from numpy.typing import NDArray

from fwbench.frameworks.copies import Copies

_HOST = "CPU:0"


def _identity_on(device: str) -> Callable[[Any], Any]:
    """TensorFlow copies an operation's inputs to the device that the operation is placed on."""

    def identity(array: Any) -> Any:
        with tf.device(device):
            return tf.identity(array)

    return identity


class TensorFlowCopies(Copies):
    """``tf.identity`` on the device that is copied to."""

    def __init__(self, device: str) -> None:
        self.to_device = _identity_on(device.upper())
        self.to_host = _identity_on(_HOST)

    def on_host(self, values: NDArray[Any], dtype: str) -> Any:
        """``tf.constant`` on the CPU; the device of the case is the scope's."""
        with tf.device(_HOST):
            return tf.constant(values, dtype=dtype)

    def place(self, array: Any) -> str:
        """By the device whose memory the tensor has."""
        kind, number = array.backing_device.rsplit(":", 2)[-2:]
        return "cpu" if kind == "CPU" else f"{kind.lower()}:{number}"
