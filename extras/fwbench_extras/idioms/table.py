"""Idioms: the way in which a framework is called for an operation, and its other public ways."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any

from fwbench.frameworks.contract import Framework
from fwbench.frameworks.table import Laid, Table
from fwbench.workloads.operation import Implementation, Operation


@dataclass(frozen=True)
class Idiom:
    """The way in which a framework is called for an operation, and its other public ways.

    Attributes:
        called: the way of the table of operations, by name: ``Activation``.
        because: who calls it so: a framework's own layers, documentation or benchmark.
        alternatives: an entry of a table by the name of each other way. They are measured in turns
            with the way that is called (``make idioms``), and published (docs/idioms.md). Those of
            creations are no entries of tables, but stand for a framework's ``creator``, and get
            the framework before its operands.
        accepted: the reason to call a way that takes more than :data:`SLOWER_FROM` times as long
            as an alternative; empty where it does not.
    """

    called: str
    because: str
    alternatives: Table
    accepted: str = ""


#: A way that takes this many times as long as an alternative needs a reason.
SLOWER_FROM = 1.15

#: By the name of an operation.
Idioms = Mapping[str, Idiom]


def by(function: Callable[..., Any]) -> Implementation:
    """An implementation by a function of operands alone, which is the same for all sizes."""
    return lambda *_: function


def beside(
    table: Table, because: str, others: Mapping[str, Table], reasons: Mapping[str, str]
) -> Idioms:
    """Idioms of the operations of a table that have alternatives.

    Args:
        others: the alternatives, by the operation.
        reasons: to call a way that takes longer, by the operation.
    """
    return {
        name: Idiom(_path(table[name]) or name, because, ways, reasons.get(name, ""))
        for name, ways in others.items()
    }


def _path(entry: str | Implementation) -> str:
    """The path of an entry of a table; empty for a formula."""
    function = entry.entry if isinstance(entry, Laid) else entry
    return function if isinstance(function, str) else getattr(function, "path", "")


def creations(
    called: str, because: str, others: Mapping[str, Table], reasons: Mapping[str, str]
) -> Idioms:
    """Idioms of arrays that are made of host data, which a framework has one way to do."""
    return {
        name: Idiom(called, because, ways, reasons.get(name, "")) for name, ways in others.items()
    }


@contextmanager
def another_way(framework: Framework, operation: Operation, entry: Any) -> Iterator[None]:
    """Have a framework compute an operation by an alternative."""
    name: str = "operations"
    value: Any = {**framework.operations, operation.name: entry}
    if operation.creates:
        name, value = "creator", partial(entry, framework)
    setattr(framework, name, value)
    try:
        yield
    finally:
        delattr(framework, name)  # of this object; the class has its own
