"""``tf.profiler``: operators from the trace that it writes.

Kernels of a graph run side by side, so that their times together may be more than the step's:
shares are those of the operators' time.

The trace has planes for the host and for each GPU, those with a line for each stream
(``PerDeviceCollector`` in xla/backends/profiler/gpu/cupti_collector.cc). On a GPU the events of the
host are launches, and what counts is on its plane: kernels, copies and fills, each with the
operator that launched it (``tf_op``) or the instruction of XLA's (``hlo_op``).
"""

import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest.mock import patch

import keras
import tensorflow as tf
from tensorflow.python.eager.polymorphic_function.polymorphic_function import Function
from tensorflow.python.framework import func_graph
from tensorflow.tsl.profiler.protobuf import xplane_pb2

from fwbench.frameworks import profiler
from fwbench.frameworks.profiler import (
    Counts,
    Event,
    Operator,
    Profiler,
    class_of,
    instruction,
    instruction_class,
)

#: Kernels of graphs are traced as name and type (``OpKernel::TraceString``), with this between.
_BETWEEN = ":"

#: How eager operators are traced, with the type of their kernels.
_EAGER = "EagerLocalExecute: "

#: Where Keras names what its optimisers do, in the names of a graph's operators.
_OPTIMISERS = ("sgd/", "adam/", "rmsprop/")

#: The range around what its optimisers do, where operators have no names.
_OPTIMISER_RANGE = "fwbench: optimiser"

#: How planes of devices are named.
_DEVICE = "/device:"

#: How lines for streams of a GPU are named; others have what is derived from these.
_STREAM = "Stream #"

#: Kernels' statistics in the trace (``xplane_schema.cc``).
_OPERATOR, _LAUNCH = "tf_op", "correlation_id"

#: How copies and fills on a GPU are named (``cupti_buffer_events.cc`` there).
_MOVING = ("Memcpy", "Memset")

#: What only calls operators.
_CALLS = ("StatefulPartitionedCall", "PartitionedCall", "__", "If", "While", "Case")


class TensorFlowProfiler(Profiler):
    """Times of operators, and of XLA's instructions, by TensorFlow's profiler."""

    def __init__(self, device: str) -> None:
        self._device = device
        self._traces, self._traces_s, self._depth = 0, 0.0, 0
        self._trace, self._call = func_graph.func_graph_from_py_func, Function.__call__
        func_graph.func_graph_from_py_func = self._traced
        called = self._called
        Function.__call__ = lambda *given, **more: called(*given, **more)  # noqa: PLW0108 (a method)

    def _traced(self, *given: Any, **more: Any) -> Any:
        self._traces += not self._depth
        self._depth += 1
        try:
            return self._trace(*given, **more)
        finally:
            self._depth -= 1

    def _called(self, function: Any, *given: Any, **more: Any) -> Any:
        """Call a function, with the time if it is traced: then its graph is optimised, too."""
        traces, start_s = self._traces, time.perf_counter()
        try:
            return self._call(function, *given, **more)
        finally:
            if self._traces > traces and not self._depth:
                self._traces_s += time.perf_counter() - start_s

    def counts(self) -> Counts:
        """The traces of functions; ``experimental_get_tracing_count()`` is of a known function."""
        return {"traces": (self._traces, self._traces_s)}

    def profile(self, work: Callable[[], object], trace: Path) -> Sequence[Operator]:
        """From the events of kernels; those of its scheduler are left out."""
        with tempfile.TemporaryDirectory() as folder:
            with _optimisers_traced(), tf.profiler.experimental.Profile(folder):
                work()
            events = [*_events(Path(folder))]
        profiler.write_trace(events, trace)
        return [*_operators(events, self._device)]


@contextmanager
def _optimisers_traced() -> Iterator[None]:
    """Have Keras' optimisers say when they begin and end."""
    applied = keras.optimizers.Optimizer.apply_gradients

    def traced(*arguments: Any, **more: Any) -> Any:
        with tf.profiler.experimental.Trace(_OPTIMISER_RANGE):
            return applied(*arguments, **more)

    with patch.object(keras.optimizers.Optimizer, "apply_gradients", traced):
        yield


def _operators(events: Sequence[Event], device: str) -> Iterator[Operator]:
    optimisers = [event for event in events if event.name == _OPTIMISER_RANGE]
    streams = f"{_DEVICE}{device.upper()} {_STREAM}"
    on_host = [event for event in events if not event.thread.startswith(_DEVICE)]
    launches = {event.launch: event for event in on_host if event.launch}
    if device == "cpu":
        counted = [event for event in on_host if event.is_instruction or _type(event)]
    else:
        counted = [event for event in events if event.thread.startswith(streams)]
    for event, time_s in profiler.own_times_s(counted):
        called = event.operator or event.name
        if event.is_instruction:
            name, operator_class = instruction(called), instruction_class(called)
        else:
            name = _type(event) or event.name
            operator_class = class_of(name, profiler.prefixes("tensorflow"))
            if name.startswith(_MOVING):
                operator_class = profiler.DATA_MOVEMENT
            if _is_optimisers(called, launches.get(event.launch, event), optimisers):
                operator_class = profiler.OPTIMISER
        yield Operator(name, operator_class, time_s, 1)


def _type(event: Event) -> str:
    """The type of a kernel; empty for other events, and for kernels that only call others."""
    called = event.operator or event.name
    if called.startswith(_EAGER):
        kind = called.removeprefix(_EAGER)
    else:
        name, _, kind = called.rpartition(_BETWEEN)
        if not name or name.endswith(_BETWEEN) or not kind.isidentifier():
            return ""
    return "" if kind.startswith(_CALLS) else kind


def _is_optimisers(name: str, call: Event, ranges: Sequence[Event]) -> bool:
    """True by the operator's name, or by the place of the call on the host."""
    return any(optimiser in name.lower() for optimiser in _OPTIMISERS) or any(
        optimiser.thread == call.thread and optimiser.start_ns <= call.start_ns < optimiser.end_ns
        for optimiser in ranges
    )


def _events(folder: Path) -> Iterator[Event]:
    for file in folder.rglob("*.xplane.pb"):
        space: Any = xplane_pb2.XSpace()
        space.ParseFromString(file.read_bytes())
        for plane in space.planes:
            for line in plane.lines:
                thread = f"{plane.name} {line.name} {line.id}"
                for event in line.events:
                    known = _statistics(plane, event)
                    operator = known.get(profiler.INSTRUCTION) or known.get(_OPERATOR) or ""
                    yield Event(
                        thread,
                        plane.event_metadata[event.metadata_id].name,
                        line.timestamp_ns + event.offset_ps / 1e3,
                        event.duration_ps / 1e3,
                        profiler.INSTRUCTION in known,
                        operator if plane.name.startswith(_DEVICE) else "",
                        int(known.get(_LAUNCH, 0)),
                    )


def _statistics(plane: Any, event: Any) -> dict[str, Any]:
    """Statistics of an event by name; most texts refer to names of the plane."""
    known = {}
    for statistic in event.stats:
        kind = statistic.WhichOneof("value")
        value = getattr(statistic, kind or "str_value")
        name = plane.stat_metadata[statistic.metadata_id].name
        known[name] = plane.stat_metadata[value].name if kind == "ref_value" else value
    return known
