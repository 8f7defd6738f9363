"""Tables of operations: the name of an operation, and the framework's own function for it.

A framework's ``operations`` hold one for each family. A value is the dotted path of a function
below the framework's namespace, a :class:`Call` (the same with keyword arguments), or, where a path
will not do, an :data:`~fwbench.workloads.operation.Implementation`; each of them in a :class:`Laid`
where the framework's arrays lie otherwise than the definition's.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from operator import attrgetter
from typing import Any

from fwbench.frameworks.layout import Layout
from fwbench.workloads.operation import Implementation


class Call:
    """A framework's function, named by its path below the framework's namespace.

    It is an implementation: called with a namespace, it returns the function. Nothing stands
    between the caller and a function without keyword arguments.

    Args:
        path: ``nn.functional.softplus`` for PyTorch's.
    """

    def __init__(self, path: str, **keywords: Any) -> None:
        self.path = path
        self.keywords = keywords

    def __call__(self, namespace: Any) -> Callable[..., Any]:
        """The function, looked up in the namespace that is given.

        Raises:
            AttributeError: the namespace does not have it.
        """
        function: Callable[..., Any] = attrgetter(self.path)(namespace)
        return partial(function, **self.keywords) if self.keywords else function

    def is_in(self, namespace: Any) -> bool:
        """Tell whether the path leads to a callable."""
        try:
            return callable(self(namespace))
        except (AttributeError, ImportError, TypeError):  # some packages import on demand
            return False


class Laid:
    """An implementation whose arrays lie otherwise than in the definition of the operation."""

    def __init__(self, entry: str | Implementation, layout: Layout) -> None:
        self.entry = Call(entry) if isinstance(entry, str) else entry
        self.layout = layout

    def __call__(self, namespace: Any, *parameters: Any, **switches: str) -> Callable[..., Any]:
        """The function of the implementation."""
        return self.entry(namespace, *parameters, **switches)


def layout_of(implementation: Implementation) -> Layout:
    """The layout of an implementation's arrays."""
    return implementation.layout if isinstance(implementation, Laid) else Layout()


#: What a framework computes an operation with, by the operation's name.
Table = Mapping[str, str | Implementation]


def implementation(table: Table, operation: str) -> Implementation:
    """The implementation of one operation.

    Raises:
        KeyError: the table does not have it.
    """
    entry = table[operation]
    return Call(entry) if isinstance(entry, str) else entry


def missing_paths(table: Table, namespace: Any) -> dict[str, str]:
    """The paths of a table that do not lead to a function, by operation.

    Args:
        namespace: of the framework, in the version that is installed.
    """
    entries = {name: implementation(table, name) for name in table}
    calls = {
        name: entry.entry if isinstance(entry, Laid) else entry for name, entry in entries.items()
    }
    return {
        name: call.path
        for name, call in calls.items()
        if isinstance(call, Call) and not call.is_in(namespace)
    }
