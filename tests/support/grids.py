"""Frameworks to make grids of, and why they cannot fill a cell."""

from dataclasses import replace
from typing import Any

from fwbench.terms.manifest import Device, Manifest
from fwbench.workloads import gaps
from fwbench.workloads.cell import Cell
from fwbench.workloads.workload import Workload
from support.fakes import manifest

CPU, GPU = Device("cpu", "a CPU"), Device("gpu:0", "a GPU")

#: Two frameworks: one with everything, one with little, which trains no models.
RICH = manifest(
    name="rich", executions=("eager", "graph", "compile"), on_request=("compile",), gaps=()
)


POOR = manifest(
    name="poor",
    devices=(CPU,),
    executions=("eager",),
    on_request=(),
    dtypes=("float32",),
    operations=("gemm",),
    differentiable=False,
    gaps=(),
    training_executions=(),
    whole_loops=(),
    process_toggles=(),
    toggle_gaps=(),
)


BOTH = {"rich": RICH, "poor": POOR}


NO_SERVERS = "rich has no servers"

#: What shares cases between replicas.
SHARED = replace(
    RICH,
    executions=("eager",),
    training_executions=("eager",),
    strategies={"allreduce": "", "ps_sync": NO_SERVERS, "ps_async": ""},
    coordinated=("ps_async",),
    gang_executions=("eager",),
    collectives=("all_reduce", "all_gather"),
)


def gap_of(
    workload: Workload,
    manifest: Manifest,
    device: str = "cpu",
    execution: str = "eager",
    direction: str = "forward",
    dtype: str = "float32",
    **more: Any,
) -> str | None:
    """Why a framework cannot fill a cell; of the smallest size where none is given.

    Args:
        more: of the cell: ``size``, ``toggles``, ``data``.
    """
    size = more.pop("size", workload.smallest)
    cell = Cell(workload, manifest.name, device, execution, direction, dtype, size, **more)
    return gaps.why(cell, manifest)
