"""Operations in tests: by name, at sizes that are written as text, and what references compute."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest

from fwbench import workloads
from fwbench.workloads import Operation


def each(operations: Iterable[Operation]) -> pytest.MarkDecorator:
    """Parameter ``of`` of a test of each of these operations."""
    return pytest.mark.parametrize("of", [*operations], ids=lambda of: str(of.name))


def named(name: str) -> Operation:
    """The operation of that name."""
    operation: Operation = getattr(workloads, name)
    return operation


def sized(of: Operation, size: str | int) -> Any:
    """The shape of an operation that a text stands for; a number stays."""
    if isinstance(size, int):
        return size
    assert of.form is not None
    return of.form.read(size)


def computed(name: str, size: str | int) -> tuple[tuple[Any, ...], Any]:
    """The operands of an operation, and what its reference makes of them."""
    of = named(name)
    at = sized(of, size)
    operands = of.operands(at)
    return operands, of.reference(*operands, *of.parameters(at))
