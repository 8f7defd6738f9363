"""Results of plain functions of TensorFlow."""

from typing import Any

import tensorflow as tf

from fwbench.frameworks.results import AwaitedArrays


def awaited() -> AwaitedArrays:
    """Its tensors and variables; the CPU executes synchronously."""
    return AwaitedArrays((tf.Tensor, tf.Variable), _wait, is_pending=_is_on_gpu)


def _is_on_gpu(tensor: Any) -> bool:
    return "GPU" in tensor.device


def _wait(tensor: Any) -> None:
    if _is_on_gpu(tensor):
        with tf.device(tensor.device):
            tf.raw_ops.SyncDevice()
