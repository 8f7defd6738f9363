"""Operations in tests: by name, at sizes that are written as text, and what references compute."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest

from fwbench import workloads
from fwbench.terms.presets import Shape
from fwbench.workloads import Operation


def each(operations: Iterable[Operation]) -> pytest.MarkDecorator:
    """Parameter ``of`` of a test of each of these operations."""
    return pytest.mark.parametrize("of", [*operations], ids=lambda of: str(of.name))


def named(name: str) -> Operation:
    """The operation of that name."""
    operation: Operation = getattr(workloads, name)
    return operation


def sized(of: Operation, text: str) -> Shape:
    """The shape of an operation that a text stands for."""
    assert of.form is not None
    return of.form.read(text)


def computed(name: str, size: str | int) -> tuple[tuple[Any, ...], Any]:
    """The operands of an operation, and what its reference makes of them."""
    of = named(name)
    at = size if isinstance(size, int) else sized(of, size)
    operands = of.operands(at)
    return operands, of.reference(*operands, *of.parameters(at))
