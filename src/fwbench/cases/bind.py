"""Binds an operation to its inputs, in one direction."""

from __future__ import annotations

from typing import cast

from fwbench.cases import reading
from fwbench.cases.backward import Backward
from fwbench.cases.creation import Creation
from fwbench.cases.forward import Forward
from fwbench.cases.work import Work
from fwbench.frameworks.contract import Framework
from fwbench.grid import Cell
from fwbench.workloads.operation import Operation


def bind(cell: Cell, framework: Framework) -> Work:
    """Place the inputs on the device and build the zero-argument ``run``; nothing is timed yet.

    Args:
        cell: what to compute, and how.
        framework: that computes it.

    Raises:
        TooLargeToVerify: its arrays do not fit into memory.
    """
    operation = cast("Operation", cell.workload)
    cost = operation.cost_of("forward", cell.size)
    if cost is not None:
        reading.room(f"{operation.name} of size {cell.size}", cost.elements)
    work = Creation if operation.creates else Forward
    if cell.direction == "backward":
        work = Backward
    return work(cell, framework)
