"""Phases of compilations, by JAX's own events (``jax.monitoring``)."""

import time
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from functools import cache

import jax
import jax.monitoring

from fwbench.frameworks.contract import Compilation

#: The events of phases; that of the compiler comes for what a cache has, too.
TRACE = "/jax/core/compile/jaxpr_trace_duration"
LOWER = "/jax/core/compile/jaxpr_to_mlir_module_duration"
COMPILE = "/jax/core/compile/backend_compile_duration"
_LOAD = "/jax/compilation_cache/cache_retrieval_time_sec"


@cache
def seconds() -> Mapping[str, Sequence[float]]:
    """Seconds of every event, by its name, from the first call of this on: a listener stays.

    A function that is traced within another one's trace has an event of its own, which comes before
    that of the other one: only the outer one is kept.
    """
    kept: dict[str, list[float]] = defaultdict(list)
    begun_s: dict[str, list[float]] = defaultdict(list)

    def listen(event: str, duration: float, **_: object) -> None:
        start_s = time.perf_counter() - duration
        while kept[event] and begun_s[event][-1] >= start_s:
            kept[event].pop()
            begun_s[event].pop()
        kept[event].append(duration)
        begun_s[event].append(start_s)

    jax.monitoring.register_event_duration_secs_listener(listen)
    return kept


def watch() -> Callable[[], Compilation]:
    """Begin to note compilations; see ``Framework.watch_compilation``."""
    events = (TRACE, LOWER, COMPILE, _LOAD)
    before = [len(seconds()[event]) for event in events]

    def compiled() -> Compilation:
        since = [seconds()[event][old:] for event, old in zip(events, before, strict=True)]
        trace_s, lower_s, compile_s, loaded_s = map(sum, since)
        phases_s = {"trace": trace_s, "lower": lower_s, "compile": max(0.0, compile_s - loaded_s)}
        return Compilation(len(since[2]), {**phases_s, "load from cache": loaded_s})

    return compiled
