"""ONNX's implementations of operations that are more than a path, by family."""

from __future__ import annotations

from typing import Any

import numpy as np

from fwbench.frameworks.table import Call
from fwbench.workloads.operations.convolution import Window

# Elementwise arithmetic


def cast(to: int) -> Any:
    return lambda op: lambda x: op.Cast(x, to=to)


# Reductions


def reduction(operator: str, axis: int) -> Any:
    """A reduction, whose axes are an input."""
    axes = np.array([axis], np.int64)
    return lambda op: lambda x: getattr(op, operator)(x, axes, keepdims=0)


# Convolution


def convolving(operator: str) -> Any:
    """A convolution with the attributes of a window."""

    def implementation(op: Any, window: Window) -> Any:
        def convolution(x: Any, w: Any) -> Any:
            return getattr(op, operator)(
                x,
                w,
                strides=[window.stride] * window.rank,
                pads=[window.padding] * (2 * window.rank),
                dilations=[window.dilation] * window.rank,
                group=window.groups,
            )

        return convolution

    return implementation


CONV = convolving("Conv")


# Pooling


def pool(operator: str, size: int, stride: int, rank: int = 2) -> Call:
    return Call(operator, kernel_shape=[size] * rank, strides=[stride] * rank)


# Shapes and orders of elements


def slice_square(op: Any, begin: int, end: int) -> Any:
    begins, ends = np.array([begin] * 2, np.int64), np.array([end] * 2, np.int64)
    return lambda x: op.Slice(x, begins, ends)
