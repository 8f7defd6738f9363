"""MXNet's functions for fwbench's operations, by family, where no path will do."""

from functools import partial
from operator import itemgetter

from fwbench.frameworks import layout
from fwbench.frameworks.layout import Layout, axes, reset_first
from fwbench.frameworks.mxnet import kernels
from fwbench.frameworks.table import CONVOLUTIONS, Call, Composed, Laid, Table, paths_of
from fwbench.workloads.operations.normalisation import (
    ALPHA,
    BATCH_EPSILON,
    BETA,
    BIAS,
    EPSILON,
    GROUPS,
    NEIGHBOURS,
)
from fwbench.workloads.operations.optimisers import L1, MOMENTUM, RHO, TINY
from fwbench.workloads.operations.random import DROPPED

OPERATIONS: Table = {
    **paths_of(__package__),
    # New arrays that are not made of host data
    "arange": lambda F, n: lambda x: F.arange(n, dtype="int32", ctx=x.context),
    # Activations
    **kernels.composed(kernels.gelu_tanh, kernels.selu),
    "silu": Composed(lambda F: lambda x: x * F.Activation(x, act_type="sigmoid")),
    "hard_sigmoid": Call("hard_sigmoid", alpha=1 / 6, beta=0.5),
    "log_sigmoid": Composed(lambda F: lambda x: -F.Activation(-x, act_type="softrelu")),
    # Elementwise arithmetic
    "clip": Composed(lambda F: lambda x: F.maximum(F.minimum(x, 0.5), -0.5)),
    **{name: kernels.NumPyCall(name) for name in ("isnan", "logical_not", "greater", "equal")},
    # By which operator depends: broadcast_add of arrays, elemwise_add of symbols.
    "add": lambda F: lambda x, y: x + y,
    "where": Laid("where", kernels.as_numbers(1)),
    "multiply_add": Composed(lambda F: lambda x, y, z: x * y + z),
    # Reductions
    **kernels.composed(kernels.variance, kernels.norm, kernels.logsumexp),
    "std": Composed(lambda F: lambda x: F.sqrt(kernels.variance(F, x))),
    # Vectors and matrices
    "einsum": lambda F: kernels.of_numpy(partial(F.np.einsum, "bmk,bnk->bmn")),
    "linear": lambda F, n: partial(F.FullyConnected, num_hidden=n),
    "slogdet": lambda F: lambda x: F.linalg.slogdet(x)[1],
    # There are none without the vectors.
    "svd_values": lambda F: lambda x: kernels.of_numpy(F.np.linalg.svd)(x)[1],
    # What LQ is for rows, QR is for columns; np.linalg.qr is NumPy's.
    "qr": Laid("linalg.gelqf", axes("mn->nm", results=("mn->nm", "mn->nm"))),
    "lq": Laid(
        "linalg.gelqf", Layout(place_results=kernels.exchanged, restore_results=kernels.exchanged)
    ),
    "eigh": Laid(
        "linalg.syevd",
        Layout(place_results=kernels.placed_eigh, restore_results=kernels.restored_eigh),
    ),
    # Convolution
    **dict.fromkeys(CONVOLUTIONS, Laid(kernels.convolution, layout.CONV2D)),
    "conv2d_transposed": Laid(
        partial(kernels.convolution, operator="Deconvolution"), layout.CONV2D_TRANSPOSED
    ),
    # Normalisation
    # A momentum of 1 leaves its running statistics as they are; they begin with 0 and 1.
    "batch_norm_training": Laid(
        Call("BatchNorm", eps=BATCH_EPSILON, momentum=1.0, fix_gamma=False),
        kernels.with_vectors((None, None)),
    ),
    "batch_norm_inference": Laid(
        Call("BatchNorm", eps=BATCH_EPSILON, fix_gamma=False, use_global_stats=True),
        layout.CHANNELS_FIRST,
    ),
    "layer_norm": Call("LayerNorm", axis=-1, eps=EPSILON),
    **kernels.composed(kernels.rms_norm),
    "group_norm": Laid(
        kernels.bound(kernels.group_norm), kernels.with_vectors((GROUPS, GROUPS), (1, -1, 1, 1))
    ),
    "instance_norm": Laid(Call("InstanceNorm", eps=EPSILON), layout.CHANNELS_FIRST),
    # MXNet divides alpha by the number of channels.
    "lrn": Laid(
        Call("LRN", nsize=NEIGHBOURS, alpha=NEIGHBOURS * ALPHA, beta=BETA, knorm=BIAS),
        layout.CHANNELS_FIRST,
    ),
    # Softmax and losses
    **kernels.composed(kernels.cross_entropy, kernels.binary_cross_entropy),
    "cross_entropy_sum": Composed(lambda F: lambda x, i: -F.sum(F.pick(F.log_softmax(x), i))),
    "mse": Composed(lambda F: lambda x, y: F.mean(F.square(x - y))),
    "huber": Composed(lambda F: lambda x, y: F.mean(F.smooth_l1(x - y, scalar=1.0))),
    "ctc_loss": Laid(lambda F, *_: F.CTCLoss, axes("ntc->tnc")),
    # Attention
    **kernels.composed(kernels.attention, kernels.attention_causal),
    # Recurrent layers
    "gru": kernels.recurrent_layer("gru", biases=2, order=reset_first),
    "dynamic_rnn": Composed(lambda F, units, steps, loop: kernels.dynamic_rnn(F, steps, loop)),
    # Indexing
    "embedding": lambda F, n, d: lambda w, i: F.Embedding(i, w, input_dim=n, output_dim=d),
    "gather_nd": Laid("gather_nd", axes("", "kc->ck")),
    "one_hot": lambda F, d: Call("one_hot", depth=d)(F),
    "sequence_mask": lambda F, d: Call("SequenceMask", use_sequence_length=True, axis=1)(F),
    # Shapes and orders of elements
    **kernels.composed(kernels.split, kernels.roll),
    "tile": Composed(lambda F: lambda x: F.concat(*[F.concat(*[x] * 3, dim=1)] * 2, dim=0)),
    "slice": lambda F, begin, end: Call("slice", begin=(begin, begin), end=(end, end))(F),
    "strided_slice": Call("slice", begin=(None, None), end=(None, None), step=(2, 3)),
    "flip": Call("slice", begin=(None, None), end=(None, None), step=(1, -1)),
    "broadcast_to": lambda F, n: Call("broadcast_axis", axis=0, size=n)(F),
    "depth_to_space": Laid(kernels.bound(kernels.pixel_shuffle), layout.PIXEL_SHUFFLE),
    # Random numbers
    "random_normal": lambda F, n: (
        lambda like: F.np.random.normal(size=(n,), dtype=kernels.dtype_of(like)).as_nd_ndarray()
    ),
    "random_bernoulli": Composed(
        lambda F: lambda p: F.random_uniform(shape=p.shape, dtype=kernels.dtype_of(p)) < p
    ),
    "random_integers": lambda F, n: lambda like: F.random_randint(0, 100, shape=(n,)),
    "random_gamma": lambda F: (
        lambda alpha: F.sample_gamma(alpha, F.ones_like(alpha), dtype=kernels.dtype_of(alpha))
    ),
    "random_poisson": lambda F: (
        lambda rates: F.sample_poisson(rates, dtype=kernels.dtype_of(rates))
    ),
    "random_categorical": lambda F, n: lambda p: F.sample_multinomial(p, shape=n),
    "dropout": Call("Dropout", p=DROPPED, mode="always"),
    # Optimisers
    "sgd": kernels.optimiser("SGD", lambda _: None),
    "momentum": Laid(kernels.optimiser("SGD", itemgetter(0), momentum=MOMENTUM), kernels.VELOCITY),
    "nesterov": Laid(kernels.optimiser("NAG", itemgetter(0), momentum=MOMENTUM), kernels.VELOCITY),
    "adam": kernels.optimiser("Adam", **kernels.ADAM),
    "rmsprop": kernels.optimiser("RMSProp", gamma1=RHO, epsilon=TINY),
    "adagrad": kernels.optimiser("AdaGrad", itemgetter(0), eps=TINY),
    "ftrl": kernels.optimiser("Ftrl", lamda1=L1, beta=0.0),
    # No operation
    "noop": lambda F: lambda x: x,
}
