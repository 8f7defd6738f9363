"""Results of functions that nobody has declared: their parts, and how these are waited for.

An adapter's package, or its only module, may have a function ``awaited``, which returns its
:class:`AwaitedArrays`. It is asked once this process has imported the framework by itself.
"""

import dataclasses
import importlib
import sys
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cache, partial
from importlib import metadata
from typing import Any

from fwbench.terms.names import GROUP

Wait = Callable[[Any], object]


@dataclass(frozen=True)
class AwaitedArrays:
    """Arrays of a framework whose calls may return before their work is done."""

    kinds: type | tuple[type, ...]
    #: Blocks until an array exists.
    wait: Wait
    #: Whether an array's work may go on when the call has returned.
    is_pending: Callable[[Any], bool] = lambda _: True
    #: Of a value that only this framework can take apart; None of any other.
    parts: Callable[[Any], Iterable[Any] | None] = lambda _: None


class AwaitedResults:
    """Waits for results of the frameworks that this process has imported."""

    def __init__(self) -> None:
        self._arrays: dict[str, AwaitedArrays | None] = {}
        self._waits: dict[type, Wait] = {}

    def look(self) -> None:
        """Find out which frameworks are there."""
        for name, point in _points().items():
            if name in sys.modules and name not in self._arrays:
                package = importlib.import_module(point.module.rpartition(".")[0] or point.module)
                awaited = getattr(package, "awaited", None)
                self._arrays[name] = None if awaited is None else awaited()

    def are_pending(self, result: Any) -> bool:
        """True if some array in a result is computed asynchronously."""
        arrays = self._arrays_of(result)
        if arrays is not None:
            return arrays.is_pending(result)
        return any(map(self.are_pending, self._parts(result) or ()))

    def wait(self, result: Any) -> None:
        """Block until every array in a result exists."""
        kind = type(result)
        wait = self._waits.get(kind)
        if wait is None:
            wait = self._waits[kind] = self._wait_for(result)
        wait(result)

    def _wait_for(self, result: Any) -> Wait:
        if (arrays := self._arrays_of(result)) is not None:
            return arrays.wait
        return _pass if self._parts(result) is None else self._wait_for_parts

    def _wait_for_parts(self, result: Any) -> None:
        for part in self._parts(result) or ():
            self.wait(part)

    def _known(self) -> Iterator[AwaitedArrays]:
        return filter(None, self._arrays.values())

    def _arrays_of(self, value: Any) -> AwaitedArrays | None:
        return next((each for each in self._known() if isinstance(value, each.kinds)), None)

    def _parts(self, value: Any) -> Iterable[Any] | None:
        """The values in a container; None of what is none."""
        if isinstance(value, list | tuple):
            return value
        if isinstance(value, dict):
            return value.values()
        if dataclasses.is_dataclass(value) and not isinstance(value, type):
            return map(partial(getattr, value), [field.name for field in dataclasses.fields(value)])
        of_frameworks = (each.parts(value) for each in self._known())
        return next((parts for parts in of_frameworks if parts is not None), None)


@cache
def _points() -> dict[str, metadata.EntryPoint]:
    """Every framework that a package names, without what it takes to load one."""
    return {point.name: point for point in metadata.entry_points(group=GROUP)}


def _pass(_: Any) -> None:
    """Nothing to wait for."""
