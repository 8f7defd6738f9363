"""Binds an operation to its inputs, in one direction."""

from __future__ import annotations

from collections.abc import Callable
from typing import cast

from fwbench.cases import kept, products, reading
from fwbench.cases.backward import Backward
from fwbench.cases.copies import Copy
from fwbench.cases.creation import Creation
from fwbench.cases.forward import Forward
from fwbench.cases.random import Random
from fwbench.cases.update import InPlaceUpdate
from fwbench.cases.work import OperationWork, Work
from fwbench.frameworks.contract import Framework
from fwbench.grid import Cell
from fwbench.presets import Size
from fwbench.workloads.operation import Operation


def draw(operation: Operation, size: Size) -> None:
    """Have the operands drawn, unless an earlier case has: before its memory is looked at.

    Args:
        operation: what to compute.
        size: of its operands.

    Raises:
        TooLargeToVerify: its arrays do not fit into memory.
    """
    cost = operation.cost_of("forward", size)
    if cost is not None:
        reading.room(f"{operation.name} of size {size}", cost.elements)
    kept.operands(operation, size, changed=False)


def bind(cell: Cell, framework: Framework) -> Work:
    """Place the inputs on the device and build the zero-argument ``run``; nothing is timed yet.

    Args:
        cell: what to compute, and how.
        framework: that computes it.

    Raises:
        TooLargeToVerify: its arrays do not fit into memory.
    """
    operation = cast("Operation", cell.workload)
    draw(operation, cell.size)
    return _work(operation, cell)(cell, framework)


def _work(operation: Operation, cell: Cell) -> Callable[[Cell, Framework], OperationWork]:
    """The work of an operation, which knows its right results."""
    if products.is_large(operation, cell):
        return products.ProductGradient if cell.direction == "backward" else products.Product
    if cell.direction == "backward":
        return Backward
    if operation.creates:
        return Creation
    if operation.copies_to:
        return Copy
    if operation.moments:
        return Random
    return InPlaceUpdate if operation.updates else Forward
