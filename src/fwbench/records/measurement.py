"""A measured case: the one form in which gate, report and terminal read it."""

from __future__ import annotations

import statistics
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Self

from fwbench.records.facts import CaseFacts, Epoch
from fwbench.records.upstream import Statistics

#: Fewer values have no quartiles worth the name.
_FEW = 8

#: Parameters of a case that are facts of their own; the others are the toggles it was given.
_PARTS = ("workload", "framework", "device", "execution", "direction", "dtype", "size")


@dataclass(frozen=True)
class Measurement:
    """A measured case, or a benchmark that fwbench did not write.

    Attributes:
        facts: what fwbench recorded; empty if it did not write the record.
        values_s: seconds of a call: a value for each launch, or else for each round.
        requested: values of the toggles that were requested, by name.
        nodeid: node id of its test: the same in every run.
        test: name of its test.
        param: id of the case; empty for a test without parameters.
        group: pytest-benchmark's group.
        stats: pytest-benchmark's statistics, seconds.
        run: number of its run in a report, from 0.
        repeat: which measurement of the same case in its session it is, from 1.
    """

    facts: CaseFacts
    values_s: Sequence[float]
    requested: Mapping[str, str] = field(default_factory=dict)
    nodeid: str = ""
    test: str = ""
    param: str = ""
    group: str = ""
    stats: Statistics = field(default_factory=Statistics)
    run: int = 0
    repeat: int = 1

    # Names

    @property
    def name(self) -> str:
        """The id of the case, or the name of a test without parameters."""
        return self.param or self.test

    @property
    def contestant(self) -> str:
        """Framework, execution and requested toggles: ``torch eager workers=2``."""
        return self.contestant_with(lambda _: True)

    def contestant_with(self, shows: Callable[[str], bool]) -> str:
        """Framework, execution and some of the requested toggles.

        Args:
            shows: whether the toggle of a name is shown.
        """
        toggles = (f"{name}={value}" for name, value in self.requested.items() if shows(name))
        number = [f"#{self.repeat}"] * (self.repeat > 1)
        return " ".join([self.facts.framework, self.facts.execution, *toggles, *number])

    @property
    def values_text(self) -> str:
        """The number of its values: ``5 launches``, ``1 round``."""
        singular, plural = ("round", "rounds")
        if self.has_launches:
            singular, plural = ("launch", "launches")
        elif "epochs" in self.facts:
            singular, plural = ("epoch", "epochs")
        return f"{self.number} {singular if self.number == 1 else plural}"

    # Times

    @cached_property
    def median_s(self) -> float:
        """The median of the values, in seconds."""
        return statistics.median(self.values_s)

    @property
    def smallest_s(self) -> float:
        """The smallest of its rounds, in seconds."""
        return min(self.stats.data or ()) if self.stats.min is None else self.stats.min

    @cached_property
    def quartiles_s(self) -> tuple[float, float]:
        """The ends of the middle half of the values (IQR); of all of them, where there are few."""
        if not self._has_values:
            low, high = self.stats.q1, self.stats.q3
            return self.median_s if low is None else low, self.median_s if high is None else high
        if len(self.values_s) < _FEW:
            return min(self.values_s), max(self.values_s)
        low, _, high = statistics.quantiles(self.values_s, n=4, method="inclusive")
        return low, high

    @property
    def has_launches(self) -> bool:
        """True if the values are of launches, each in a process of its own."""
        return bool(self.facts.get("launches"))

    @property
    def number(self) -> int:
        """The number of values that were measured, also where only statistics were stored."""
        return len(self.values_s) if self._has_values else self.stats.rounds or 1

    @property
    def _has_values(self) -> bool:
        return self.has_launches or bool(self.stats.data)

    # Training loops

    @property
    def epochs(self) -> Sequence[Epoch]:
        """The epochs of a training loop, those of the warm-up among them; of others none."""
        return self.facts.epochs or ()

    @property
    def is_synthetic(self) -> bool:
        """True if it learned from generated data."""
        return self.facts.data is not None and self.facts.data.source == "synthetic"

    def without_values(self) -> Self:
        """The same without its values: a history keeps thousands of measurements."""
        return replace(self, values_s=(), stats=Statistics())


def requested_toggles(params: Mapping[str, Any]) -> dict[str, str]:
    """The toggles among the parameters of a case.

    Args:
        params: as pytest-benchmark's entry of the case has them.
    """
    return {name: str(value) for name, value in params.items() if name not in _PARTS}


def repeats(keys: Iterable[Hashable]) -> Iterator[int]:
    """For each key how often it has occurred so far: 1, and 2 or more for repeats.

    Two tests of a session may measure the same case: ``torch eager`` and ``torch eager #2``.
    """
    seen: Counter[Hashable] = Counter()
    for key in keys:
        seen[key] += 1
        yield seen[key]
