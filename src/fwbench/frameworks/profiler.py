"""A framework's own profiler: what each of its operators takes, and what class it is of."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

CONVOLUTION = "convolution"
MATMUL = "matmul"
ELEMENTWISE = "elementwise"
REDUCTION = "reduction"
NORMALISATION = "normalisation"
POOLING = "pooling"
DATA_MOVEMENT = "data movement"
OPTIMISER = "optimiser"
LOSS = "loss"
#: Several of these in one kernel, as compilers make them: nobody can tell their times apart.
FUSED = "fused"
OTHER = "other"

#: Every class of operators, in the order in which reports show them.
CLASSES = (
    *(CONVOLUTION, MATMUL, FUSED, ELEMENTWISE, REDUCTION, NORMALISATION, POOLING),
    *(DATA_MOVEMENT, OPTIMISER, LOSS, OTHER),
)

#: By class, how the names of its operators begin.
Prefixes = Mapping[str, Sequence[str]]


@dataclass(frozen=True)
class Operator:
    """One operator in the calls that were profiled.

    Attributes:
        name: as the framework's profiler has it.
        operator_class: one of :data:`CLASSES`.
        time_s: its own time, without that of operators that it called.
        calls: how often it was called.
    """

    name: str
    operator_class: str
    time_s: float
    calls: int


class Profiler(ABC):
    """One framework's profiler.

    It is used once in a process, which measures nothing else: what profilers leave behind is in
    nobody's times.
    """

    @abstractmethod
    def profile(self, work: Callable[[], object], trace: Path) -> Sequence[Operator]:
        """The operators of some work, those of one name together or not.

        Args:
            work: is called once, and waits until it is done.
            trace: the file to write for Perfetto, in Chrome's trace event format: JSON.
        """


def class_of(name: str, table: Prefixes) -> str:
    """The class of an operator; ``other`` where the table has none for it.

    Args:
        name: of the operator.
        table: of the framework; the longest prefix that fits decides.
    """
    fitting = {
        prefix: operator_class
        for operator_class, prefixes in table.items()
        for prefix in prefixes
        if name.startswith(prefix)
    }
    return fitting[max(fitting, key=len)] if fitting else OTHER


def together(operators: Sequence[Operator]) -> list[Operator]:
    """Operators of the same name and class as one, those with the most time first."""
    times_s: dict[tuple[str, str], float] = {}
    calls: dict[tuple[str, str], int] = {}
    for each in operators:
        key = (each.name, each.operator_class)
        times_s[key] = times_s.get(key, 0.0) + each.time_s
        calls[key] = calls.get(key, 0) + each.calls
    united = [Operator(*key, times_s[key], calls[key]) for key in times_s]
    return sorted(united, key=lambda each: -each.time_s)
