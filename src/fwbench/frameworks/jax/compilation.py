"""Phases of compilations, by JAX's own events (``jax.monitoring``)."""

import time
from collections import defaultdict
from collections.abc import Callable
from functools import cache

import jax

from fwbench.frameworks.contract import Compilation

#: The events of phases; that of the compiler comes for what a cache has, too.
_EVENTS = (
    "/jax/core/compile/jaxpr_trace_duration",
    "/jax/core/compile/jaxpr_to_mlir_module_duration",
    "/jax/core/compile/backend_compile_duration",
    "/jax/compilation_cache/cache_retrieval_time_sec",
)


@cache
def _seconds() -> dict[str, list[float]]:
    """Seconds of every event from the first call on: a listener stays.

    A function that is traced within another one's trace has an event of its own, which comes before
    that of the other one: only the outer one is kept.
    """
    seconds: dict[str, list[float]] = defaultdict(list)
    begun_s: dict[str, list[float]] = defaultdict(list)

    def listen(event: str, duration: float, **_: object) -> None:
        start_s = time.perf_counter() - duration
        while seconds[event] and begun_s[event][-1] >= start_s:
            seconds[event].pop()
            begun_s[event].pop()
        seconds[event].append(duration)
        begun_s[event].append(start_s)

    jax.monitoring.register_event_duration_secs_listener(listen)
    return seconds


def watch() -> Callable[[], Compilation]:
    """Begin to note compilations; see ``Framework.watch_compilation``."""
    _seconds().clear()

    def compiled() -> Compilation:
        trace_s, lower_s, compile_s, loaded_s = (sum(_seconds()[event]) for event in _EVENTS)
        phases_s = {"trace": trace_s, "lower": lower_s, "compile": max(0.0, compile_s - loaded_s)}
        number = len(_seconds()[_EVENTS[2]])
        return Compilation(number, {**phases_s, "load from cache": loaded_s})

    return compiled
