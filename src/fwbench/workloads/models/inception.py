"""GoogLeNet, with and without batch normalization, and Inception-v3."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from fwbench.workloads.models.convolutional import CLASSES
from fwbench.workloads.models.graph import Network
from fwbench.workloads.models.initializers import he
from fwbench.workloads.models.layer import Value
from fwbench.workloads.models.layers import (
    AveragePool,
    BatchNorm,
    Concat,
    Conv,
    Dense,
    GlobalAveragePool,
    MaxPool,
    Relu,
)

#: A convolution and what always follows it: from a value, filters and kernel to the result.
_Convolution = Callable[..., Value]

#: Height and width, or one number for both.
Kernel = int | tuple[int, int]

#: Filters of the modules of GoogLeNet (Szegedy et al. 2015, Table 1), between poolings: 1 x 1;
#: before the 3 x 3, 3 x 3; before the 5 x 5, 5 x 5; after the pooling.
_MODULES = (
    ((64, 96, 128, 16, 32, 32), (128, 128, 192, 32, 96, 64)),
    (
        (192, 96, 208, 16, 48, 64),
        (160, 112, 224, 24, 64, 64),
        (128, 128, 256, 24, 64, 64),
        (112, 144, 288, 32, 64, 64),
        (256, 160, 320, 32, 128, 128),
    ),
    ((256, 160, 320, 32, 128, 128), (384, 192, 384, 48, 128, 128)),
)


def googlenet(divisor: int) -> Network:
    """GoogLeNet (Szegedy et al. 2015) without auxiliary heads: 6,998,552 parameters.

    Args:
        divisor: divides the filters of every convolution.
    """
    return partial(_googlenet, _plain, 5, divisor)


def googlenet_bn(divisor: int) -> Network:
    """GoogLeNet with batch normalization and 3 x 3 for 5 x 5: 6,624,904 parameters.

    The network that torchvision has as ``googlenet``, without auxiliary heads.

    Args:
        divisor: divides the filters of every convolution.
    """
    return partial(_googlenet, _normalized, 3, divisor)


def _plain(
    x: Value, filters: int, kernel: Kernel, stride: int = 1, padding: int | None = None
) -> Value:
    """A convolution that keeps the size of the image unless stride or padding are given."""
    same = stride == 1 and padding is None
    return Conv(filters, kernel, same=same, stride=stride, padding=padding or 0, initializer=he)(x)


def _normalized(
    x: Value, filters: int, kernel: Kernel, stride: int = 1, padding: int | None = None
) -> Value:
    """The same, and batch normalization in place of the bias."""
    convolution = Conv(
        filters,
        kernel,
        same=stride == 1 and padding is None,
        relu=False,
        stride=stride,
        padding=padding or 0,
        bias=False,
        initializer=he,
    )
    return Relu()(BatchNorm(epsilon=1e-3)(convolution(x)))


def _googlenet(convolution: _Convolution, large: int, divisor: int, x: Value) -> Value:
    x = MaxPool(3, 2, 1)(convolution(x, 64 // divisor, 7, stride=2, padding=3))
    x = convolution(convolution(x, 64 // divisor, 1), 192 // divisor, 3)
    for modules in _MODULES:
        x = MaxPool(3, 2, 1)(x)
        for filters in modules:
            x = _module(convolution, large, [one // divisor for one in filters], x)
    return Dense(CLASSES, relu=False)(GlobalAveragePool()(x))


def _module(convolution: _Convolution, large: int, filters: list[int], x: Value) -> Value:
    one, before_three, three, before_five, five, after = filters
    return Concat()(
        convolution(x, one, 1),
        convolution(convolution(x, before_three, 1), three, 3),
        convolution(convolution(x, before_five, 1), five, large),
        convolution(MaxPool(3, 1, 1)(x), after, 1),
    )


def inception_v3(divisor: int) -> Network:
    """Inception-v3 (Szegedy et al. 2016) without the auxiliary head: 23,834,568 parameters.

    Args:
        divisor: divides the filters of every convolution.
    """
    return partial(_inception_v3, divisor)


def _inception_v3(divisor: int, x: Value) -> Value:
    def conv(x: Value, filters: int, kernel: Kernel, **more: int) -> Value:
        return _normalized(x, filters // divisor, kernel, **more)

    x = conv(conv(x, 32, 3, stride=2), 32, 3, padding=0)
    x = MaxPool(3, 2)(conv(x, 64, 3))
    x = MaxPool(3, 2)(conv(conv(x, 80, 1), 192, 3, padding=0))
    for pooled in (32, 64, 64):
        x = _module_5x5(conv, pooled, x)
    x = _reduction_35(conv, x)
    for inner in (128, 160, 160, 192):
        x = _module_7x7(conv, inner, x)
    x = _reduction_17(conv, x)
    for _ in range(2):
        x = _module_fans(conv, x)
    return Dense(CLASSES, relu=False)(GlobalAveragePool()(x))


def _module_5x5(conv: _Convolution, pooled: int, x: Value) -> Value:
    return Concat()(
        conv(x, 64, 1),
        conv(conv(x, 48, 1), 64, 5),
        conv(conv(conv(x, 64, 1), 96, 3), 96, 3),
        conv(AveragePool(3, 1, 1)(x), pooled, 1),
    )


def _reduction_35(conv: _Convolution, x: Value) -> Value:
    return Concat()(
        conv(x, 384, 3, stride=2),
        conv(conv(conv(x, 64, 1), 96, 3), 96, 3, stride=2),
        MaxPool(3, 2)(x),
    )


def _module_7x7(conv: _Convolution, inner: int, x: Value) -> Value:
    single = conv(conv(conv(x, inner, 1), inner, (1, 7)), 192, (7, 1))
    double = conv(conv(conv(x, inner, 1), inner, (7, 1)), inner, (1, 7))
    double = conv(conv(double, inner, (7, 1)), 192, (1, 7))
    return Concat()(conv(x, 192, 1), single, double, conv(AveragePool(3, 1, 1)(x), 192, 1))


def _reduction_17(conv: _Convolution, x: Value) -> Value:
    square = conv(conv(x, 192, 1), 320, 3, stride=2)
    cross = conv(conv(conv(x, 192, 1), 192, (1, 7)), 192, (7, 1))
    return Concat()(square, conv(cross, 192, 3, stride=2), MaxPool(3, 2)(x))


def _module_fans(conv: _Convolution, x: Value) -> Value:
    single = conv(x, 384, 1)
    double = conv(conv(x, 448, 1), 384, 3)
    fans = [conv(y, 384, kernel) for y in (single, double) for kernel in ((1, 3), (3, 1))]
    return Concat()(conv(x, 320, 1), *fans, conv(AveragePool(3, 1, 1)(x), 192, 1))
