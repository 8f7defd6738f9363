"""PyTorch: indexing."""

from __future__ import annotations

from typing import Any

from fwbench.frameworks.layout import axes
from fwbench.frameworks.table import Call, Laid, Table
from fwbench.manifest import Gap


def _sequence_mask(torch: Any, d: int) -> Any:
    def mask(x: Any, lengths: Any) -> Any:
        return x * (torch.arange(d, device=x.device) < lengths[:, None])

    return mask


OPERATIONS: Table = {
    "gather_rows": lambda torch: lambda x, i: torch.index_select(x, 0, i),
    "embedding": lambda torch, n, d: lambda w, i: torch.nn.functional.embedding(i, w),
    "gather_elements": lambda torch: lambda x, i: torch.gather(x, 1, i),
    "pick": lambda torch: lambda x, i: torch.gather(x, 1, i[:, None])[:, 0],
    "gather_nd": Laid(lambda torch: lambda x, i: x[i[0], i[1]], axes("", "kc->ck")),
    "scatter_add": lambda torch, n, d: lambda x, i: x.new_zeros((n, d)).index_add(0, i, x),
    "scatter_nd_update": lambda torch: lambda x, i, rows: torch.index_copy(x, 0, i, rows),
    "one_hot": lambda torch, d: Call("nn.functional.one_hot", num_classes=d)(torch),
    "boolean_mask": lambda torch: lambda x, mask: x[mask],
    "sequence_mask": _sequence_mask,
}

GAPS: tuple[Gap, ...] = ()
