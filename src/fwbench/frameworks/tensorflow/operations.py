"""TensorFlow's functions for fwbench's operations, by family, where no path will do."""

from functools import partial

import numpy as np

from fwbench.frameworks.layout import Layout, axes, transposed_factors
from fwbench.frameworks.table import CONVOLUTIONS, Call, Composed, Laid, Table, composed, paths_of
from fwbench.frameworks.tensorflow import kernels
from fwbench.workloads.operations.normalisation import ALPHA, BETA, BIAS, NEIGHBOURS
from fwbench.workloads.operations.optimisers import BETA1, BETA2, DECAY, L1, MOMENTUM, RHO, TINY
from fwbench.workloads.operations.random import DROPPED

_DEPTHWISE = axes("", "hwio->hwoi")

LABELS = Layout(kernels.labels_as(np.int32), kernels.labels_as(np.int64))

#: Names of Keras' attributes.
_MOMENTS = "_momentums", "_velocities"

_ADAM = {"beta_1": BETA1, "beta_2": BETA2, "epsilon": TINY}

OPERATIONS: Table = {
    **paths_of(__package__),
    # New arrays that are not made of host data
    "arange": lambda tf, n: lambda x: tf.range(n, dtype=tf.int32),
    # Activations
    "hard_sigmoid": Composed(lambda tf: lambda x: tf.nn.relu6(x + 3.0) / 6.0),
    # Elementwise arithmetic
    "multiply_add": Composed(lambda tf: lambda x, y, z: x * y + z),
    # Vectors and matrices
    "dot": Composed(lambda tf: lambda x, y: tf.reduce_sum(x * y)),
    "outer": lambda tf: partial(tf.einsum, "i,j->ij"),
    "einsum": lambda tf: partial(tf.einsum, "bmk,bnk->bmn"),
    # Keras has the weights of a dense layer transposed.
    "linear": Laid(
        Composed(
            lambda tf, n: lambda x, weight, bias: tf.nn.bias_add(tf.linalg.matmul(x, weight), bias)
        ),
        axes("", "nk->kn"),
    ),
    "slogdet": lambda tf: lambda x: tf.linalg.slogdet(x)[1],
    "svd": Laid(
        "linalg.svd",
        Layout(place_results=kernels.exchanged_svd, restore_results=kernels.exchanged_svd),
    ),
    "lq": Laid(
        lambda tf: lambda x: tf.linalg.qr(tf.linalg.matrix_transpose(x)),
        Layout(place_results=transposed_factors, restore_results=transposed_factors),
    ),
    # Convolution
    **dict.fromkeys(CONVOLUTIONS, kernels.conv2d),
    "depthwise_conv2d": Laid(kernels.depthwise_conv2d, _DEPTHWISE),
    # Normalisation
    **composed(kernels.rms_norm, kernels.group_norm),
    "layer_norm": Composed(lambda tf: kernels.normalisation(-1)),
    "instance_norm": Composed(lambda tf: kernels.normalisation(1, 2)),
    "lrn": Call(
        "nn.local_response_normalization",
        depth_radius=NEIGHBOURS // 2,
        bias=BIAS,
        alpha=ALPHA,
        beta=BETA,
    ),
    # Softmax and losses
    **composed(kernels.cross_entropy, kernels.cross_entropy_sum, kernels.binary_cross_entropy),
    **composed(kernels.mse, kernels.huber),
    "ctc_loss": Laid(kernels.ctc_loss, LABELS),
    # Attention
    **composed(kernels.attention, kernels.attention_causal),
    # Recurrent layers
    "dynamic_rnn": Composed(lambda tf, units, steps, loop: kernels.dynamic_rnn(tf, units, loop)),
    # Indexing
    "embedding": lambda tf, n, d: tf.gather,
    "scatter_add": Laid(
        lambda tf, n, d: lambda x, i: tf.scatter_nd(i, x, (n, d)), kernels.COORDINATES
    ),
    "one_hot": lambda tf, d: Call("one_hot", depth=d)(tf),
    "sequence_mask": Composed(lambda tf, d: lambda x, i: x * tf.sequence_mask(i, d, x.dtype)),
    # Sorting and searching
    # A hash table, in the order of first occurrence; the other frameworks sort.
    "unique": lambda tf: lambda x: tf.unique(x)[0],
    # Shapes and orders of elements
    "concat": lambda tf: lambda x, y: tf.concat([x, y], 1),
    "stack": lambda tf: lambda x, y: tf.stack([x, y], 1),
    "slice": lambda tf, begin, end: lambda x: tf.slice(x, [begin] * 2, [end - begin] * 2),
    "strided_slice": lambda tf: lambda x: x[::2, ::3],
    "broadcast_to": lambda tf, n: Call("broadcast_to", shape=(n, n))(tf),
    # Random numbers
    "random_bernoulli": Composed(
        lambda tf: lambda p: tf.cast(tf.random.uniform(p.shape, dtype=p.dtype) < p, p.dtype)
    ),
    "random_integers": lambda tf, n: lambda like: tf.random.uniform((n,), 0, 100, tf.int32),
    "random_gamma": lambda tf: lambda alpha: tf.random.gamma((), alpha, dtype=alpha.dtype),
    "random_poisson": lambda tf: lambda rates: tf.random.poisson((), rates, dtype=rates.dtype),
    "random_categorical": Laid(
        lambda tf, n: lambda logits: tf.random.categorical(logits, n), kernels.LOGITS
    ),
    "dropout": Call("nn.dropout", rate=DROPPED),
    # Optimisers
    "momentum": Laid(kernels.optimiser("SGD", "momentums", momentum=MOMENTUM), kernels.VELOCITY),
    "nesterov": Laid(
        kernels.optimiser("SGD", "momentums", momentum=MOMENTUM, nesterov=True), kernels.VELOCITY
    ),
    "adam": kernels.optimiser("Adam", *_MOMENTS, **_ADAM),
    "adamw": kernels.optimiser("AdamW", *_MOMENTS, weight_decay=DECAY, **_ADAM),
    "rmsprop": kernels.optimiser("RMSprop", "_velocities", rho=RHO, epsilon=TINY),
    "adagrad": kernels.optimiser("Adagrad", "_accumulators", epsilon=TINY),
    "ftrl": kernels.optimiser("Ftrl", "_linears", "_accumulators", l1_regularization_strength=L1),
    # No operation
    "noop": lambda tf: lambda x: x,
}
