"""PyTorch: recurrent layers, by what ``torch.nn``'s call in training."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from fwbench.frameworks.layout import Arrays, Layout, reset_first
from fwbench.frameworks.table import Laid, Table
from fwbench.manifest import Gap
from fwbench.workloads.operation import Implementation


def _layer(name: str, *, cells: bool = False) -> Implementation:
    """An implementation by ``torch.<name>``; the first states are made in every call, as there."""

    def implementation(torch: Any, units: int) -> Callable[..., Any]:
        function = getattr(torch, name)

        def layer(x: Any, *weights: Any) -> Any:
            zeros = x.new_zeros(1, len(x), units)
            first = (zeros, zeros) if cells else zeros
            return function(x, first, weights, True, 1, 0.0, True, False, True)[0]

        return layer

    return implementation


def _place(arrays: Arrays) -> list[Any]:
    """Weights have a row for every unit, and there is a second bias, which is zero here."""
    x, w, u, b = arrays
    return [x, w.T.copy(), u.T.copy(), b, np.zeros_like(b)]


def _restore(arrays: Arrays) -> list[Any]:
    x, w, u, b, _ = arrays
    return [x, w.T, u.T, b]


_ROWS = Layout(place=_place, restore=_restore)

_RESET_FIRST = Layout(
    place=lambda arrays: [
        arrays[0],
        *(reset_first(of).T.copy() for of in arrays[1:3]),
        *map(reset_first, arrays[3:]),
    ],
    restore=lambda arrays: [
        arrays[0],
        *(reset_first(of.T) for of in arrays[1:3]),
        *map(reset_first, arrays[3:]),
    ],
)

OPERATIONS: Table = {
    "rnn": Laid(_layer("rnn_tanh"), _ROWS),
    "lstm": Laid(_layer("lstm", cells=True), _ROWS),
    "gru": Laid(_layer("gru"), _RESET_FIRST),
}

GAPS: tuple[Gap, ...] = ()
