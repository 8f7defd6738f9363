"""What the profiler of XLA and TensorFlow has traced: events of threads, in planes.

Both frameworks write the format XPlane (tsl/profiler/protobuf/xplane.proto), and read it in ways
of their own.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from fwbench.frameworks import profiler
from fwbench.frameworks.profiler import Prefixes


@dataclass(frozen=True)
class Event:
    """What a thread did for some time.

    Attributes:
        thread: where, by its plane and its name.
        name: of the operator.
        start_ns: since any moment, the same for all events.
        duration_ns: of it and what it has called.
        is_instruction: whether it is one of XLA's.
    """

    thread: str
    name: str
    start_ns: float
    duration_ns: float
    is_instruction: bool = False

    @property
    def end_ns(self) -> float:
        """When it was over."""
        return self.start_ns + self.duration_ns


def own_times_s(events: Iterable[Event]) -> Iterator[tuple[Event, float]]:
    """Each event with its own time: without that of events of its thread which lie within it."""
    threads: dict[str, list[Event]] = defaultdict(list)
    for event in events:
        threads[event.thread].append(event)
    for of_thread in threads.values():
        yield from _own_times_s(sorted(of_thread, key=lambda e: (e.start_ns, -e.duration_ns)))


def _own_times_s(events: Iterable[Event]) -> Iterator[tuple[Event, float]]:
    open_ones: list[tuple[Event, list[float]]] = []
    for event in events:
        while open_ones and open_ones[-1][0].end_ns <= event.start_ns:
            yield _closed(*open_ones.pop())
        if open_ones:
            open_ones[-1][1].append(event.duration_ns)
        open_ones.append((event, []))
    while open_ones:
        yield _closed(*open_ones.pop())


def _closed(event: Event, within_ns: list[float]) -> tuple[Event, float]:
    return event, max(0.0, event.duration_ns - sum(within_ns)) * 1e-9


def write_trace(events: Iterable[Event], file: Path) -> None:
    """Write events for Perfetto.

    The format is Chrome's (Google's document "Trace Event Format"): complete events with times in
    microseconds, and the names of threads as metadata.

    Args:
        events: of one process.
        file: is written.
    """
    listed = list(events)
    threads = {name: number for number, name in enumerate(dict.fromkeys(e.thread for e in listed))}
    named = [
        {"ph": "M", "name": "thread_name", "pid": 0, "tid": number, "args": {"name": name}}
        for name, number in threads.items()
    ]
    complete = [
        {
            "ph": "X",
            "name": event.name,
            "pid": 0,
            "tid": threads[event.thread],
            "ts": event.start_ns / 1e3,
            "dur": event.duration_ns / 1e3,
        }
        for event in listed
    ]
    file.write_text(json.dumps({"traceEvents": named + complete}), encoding="utf-8")


#: The statistic that XLA gives the events of its instructions, and no others.
INSTRUCTION = "hlo_op"

#: How XLA names a fusion of several operators, and one operator that it has made a fusion of.
_FUSION, _WRAPPED = "fusion", "wrapped_"

#: The names of XLA's instructions (openxla.org, "Operation semantics"), and of those that
#: TensorFlow has named.
HLO: Prefixes = {
    profiler.CONVOLUTION: ("convolution", "conv", "Conv", "__onednn$convolution"),
    profiler.MATMUL: ("dot", "MatMul", "BatchMatMul", "einsum", "gemm", "__onednn$matmul"),
    profiler.FUSED: ("call", "while", "conditional", "custom-call"),
    profiler.REDUCTION: ("reduce", "sort", "cumsum", "topk"),
    profiler.NORMALISATION: ("batch-norm",),
    profiler.POOLING: ("reduce-window", "select-and-scatter"),
    profiler.DATA_MOVEMENT: (
        *("copy", "transpose", "reshape", "broadcast", "concatenate", "slice", "pad", "gather"),
        *("scatter", "dynamic-slice", "dynamic-update-slice", "bitcast", "iota", "reverse"),
        *("tuple", "get-tuple-element", "parameter", "convert", "constant"),
    ),
    profiler.ELEMENTWISE: (
        *("add", "subtract", "multiply", "divide", "maximum", "minimum", "exponential", "log"),
        *("tanh", "rsqrt", "sqrt", "power", "negate", "abs", "select", "compare", "clamp"),
        *("and", "or", "not", "xor", "sign", "floor", "ceil", "round", "sine", "cosine"),
        *("logistic", "erf", "rng", "cbrt", "remainder", "shift", "popcnt", "atan2"),
    ),
}


def instruction_class(name: str) -> str:
    """The class of an instruction; a fusion of several operators is of none of theirs."""
    if _FUSION in name:
        return profiler.FUSED
    return profiler.class_of(name.removeprefix(_WRAPPED), HLO)


def instruction(name: str) -> str:
    """The name of an instruction without its number: ``fusion`` for ``fusion.12``."""
    stem, _, number = name.rpartition(".")
    return stem if number.isdigit() else name
