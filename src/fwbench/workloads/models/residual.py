"""Residual networks."""

from __future__ import annotations

from functools import partial

from fwbench.workloads.models.convolutional import CLASSES
from fwbench.workloads.models.graph import Network
from fwbench.workloads.models.initializers import he
from fwbench.workloads.models.layer import Value
from fwbench.workloads.models.layers import (
    Add,
    BatchNorm,
    Conv,
    Dense,
    GlobalAveragePool,
    MaxPool,
    Relu,
)

#: Of the stages of ResNet-50: how many blocks, and the filters of their 3 x 3 convolutions.
_STAGES = ((3, 64), (4, 128), (6, 256), (3, 512))

#: A block's result has so many times the filters of its 3 x 3 convolution.
_EXPANSION = 4


def resnet50(divisor: int) -> Network:
    """ResNet-50 (He et al. 2016), "v1.5": 25,557,032 parameters, 4.09 G multiply-adds at 224.

    Where a block halves the image its 3 x 3 convolution does so, not the first 1 x 1.

    Args:
        divisor: divides the filters of every convolution.
    """
    return partial(_resnet50, divisor)


def _resnet50(divisor: int, x: Value) -> Value:
    x = MaxPool(3, 2, 1)(Relu()(_normalized(x, 64 // divisor, 7, stride=2)))
    for stage, (blocks, filters) in enumerate(_STAGES):
        for block in range(blocks):
            stride = 2 if stage and not block else 1
            x = _block(x, filters // divisor, stride, widens=not block)
    return Dense(CLASSES, relu=False)(GlobalAveragePool()(x))


def _block(x: Value, filters: int, stride: int, *, widens: bool) -> Value:
    shortcut = _normalized(x, _EXPANSION * filters, 1, stride) if widens else x
    x = Relu()(_normalized(x, filters, 1))
    x = Relu()(_normalized(x, filters, 3, stride))
    return Relu()(Add()(_normalized(x, _EXPANSION * filters, 1), shortcut))


def _normalized(x: Value, filters: int, kernel: int, stride: int = 1) -> Value:
    convolution = Conv(
        filters,
        kernel,
        relu=False,
        stride=stride,
        padding=kernel // 2,
        bias=False,
        initializer=he,
    )
    return BatchNorm()(convolution(x))
