"""Phases of compilations in frameworks without timers of their own: times of their functions.

A function is replaced while a compilation is watched, and at no other time: nothing is between a
call that is timed and its framework.
"""

import functools
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Mapping
from typing import Any

from fwbench.frameworks.contract import Compilation

#: Where a function is, as a module or a class, and its name there.
Place = tuple[Any, str]


def watch_functions(phases: Mapping[str, Place], counted: str) -> Callable[[], Compilation | None]:
    """Begin to time functions of a framework; see ``Framework.watch_compilation``.

    Args:
        phases: the function of each phase. Where one calls another, each has its own time.
        counted: the phase whose calls are compilations, those within one another apart.

    Returns:
        ``compiled()``: what was compiled; None if this version lacks one of these functions.
    """
    places = [*phases.values()]
    if not all(name in vars(owner) for owner, name in places):
        return lambda: None
    found = [vars(owner)[name] for owner, name in places]
    spans = _Spans()
    for phase, (owner, name) in phases.items():
        setattr(owner, name, spans.timed(phase, getattr(owner, name)))

    def compiled() -> Compilation:
        for (owner, name), function in zip(places, found, strict=True):
            setattr(owner, name, function)
        return Compilation(spans.calls[counted], {phase: spans.own_s[phase] for phase in phases})

    return compiled


class _Spans:
    """Calls of functions in one thread.

    Attributes:
        own_s: by phase, the time without that of others that were called within.
        calls: by phase, those that are not within another one of it.
    """

    def __init__(self) -> None:
        self.own_s: defaultdict[str, float] = defaultdict(float)
        self.calls: defaultdict[str, int] = defaultdict(int)
        self._thread = threading.get_ident()
        self._running: list[str] = []

    def timed(self, phase: str, function: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(function)
        def call(*arguments: Any, **more: Any) -> Any:
            if threading.get_ident() != self._thread:
                return function(*arguments, **more)
            self.calls[phase] += phase not in self._running
            outer = self._running[-1] if self._running else None
            self._running.append(phase)
            start_s = time.perf_counter()
            try:
                return function(*arguments, **more)
            finally:
                took_s = time.perf_counter() - start_s
                self._running.pop()
                self.own_s[phase] += took_s
                if outer is not None:
                    self.own_s[outer] -= took_s

        return call
