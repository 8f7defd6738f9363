"""``jax.profiler``: XLA's instructions from the trace that it writes.

Under ``jit`` most of them are fusions of several operators, whose class is ``fused``.
"""

import tempfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import jax
from jax.profiler import ProfileData, ProfileOptions

from fwbench.frameworks import profiler
from fwbench.frameworks.jax import compilation
from fwbench.frameworks.profiler import (
    Counts,
    Event,
    Operator,
    Profiler,
    instruction,
    instruction_class,
)

#: What is counted, by the events that JAX has of it.
_COUNTED = {
    "traces": compilation.TRACE,
    "lowerings": compilation.LOWER,
    "compilations": compilation.COMPILE,
}


class JaxProfiler(Profiler):
    """Times of XLA's instructions by JAX's profiler."""

    def __init__(self) -> None:
        self._seconds = compilation.seconds()

    def counts(self) -> Counts:
        """Functions that JAX has traced, lowered and compiled, with their times."""
        seconds = {name: self._seconds[event] for name, event in _COUNTED.items()}
        return {name: (len(of_each), sum(of_each)) for name, of_each in seconds.items()}

    def profile(self, work: Callable[[], object], trace: Path) -> Sequence[Operator]:
        """From the events of instructions; those of the runtime and of Python are left out."""
        options = ProfileOptions()
        options.python_tracer_level = 0
        with tempfile.TemporaryDirectory() as folder:
            with jax.profiler.trace(folder, profiler_options=options):
                work()
            events = [*_events(Path(folder))]
        profiler.write_trace(events, trace)
        own_times = profiler.own_times_s(event for event in events if event.is_instruction)
        return [
            Operator(instruction(event.operator), instruction_class(event.operator), time_s, 1)
            for event, time_s in own_times
        ]


def _events(folder: Path) -> Iterator[Event]:
    for file in folder.rglob("*.xplane.pb"):
        data: Any = ProfileData.from_file(str(file))
        for plane in data.planes:
            for number, line in enumerate(plane.lines):
                thread = f"{plane.name} {line.name or number}"
                for event in line.events:
                    # On a CPU an event has the name of its instruction, on a GPU of its kernel.
                    operator = dict(event.stats).get(profiler.INSTRUCTION, "")
                    span = (event.start_ns, event.duration_ns)
                    yield Event(thread, event.name, *span, bool(operator), operator)
