"""JAX's functions for fwbench's operations, by family, where no path will do."""

from functools import partial

import jax.numpy as jnp
from jax import random

from fwbench.frameworks.jax import kernels
from fwbench.frameworks.layout import Layout, axes, transposed_factors
from fwbench.frameworks.table import CONVOLUTIONS, Call, Composed, Laid, Table, composed, paths_of
from fwbench.workloads.operations.normalisation import BATCH_EPSILON
from fwbench.workloads.operations.optimisers import DECAY

POSITIONS_FIRST = axes(*["bhtd->bthd"] * 3, results=["bhtd->bthd"])

OPERATIONS: Table = {
    **paths_of(__package__),
    # New arrays that are not made of host data
    "arange": lambda jax, n: lambda x: jax.numpy.arange(n, dtype="int32"),
    # Elementwise arithmetic
    "multiply_add": Composed(lambda jax: lambda x, y, z: x * y + z),
    # Vectors and matrices
    **composed(kernels.l2_normalize),
    # XLA has cuBLASLt compute it, with a scale of 1 for either factor.
    "scaled_gemm": kernels.contraction(1, 1, preferred_element_type=jnp.bfloat16),
    "einsum": lambda jax: partial(jax.numpy.einsum, "bmk,bnk->bmn"),
    # Flax has the weights of a dense layer transposed.
    "linear": Laid(Composed(lambda jax, n: lambda x, w, b: jnp.dot(x, w) + b), axes("", "nk->kn")),
    "slogdet": lambda jax: lambda x: jax.numpy.linalg.slogdet(x)[1],
    "lq": Laid(
        lambda jax: lambda x: jax.numpy.linalg.qr(x.T),
        Layout(place_results=transposed_factors, restore_results=transposed_factors),
    ),
    # Convolution
    **dict.fromkeys(CONVOLUTIONS, kernels.convolution),
    # Pooling
    "max_pool2d": lambda jax: lambda x: kernels.max_pool(x, 2, 2),
    "max_pool2d_3x3_s2": lambda jax: lambda x: kernels.max_pool(x, 3, 3),
    "max_pool1d": lambda jax: lambda x: kernels.max_pool(x, 2),
    # Normalisation
    **composed(kernels.batch_norm_inference, kernels.rms_norm, kernels.group_norm, kernels.lrn),
    "batch_norm_training": Composed(
        lambda jax: kernels.normalisation(0, 1, 2, epsilon=BATCH_EPSILON)
    ),
    "layer_norm": Composed(lambda jax: kernels.normalisation(-1)),
    "instance_norm": Composed(lambda jax: kernels.normalisation(1, 2)),
    # Softmax and losses
    **composed(kernels.binary_cross_entropy, kernels.huber),
    "cross_entropy": Composed(lambda _: lambda x, i: jnp.mean(kernels.cross_entropies(x, i))),
    "cross_entropy_sum": Composed(lambda _: lambda x, i: jnp.sum(kernels.cross_entropies(x, i))),
    "mse": Composed(lambda jax: lambda x, y: jnp.mean(jnp.square(x - y))),
    # Attention; its arrays have the positions before the heads
    "attention": Laid(Composed(lambda jax: kernels.attention), POSITIONS_FIRST),
    "attention_causal": Laid(
        Composed(lambda jax: partial(kernels.attention, causal=True)), POSITIONS_FIRST
    ),
    # Recurrent layers
    "rnn": Composed(
        lambda jax, units: (
            lambda x, w, u, b: kernels.scanned(
                kernels.rnn_step, 1, x, w, b, (u,), kernels.zeros(x, units)
            )
        )
    ),
    "lstm": Composed(
        lambda jax, units: (
            lambda x, w, u, b: kernels.scanned(
                kernels.lstm_step, 4, x, w, b, (u,), (kernels.zeros(x, units),) * 2
            )
        )
    ),
    "gru": Composed(
        lambda jax, units: (
            lambda x, w, u, b, c: kernels.scanned(
                kernels.gru_step, 3, x, w, b, (u, c), kernels.zeros(x, units)
            )
        )
    ),
    "dynamic_rnn": Composed(
        lambda jax, units, steps, loop: partial(kernels.dynamic_rnn, kernels.LOOPS[loop])
    ),
    # Indexing
    "gather_rows": kernels.with_int32(Call("numpy.take", axis=0, mode="clip")),
    # As Flax's layer does.
    "embedding": kernels.with_int32(lambda jax, n, d: Call("numpy.take", axis=0)(jax)),
    "gather_elements": kernels.with_int32(Call("numpy.take_along_axis", axis=1, mode="clip")),
    "pick": kernels.with_int32(lambda jax: kernels.pick),
    "gather_nd": kernels.with_int32(lambda jax: lambda x, i: x[i[:, 0], i[:, 1]]),
    "scatter_add": kernels.with_int32(Composed(kernels.scatter_add)),
    "scatter_nd_update": kernels.with_int32(lambda jax: lambda x, i, rows: x.at[i].set(rows)),
    "one_hot": kernels.with_int32(lambda jax, d: Call("nn.one_hot", num_classes=d)(jax)),
    "boolean_mask": lambda jax: lambda x, mask: x[mask],
    "sequence_mask": kernels.with_int32(Composed(kernels.sequence_mask)),
    # Shapes and orders of elements
    "concat": lambda jax: lambda x, y: jax.numpy.concatenate([x, y], 1),
    "stack": lambda jax: lambda x, y: jax.numpy.stack([x, y], 1),
    "slice": lambda jax, begin, end: lambda x: jax.lax.slice(x, [begin] * 2, [end] * 2),
    "strided_slice": lambda jax: lambda x: x[::2, ::3],
    "broadcast_to": lambda jax, n: Call("numpy.broadcast_to", shape=(n, n))(jax),
    # Random numbers
    "random_uniform": kernels.drawn(lambda key, like, n: random.uniform(key, (n,), like.dtype)),
    "random_normal": kernels.drawn(lambda key, like, n: random.normal(key, (n,), like.dtype)),
    "random_bernoulli": kernels.drawn(random.bernoulli),
    "random_integers": kernels.drawn(
        lambda key, like, n: random.randint(key, (n,), 0, 100, "int32")
    ),
    "random_gamma": kernels.drawn(lambda key, alpha: random.gamma(key, alpha, dtype=alpha.dtype)),
    "random_poisson": kernels.drawn(random.poisson),
    "random_exponential": kernels.drawn(
        lambda key, like, n: random.exponential(key, (n,), like.dtype) / 2
    ),
    "random_shuffle": kernels.drawn(random.permutation),
    # Of one vector of probabilities; categorical draws a number for every category of each logits.
    "random_categorical": kernels.drawn(lambda key, p, n: random.choice(key, len(p), (n,), p=p)),
    "dropout": Composed(kernels.drawn(kernels.dropout)),
    # Optimisers
    **composed(kernels.sgd, kernels.momentum, kernels.nesterov, kernels.adam, kernels.rmsprop),
    **composed(kernels.adagrad, kernels.ftrl),
    "adamw": Composed(lambda jax: partial(kernels.adam, decay=DECAY)),
    # Images
    "resize_bilinear": lambda jax, h, w: lambda x: kernels.resize(x, h, w, "bilinear"),
    "resize_nearest": lambda jax, h, w: lambda x: kernels.resize(x, h, w, "nearest"),
    # No operation
    "noop": lambda jax: lambda x: x,
}
