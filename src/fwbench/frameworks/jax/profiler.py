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
from fwbench.frameworks.profiler import Event, Operator, Profiler, instruction, instruction_class


class JaxProfiler(Profiler):
    """Times of XLA's instructions by JAX's profiler."""

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
            Operator(instruction(event.name), instruction_class(event.name), time_s, 1)
            for event, time_s in own_times
        ]


def _events(folder: Path) -> Iterator[Event]:
    for file in folder.rglob("*.xplane.pb"):
        data: Any = ProfileData.from_file(str(file))
        for plane in data.planes:
            for number, line in enumerate(plane.lines):
                thread = f"{plane.name} {line.name or number}"
                for event in line.events:
                    is_instruction = any(name == profiler.INSTRUCTION for name, _ in event.stats)
                    yield Event(
                        thread, event.name, event.start_ns, event.duration_ns, is_instruction
                    )
