"""TensorFlow: the framework, its operations, its training."""

from typing import Any

from fwbench.frameworks.results import AwaitedArrays


def awaited() -> AwaitedArrays:
    """Its tensors and variables; the CPU executes synchronously."""
    import tensorflow as tf

    def is_on_gpu(tensor: Any) -> bool:
        return "GPU" in tensor.device

    def wait(tensor: Any) -> None:
        if is_on_gpu(tensor):
            with tf.device(tensor.device):
                tf.raw_ops.SyncDevice()

    return AwaitedArrays((tf.Tensor, tf.Variable), wait, is_pending=is_on_gpu)
