"""Operations in tests: by name, at sizes that are written as text, and what references compute."""

from collections.abc import Iterable
from typing import Any

import pytest

from fwbench import workloads
from fwbench.workloads import Operation


def for_each(operations: Iterable[Operation]) -> pytest.MarkDecorator:
    """Parameter ``of`` of a test of each of these operations."""
    return pytest.mark.parametrize(
        "operation", [*operations], ids=lambda operation: str(operation.name)
    )


def named(name: str) -> Operation:
    """The operation of that name."""
    operation: Operation = getattr(workloads, name)
    return operation


def sized(operation: Operation, size: str | int) -> Any:
    """The shape of an operation that a text stands for; a number stays."""
    if isinstance(size, int):
        return size
    assert operation.form is not None
    return operation.form.read(size)


def computed(name: str, size: str | int) -> tuple[tuple[Any, ...], Any]:
    """The operands of an operation, and what its reference makes of them."""
    operation = named(name)
    at = sized(operation, size)
    operands = operation.operands(at)
    return operands, operation.reference(*operands, *operation.parameters(at))
