"""Plain convolutional networks: AlexNet, OverFeat, VGG.

Layers as in convnet-benchmarks (github.com/soumith/convnet-benchmarks, tensorflow/benchmark_*.py),
which Table 1 of the TensorFlow paper measures: without local response normalization and dropout.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from fwbench.workloads.models.graph import Network, sequential
from fwbench.workloads.models.initializers import he
from fwbench.workloads.models.layer import Layer
from fwbench.workloads.models.layers import Conv, Dense, Flatten, MaxPool

#: Without normalization, a deep network needs the variance that ReLU takes away.
_conv = partial(Conv, initializer=he)
_dense = partial(Dense, initializer=he)

#: Of the pictures of ImageNet.
CLASSES = 1000


def alexnet(divisor: int) -> Network:
    """AlexNet in one column (Krizhevsky 2014): 61,100,840 parameters at 224 x 224.

    Args:
        divisor: divides the filters and units of every layer but the last.
    """
    return sequential(
        _conv(64 // divisor, 11, stride=4, padding=2),
        MaxPool(3, 2),
        _conv(192 // divisor, 5, same=True),
        MaxPool(3, 2),
        _conv(384 // divisor, 3, same=True),
        _conv(256 // divisor, 3, same=True),
        _conv(256 // divisor, 3, same=True),
        MaxPool(3, 2),
        *_classifier(4096 // divisor, 4096 // divisor),
    )


def overfeat(divisor: int) -> Network:
    """OverFeat, the fast model (Sermanet et al. 2014): 145,920,872 parameters at 231 x 231.

    Args:
        divisor: divides the filters and units of every layer but the last.
    """
    return sequential(
        _conv(96 // divisor, 11, stride=4),
        MaxPool(2),
        _conv(256 // divisor, 5),
        MaxPool(2),
        _conv(512 // divisor, 3, same=True),
        _conv(1024 // divisor, 3, same=True),
        _conv(1024 // divisor, 3, same=True),
        MaxPool(2),
        *_classifier(3072 // divisor, 4096 // divisor),
    )


def vgg_a(divisor: int) -> Network:
    """VGG with 11 layers (Simonyan and Zisserman 2015, A): 132,863,336 parameters at 224 x 224.

    Args:
        divisor: divides the filters and units of every layer but the last.
    """
    return _vgg((1, 1, 2, 2, 2), divisor)


def vgg16(divisor: int) -> Network:
    """VGG with 16 layers (Simonyan and Zisserman 2015, D): 138,357,544 parameters at 224 x 224.

    Args:
        divisor: divides the filters and units of every layer but the last.
    """
    return _vgg((2, 2, 3, 3, 3), divisor)


def _vgg(depths: Sequence[int], divisor: int) -> Network:
    layers: list[Layer] = []
    for depth, filters in zip(depths, (64, 128, 256, 512, 512), strict=True):
        layers += [_conv(filters // divisor, 3, same=True)] * depth
        layers.append(MaxPool(2))
    return sequential(*layers, *_classifier(4096 // divisor, 4096 // divisor))


def _classifier(*units: int) -> list[Layer]:
    return [Flatten(), *map(_dense, units), Dense(CLASSES, relu=False)]
