"""A framework's own profiler: what each of its operators takes, and what class it is of."""

import json
from abc import ABC, abstractmethod
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from fwbench.packaged import read_table

OPTIMISER = "optimiser"
#: Copies, conversions of layout, transfers between host and device, views.
DATA_MOVEMENT = "data movement"
#: Several of these in one kernel, as compilers make them: their times cannot be separated.
FUSED = "fused"
OTHER = "other"
#: Work that is done again before operators can run: traces, compilations.
COMPILATION = "compilation"

#: Every class of operators, in the order in which reports show them.
CLASSES = (
    *("convolution", "matmul", FUSED, "elementwise", "reduction", "normalisation", "pooling"),
    *(DATA_MOVEMENT, OPTIMISER, "loss", COMPILATION, OTHER),
)

#: By class, how the names of its operators begin.
Prefixes = Mapping[str, Sequence[str]]


#: By name, how often a framework has done such work in its process, and the seconds that it took; 0
#: where it does not tell these.
Counts = Mapping[str, tuple[float, float]]


@dataclass(frozen=True)
class Operator:
    """One operator in the calls that were profiled.

    Attributes:
        operator_class: one of :data:`CLASSES`.
        time_s: its own time, without that of operators that it called.
    """

    name: str
    operator_class: str
    time_s: float
    calls: float


class Profiler(ABC):
    """One framework's profiler.

    It is used in a process of its own, once or several times: no times include what profilers leave
    behind.
    """

    @abstractmethod
    def profile(self, work: Callable[[], object], trace: Path) -> Sequence[Operator]:
        """The operators of some work, those of one name together or not.

        Args:
            work: is called once, and waits until it is done.
            trace: the file to write for Perfetto, in Chrome's trace event format: JSON.
        """

    def counts(self) -> Counts:
        """Compilations, traces, graph breaks and the like so far; none that nobody counts."""
        return {}


def counted(before: Counts, after: Counts) -> Iterator[Operator]:
    """Counts that have risen in between, as operators of the class ``compilation``."""
    for name, (number, time_s) in after.items():
        earlier, earlier_s = before.get(name, (0.0, 0.0))
        if number > earlier:
            yield Operator(name, COMPILATION, max(0.0, time_s - earlier_s), number - earlier)


def prefixes(framework: str) -> Prefixes:
    """The operators of a framework that has names of its own for them, or of ``xla``."""
    classes: Prefixes = read_table(__package__, "operator_classes.toml")[framework]
    return classes


def class_of(name: str, table: Prefixes) -> str:
    """The class of an operator; ``other`` where the table has none for it.

    Args:
        table: of the framework; the longest prefix that fits decides.
    """
    fitting = {
        prefix: operator_class
        for operator_class, prefixes in table.items()
        for prefix in prefixes
        if name.startswith(prefix)
    }
    return fitting[max(fitting, key=len)] if fitting else OTHER


# The profilers of XLA and TensorFlow. Both frameworks write the format XPlane
# (tsl/profiler/protobuf/xplane.proto), and read it in ways of their own.


@dataclass(frozen=True)
class Event:
    """A span of a thread's time.

    Attributes:
        thread: where, by its plane and its name.
        start_ns: since any moment, the same for all events.
        duration_ns: of it and what it has called.
        is_instruction: whether it is one of XLA's.
        operator: the operator or instruction that it belongs to, where its own name is another.
        launch: the number that a kernel on a device shares with what launched it; 0 for none.
    """

    thread: str
    name: str
    start_ns: float
    duration_ns: float
    is_instruction: bool = False
    operator: str = ""
    launch: int = 0

    @property
    def end_ns(self) -> float:
        """When it was over."""
        return self.start_ns + self.duration_ns


def own_times_s(events: Iterable[Event]) -> Iterator[tuple[Event, float]]:
    """Each event with its own time: without that of events of its thread within it."""
    threads: dict[str, list[Event]] = defaultdict(list)
    for event in events:
        threads[event.thread].append(event)
    for of_thread in threads.values():
        yield from _own_times_s(sorted(of_thread, key=lambda e: (e.start_ns, -e.duration_ns)))


def _own_times_s(events: Iterable[Event]) -> Iterator[tuple[Event, float]]:
    enclosing: list[tuple[Event, list[float]]] = []
    for event in events:
        while enclosing and enclosing[-1][0].end_ns <= event.start_ns:
            yield _closed(*enclosing.pop())
        if enclosing:
            enclosing[-1][1].append(event.duration_ns)
        enclosing.append((event, []))
    while enclosing:
        yield _closed(*enclosing.pop())


def _closed(event: Event, within_ns: list[float]) -> tuple[Event, float]:
    return event, max(0.0, event.duration_ns - sum(within_ns)) * 1e-9


def write_trace(events: Iterable[Event], file: Path) -> None:
    """Write events for Perfetto.

    The format is Chrome's (Google's document "Trace Event Format"): complete events with times in
    microseconds, and the names of threads as metadata.
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


def instruction_class(name: str) -> str:
    """The class of an instruction; a fusion of several operators is of none of theirs."""
    if _FUSION in name:
        return FUSED
    return class_of(name.removeprefix(_WRAPPED), prefixes("xla"))


def instruction(name: str) -> str:
    """The name of an instruction without its number: ``fusion`` for ``fusion.12``."""
    stem, _, number = name.rpartition(".")
    return stem if number.isdigit() else name
