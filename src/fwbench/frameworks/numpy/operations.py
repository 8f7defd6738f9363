"""NumPy's functions for fwbench's operations, by family: paths below ``np``."""

from __future__ import annotations

from functools import partial

import numpy as np

from fwbench.frameworks.layout import Layout, axes
from fwbench.frameworks.numpy import kernels
from fwbench.frameworks.table import CONVOLUTIONS, Call, Laid, Table, named
from fwbench.workloads.operations.normalisation import BATCH_EPSILON

_PADDING = ((0, 0), (1, 1), (2, 2), (0, 0))

copied = np.ascontiguousarray

OPERATIONS: Table = {
    # New arrays that are not made of host data
    "zeros_like": "zeros_like",
    "arange": lambda np, n: lambda x: np.arange(n, dtype=np.int32),
    # Activations
    "sigmoid": lambda np: kernels.sigmoid,
    "relu": lambda np: lambda x: np.maximum(x, 0),
    "tanh": "tanh",
    # A scalar 0.0 would keep float32, an array of zeros is not needed.
    "softplus": lambda np: lambda x: np.logaddexp(x, x.dtype.type(0)),
    "softsign": lambda np: kernels.softsign,
    "gelu_tanh": lambda np: kernels.gelu_tanh,
    "elu": lambda np: lambda x: np.where(x > 0, x, np.expm1(x)),
    "selu": lambda np: kernels.selu,
    "leaky_relu": lambda np: lambda x: np.where(x > 0, x, 0.25 * x),
    "silu": lambda np: lambda x: x / (1 + np.exp(-x)),
    "hard_sigmoid": lambda np: lambda x: np.clip(x / 6 + 0.5, 0, 1),
    "log_sigmoid": lambda np: lambda x: -np.logaddexp(-x, x.dtype.type(0)),
    # Elementwise arithmetic
    **named("abs", "negative", "sign", "exp", "expm1", "log", "log1p", "sqrt", "square"),
    **named("reciprocal", "sin", "cos", "arctan", "floor", "round", "isnan", "logical_not", "add"),
    **named("subtract", "multiply", "divide", "maximum", "minimum", "power", "mod", "hypot"),
    **named("arctan2", "greater", "equal", "logical_and", "where"),
    "rsqrt": lambda np: lambda x: 1 / np.sqrt(x),
    "clip": Call("clip", a_min=-0.5, a_max=0.5),
    "round_half_even": "round",
    "cast_float16": kernels.cast("float16"),
    "cast_int32": kernels.cast("int32"),
    "multiply_add": lambda np: kernels.multiply_add,
    "add_row": "add",
    # Reductions
    "sum": "sum",
    "sum_columns": Call("sum", axis=0),
    "sum_rows": Call("sum", axis=1),
    "mean": Call("mean", axis=1),
    "variance": Call("var", axis=1),
    "std": Call("std", axis=1),
    "max": Call("max", axis=1),
    "min": Call("min", axis=1),
    "prod": Call("prod", axis=1),
    "norm": "linalg.norm",
    "logsumexp": lambda np: kernels.logsumexp,
    "cumsum": Call("cumsum", axis=1),
    "any": Call("any", axis=1),
    "argmax": Call("argmax", axis=1),
    "argmin": Call("argmin", axis=1),
    # Vectors and matrices
    "dot": "dot",
    "gemm": "matmul",
    "flatten": "ravel",
    "l2_normalize": lambda np: kernels.l2_normalize,
    "gemv": "matmul",
    "outer": "outer",
    "gemm_nn": "matmul",
    # Transposed views, which BLAS reads as they are.
    **named("cholesky", "solve", "qr", "eigh", below="linalg"),
    "gemm_tn": lambda np: lambda x, y: np.matmul(x.T, y),
    "gemm_nt": lambda np: lambda x, y: np.matmul(x, y.T),
    "batch_gemm": "matmul",
    "einsum": lambda np: partial(np.einsum, "bmk,bnk->bmn"),
    "tensordot": Call("tensordot", axes=2),
    "linear": lambda np, n: lambda x, weight, bias: np.matmul(x, weight.T) + bias,
    "inverse": "linalg.inv",
    "slogdet": lambda np: lambda x: np.linalg.slogdet(x)[1],
    "svd_values": Call("linalg.svd", compute_uv=False),
    "svd": Call("linalg.svd", full_matrices=False),
    "lq": Laid(
        lambda np: lambda x: np.linalg.qr(x.T),
        Layout(restore_results=lambda results: [results[1].T, results[0].T]),
    ),
    # Convolution
    **dict.fromkeys(CONVOLUTIONS, kernels.convolution),
    "depthwise_conv2d": kernels.depthwise_conv2d,
    "conv2d_transposed": kernels.conv2d_transposed,
    "conv1d": kernels.convolution,
    "conv3d": kernels.convolution,
    # Pooling
    "max_pool2d": lambda np: lambda x: kernels.tiles(x).max(axis=(2, 4)),
    "max_pool2d_3x3_s2": lambda np: kernels.max_pool2d_3x3_s2,
    "avg_pool2d": lambda np: lambda x: kernels.tiles(x).mean(axis=(2, 4)),
    "global_avg_pool": Call("mean", axis=(1, 2), keepdims=True),
    "max_pool1d": lambda np: kernels.max_pool1d,
    # Normalisation
    "batch_norm_training": lambda np: kernels.normalisation(0, 1, 2, epsilon=BATCH_EPSILON),
    "batch_norm_inference": lambda np: kernels.batch_norm_inference,
    "layer_norm": lambda np: kernels.normalisation(-1),
    "rms_norm": lambda np: kernels.rms_norm,
    "group_norm": lambda np: kernels.group_norm,
    "instance_norm": lambda np: kernels.normalisation(1, 2),
    "lrn": lambda np: kernels.lrn,
    # Softmax and losses
    "softmax": lambda np: kernels.softmax,
    "log_softmax": lambda np: kernels.log_softmax,
    "cross_entropy": lambda np: lambda x, labels: np.mean(kernels.cross_entropies(x, labels)),
    "cross_entropy_sum": lambda np: lambda x, labels: np.sum(kernels.cross_entropies(x, labels)),
    "binary_cross_entropy": lambda np: kernels.binary_cross_entropy,
    "mse": lambda np: lambda x, y: np.mean(np.square(x - y)),
    "huber": lambda np: kernels.huber,
    "ctc_loss": lambda np, *_: kernels.ctc_loss,
    # Recurrent layers
    "dynamic_rnn": lambda np, units, steps, loop: kernels.dynamic_rnn,
    # Indexing
    "gather_rows": Call("take", axis=0),
    "embedding": lambda np, n, d: lambda w, i: w[i],
    "gather_elements": Call("take_along_axis", axis=1),
    "pick": lambda np: lambda x, i: np.take_along_axis(x, i[:, None], 1)[:, 0],
    "gather_nd": Laid(lambda np: lambda x, i: x[i[0], i[1]], axes("", "kc->ck")),
    "scatter_add": lambda np, n, d: lambda x, i: kernels.scatter_add(x, i, shape=(n, d)),
    "scatter_nd_update": lambda np: kernels.scatter_nd_update,
    "one_hot": lambda np, d: lambda i: kernels.one_hot(i, depth=d),
    "boolean_mask": lambda np: lambda x, mask: x[mask],
    "sequence_mask": lambda np, d: lambda x, lengths: x * (np.arange(d) < lengths[:, None]),
    # Sorting and searching
    "sort": Call("sort", axis=1),
    "argsort": Call("argsort", axis=1),
    "top_k": lambda np: kernels.top_k,
    "unique": "unique",
    "searchsorted": "searchsorted",
    # Shapes and orders of elements
    "transpose": lambda np: lambda x: copied(np.transpose(x)),
    "permute_nhwc_nchw": lambda np: lambda x: copied(np.transpose(x, (0, 3, 1, 2))),
    "concat": lambda np: lambda x, y: np.concatenate([x, y], 1),
    "stack": lambda np: lambda x, y: np.stack([x, y], 1),
    "split": lambda np: lambda x: [copied(part) for part in np.split(x, 4, 1)],
    "pad_constant": Call("pad", pad_width=_PADDING),
    "pad_reflect": Call("pad", pad_width=_PADDING, mode="reflect"),
    "tile": Call("tile", reps=(2, 3)),
    "repeat": Call("repeat", repeats=3, axis=1),
    "slice": lambda np, begin, end: lambda x: copied(x[begin:end, begin:end]),
    "strided_slice": lambda np: lambda x: copied(x[::2, ::3]),
    "flip": lambda np: lambda x: copied(np.flip(x, 1)),
    "roll": Call("roll", shift=3, axis=1),
    "broadcast_to": lambda np, n: lambda x: copied(np.broadcast_to(x, (n, n))),
    "depth_to_space": lambda np: kernels.depth_to_space,
    "tril": "tril",
    "diag_part": lambda np: lambda x: copied(np.diagonal(x)),
    # Random numbers
    "random_uniform": kernels.drawn(lambda rng, like, n: rng.random(n, like.dtype)),
    "random_normal": kernels.drawn(lambda rng, like, n: rng.standard_normal(n, like.dtype)),
    "random_bernoulli": kernels.drawn(lambda rng, p: rng.random(p.size, p.dtype) < p),
    "random_integers": kernels.drawn(lambda rng, like, n: rng.integers(100, size=n, dtype="int32")),
    "random_gamma": kernels.drawn(lambda rng, alpha: rng.standard_gamma(alpha, dtype=alpha.dtype)),
    "random_poisson": kernels.drawn(lambda rng, rates: rng.poisson(rates)),
    "random_exponential": kernels.drawn(
        lambda rng, like, n: rng.standard_exponential(n, like.dtype) / 2
    ),
    "random_shuffle": kernels.drawn(lambda rng, x: rng.permutation(x)),
    "random_categorical": kernels.drawn(lambda rng, p, n: rng.choice(4, n, p=p)),
    # Fourier transforms
    # NumPy 1 computes them in float64 in every dtype.
    "fft": "fft.fft",
    "rfft": "fft.rfft",
    "fft2": "fft.fft2",
    # Images
    "resize_nearest": lambda np, h, w: kernels.resize_nearest,
    "im2col": lambda np, h, w: kernels.im2col,
    # No operation
    "noop": lambda np: lambda x: x,
}
