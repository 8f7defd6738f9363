"""NumPy's functions for fwbench's operations, by family, where no path will do."""

from functools import partial

from fwbench.frameworks.layout import Layout, axes
from fwbench.frameworks.numpy import kernels
from fwbench.frameworks.table import CONVOLUTIONS, Composed, Laid, Table, composed, paths_of
from fwbench.workloads.operations.normalisation import BATCH_EPSILON

OPERATIONS: Table = {
    **paths_of(__package__),
    # New arrays that are not made of host data
    "arange": lambda np, n: lambda x: np.arange(n, dtype=np.int32),
    # Activations
    **composed(kernels.sigmoid, kernels.softsign, kernels.selu),
    "relu": lambda np: lambda x: np.maximum(x, 0),
    "softplus": Composed(lambda np: lambda x: np.maximum(x, 0) + np.log1p(np.exp(-np.abs(x)))),
    # By sigmoid(2 y), which is (1 + tanh(y)) / 2.
    "gelu_tanh": Composed(
        lambda np: (
            lambda x: x / (1 + np.exp(x * (-1.5957691216057308 - 0.07135481627159744 * x * x)))
        )
    ),
    "elu": Composed(lambda np: lambda x: np.maximum(x, np.expm1(np.minimum(x, 0)))),
    "leaky_relu": Composed(lambda np: lambda x: np.maximum(x, 0.25 * x)),
    "silu": Composed(lambda np: lambda x: x / (1 + np.exp(-x))),
    "hard_sigmoid": Composed(lambda np: lambda x: (x / 6 + 0.5).clip(0, 1)),
    "log_sigmoid": Composed(lambda np: lambda x: np.minimum(x, 0) - np.log1p(np.exp(-np.abs(x)))),
    # Elementwise arithmetic
    "rsqrt": Composed(lambda np: lambda x: 1 / np.sqrt(x)),
    # Methods, which NumPy's functions of these names call by way of Python.
    "clip": lambda np: lambda x: x.clip(-0.5, 0.5),
    "multiply_add": Composed(lambda np: lambda x, y, z: x * y + z),
    # Vectors and matrices, and what is composed of reductions
    **composed(kernels.logsumexp, kernels.l2_normalize),
    "outer": lambda np: partial(np.einsum, "i,j->ij"),
    # Transposed views, which BLAS reads as they are.
    "gemm_tn": lambda np: lambda x, y: np.matmul(x.T, y),
    "gemm_nt": lambda np: lambda x, y: np.matmul(x, y.T),
    "einsum": lambda np: partial(np.einsum, "bmk,bnk->bmn"),
    "linear": Composed(lambda np, n: lambda x, weight, bias: np.matmul(x, weight.T) + bias),
    "slogdet": lambda np: lambda x: np.linalg.slogdet(x)[1],
    "lq": Laid(
        lambda np: lambda x: np.linalg.qr(x.T),
        Layout(restore_results=lambda results: [results[1].T, results[0].T]),
    ),
    # Convolution
    **dict.fromkeys((*CONVOLUTIONS, "conv1d", "conv3d"), Composed(kernels.convolution)),
    # Pooling
    **composed(kernels.max_pool2d, kernels.max_pool2d_3x3_s2, kernels.avg_pool2d),
    "max_pool1d": lambda np: lambda x: np.maximum(x[:, ::2], x[:, 1::2]),
    # Normalisation
    **composed(kernels.batch_norm_inference, kernels.layer_norm, kernels.rms_norm, kernels.lrn),
    "batch_norm_training": Composed(lambda np: kernels.normalisation(1, BATCH_EPSILON)),
    "group_norm": Composed(lambda np: kernels.normalisation(means=kernels.group_means)),
    "instance_norm": Composed(lambda np: kernels.normalisation()),
    # Softmax and losses
    **composed(kernels.softmax, kernels.log_softmax, kernels.binary_cross_entropy, kernels.huber),
    "cross_entropy": Composed(lambda np: lambda x, i: np.mean(kernels.cross_entropies(x, i))),
    "cross_entropy_sum": Composed(lambda np: lambda x, i: np.sum(kernels.cross_entropies(x, i))),
    # NumPy squares x - y where it is.
    "mse": Composed(lambda np: lambda x, y: ((x - y) ** 2).mean()),
    # Indexing
    "embedding": lambda np, n, d: lambda w, i: w.take(i, axis=0),
    "pick": lambda np: lambda x, i: x[np.arange(len(i)), i],
    "gather_nd": Laid(lambda np: lambda x, i: x[i[0], i[1]], axes("", "kc->ck")),
    "scatter_add": Composed(lambda np, n, d: lambda x, i: kernels.scatter_add(x, i, shape=(n, d))),
    "one_hot": Composed(lambda np, d: lambda i: kernels.one_hot(i, depth=d)),
    "boolean_mask": lambda np: lambda x, mask: x.compress(mask, axis=0),
    "sequence_mask": Composed(
        lambda np, d: (
            lambda x, lengths: x * (np.arange(d, dtype="i4") < lengths.astype("i4")[:, None])
        )
    ),
    # Shapes and orders of elements
    "transpose": lambda np: lambda x: x.T.copy(),
    "permute_nhwc_nchw": lambda np: lambda x: x.transpose(0, 3, 1, 2).copy(),
    "concat": lambda np: lambda x, y: np.concatenate([x, y], 1),
    "stack": lambda np: lambda x, y: np.stack([x, y], 1),
    "split": lambda np: lambda x: [part.copy() for part in np.split(x, 4, 1)],
    "slice": lambda np, begin, end: lambda x: x[begin:end, begin:end].copy(),
    "strided_slice": lambda np: lambda x: x[::2, ::3].copy(),
    "flip": lambda np: lambda x: x[:, ::-1].copy(),
    "broadcast_to": lambda np, n: lambda x: x.repeat(n, axis=0),
    "diag_part": lambda np: lambda x: x.diagonal().copy(),
    # Random numbers
    "random_uniform": kernels.drawn(lambda rng, like, n: rng.random(n, like.dtype)),
    "random_normal": kernels.drawn(lambda rng, like, n: rng.standard_normal(n, like.dtype)),
    "random_bernoulli": Composed(kernels.drawn(lambda rng, p: rng.random(p.size, p.dtype) < p)),
    "random_integers": kernels.drawn(lambda rng, like, n: rng.integers(100, size=n, dtype="int32")),
    "random_gamma": kernels.drawn(lambda rng, alpha: rng.standard_gamma(alpha, dtype=alpha.dtype)),
    "random_poisson": kernels.drawn(lambda rng, rates: rng.poisson(rates)),
    "random_exponential": kernels.drawn(
        lambda rng, like, n: rng.standard_exponential(n, like.dtype) / 2
    ),
    "random_shuffle": kernels.drawn(lambda rng, x: x[rng.permutation(len(x))]),
    "random_categorical": kernels.drawn(lambda rng, p, n: rng.choice(4, n, p=p)),
    # No operation
    "noop": lambda np: lambda x: x,
}
