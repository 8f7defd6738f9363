"""PyTorch: shapes and orders of elements. What PyTorch has as a view is copied."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from fwbench.frameworks.layout import Arrays, Layout, axes
from fwbench.frameworks.table import Call, Laid, Table
from fwbench.manifest import Gap

_CHANNELS_FIRST = axes("nhwc->nchw", results=["nhwc->nchw"])


def _channel_first(arrays: Arrays) -> list[NDArray[Any]]:
    """``pixel_shuffle`` has the place in a block behind the channel, and channels first."""
    (x,) = arrays
    n, h, w, c = x.shape
    blocks = x.reshape(n, h, w, 4, c // 4).transpose(0, 4, 3, 1, 2)
    return [np.ascontiguousarray(blocks.reshape(n, c, h, w))]


def _channel_last(arrays: Arrays) -> list[NDArray[Any]]:
    (x,) = arrays
    n, c, h, w = x.shape
    blocks = x.reshape(n, c // 4, 4, h, w).transpose(0, 3, 4, 2, 1)
    return [np.ascontiguousarray(blocks.reshape(n, h, w, c))]


_SHUFFLED = Layout(
    _channel_first, _channel_last, _CHANNELS_FIRST.place_results, _CHANNELS_FIRST.restore_results
)


def _pad(mode: str) -> Call:
    """The last axes come first: columns, then rows."""
    return Call("nn.functional.pad", pad=(2, 2, 1, 1), mode=mode)


OPERATIONS: Table = {
    "transpose": lambda torch: lambda x: x.T.contiguous(),
    "permute_nhwc_nchw": lambda torch: lambda x: x.permute(0, 3, 1, 2).contiguous(),
    "concat": lambda torch: lambda x, y: torch.cat([x, y], 1),
    "stack": lambda torch: lambda x, y: torch.stack([x, y], 1),
    "split": lambda torch: lambda x: [part.contiguous() for part in torch.chunk(x, 4, 1)],
    "pad_constant": Laid(_pad("constant"), _CHANNELS_FIRST),
    "pad_reflect": Laid(_pad("reflect"), _CHANNELS_FIRST),
    "tile": Call("tile", dims=(2, 3)),
    "repeat": Call("repeat_interleave", repeats=3, dim=1),
    "slice": lambda torch, begin, end: lambda x: x[begin:end, begin:end].contiguous(),
    "strided_slice": lambda torch: lambda x: x[::2, ::3].contiguous(),
    "flip": Call("flip", dims=(1,)),
    "roll": Call("roll", shifts=3, dims=1),
    "broadcast_to": lambda torch, n: lambda x: torch.broadcast_to(x, (n, n)).contiguous(),
    "depth_to_space": Laid(Call("nn.functional.pixel_shuffle", upscale_factor=2), _SHUFFLED),
    "tril": "tril",
    "diag_part": lambda torch: lambda x: torch.diagonal(x).contiguous(),
}

GAPS: tuple[Gap, ...] = ()
