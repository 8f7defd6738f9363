"""JAX's functions for fwbench's operations, by family: paths below ``jax``."""

from __future__ import annotations

from functools import partial

import jax.numpy as jnp
from jax import random

from fwbench.frameworks.jax import kernels
from fwbench.frameworks.layout import Layout, axes, transposed_factors
from fwbench.frameworks.table import CONVOLUTIONS, Call, Composed, Laid, Table, composed, named
from fwbench.workloads.operations.normalisation import BATCH_EPSILON
from fwbench.workloads.operations.optimisers import DECAY

POSITIONS_FIRST = axes(*["bhtd->bthd"] * 3, results=["bhtd->bthd"])

_PADDING = ((0, 0), (1, 1), (2, 2), (0, 0))

OPERATIONS: Table = {
    # New arrays that are not made of host data
    "zeros_like": "numpy.zeros_like",
    "arange": lambda jax, n: lambda x: jax.numpy.arange(n, dtype="int32"),
    # Activations
    **named("sigmoid", "relu", "softplus", "elu", "selu", "silu", "hard_sigmoid", below="nn"),
    "log_sigmoid": "nn.log_sigmoid",
    "tanh": "numpy.tanh",
    "softsign": "nn.soft_sign",
    "gelu": Call("nn.gelu", approximate=False),
    "gelu_tanh": Call("nn.gelu", approximate=True),
    "leaky_relu": Call("nn.leaky_relu", negative_slope=0.25),
    # Elementwise arithmetic
    **named("abs", "negative", "sign", "exp", "expm1", "log", "log1p", "sqrt", below="numpy"),
    **named("square", "reciprocal", "sin", "cos", "arctan", "floor", "round", below="numpy"),
    **named("isnan", "logical_not", "add", "subtract", "multiply", "divide", below="numpy"),
    **named("maximum", "minimum", "power", "mod", "hypot", "arctan2", "greater", below="numpy"),
    **named("equal", "logical_and", "where", below="numpy"),
    **named("rsqrt", "erf", "lgamma", below="lax"),
    "erfinv": "lax.erf_inv",
    "clip": Call("numpy.clip", min=-0.5, max=0.5),
    "round_half_even": "numpy.round",
    "cast_float16": kernels.cast("float16"),
    "cast_bfloat16": kernels.cast("bfloat16"),
    "cast_int32": kernels.cast("int32"),
    "multiply_add": Composed(lambda jax: lambda x, y, z: x * y + z),
    "add_row": "numpy.add",
    # Reductions
    "sum": "numpy.sum",
    "sum_columns": Call("numpy.sum", axis=0),
    "sum_rows": Call("numpy.sum", axis=1),
    **named("mean", "std", "max", "min", "prod", "cumsum", "any", below="numpy", axis=1),
    **named("argmax", "argmin", "sort", "argsort", "flip", below="numpy", axis=1),
    "variance": Call("numpy.var", axis=1),
    "norm": "numpy.linalg.norm",
    "logsumexp": Call("nn.logsumexp", axis=1),
    # Vectors and matrices
    **composed(kernels.l2_normalize),
    **named("cholesky", "solve", "qr", "eigh", below="numpy.linalg"),
    "dot": "numpy.dot",
    "gemm": "numpy.matmul",
    "flatten": "numpy.ravel",
    "gemv": "numpy.matmul",
    "outer": "numpy.outer",
    "gemm_nn": "numpy.matmul",
    "gemm_tn": kernels.contraction(0, 0),
    "gemm_nt": "numpy.inner",
    # XLA has cuBLASLt compute it, with a scale of 1 for either factor.
    "scaled_gemm": kernels.contraction(1, 1, preferred_element_type=jnp.bfloat16),
    "batch_gemm": "numpy.matmul",
    "einsum": lambda jax: partial(jax.numpy.einsum, "bmk,bnk->bmn"),
    "tensordot": Call("numpy.tensordot", axes=2),
    # Flax has the weights of a dense layer transposed.
    "linear": Laid(Composed(lambda jax, n: lambda x, w, b: jnp.dot(x, w) + b), axes("", "nk->kn")),
    "triangular_solve": Call("scipy.linalg.solve_triangular", lower=True),
    "inverse": "numpy.linalg.inv",
    "slogdet": lambda jax: lambda x: jax.numpy.linalg.slogdet(x)[1],
    "svd_values": Call("numpy.linalg.svd", compute_uv=False),
    "svd": Call("numpy.linalg.svd", full_matrices=False),
    "lq": Laid(
        lambda jax: lambda x: jax.numpy.linalg.qr(x.T),
        Layout(place_results=transposed_factors, restore_results=transposed_factors),
    ),
    # Convolution
    **dict.fromkeys(CONVOLUTIONS, kernels.convolution),
    "depthwise_conv2d": kernels.convolution,
    "conv2d_transposed": kernels.conv2d_transposed,
    "conv1d": kernels.convolution,
    "conv3d": kernels.convolution,
    # Pooling
    "max_pool2d": lambda jax: lambda x: kernels.max_pool(x, 2, 2),
    "max_pool2d_3x3_s2": lambda jax: lambda x: kernels.max_pool(x, 3, 3),
    "avg_pool2d": Composed(lambda jax: kernels.avg_pool2d),
    "global_avg_pool": Call("numpy.mean", axis=(1, 2), keepdims=True),
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
    "softmax": "nn.softmax",
    "log_softmax": "nn.log_softmax",
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
    # Sorting and searching
    "top_k": Call("lax.top_k", k=5),
    "unique": "numpy.unique",
    "searchsorted": "numpy.searchsorted",
    # Shapes and orders of elements
    "transpose": "numpy.transpose",
    "permute_nhwc_nchw": Call("numpy.transpose", axes=(0, 3, 1, 2)),
    "concat": lambda jax: lambda x, y: jax.numpy.concatenate([x, y], 1),
    "stack": lambda jax: lambda x, y: jax.numpy.stack([x, y], 1),
    "split": Call("numpy.split", indices_or_sections=4, axis=1),
    "pad_constant": Call("numpy.pad", pad_width=_PADDING),
    "pad_reflect": Call("numpy.pad", pad_width=_PADDING, mode="reflect"),
    "tile": Call("numpy.tile", reps=(2, 3)),
    "repeat": Call("numpy.repeat", repeats=3, axis=1),
    "slice": lambda jax, begin, end: lambda x: jax.lax.slice(x, [begin] * 2, [end] * 2),
    "strided_slice": lambda jax: lambda x: x[::2, ::3],
    "roll": Call("numpy.roll", shift=3, axis=1),
    "broadcast_to": lambda jax, n: Call("numpy.broadcast_to", shape=(n, n))(jax),
    "depth_to_space": lambda jax: kernels.depth_to_space,
    "tril": "numpy.tril",
    "diag_part": "numpy.diagonal",
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
    # Fourier transforms
    **named("fft", "rfft", "fft2", below="numpy.fft"),
    # Images
    "resize_bilinear": lambda jax, h, w: lambda x: kernels.resize(x, h, w, "bilinear"),
    "resize_nearest": lambda jax, h, w: lambda x: kernels.resize(x, h, w, "nearest"),
    "im2col": Laid(lambda jax, h, w: kernels.im2col, kernels.PATCHES),
    # No operation
    "noop": lambda jax: lambda x: x,
}
