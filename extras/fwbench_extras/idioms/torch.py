"""Other public ways of PyTorch to compute operations, and why they are not called."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import torch
from torch.nn import functional
from torch.nn.utils.rnn import PackedSequence, pack_padded_sequence, pad_packed_sequence

from fwbench.frameworks.layout import (
    CHANNELS_FIRST,
    CONV1D,
    CONV2D,
    PATCHES,
    PIXEL_SHUFFLE,
    SEQUENCE_CHANNELS_FIRST,
    Arrays,
    Layout,
    axes,
    transposed_factors,
)
from fwbench.frameworks.table import Call, Laid, Table
from fwbench.frameworks.torch import kernels
from fwbench.frameworks.torch.operations import FUSED, IMAGES, OPERATIONS
from fwbench.workloads.operation import Implementation
from fwbench.workloads.operations.normalisation import (
    ALPHA,
    BATCH_EPSILON,
    BIAS,
    EPSILON,
    NEIGHBOURS,
)
from fwbench.workloads.operations.optimisers import RHO, TINY
from fwbench.workloads.operations.random import DROPPED
from fwbench_extras.idioms.table import Idiom, Idioms, beside, by, creations


def remainder_by_fmod(x: Any, y: Any) -> Any:
    rest = torch.fmod(x, y)
    return torch.where(rest * y < 0, rest + y, rest)


def row_by_addr(x: Any, y: Any) -> Any:
    return torch.addr(x, x.new_ones(len(x)), y)


def prod_by_logs(x: Any) -> Any:
    signs = 1 - 2 * ((x < 0).sum(1) % 2)
    return signs * x.abs().log().sum(1).exp()


def logsumexp_by_hand(x: Any) -> Any:
    peaks = x.amax(1, keepdim=True)
    return (x - peaks).exp().sum(1).log() + peaks[:, 0]


def triangular_from_the_right(a: Any, b: Any) -> Any:
    """The transposed system, whose arrays lie in memory as LAPACK has them."""
    return torch.linalg.solve_triangular(a.mT, b.mT, upper=True, left=False).mT


def svd_by_eigh(x: Any) -> Any:
    squares, vectors = torch.linalg.eigh(x.mT @ x)
    values, vectors = squares.flip(0).sqrt(), vectors.flip(1)
    return x @ vectors / values, values, vectors.mT


def qr_by_cholesky(x: Any) -> Any:
    factor = torch.linalg.cholesky(x.mT @ x, upper=True)
    return torch.linalg.solve_triangular(factor, x, upper=True, left=False), factor


def pixels_by_linear(x: Any, w: Any) -> Any:
    return functional.linear(x.permute(0, 2, 3, 1), w[:, :, 0, 0]).permute(0, 3, 1, 2)


def sequence_as_image(_: Any, window: Any) -> Any:
    """An image of one row, with the channels last."""
    padding = (0, window.padding)
    return lambda x, w: (
        functional.conv2d(x.mT[:, :, None], w[:, :, None], padding=padding)[:, :, 0].mT
    )


def sequence_by_windows(_: Any, window: Any) -> Any:
    def convolution(x: Any, w: Any) -> Any:
        windows = functional.pad(x, (window.padding,) * 2).unfold(2, *window.kernel, 1)
        return torch.tensordot(w, windows, ([1, 2], [1, 3])).transpose(0, 1)

    return convolution


def largest_of_slices(x: Any) -> Any:
    y = torch.maximum(x[:, :, ::2], x[:, :, 1::2])
    return torch.maximum(y[..., ::2], y[..., 1::2])


def mean_of_slices(x: Any) -> Any:
    y = x[:, :, ::2] + x[:, :, 1::2]
    return 0.25 * (y[..., ::2] + y[..., 1::2])


def batch_norm_by_factors(x: Any, gamma: Any, beta: Any, mean: Any, variance: Any) -> Any:
    factor = gamma * (variance + BATCH_EPSILON).rsqrt()
    return torch.addcmul((beta - mean * factor)[:, None, None], x, factor[:, None, None])


def layer_norm_by_moments(x: Any, gamma: Any, beta: Any) -> Any:
    variance, mean = torch.var_mean(x, -1, correction=0, keepdim=True)
    return (x - mean) * (variance + EPSILON).rsqrt() * gamma + beta


def layers_as_groups(x: Any, gamma: Any, beta: Any) -> Any:
    """Each vector of channels as an image without pixels."""
    return functional.group_norm(x.flatten(0, 1), 1, gamma, beta, EPSILON).view_as(x)


def instances_as_groups(x: Any, gamma: Any, beta: Any) -> Any:
    return functional.group_norm(x, x.shape[1], gamma, beta, EPSILON)


def lrn_by_slices(x: Any) -> Any:
    squares = functional.pad(x * x, (0, 0, 0, 0, NEIGHBOURS // 2, NEIGHBOURS // 2))
    total: Any = sum(squares.narrow(1, i, x.shape[1]) for i in range(NEIGHBOURS))
    root = (BIAS + ALPHA * total).sqrt()
    return x / (root * root.sqrt())


def softmax_by_hand(x: Any) -> Any:
    y = (x - x.amax(-1, keepdim=True)).exp()
    return y / y.sum(-1, keepdim=True)


def entropies(x: Any, i: Any) -> Any:
    return x.logsumexp(1) - x.gather(1, i[:, None])[:, 0]


def square_by_dot(x: Any, y: Any) -> Any:
    distance = (x - y).flatten()
    return distance.dot(distance) / len(distance)


def huber_by_clamp(x: Any, y: Any) -> Any:
    distance = (x - y).abs()
    near = distance.clamp_max(1)
    return (near * (distance - 0.5 * near)).mean()


def integer_lengths(_: Any, n: int, times: int, labels: int) -> Any:
    lengths = (times,) * n, (labels,) * n
    return lambda x, y: functional.ctc_loss(x.log_softmax(-1), y, *lengths, reduction="none")


def attention_by_parts(q: Any, k: Any, v: Any) -> Any:
    return (q @ k.mT * q.shape[-1] ** -0.5).softmax(-1) @ v


def causal_by_parts(q: Any, k: Any, v: Any) -> Any:
    later = torch.ones(q.shape[-2], k.shape[-2], dtype=torch.bool, device=q.device).triu(1)
    return (q @ k.mT * q.shape[-1] ** -0.5).masked_fill(later, -math.inf).softmax(-1) @ v


def causal_by_mask(q: Any, k: Any, v: Any) -> Any:
    mask = torch.ones(q.shape[-2], k.shape[-2], dtype=torch.bool, device=q.device).tril()
    return functional.scaled_dot_product_attention(q, k, v, mask)


def heads_last(*, causal: bool) -> Laid:
    """Attention with the heads behind the positions in memory, as projections leave them."""
    layout = axes(*["bhtd->bthd"] * 3, results=["bhtd->bthd"])

    def attention(*arrays: Any) -> Any:
        q, k, v = (array.transpose(1, 2) for array in arrays)
        result = functional.scaled_dot_product_attention(q, k, v, is_causal=causal)
        return result.transpose(1, 2)

    return Laid(by(attention), layout)


def layer_by_cells(name: str, *, cells: bool = False) -> Implementation:
    """A loop of ``torch.<name>``."""

    def implementation(torch: Any, units: int) -> Any:
        def layer(x: Any, *weights: Any) -> Any:
            zeros = x.new_zeros(len(x), units)
            state, states = (zeros, zeros) if cells else zeros, []
            for now in x.unbind(1):
                state = getattr(torch, name)(now, state, *weights)
                states.append(state[0] if cells else state)
            return torch.stack(states, 1)

        return layer

    return implementation


def _swapped(arrays: Arrays) -> list[Any]:
    """Arrays, with the times of the first one before its sequences."""
    return [np.ascontiguousarray(arrays[0].swapaxes(0, 1)), *arrays[1:]]


def time_first(name: str, layout: Layout, *, cells: bool = False) -> Laid:
    """A layer as ``torch.nn``'s have it without ``batch_first``."""

    def implementation(torch: Any, units: int) -> Any:
        def layer(x: Any, *weights: Any) -> Any:
            zeros = x.new_zeros(1, x.shape[1], units)
            first = (zeros, zeros) if cells else zeros
            return getattr(torch, name)(x, first, weights, True, 1, 0.0, True, False, False)[0]

        return layer

    return Laid(
        implementation,
        Layout(
            lambda arrays: _swapped(layout.place(arrays)),
            lambda arrays: layout.restore(_swapped(arrays)),
            _swapped,
            _swapped,
        ),
    )


def packed_sequences(x: Any, w: Any, u: Any, b: Any, lengths: Any) -> Any:
    """The calls of ``nn.LSTM`` with a ``PackedSequence``."""
    packed = pack_padded_sequence(x, lengths.cpu(), batch_first=True, enforce_sorted=False)
    data, batches, order, back = packed
    zeros = x.new_zeros(1, len(x), w.shape[0])
    weights = w.T, u.T, b, torch.zeros_like(b)
    given = batches, (zeros, zeros), weights, True, 1, 0.0, True, False
    states, last, _ = torch.lstm(data, *given)
    packed = PackedSequence(states, batches, order, back)
    return pad_packed_sequence(packed, batch_first=True)[0], last[0].index_select(0, back)


def with_rows(x: Any, i: Any, rows: Any) -> Any:
    y = x.clone()
    y[i] = rows
    return y


def mask_by_fill(torch: Any, d: int) -> Any:
    return lambda x, n: x.masked_fill(torch.arange(d, device=x.device) >= n[:, None], 0)


def mask_by_product(torch: Any, d: int) -> Any:
    return lambda x, n: x * (torch.arange(d, device=x.device) < n[:, None])


def mask_of_int32(torch: Any, d: int) -> Any:
    def mask(x: Any, n: Any) -> Any:
        places = torch.arange(d, dtype=torch.int32, device=x.device)
        return torch.where(places < n.int()[:, None], x, 0.0)

    return mask


def sorted_top(x: Any) -> Any:
    values, places = x.sort(1, descending=True)
    return values[:, :5], places[:, :5]


def images_one_by_one(x: Any) -> Any:
    return torch.stack([image.flatten(0, 1).T.contiguous() for image in x]).unflatten(
        2, x.shape[1:3]
    )


def images_as_matrices(x: Any) -> Any:
    return x.flatten(1, 2).mT.contiguous().unflatten(2, x.shape[1:3])


def tiled_by_expand(x: Any) -> Any:
    n, m = x.shape
    return x[None, :, None].expand(2, n, 3, m).reshape(2 * n, 3 * m)


def pixels_by_expand(x: Any) -> Any:
    n, c, h, w = x.shape
    pixels = x.permute(0, 2, 3, 1)[:, :, None, :, None].expand(n, h, 2, w, 2, c)
    return pixels.reshape(n, 2 * h, 2 * w, c).permute(0, 3, 1, 2)


def blocks_by_permute(x: Any) -> Any:
    n, c, h, w = x.shape
    blocks = x.permute(0, 2, 3, 1).reshape(n, h, w, c // 4, 2, 2).permute(0, 1, 4, 2, 5, 3)
    return blocks.reshape(n, 2 * h, 2 * w, c // 4).permute(0, 3, 1, 2)


def patches_by_windows(x: Any) -> Any:
    return x.unfold(2, 3, 1).unfold(3, 3, 1).permute(0, 1, 4, 5, 2, 3).flatten(1, 3)


def _image(function: Any, layout: Layout = CHANNELS_FIRST) -> Laid:
    """A function of images in the format of the way that is called."""
    return kernels.laid(Laid(by(function), layout))


def _cast(dtype: str) -> Table:
    return {
        "copy_": lambda torch: lambda x: torch.empty_like(x, dtype=getattr(torch, dtype)).copy_(x)
    }


#: Of the transposed matrix.
_FACTORS = Layout(place_results=transposed_factors, restore_results=transposed_factors)

#: Other ways than PyTorch's own function for an operation, by the operation.
_FORMULAS: dict[str, Table] = {
    # New arrays
    "zeros_like": {
        "new_zeros": by(lambda x: x.new_zeros(x.shape)),
        "zeros": by(lambda x: torch.zeros(x.shape, dtype=x.dtype, device=x.device)),
    },
    "arange": {"int": lambda _, n: lambda x: torch.arange(n, device=x.device).int()},
    # Activations
    "sigmoid": {
        "exp": by(lambda x: 1 / (1 + torch.exp(-x))),
        "tanh": by(lambda x: 0.5 * torch.tanh(0.5 * x) + 0.5),
    },
    "relu": {
        "clamp_min": Call("clamp_min", min=0),
        "threshold": Call("nn.functional.threshold", threshold=0, value=0),
        "where": by(lambda x: torch.where(x > 0, x, 0)),
    },
    "tanh": {"sigmoid": by(lambda x: 2 * torch.sigmoid(2 * x) - 1)},
    "softplus": {
        "logaddexp": by(lambda x: torch.logaddexp(x, x.new_zeros(()))),
        "logsigmoid": by(lambda x: -functional.logsigmoid(-x)),
        "unguarded": by(lambda x: torch.log1p(torch.exp(x))),
    },
    "softsign": {"reciprocal": by(lambda x: x * (1 + x.abs()).reciprocal())},
    "gelu": {
        "erf": by(lambda x: 0.5 * x * (1 + torch.erf(x * math.sqrt(0.5)))),
        "ndtr": by(lambda x: x * torch.special.ndtr(x)),
    },
    "gelu_tanh": {
        "tanh": by(lambda x: 0.5 * x * (1 + torch.tanh(0.79788456 * (x + 0.044715 * x**3)))),
        "sigmoid": by(lambda x: x * torch.sigmoid(x * (1.59576912 + 0.07135481 * x * x))),
    },
    "elu": {
        "where": by(lambda x: torch.where(x > 0, x, torch.expm1(x))),
        "maximum": by(lambda x: torch.maximum(x, torch.expm1(x.clamp_max(0)))),
    },
    "selu": {
        "elu": by(lambda x: 1.05070099 * functional.elu(x, 1.67326324)),
        "where": by(lambda x: 1.05070099 * torch.where(x > 0, x, 1.67326324 * torch.expm1(x))),
    },
    "leaky_relu": {
        "prelu": by(lambda x: functional.prelu(x, x.new_full((1,), 0.25))),
        "maximum": by(lambda x: torch.maximum(x, 0.25 * x)),
        "where": by(lambda x: torch.where(x > 0, x, 0.25 * x)),
    },
    "silu": {
        "sigmoid": by(lambda x: x * torch.sigmoid(x)),
        "exp": by(lambda x: x / (1 + torch.exp(-x))),
    },
    "hard_sigmoid": {
        "relu6": by(lambda x: functional.relu6(x + 3) / 6),
        "clamp": by(lambda x: (x / 6 + 0.5).clamp(0, 1)),
    },
    "log_sigmoid": {
        "softplus": by(lambda x: -functional.softplus(-x)),
        "log": by(lambda x: torch.sigmoid(x).log()),
    },
    # Elementwise arithmetic
    "abs": {"maximum": by(lambda x: torch.maximum(x, -x)), "x * sign": by(lambda x: x * x.sign())},
    "negative": {"0 - x": by(lambda x: 0 - x), "x * -1": by(lambda x: x * -1)},
    "sign": {"comparisons": by(lambda x: (x > 0).to(x.dtype) - (x < 0).to(x.dtype))},
    "exp": {"exp2": by(lambda x: torch.exp2(x * math.log2(math.e)))},
    "expm1": {
        "exp(x) - 1": by(lambda x: torch.exp(x) - 1),
        "float64": by(lambda x: (torch.exp(x.double()) - 1).to(x.dtype)),
    },
    "log": {"log2": by(lambda x: torch.log2(x) * math.log(2))},
    "log1p": {
        "log(1 + x)": by(lambda x: torch.log(1 + x)),
        "atanh": by(lambda x: 2 * torch.atanh(x / (2 + x))),
        "float64": by(lambda x: torch.log(1 + x.double()).to(x.dtype)),
    },
    "sqrt": {"x ** 0.5": by(lambda x: x**0.5), "x * rsqrt": by(lambda x: x * torch.rsqrt(x))},
    "rsqrt": {"x ** -0.5": by(lambda x: x**-0.5), "1 / sqrt": by(lambda x: 1 / torch.sqrt(x))},
    "reciprocal": {"1 / x": by(lambda x: 1 / x), "x ** -1": by(lambda x: x**-1)},
    "sin": {"cos": by(lambda x: torch.cos(x - math.pi / 2))},
    "cos": {"sin": by(lambda x: torch.sin(x + math.pi / 2))},
    "arctan": {
        "atan2": by(lambda x: torch.atan2(x, x.new_ones(()))),
        "asin": by(lambda x: torch.asin(x * torch.rsqrt(1 + x * x))),
    },
    "erf": {
        "1 - erfc": by(lambda x: 1 - torch.erfc(x)),
        "ndtr": by(lambda x: 2 * torch.special.ndtr(x * math.sqrt(2)) - 1),
    },
    "erfinv": {"ndtri": by(lambda x: torch.special.ndtri(0.5 * x + 0.5) * math.sqrt(0.5))},
    "lgamma": {"multigammaln": Call("special.multigammaln", p=1)},
    "floor": {"x // 1": by(lambda x: x // 1), "-ceil(-x)": by(lambda x: -torch.ceil(-x))},
    **{
        name: {"floor(x + 0.5)": by(lambda x: torch.floor(x + 0.5))}
        for name in ("round", "round_half_even")
    },
    "isnan": {"x != x": by(lambda x: torch.ne(x, x))},
    "logical_not": {
        "~x": by(lambda x: ~x),
        "x == False": by(lambda x: torch.eq(x, False)),
        "x ^ True": by(lambda x: x ^ True),
    },
    "cast_float16": _cast("float16"),
    "cast_bfloat16": _cast("bfloat16"),
    "cast_int32": _cast("int32"),
    "square": {"x * x": by(lambda x: x * x), "x ** 2": by(lambda x: x**2)},
    "clip": {"hardtanh": Call("nn.functional.hardtanh", min_val=-0.5, max_val=0.5)},
    "add": {"sub(alpha=-1)": Call("sub", alpha=-1)},
    "subtract": {"add(alpha=-1)": Call("add", alpha=-1)},
    "multiply": {"einsum": by(lambda x, y: torch.einsum("i,i->i", x, y))},
    "divide": {"x * (1 / y)": by(lambda x, y: x * torch.reciprocal(y))},
    "maximum": {"fmax": "fmax", "where": by(lambda x, y: torch.where(x > y, x, y))},
    "minimum": {"fmin": "fmin", "where": by(lambda x, y: torch.where(x < y, x, y))},
    "power": {"exp(y * log(x))": by(lambda x, y: torch.exp(y * torch.log(x)))},
    "mod": {"floor": by(lambda x, y: x - torch.floor(x / y) * y), "fmod": by(remainder_by_fmod)},
    "hypot": {
        "sqrt": by(lambda x, y: torch.sqrt(x * x + y * y)),
        "complex": by(lambda x, y: torch.complex(x, y).abs()),
    },
    "arctan2": {"angle": by(lambda x, y: torch.complex(y, x).angle())},
    "greater": {"x - y > 0": by(lambda x, y: x - y > 0)},
    "equal": {"x - y == 0": by(lambda x, y: x - y == 0)},
    "logical_and": {"x & y": by(lambda x, y: x & y), "x * y": by(lambda x, y: x * y)},
    "multiply_add": {"x * y + z": by(lambda x, y, z: x * y + z)},
    "where": {"lerp": by(lambda c, x, y: torch.lerp(y, x, c.to(x.dtype)))},
    "add_row": {"addr": by(row_by_addr)},
    # Reductions
    "sum": {
        "rows first": by(lambda x: x.sum(1).sum()),
        "dot": by(lambda x: x.flatten().dot(x.new_ones(x.numel()))),
    },
    "sum_columns": {
        "ones @ x": by(lambda x: x.new_ones(len(x)) @ x),
        "einsum": by(lambda x: torch.einsum("ij->j", x)),
    },
    "sum_rows": {
        "x @ ones": by(lambda x: x @ x.new_ones(x.shape[1])),
        "einsum": by(lambda x: torch.einsum("ij->i", x)),
    },
    "mean": {
        "sum / n": by(lambda x: x.sum(1) / x.shape[1]),
        "product": by(lambda x: x @ x.new_full(x.shape[1:], 1 / x.shape[1])),
    },
    "variance": {
        "var_mean": by(lambda x: torch.var_mean(x, 1, correction=0)[0]),
        "mean of squares": by(lambda x: (x - x.mean(1, keepdim=True)).square().mean(1)),
    },
    "std": {"mean of squares": by(lambda x: (x - x.mean(1, keepdim=True)).square().mean(1).sqrt())},
    "max": {"max": by(lambda x: x.max(1).values)},
    "min": {"min": by(lambda x: x.min(1).values)},
    "prod": {"cumprod": by(lambda x: x.cumprod(1)[:, -1]), "logs": by(prod_by_logs)},
    "norm": {
        "dot": by(lambda x: x.flatten().dot(x.flatten()).sqrt()),
        "squares": by(lambda x: x.square().sum().sqrt()),
        "linalg.norm": "linalg.norm",
    },
    "logsumexp": {
        "log_softmax": by(lambda x: x[:, 0] - x.log_softmax(1)[:, 0]),
        "by hand": by(logsumexp_by_hand),
        "unguarded": by(lambda x: x.exp().sum(1).log()),
    },
    "cumsum": {"product": by(lambda x: x @ x.new_ones(x.shape[1], x.shape[1]).triu())},
    "argmax": {
        "max": by(lambda x: x.max(1).indices),
        "topk": by(lambda x: x.topk(1).indices[:, 0]),
    },
    "argmin": {
        "min": by(lambda x: x.min(1).indices),
        "topk": by(lambda x: x.topk(1, largest=False).indices[:, 0]),
    },
    "any": {"amax": Call("amax", dim=1), "sum > 0": by(lambda x: x.sum(1) > 0)},
    # Vectors and matrices
    "dot": {"sum(x * y)": by(lambda x, y: (x * y).sum()), "vdot": "vdot", "inner": "inner"},
    **{
        name: {"mm": "mm", "linear": by(lambda x, y: functional.linear(x, y.T))}
        for name in ("gemm", "gemm_nn")
    },
    "gemm_tn": {
        "mm": by(lambda x, y: torch.mm(x.T, y)),
        "einsum": by(lambda x, y: torch.einsum("km,kn->mn", x, y)),
    },
    "gemm_nt": {
        "linear": "nn.functional.linear",
        "mm": by(lambda x, y: torch.mm(x, y.T)),
        "inner": "inner",
    },
    "gemv": {"matmul": "matmul", "sum": by(lambda x, y: (x * y).sum(1))},
    "flatten": {
        "reshape": by(lambda x: x.reshape(-1)),
        "view": by(lambda x: x.view(-1)),
        "ravel": "ravel",
    },
    "batch_gemm": {
        "matmul": "matmul",
        "stack": by(lambda x, y: torch.stack([a @ b for a, b in zip(x, y, strict=True)])),
    },
    "tensordot": {
        "matmul": by(lambda x, y: x.flatten(1) @ y.flatten(0, 1)),
        "einsum": by(lambda x, y: torch.einsum("mkl,kln->mn", x, y)),
    },
    "linear": {
        "addmm": lambda *_: lambda x, w, b: torch.addmm(b, x, w.T),
        "matmul": lambda *_: lambda x, w, b: x @ w.T + b,
    },
    "l2_normalize": {
        "x / norm": by(lambda x: x / x.norm(dim=1, keepdim=True)),
        "rsqrt": by(lambda x: x * x.square().sum(1, keepdim=True).rsqrt()),
    },
    "outer": {"matmul": by(lambda x, y: x[:, None] @ y[None]), "ger": "ger"},
    "einsum": {"bmm": by(lambda x, y: torch.bmm(x, y.mT))},
    "cholesky": {
        "cholesky_ex": by(lambda x: torch.linalg.cholesky_ex(x).L),
        "upper": by(lambda x: torch.linalg.cholesky(x, upper=True).mT),
    },
    "solve": {
        "solve_ex": by(lambda a, b: torch.linalg.solve_ex(a, b).result),
        "lu_factor": by(lambda a, b: torch.linalg.lu_solve(*torch.linalg.lu_factor(a), b)),
        "inv": by(lambda a, b: torch.linalg.inv(a) @ b),
    },
    "triangular_solve": {"left=False": by(triangular_from_the_right), "solve": "linalg.solve"},
    "inverse": {
        "inv_ex": by(lambda x: torch.linalg.inv_ex(x).inverse),
        "solve": by(lambda x: torch.linalg.solve(x, torch.eye(len(x), device=x.device))),
    },
    "slogdet": {
        "logdet": "logdet",
        "lu_factor": by(lambda x: torch.linalg.lu_factor(x).LU.diagonal().abs().log().sum()),
    },
    "svd_values": {
        "svd": by(lambda x: torch.linalg.svd(x).S),
        "eigvalsh": by(lambda x: torch.linalg.eigvalsh(x.mT @ x).flip(0).sqrt()),
    },
    "svd": {"eigh": by(svd_by_eigh)},
    "qr": {"cholesky": by(qr_by_cholesky)},
    "lq": {"cholesky": Laid(by(lambda x: qr_by_cholesky(x.T)), _FACTORS)},
    "eigh": {"UPLO=U": Call("linalg.eigh", UPLO="U")},
    # Convolution and pooling
    "conv2d_1x1": {"linear": _image(pixels_by_linear, CONV2D)},
    "conv1d": {
        "conv2d of NHWC": Laid(sequence_as_image, axes("", "lio->oil")),
        "unfold": Laid(sequence_by_windows, CONV1D),
    },
    "max_pool2d": {"slices": _image(largest_of_slices)},
    "avg_pool2d": {"slices": _image(mean_of_slices)},
    "max_pool1d": {
        "max_pool2d of NHWC": by(
            lambda x: functional.max_pool2d(x.mT[:, :, None], (1, 2))[:, :, 0].mT
        ),
        "maximum": Laid(
            by(lambda x: torch.maximum(x[..., ::2], x[..., 1::2])), SEQUENCE_CHANNELS_FIRST
        ),
        "amax": Laid(by(lambda x: x.unflatten(2, (-1, 2)).amax(3)), SEQUENCE_CHANNELS_FIRST),
    },
    "global_avg_pool": {"mean": _image(lambda x: x.mean((2, 3), keepdim=True))},
    # Normalisation
    "batch_norm_inference": {"factors first": _image(batch_norm_by_factors)},
    "layer_norm": {"var_mean": by(layer_norm_by_moments), "group_norm": by(layers_as_groups)},
    "rms_norm": {
        "rsqrt": by(lambda x, g: x * (x.square().mean(-1, keepdim=True) + EPSILON).rsqrt() * g)
    },
    "instance_norm": {"group_norm": Laid(by(instances_as_groups), CHANNELS_FIRST)},
    "lrn": {"slices": _image(lrn_by_slices)},
    # Softmax and losses
    "softmax": {
        "by hand": by(softmax_by_hand),
        "log_softmax": by(lambda x: x.log_softmax(-1).exp()),
    },
    "log_softmax": {
        "logsumexp": by(lambda x: x - x.logsumexp(-1, keepdim=True)),
        "log": by(lambda x: x.softmax(-1).log()),
    },
    "cross_entropy": {
        "logsumexp": by(lambda x, i: entropies(x, i).mean()),
        "log_softmax": by(lambda x, i: -x.log_softmax(1).gather(1, i[:, None]).mean()),
    },
    "cross_entropy_sum": {
        "logsumexp": by(lambda x, i: entropies(x, i).sum()),
        "log_softmax": by(lambda x, i: -x.log_softmax(1).gather(1, i[:, None]).sum()),
    },
    "binary_cross_entropy": {
        "softplus": by(lambda x, y: (functional.softplus(x) - x * y).mean()),
        "of sigmoid": by(lambda x, y: functional.binary_cross_entropy(torch.sigmoid(x), y)),
    },
    "mse": {
        "square": by(lambda x, y: (x - y).square().mean()),
        "dot": by(square_by_dot),
        "norm": by(lambda x, y: torch.linalg.vector_norm(x - y).square() / x.numel()),
    },
    "huber": {"huber_loss": "nn.functional.huber_loss", "clamp": by(huber_by_clamp)},
    "ctc_loss": {"integer lengths": Laid(integer_lengths, axes("ntc->tnc"))},
    # Attention and recurrent layers
    "attention": {"softmax": by(attention_by_parts), "heads last": heads_last(causal=False)},
    "attention_causal": {
        "attn_mask": by(causal_by_mask),
        "softmax": by(causal_by_parts),
        "heads last": heads_last(causal=True),
    },
    "rnn": {
        "time first": time_first("rnn_tanh", kernels.RECURRENT),
        "cells": Laid(layer_by_cells("rnn_tanh_cell"), kernels.RECURRENT),
    },
    "lstm": {
        "time first": time_first("lstm", kernels.RECURRENT, cells=True),
        "cells": Laid(layer_by_cells("lstm_cell", cells=True), kernels.RECURRENT),
    },
    "gru": {
        "time first": time_first("gru", kernels.GRU),
        "cells": Laid(layer_by_cells("gru_cell"), kernels.GRU),
    },
    "dynamic_rnn": {"packed sequences": lambda *_, **__: packed_sequences},
    # Indexing
    "gather_rows": {
        "x[i]": by(lambda x, i: x[i]),
        "embedding": by(lambda x, i: functional.embedding(i, x)),
    },
    "embedding": {
        "x[i]": by(lambda w, i: w[i]),
        "index_select": by(lambda w, i: w.index_select(0, i.flatten()).unflatten(0, i.shape)),
    },
    "gather_elements": {
        "take_along_dim": Call("take_along_dim", dim=1),
        "x[rows, i]": by(lambda x, i: x[torch.arange(len(x), device=x.device)[:, None], i]),
    },
    "pick": {
        "x[rows, i]": by(lambda x, i: x[torch.arange(len(x), device=x.device), i]),
        "nll_loss": by(lambda x, i: -functional.nll_loss(x, i, reduction="none")),
    },
    "gather_nd": {
        "take": Laid(by(lambda x, i: x.take(i[0] * x.shape[1] + i[1])), axes("", "kc->ck"))
    },
    "scatter_add": {
        "scatter_add": lambda _, n, d: (
            lambda x, i: x.new_zeros(n, d).scatter_add(0, i[:, None].expand_as(x), x)
        ),
        "index_put": lambda _, n, d: (
            lambda x, i: x.new_zeros(n, d).index_put((i,), x, accumulate=True)
        ),
    },
    "scatter_nd_update": {
        "x[i] = rows": by(with_rows),
        "scatter": by(lambda x, i, rows: x.scatter(0, i[:, None].expand_as(rows), rows)),
    },
    "one_hot": {
        "scatter_": lambda _, d: lambda i: torch.zeros(len(i), d).scatter_(1, i[:, None], 1),
        "comparison": lambda _, d: (
            lambda i: (i[:, None] == torch.arange(d, device=i.device)).long()
        ),
    },
    "boolean_mask": {
        "x[mask]": by(lambda x, mask: x[mask]),
        "masked_select": by(
            lambda x, mask: x.masked_select(mask[:, None]).unflatten(0, (-1, x.shape[1]))
        ),
    },
    "sequence_mask": {
        "masked_fill": mask_by_fill,
        "product": mask_by_product,
        "int32": mask_of_int32,
    },
    # Sorting and searching
    "sort": {
        "stable": by(lambda x: torch.sort(x, dim=1, stable=True).values),
        "topk": by(lambda x: x.topk(x.shape[1], largest=False).values),
    },
    "argsort": {
        "stable": Call("argsort", dim=1, stable=True),
        "topk": by(lambda x: x.topk(x.shape[1], largest=False).indices),
    },
    "top_k": {"sort": by(sorted_top)},
    "unique": {
        "sorted=False": Call("unique", sorted=False),
        "unique_consecutive": by(lambda x: x.sort().values.unique_consecutive()),
        "bincount": by(lambda x: x.bincount().nonzero()[:, 0]),
    },
    "searchsorted": {
        "bucketize": by(lambda x, y: torch.bucketize(y, x)),
        "out_int32": Call("searchsorted", out_int32=True),
    },
    # Shapes and orders of elements
    "transpose": {
        "transpose_copy": Call("transpose_copy", dim0=0, dim1=1),
        "stack": by(lambda x: torch.stack(x.unbind(1))),
    },
    "permute_nhwc_nchw": {
        "matrices": by(images_as_matrices),
        "image by image": by(images_one_by_one),
        "stack": by(lambda x: torch.stack(x.unbind(3), 1)),
    },
    "concat": {
        "stack": by(lambda x, y: torch.stack([x, y], 1).flatten(1)),
        "hstack": by(lambda x, y: torch.hstack([x, y])),
    },
    "stack": {"cat": by(lambda x, y: torch.cat([x, y], 1).unflatten(1, (2, -1)))},
    "split": {
        "one copy": by(lambda x: x.unflatten(1, (4, -1)).transpose(0, 1).contiguous().unbind()),
        "split_copy": by(lambda x: torch.split_copy(x, x.shape[1] // 4, 1)),
    },
    "tile": {
        "cat": by(lambda x: torch.cat([torch.cat([x] * 3, 1)] * 2)),
        "expand": by(tiled_by_expand),
    },
    "repeat": {
        "expand": by(lambda x: x[:, :, None].expand(-1, -1, 3).flatten(1)),
        "stack": by(lambda x: torch.stack([x] * 3, 2).flatten(1)),
    },
    "slice": {
        "narrow": lambda _, begin, end: (
            lambda x: x.narrow(0, begin, end - begin).narrow(1, begin, end - begin).contiguous()
        ),
        "pad": lambda _, begin, end: (
            lambda x: functional.pad(x, (-begin, end - x.shape[1], -begin, end - len(x)))
        ),
    },
    "strided_slice": {
        "columns first": by(lambda x: x[:, ::3][::2].contiguous()),
        "index_select": by(
            lambda x: x[::2].index_select(1, torch.arange(0, x.shape[1], 3, device=x.device))
        ),
    },
    "flip": {
        "index_select": by(
            lambda x: x.index_select(1, torch.arange(x.shape[1] - 1, -1, -1, device=x.device))
        )
    },
    "roll": {"cat": by(lambda x: torch.cat([x[:, -3:], x[:, :-3]], 1))},
    "broadcast_to": {
        "expand": lambda _, n: lambda x: x.expand(n, n).contiguous(),
        "repeat": lambda _, n: lambda x: x.repeat(n, 1),
        "product": lambda _, n: lambda x: x.new_ones(n, 1) @ x,
    },
    "tril": {
        "product": by(lambda x: x * torch.ones_like(x).tril()),
        "masked_fill": by(lambda x: x.masked_fill(torch.ones_like(x, dtype=torch.bool).triu(1), 0)),
    },
    "diag_part": {
        "diagonal": by(lambda x: torch.diagonal(x).contiguous()),
        "diagonal_copy": "diagonal_copy",
    },
    # Random numbers
    "random_uniform": {
        "uniform_": lambda _, n: lambda like: like.new_empty(n).uniform_(),
        "random_": lambda _, n: lambda like: like.new_empty(n).random_(2**24) / 2**24,
    },
    "random_normal": {
        "normal_": lambda _, n: lambda like: like.new_empty(n).normal_(),
        "erfinv": lambda _, n: (
            lambda like: torch.erfinv(2 * torch.rand_like(like.expand(n)) - 1) * math.sqrt(2)
        ),
    },
    "random_bernoulli": {"rand < p": by(lambda p: (torch.rand_like(p) < p).to(p.dtype))},
    "random_integers": {
        "random_": lambda torch, n: (
            lambda like: torch.empty(n, dtype=torch.int32, device=like.device).random_(100)
        ),
        "rand * 100": lambda torch, n: lambda like: (torch.rand(n, device=like.device) * 100).int(),
    },
    "random_gamma": {
        "Gamma": by(lambda a: torch.distributions.Gamma(a, torch.ones_like(a)).sample())
    },
    "random_poisson": {"Poisson": by(lambda rate: torch.distributions.Poisson(rate).sample())},
    "random_exponential": {
        "log": lambda _, n: lambda like: torch.rand_like(like[:1].expand(n)).log_() / -2
    },
    "random_shuffle": {"x[randperm]": by(lambda x: x[kernels.places(x, torch.int64)])},
    "random_categorical": {
        "searchsorted": lambda _, n: (
            lambda p: torch.searchsorted(p.cumsum(0), torch.rand(n, device=p.device), right=True)
        ),
        "Categorical": lambda _, n: lambda p: torch.distributions.Categorical(p).sample((n,)),
        "exponential": lambda _, n: (
            lambda p: (p / torch.empty(n, len(p), device=p.device).exponential_()).argmax(1)
        ),
    },
    "dropout": {"rand > p": by(lambda x: x * (torch.rand_like(x) > DROPPED) / (1 - DROPPED))},
    # Optimisers
    "sgd": {
        "fused": kernels.optimiser("SGD", fused=True),
        "foreach": kernels.optimiser("SGD", foreach=True),
    },
    "rmsprop": {
        "foreach": kernels.optimiser("RMSprop", "square_avg", alpha=RHO, eps=TINY, foreach=True)
    },
    # Fourier transforms
    "rfft": {
        "fft": by(lambda x: torch.fft.fft(x)[..., : x.shape[-1] // 2 + 1]),
        "ihfft": by(lambda x: torch.fft.ihfft(x, norm="forward").conj()),
    },
    "fft2": {"fft": by(lambda x: torch.fft.fft(torch.fft.fft(x), dim=-2))},
    # Images
    "depth_to_space": {"permute": kernels.laid(Laid(by(blocks_by_permute), PIXEL_SHUFFLE))},
    "resize_nearest": {"expand": kernels.laid(Laid(by(pixels_by_expand), CHANNELS_FIRST))},
    "im2col": {"Tensor.unfold": kernels.laid(Laid(by(patches_by_windows), PATCHES))},
}

#: Reasons to call a function that takes longer than another way.
_ACCEPTED = {
    "any": "users call it: that a sum takes a fifth of the time is a flaw of its kernel",
    "outer": "users call it; a product is faster in long vectors without a gradient alone",
    "embedding": "torch.nn.Embedding calls it",
    "tanh": "loses the digits of results close to 0",
    "clip": "hardtanh is an activation, whose gradient is 0 at the bounds",
    "exp": "rounds the exponent first, and takes longer where numbers are few",
    "arctan": "atan2 takes longer where numbers are few, and with the gradient",
    "power": "is not defined below 0, and loses digits where results are large",
    "mod": "the formula rounds the quotient, and is wrong for large ones",
    "where": "lerp is not defined where the other operand is not finite",
    **dict.fromkeys(
        ("variance", "std"),
        "PyTorch's function for it: on the CPU it adds up in float64, one number after the other, "
        "and on GPUs it reads its operand once, the formula three times",
    ),
    "mean": "the gradient of the sum is a view of one number a row, that of the mean is written, "
    "as products are",
    **dict.fromkeys(("max", "min"), "max(dim) takes ten times as long without a gradient"),
    **dict.fromkeys(("argmax", "argmin"), "PyTorch's function for places alone"),
    "logsumexp": "the difference loses digits where the first number is small (log_softmax); "
    "overflows (unguarded)",
    "l2_normalize": "normalize keeps rows of zeros, of which the formulas make NaN",
    "einsum": "it calls bmm once it has read its equation",
    "cholesky": "cholesky_ex does not tell whether a matrix is positive definite, and what upper "
    "leaves is a transposed view",
    "svd_values": "squares the condition number: small values have no digits",
    "dynamic_rnn": "the loop is what is measured; lstm is the layer without it",
    "tensordot": "it calls mm once it has read its axes",
    "pick": "nll_loss is a loss, which leaves out the places that are -100",
    "unique": "bincount takes counts of all numbers up to the largest, and none below 0",
    "split": "torch.compile has no code for split_copy; the parts of one copy share its memory",
    "random_categorical": "the last sum may be rounded to less than 1: numbers beyond it are of no "
    "category",
    "random_bernoulli": "what torch.distributions calls",
    "random_exponential": "of 24 random bits each, the formula's large numbers are few",
    "dropout": "torch.nn.Dropout calls it",
    "tile": "the largest result takes 1.6 times as long by cat; tile's gradient is what is slow",
    "one_hot": "its numbers are int64, those of the scatter float32",
    "gather_nd": "places in the flattened array are another operand",
}
#: Other ways to make tensors of host data.
_CREATIONS: dict[str, Table] = {
    "from_numpy": {
        "from_numpy, clone": lambda *_: lambda values: torch.from_numpy(values).clone(),
        "asarray": lambda *_: Call("asarray", copy=True)(torch),
    },
    "from_list": {
        "by NumPy": lambda _, __, dtype: lambda values: torch.from_numpy(np.array(values, dtype)),
        "FloatTensor": lambda *_: torch.FloatTensor,
    },
}

IDIOMS: Idioms = {
    **creations(
        *("torch.tensor", "PyTorch's documentation", _CREATIONS),
        {
            "from_numpy": "the others keep the order of axes in memory",
            "from_list": "reading a list is what is measured; the other has NumPy read it",
        },
    ),
    **beside(OPERATIONS, "PyTorch's documentation and layers call it", _FORMULAS, _ACCEPTED),
    **{
        name: Idiom(
            "channels_last",
            "PyTorch's Performance Tuning Guide recommends it for networks of images",
            {"contiguous (NCHW)": entry, **_FORMULAS.get(name, {})},
            "a network has one memory format, and its layers call these functions",
        )
        for name, entry in IMAGES.items()
    },
    **{
        name: Idiom(
            "fused=True",
            'torch.optim\'s documentation: the fused implementation is "typically" the fastest',
            {"for-loop": step(), "foreach": step(foreach=True)},
        )
        for name, step in FUSED.items()
    },
}
