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


def _dynamic_rnn(x: Any, w: Any, u: Any, b: Any, lengths: Any) -> tuple[Any, Any]:
    """A loop of Python's: PyTorch's own operators for loops are prototypes.

    ``torch.compile`` unrolls it.
    """
    import torch

    state = cell = x.new_zeros(len(x), w.shape[0])
    places = torch.arange(x.shape[1], device=x.device)
    within = (places[:, None] < lengths)[..., None]
    states = []
    for now, inside in zip((x @ w + b).unbind(1), within.unbind(), strict=True):
        entry, keep, new, exit_ = torch.addmm(now, state, u).chunk(4, -1)
        after = torch.sigmoid(keep) * cell + torch.sigmoid(entry) * torch.tanh(new)
        cell = torch.where(inside, after, cell)
        state = torch.where(inside, torch.sigmoid(exit_) * torch.tanh(after), state)
        states.append(torch.where(inside, state, 0.0))
    return torch.stack(states, 1), state


OPERATIONS: Table = {
    "rnn": Laid(_layer("rnn_tanh"), _ROWS),
    "lstm": Laid(_layer("lstm", cells=True), _ROWS),
    "gru": Laid(_layer("gru"), _RESET_FIRST),
    "dynamic_rnn": lambda torch, units, steps, loop: _dynamic_rnn,
}

GAPS: tuple[Gap, ...] = ()
