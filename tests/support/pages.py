"""Reports with something of everything."""

from __future__ import annotations

from pathlib import Path

from fwbench.report.model import Run, read
from support.launched_runs import plain, write
from support.reports import case, training


def everything(folder: Path) -> list[Run]:
    """Runs with something of everything."""
    first = [
        *(case("gemm", "numpy", size=size) for size in (10, 100)),
        case("gemm", "torch", (1.0, 2.0), dispatch_s=0.1, completion_s=1.5),
        case("gemm", "torch", (1.0, 2.0), "compile"),
        case("dot", device="gpu:0"),
        training(),
        training("mxnet", data={"name": "mnist", "source": "synthetic", "origin": "made"}),
        plain(),
    ]
    missing = [{"nodeid": "x", "framework": "jax", "why": "deselected"}]
    return [
        read(write(folder / "first.json", *first, missing=missing, absent={"jax": "absent"}), 0),
        read(write(folder / "second.json", case()), 1),
    ]
