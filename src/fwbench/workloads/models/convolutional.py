"""Networks of pictures: AlexNet, OverFeat, VGG, residual networks, GoogLeNet and Inception-v3.

AlexNet, OverFeat and VGG as in convnet-benchmarks (github.com/soumith/convnet-benchmarks,
tensorflow/benchmark_*.py), which Table 1 of the TensorFlow paper measures: without local response
normalization and dropout. A divisor divides the filters and units of every layer but the last.
"""

from collections.abc import Callable, Sequence
from functools import partial

from fwbench.workloads.models.graph import Network, of_size, sequential
from fwbench.workloads.models.layer import Layer, Value, he
from fwbench.workloads.models.layers import (
    Add,
    AveragePool,
    BatchNorm,
    Concat,
    Conv,
    Dense,
    Flatten,
    GlobalAveragePool,
    MaxPool,
    Relu,
)

#: Without normalization, a deep network needs the variance that ReLU takes away.
_conv = partial(Conv, initializer=he)
_dense = partial(Dense, initializer=he)
#: Before batch normalization, which has an offset in place of the bias.
_unbiased = partial(Conv, relu=False, bias=False, initializer=he)

#: Of the pictures of ImageNet.
CLASSES = 1000


def alexnet(divisor: int) -> Network:
    """AlexNet in one column (Krizhevsky 2014): 61,100,840 parameters at 224 x 224."""
    return sequential(
        *(_conv(64 // divisor, 11, stride=4, padding=2), MaxPool(3, 2)),
        *(_conv(192 // divisor, 5, same=True), MaxPool(3, 2)),
        *(_conv(filters // divisor, 3, same=True) for filters in (384, 256, 256)),
        MaxPool(3, 2),
        *_classifier(4096 // divisor, 4096 // divisor),
    )


def overfeat(divisor: int) -> Network:
    """OverFeat, the fast model (Sermanet et al. 2014): 145,920,872 parameters at 231 x 231."""
    return sequential(
        *(_conv(96 // divisor, 11, stride=4), MaxPool(2), _conv(256 // divisor, 5), MaxPool(2)),
        *(_conv(filters // divisor, 3, same=True) for filters in (512, 1024, 1024)),
        MaxPool(2),
        *_classifier(3072 // divisor, 4096 // divisor),
    )


def vgg_a(divisor: int) -> Network:
    """VGG with 11 layers (Simonyan and Zisserman 2015, A): 132,863,336 parameters at 224 x 224."""
    return _vgg((1, 1, 2, 2, 2), divisor)


def vgg16(divisor: int) -> Network:
    """VGG with 16 layers (Simonyan and Zisserman 2015, D): 138,357,544 parameters at 224 x 224."""
    return _vgg((2, 2, 3, 3, 3), divisor)


def _vgg(depths: Sequence[int], divisor: int) -> Network:
    layers: list[Layer] = []
    for depth, filters in zip(depths, (64, 128, 256, 512, 512), strict=True):
        layers += [_conv(filters // divisor, 3, same=True)] * depth
        layers.append(MaxPool(2))
    return sequential(*layers, *_classifier(4096 // divisor, 4096 // divisor))


def _classifier(*units: int) -> list[Layer]:
    return [Flatten(), *map(_dense, units), Dense(CLASSES, relu=False)]


#: Of the stages of ResNet-50: how many blocks, and the filters of their 3 x 3 convolutions.
_STAGES = ((3, 64), (4, 128), (6, 256), (3, 512))

#: A block's result has this many times the filters of its 3 x 3 convolution.
_EXPANSION = 4


@of_size
def resnet50(divisor: int, x: Value) -> Value:
    """ResNet-50 (He et al. 2016), "v1.5": 25,557,032 parameters, 4.09 G multiply-adds at 224.

    Where a block halves the image its 3 x 3 convolution does so, not the first 1 x 1.
    """
    return Dense(CLASSES, relu=False)(resnet50_features(divisor)(x))


@of_size
def resnet50_features(divisor: int, x: Value) -> Value:
    """ResNet-50 without its last layer: 2,048 features of a picture, 23,508,032 parameters."""
    x = MaxPool(3, 2, 1)(Relu()(_normalized_convolution(x, 64 // divisor, 7, stride=2)))
    for stage, (blocks, filters) in enumerate(_STAGES):
        for block in range(blocks):
            stride = 2 if stage and not block else 1
            x = _block(x, filters // divisor, stride, widens=not block)
    return GlobalAveragePool()(x)


def _block(x: Value, filters: int, stride: int, *, widens: bool) -> Value:
    shortcut = _normalized_convolution(x, _EXPANSION * filters, 1, stride) if widens else x
    x = Relu()(_normalized_convolution(x, filters, 1))
    x = Relu()(_normalized_convolution(x, filters, 3, stride))
    return Relu()(Add()(_normalized_convolution(x, _EXPANSION * filters, 1), shortcut))


def _normalized_convolution(x: Value, filters: int, kernel: int, stride: int = 1) -> Value:
    return BatchNorm()(_unbiased(filters, kernel, stride=stride, padding=kernel // 2)(x))


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
    """GoogLeNet (Szegedy et al. 2015) without auxiliary heads: 6,998,552 parameters."""
    return partial(_googlenet, _plain, 5, divisor)


def googlenet_bn(divisor: int) -> Network:
    """GoogLeNet with batch normalization and 3 x 3 for 5 x 5: 6,624,904 parameters.

    The network that torchvision has as ``googlenet``, without auxiliary heads.
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
    same = stride == 1 and padding is None
    convolution = _unbiased(filters, kernel, same=same, stride=stride, padding=padding or 0)
    return Relu()(BatchNorm(epsilon=1e-3)(convolution(x)))


def _googlenet(convolution: _Convolution, large: int, divisor: int, x: Value) -> Value:
    x = MaxPool(3, 2, 1)(convolution(x, 64 // divisor, 7, stride=2, padding=3))
    x = convolution(convolution(x, 64 // divisor, 1), 192 // divisor, 3)
    for modules in _MODULES:
        x = MaxPool(3, 2, 1)(x)
        for filters in modules:
            x = _module(convolution, large, [number // divisor for number in filters], x)
    return Dense(CLASSES, relu=False)(GlobalAveragePool()(x))


def _module(convolution: _Convolution, large: int, filters: list[int], x: Value) -> Value:
    one, before_three, three, before_five, five, after = filters
    return Concat()(
        convolution(x, one, 1),
        convolution(convolution(x, before_three, 1), three, 3),
        convolution(convolution(x, before_five, 1), five, large),
        convolution(MaxPool(3, 1, 1)(x), after, 1),
    )


@of_size
def inception_v3(divisor: int, x: Value) -> Value:
    """Inception-v3 (Szegedy et al. 2016) without the auxiliary head: 23,834,568 parameters."""

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
