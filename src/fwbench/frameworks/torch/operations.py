"""PyTorch's functions for fwbench's operations, by family, where no path will do."""

from collections.abc import Callable
from functools import partial

from fwbench.frameworks import layout
from fwbench.frameworks.layout import Layout, axes, transposed_factors
from fwbench.frameworks.table import CONVOLUTIONS, Call, Composed, Laid, Table, paths_of
from fwbench.frameworks.torch import formats, kernels
from fwbench.workloads.operation import Implementation
from fwbench.workloads.operations.normalisation import ALPHA, BETA, BIAS, NEIGHBOURS
from fwbench.workloads.operations.optimisers import BETA1, BETA2, DECAY, MOMENTUM, RHO, TINY
from fwbench.workloads.operations.random import DROPPED

_ADAM = {"betas": (BETA1, BETA2), "eps": TINY}

#: Images, by the axes that PyTorch documents.
IMAGES: dict[str, Laid] = {
    **dict.fromkeys(CONVOLUTIONS, Laid(kernels.convolution("conv2d"), layout.CONV2D)),
    "depthwise_conv2d": Laid(kernels.convolution("conv2d"), layout.CONV2D),
    "conv2d_transposed": Laid(kernels.convolution("conv_transpose2d"), layout.CONV2D_TRANSPOSED),
    "conv3d": Laid(kernels.convolution("conv3d"), layout.CONV3D),
    "max_pool2d": Laid(Call("nn.functional.max_pool2d", kernel_size=2), layout.CHANNELS_FIRST),
    "max_pool2d_3x3_s2": Laid(
        Call("nn.functional.max_pool2d", kernel_size=3, stride=2), layout.CHANNELS_FIRST
    ),
    "avg_pool2d": Laid(Call("nn.functional.avg_pool2d", kernel_size=2), layout.CHANNELS_FIRST),
    "global_avg_pool": Laid(
        Call("nn.functional.adaptive_avg_pool2d", output_size=1), layout.CHANNELS_FIRST
    ),
    "batch_norm_training": Laid(lambda torch: kernels.batch_norm, layout.CHANNELS_FIRST),
    "batch_norm_inference": Laid(lambda torch: kernels.batch_norm_inference, layout.CHANNELS_FIRST),
    "group_norm": Laid(lambda torch: kernels.group_norm, layout.CHANNELS_FIRST),
    "instance_norm": Laid(lambda torch: kernels.instance_norm, layout.CHANNELS_FIRST),
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
    "pad_constant": Laid(kernels.pad("constant"), layout.CHANNELS_FIRST),
    "pad_reflect": Laid(kernels.pad("reflect"), layout.CHANNELS_FIRST),
    "depth_to_space": Laid(
        Call("nn.functional.pixel_shuffle", upscale_factor=2), layout.PIXEL_SHUFFLE
    ),
    "resize_bilinear": Laid(kernels.resize("bilinear"), layout.CHANNELS_FIRST),
    "resize_nearest": Laid(kernels.resize("nearest"), layout.CHANNELS_FIRST),
    "im2col": Laid(kernels.im2col, layout.PATCHES),
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
    **paths_of(__package__),
    **{name: formats.laid(entry) for name, entry in IMAGES.items()},
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
