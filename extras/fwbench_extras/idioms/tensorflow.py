"""Other public ways of TensorFlow to compute operations, and why they are not called."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial, reduce
from typing import Any

import tensorflow as tf

from fwbench.frameworks.layout import axes
from fwbench.frameworks.table import Call, Laid, Table
from fwbench.frameworks.tensorflow import kernels
from fwbench.frameworks.tensorflow.operations import LABELS, OPERATIONS
from fwbench.workloads.operations.normalisation import EPSILON
from fwbench.workloads.operations.optimisers import BETA1, BETA2, RATE, TINY
from fwbench_extras.idioms.table import beside, by


def gather_flat(x: Any, i: Any) -> Any:
    """Elements of rows by their places in the flattened matrix."""
    first = tf.range(x.shape[0], dtype=i.dtype)[:, None] * x.shape[1]
    return tf.gather(tf.reshape(x, [-1]), first + i)


def transposed_depth(x: Any) -> Any:
    """``tf.nn.depth_to_space`` of blocks of 2 x 2 by a transposition."""
    n, h, w, c = x.shape
    blocks = tf.transpose(tf.reshape(x, (n, h, w, 2, 2, c // 4)), (0, 1, 3, 2, 4, 5))
    return tf.reshape(blocks, (n, 2 * h, 2 * w, c // 4))


def slices(x: Any, extent: int) -> list[Any]:
    """The images that each position of square windows sees, which move by two."""
    rows, columns = ((size - extent) // 2 * 2 + 1 for size in x.shape[1:3])
    places = [(i, j) for i in range(extent) for j in range(extent)]
    return [x[:, i : i + rows : 2, j : j + columns : 2] for i, j in places]


def depthwise_of_slices(x: Any, w: Any) -> Any:
    around = tf.pad(x, ((0, 0), (1, 1), (1, 1), (0, 0)))
    rows, columns = x.shape[1:3]
    return tf.add_n(
        [
            around[:, i : i + rows, j : j + columns] * w[i, j, :, 0]
            for i in range(3)
            for j in range(3)
        ]
    )


def convolution_of_patches(x: Any, w: Any) -> Any:
    """A product of patches of 3 x 3 with the kernel; images keep their size."""
    ones = (1, 1, 1, 1)
    patches = tf.image.extract_patches(x, (1, 3, 3, 1), ones, ones, "SAME")
    return tf.tensordot(patches, tf.reshape(w, (-1, w.shape[-1])), 1)


def convolution_of_groups(tf: Any, window: Any) -> Any:
    def convolution(x: Any, w: Any) -> Any:
        groups = zip(*(tf.split(y, window.groups, -1) for y in (x, w)), strict=True)
        return tf.concat([tf.nn.conv2d(*group, 1, "SAME") for group in groups], -1)

    return convolution


def attention_by_einsum(q: Any, k: Any, v: Any) -> Any:
    scores = tf.einsum("bhqd,bhkd->bhqk", q * q.shape[-1] ** -0.5, k)
    return tf.einsum("bhqk,bhkd->bhqd", tf.nn.softmax(scores), v)


def raw_adam(tf: Any) -> Callable[..., None]:
    """By the kernel that TensorFlow 1's optimiser calls, whose corrections of the bias are 1."""

    def step(x: Any, g: Any, m: Any, v: Any) -> None:
        numbers = {"beta1_power": 0.0, "beta2_power": 0.0, "beta1": BETA1, "beta2": BETA2}
        numbers |= {"lr": RATE, "epsilon": TINY}
        tf.raw_ops.ResourceApplyAdam(
            var=x.handle,
            m=m.handle,
            v=v.handle,
            grad=g,
            **{name: tf.constant(number, g.dtype) for name, number in numbers.items()},
        )

    return step


_KERNELS = axes("", "hwio->hwoi")
_HEADS_LAST = axes(*["bhtd->bthd"] * 3, results=["bhtd->bthd"])

#: Other ways than the one of the table, by the operation.
_OTHERS: dict[str, Table] = {
    "hard_sigmoid": {"clip_by_value": by(lambda x: tf.clip_by_value(x / 6 + 0.5, 0.0, 1.0))},
    "log_sigmoid": {"log1p": by(lambda x: tf.minimum(x, 0.0) - tf.math.log1p(tf.exp(-tf.abs(x))))},
    "silu": {"x * sigmoid(x)": by(lambda x: x * tf.sigmoid(x))},
    "gelu_tanh": {
        "x * x * x": by(lambda x: x * tf.sigmoid(x * (1.5957691 + 0.0713548163 * x * x)))
    },
    "variance": {"moments": by(lambda x: tf.nn.moments(x, [1])[1])},
    "std": {"moments": by(lambda x: tf.sqrt(tf.nn.moments(x, [1])[1]))},
    "norm": {
        "reduce_euclidean_norm": "math.reduce_euclidean_norm",
        "global_norm": by(lambda x: tf.linalg.global_norm([x])),
    },
    "sum_columns": {"matvec": by(lambda x: tf.linalg.matvec(x, tf.ones_like(x[:, 0]), True))},
    "dot": {"tensordot": Call("tensordot", axes=1), "keras.ops.dot": "keras.ops.dot"},
    "outer": {"einsum": by(partial(tf.einsum, "i,j->ij")), "keras.ops.outer": "keras.ops.outer"},
    "einsum": {"matmul": Call("matmul", transpose_b=True)},
    "conv2d_3x3": {
        "keras.ops.conv": by(lambda x, w: tf.keras.ops.conv(x, w, padding="same")),
        "patches": by(convolution_of_patches),
    },
    "conv2d_1x1": {"tensordot": by(lambda x, w: tf.tensordot(x, w[0, 0], 1))},
    "conv2d_grouped": {"split": convolution_of_groups},
    "depthwise_conv2d": {
        "keras.ops.depthwise_conv": Laid(
            by(lambda x, w: tf.keras.ops.depthwise_conv(x, w, 1, "same")), _KERNELS
        ),
        "slices": Laid(by(depthwise_of_slices), _KERNELS),
    },
    "conv1d": {"conv2d": by(lambda x, w: tf.nn.conv2d(x[:, None], w[None], 1, "SAME")[:, 0])},
    "max_pool2d": {"slices": by(lambda x: reduce(tf.maximum, slices(x, 2)))},
    "max_pool2d_3x3_s2": {"slices": by(lambda x: reduce(tf.maximum, slices(x, 3)))},
    "avg_pool2d": {"slices": by(lambda x: tf.add_n(slices(x, 2)) / 4)},
    "max_pool1d": {"slices": by(lambda x: tf.maximum(x[:, ::2], x[:, 1::2]))},
    "global_avg_pool": {"avg_pool2d": by(lambda x: tf.nn.avg_pool2d(x, x.shape[1:3], 1, "VALID"))},
    "batch_norm_inference": {"batch_normalization": by(kernels.unfused_batch_norm)},
    "layer_norm": {"keras.ops": Call("keras.ops.layer_normalization", epsilon=EPSILON)},
    "cross_entropy": {
        "log_softmax": by(
            lambda x, i: -tf.reduce_mean(tf.gather(tf.nn.log_softmax(x), i, batch_dims=1))
        )
    },
    "binary_cross_entropy": {
        "softplus": by(lambda x, y: tf.reduce_mean(tf.nn.softplus(x) - x * y))
    },
    "mse": {"l2_loss": by(lambda x, y: tf.nn.l2_loss(x - y) * (2 / x.shape.num_elements()))},
    "huber": {"keras": by(lambda x, y: tf.reduce_mean(tf.keras.losses.huber(x, y)))},
    "ctc_loss": {"sparse labels": Laid(partial(kernels.ctc_loss, sparse=True), LABELS)},
    "attention": {
        "keras.ops": Laid("keras.ops.dot_product_attention", _HEADS_LAST),
        "einsum": by(attention_by_einsum),
    },
    "attention_causal": {
        "keras.ops": Laid(Call("keras.ops.dot_product_attention", is_causal=True), _HEADS_LAST)
    },
    "embedding": {"gather": lambda tf, n, d: tf.gather},
    "pick": {"gather_nd": by(lambda x, i: tf.gather_nd(x, i[:, None], 1))},
    "scatter_add": {
        "segment_sum": lambda tf, n, d: Call("math.unsorted_segment_sum", num_segments=n)(tf)
    },
    "boolean_mask": {"where": by(lambda x, mask: tf.gather(x, tf.where(mask)[:, 0]))},
    "gather_elements": {"flat": by(gather_flat)},
    "depth_to_space": {"transpose": by(transposed_depth)},
    "searchsorted": {
        "LowerBound": by(
            lambda x, y: tf.raw_ops.LowerBound(sorted_inputs=x[None], values=y[None])[0]
        )
    },
    "tile": {"concat": by(lambda x: tf.concat([tf.concat([x] * 3, 1)] * 2, 0))},
    "repeat": {
        "tile": by(lambda x: tf.reshape(tf.tile(x[..., None], (1, 1, 3)), (x.shape[0], -1)))
    },
    "diag_part": {"diag_part": "linalg.diag_part"},
    "im2col": {
        "slices": lambda tf, h, w: (
            lambda x: tf.concat([x[:, i : i + h, j : j + w] for i in range(3) for j in range(3)], 3)
        )
    },
    "adam": {"raw_ops": raw_adam},
}

#: Reasons to call a way that takes longer than another one.
_ACCEPTED = {
    "silu": "its gradient computes the sigmoid again, and keeps no array for it",
    "sum_columns": "the kernel is that of a bias's gradient",
    "conv2d_grouped": "Keras' layer calls it",
    **dict.fromkeys(
        ("depthwise_conv2d", "max_pool2d", "max_pool2d_3x3_s2", "max_pool1d", "avg_pool2d"),
        "Keras' layer calls it; slices are faster in some shapes under XLA alone",
    ),
    "adam": "users of TensorFlow 2 call Keras' optimisers, which do not call these kernels",
    "ctc_loss": "Keras calls it so; with sparse labels gradients are off by 5e-5, and XLA fails",
    "diag_part": "outside of XLA its gradient takes an eighth of the time",
    "scatter_add": "with a gradient it takes two thirds of the time",
    "norm": "XLA does not compile the kernel, and global_norm is for gradients of a model",
    "mse": "Keras' loss is the mean of squares",
    "global_avg_pool": "Keras' layer of this name takes the mean",
}

IDIOMS = beside(
    OPERATIONS,
    "TensorFlow's documentation or Keras' layers call it",
    _OTHERS,
    _ACCEPTED,
    "TensorFlow's own function for it; the other is a formula",
)
