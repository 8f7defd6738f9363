"""CUDA graphs: a call that is captured once, and launched as a whole from then on.

As PyTorch's page "CUDA semantics" ("CUDA Graphs") has it: what is captured was called before on
another stream, so that libraries have their workspaces; replays compute with the arrays that were
bound, at their places, and write the results of the capture. So inputs are changed by copying
others into them, and a result is that of the latest replay.
"""

from __future__ import annotations

from typing import Any

import torch

from fwbench.frameworks.contract import BoundCall

#: PyTorch's own examples make three; libraries choose their kernels in the first.
_CALLS_BEFORE = 3


def captured(run: BoundCall) -> BoundCall:
    """The replay of a call.

    Args:
        run: enqueues the same work on a GPU each time, and does not wait for any of it.

    Returns:
        ``replay()``, which returns the arrays that each replay writes.
    """
    _call_aside(run)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        result = run()
    launch = graph.replay

    def replay() -> Any:
        launch()
        return result

    return replay


def _call_aside(run: BoundCall) -> None:
    """Call on a stream of its own, ordered behind what was enqueued and before what will be."""
    here, aside = torch.cuda.current_stream(), torch.cuda.Stream()
    aside.wait_stream(here)
    with torch.cuda.stream(aside):
        for _ in range(_CALLS_BEFORE):
            run()
    here.wait_stream(aside)
