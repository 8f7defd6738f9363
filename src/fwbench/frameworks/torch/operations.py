"""PyTorch's functions for fwbench's operations, by family, where no path will do."""

from collections.abc import Callable
from functools import partial

from fwbench.frameworks import layout
from fwbench.frameworks.layout import Layout, axes, transposed_factors
from fwbench.frameworks.table import CONVOLUTIONS, Call, Composed, Laid, Table, paths_of
from fwbench.frameworks.torch import kernels
from fwbench.workloads.operation import Implementation
from fwbench.workloads.operations.normalisation import ALPHA, BETA, BIAS, NEIGHBOURS
from fwbench.workloads.operations.optimisers import BETA1, BETA2, DECAY, MOMENTUM, RHO, TINY
from fwbench.workloads.operations.random import DROPPED

_ADAM = {"betas": (BETA1, BETA2), "eps": TINY}

_ROWS = paths_of(__package__)

_OF_IMAGES = (
    *(layout.CHANNELS_FIRST, layout.CONV2D, layout.CONV2D_TRANSPOSED, layout.CONV3D),
    *(layout.PATCHES, layout.PIXEL_SHUFFLE),
)

#: Images, by the axes that PyTorch documents.
IMAGES: dict[str, Laid] = {
    **dict.fromkeys(CONVOLUTIONS, Laid(kernels.convolution("conv2d"), layout.CONV2D)),
    **{n: row for n, row in _ROWS.items() if isinstance(row, Laid) and row.layout in _OF_IMAGES},
    # PyTorch divides alpha by the number of channels.
    "lrn": Laid(
        Call(
            "nn.functional.local_response_norm",
            size=NEIGHBOURS,
            alpha=NEIGHBOURS * ALPHA,
            beta=BETA,
            k=BIAS,
        ),
        layout.CHANNELS_FIRST,
    ),
}

#: Optimisers with a fused form that is faster.
FUSED: dict[str, Callable[..., Implementation]] = {
    "momentum": partial(kernels.optimiser, "SGD", "momentum_buffer", momentum=MOMENTUM),
    "nesterov": partial(
        kernels.optimiser, "SGD", "momentum_buffer", momentum=MOMENTUM, nesterov=True
    ),
    "adam": partial(kernels.optimiser, "Adam", "exp_avg", "exp_avg_sq", **_ADAM),
    "adamw": partial(
        kernels.optimiser, "AdamW", "exp_avg", "exp_avg_sq", weight_decay=DECAY, **_ADAM
    ),
    "adagrad": partial(kernels.optimiser, "Adagrad", "sum", eps=TINY),
}

OPERATIONS: Table = {
    **_ROWS,
    **{name: kernels.laid(entry) for name, entry in IMAGES.items()},
    # New arrays that are not made of host data
    "arange": lambda torch, n: lambda x: torch.arange(n, dtype=torch.int32, device=x.device),
    # Elementwise arithmetic
    "multiply_add": lambda torch: lambda x, y, z: torch.addcmul(z, x, y),
    # Vectors and matrices
    # Transposed views, which BLAS reads as they are.
    "gemm_tn": lambda torch: lambda x, y: torch.matmul(x.T, y),
    "gemm_nt": lambda torch: lambda x, y: torch.matmul(x, y.T),
    "einsum": lambda torch: partial(torch.einsum, "bmk,bnk->bmn"),
    "linear": lambda torch, n: torch.nn.functional.linear,
    "slogdet": lambda torch: lambda x: torch.linalg.slogdet(x)[1],
    "lq": Laid(
        lambda torch: lambda x: torch.linalg.qr(x.T),
        Layout(place_results=transposed_factors, restore_results=transposed_factors),
    ),
    # Softmax and losses
    "ctc_loss": Laid(Composed(kernels.ctc_loss), axes("ntc->tnc")),
    # Indexing
    "gather_rows": lambda torch: lambda x, i: torch.index_select(x, 0, i),
    "embedding": lambda torch, n, d: lambda w, i: torch.nn.functional.embedding(i, w),
    "gather_elements": lambda torch: lambda x, i: torch.gather(x, 1, i),
    "pick": lambda torch: lambda x, i: torch.gather(x, 1, i[:, None])[:, 0],
    "gather_nd": Laid(lambda torch: lambda x, i: x[i[0], i[1]], axes("", "kc->ck")),
    "scatter_add": Composed(lambda _, n, d: lambda x, i: x.new_zeros((n, d)).index_add_(0, i, x)),
    "scatter_nd_update": lambda torch: lambda x, i, rows: torch.index_copy(x, 0, i, rows),
    "one_hot": lambda torch, d: Call("nn.functional.one_hot", num_classes=d)(torch),
    "boolean_mask": Composed(lambda torch: lambda x, mask: x.index_select(0, mask.nonzero()[:, 0])),
    # Sorting and searching
    # It has the order, too.
    "sort": lambda torch: lambda x: torch.sort(x, 1)[0],
    # Shapes and orders of elements
    "transpose": lambda torch: lambda x: x.T.contiguous(),
    "permute_nhwc_nchw": lambda torch: lambda x: x.permute(0, 3, 1, 2).contiguous(),
    "concat": lambda torch: lambda x, y: torch.cat([x, y], 1),
    "stack": lambda torch: lambda x, y: torch.stack([x, y], 1),
    "split": lambda torch: lambda x: [part.contiguous() for part in torch.chunk(x, 4, 1)],
    "slice": lambda torch, begin, end: lambda x: x[begin:end, begin:end].contiguous(),
    "strided_slice": lambda torch: lambda x: x[::2, ::3].contiguous(),
    "broadcast_to": lambda torch, n: lambda x: torch.broadcast_to(x, (n, n)).contiguous(),
    # Random numbers
    "random_uniform": kernels.drawn(lambda torch, n, **place: torch.rand(n, **place)),
    "random_normal": kernels.drawn(lambda torch, n, **place: torch.randn(n, **place)),
    "random_integers": lambda torch, n: (
        lambda like: torch.randint(100, (n,), dtype=torch.int32, device=like.device)
    ),
    "random_exponential": kernels.drawn(
        lambda torch, n, **place: torch.empty(n, **place).exponential_(2.0)
    ),
    "random_shuffle": Composed(
        lambda torch: lambda x: x.index_select(0, kernels.places(x, torch.int32))
    ),
    "random_categorical": lambda torch, n: lambda p: torch.multinomial(p, n, replacement=True),
    "dropout": Call("nn.functional.dropout", p=DROPPED),
    # Optimisers
    "sgd": kernels.optimiser("SGD", **kernels.selected()),
    **{name: step(**kernels.selected("fused")) for name, step in FUSED.items()},
    "rmsprop": kernels.optimiser(
        "RMSprop", "square_avg", alpha=RHO, eps=TINY, **kernels.selected()
    ),
    # No operation
    "noop": lambda torch: lambda x: x,
}
