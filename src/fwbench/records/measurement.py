"""A measured case: the one form in which gate, report and terminal read it."""

import math
import statistics
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, NamedTuple, Self, TypeVar

from fwbench.measure.condition import CONTENDED
from fwbench.records.facts import CaseFacts, Epoch, Launch, RowVisits
from fwbench.records.repeatability import (
    DECIDED,
    INTERVAL,
    Repeatability,
    Revisits,
    far_apart,
    known,
    of_ratio,
    stated,
    student,
)
from fwbench.records.session_facts import MachineFacts, SessionFacts
from fwbench.records.units import count
from fwbench.records.upstream import Statistics
from fwbench.terms.names import framework_of, without_environment

T = TypeVar("T")
K = TypeVar("K", bound=Hashable)

#: Fewer values have no quartiles worth the name.
_FEW = 8

#: Rounds of one process that follow each other are alike, so they are no more than this many
#: independent ones: a call of MXNet takes 14 us for a while, and then 58.
_BLOCKS = 10

#: Where the third quartile of rounds is this many times the first, two medians may be alike by
#: chance.
_TWO_SPEEDS = 1.5

#: Fewer launches do not show how far others would be apart.
_LAUNCHES_AT_LEAST = 3

#: Parameters of a case that are facts of their own; the others are the toggles it was given.
_PARTS = ("workload", "framework", "device", "execution", "direction", "dtype", "size")


MINIMUM = "minimum"
MEDIAN = "median"
SLOW = "slow rounds"
MEMORY = "memory"
MEMORY_BEFORE = "memory before"

#: Times of which a pair of launches that took turns has a ratio of its own, and where it is among
#: the contender's figures: the logarithm.
TURNS = {name: f"{name} in turns" for name in (MINIMUM, MEDIAN, SLOW)}

#: The number of visits that these ratios are of; 0 where a launch took no turns.
VISITS = "visits"

#: In hertz: what makes cycles of times on a GPU. It has no verdict of its own.
CLOCK = "clock"

#: Figures of a launch: a function for each name that reads it, or None where it was not measured.
_FIGURES: Mapping[str, Callable[[Launch], float | None]] = {
    MINIMUM: lambda launch: launch.min_s,
    MEDIAN: lambda launch: launch.median_s,
    "dispatch": lambda launch: launch.dispatch_s,
    "first call": lambda launch: launch.first_call_in_process_s,
    "compilation": lambda launch: launch.compile_s,
    MEMORY: lambda launch: launch.memory_taken_bytes,
    MEMORY_BEFORE: lambda launch: launch.host_memory_before_bytes,
    CLOCK: lambda launch: launch.sm_clock_hz,
}


@dataclass(frozen=True)
class Measurement:
    """A measured case, or a benchmark that fwbench did not write."""

    #: What fwbench recorded; empty if it did not write the record.
    facts: CaseFacts
    #: Seconds of a call: a value for each launch, or else for each round.
    values_s: Sequence[float]
    requested: Mapping[str, str] = field(default_factory=dict)
    nodeid: str = ""
    test: str = ""
    #: Id of the case; empty for a test without parameters.
    param: str = ""
    group: str = ""
    stats: Statistics = field(default_factory=Statistics)
    #: Number of its run in a report, from 0.
    run: int = 0
    #: Which measurement of the same case in its session it is, from 1.
    repeat: int = 1
    machine: MachineFacts = field(default_factory=MachineFacts)
    #: What its session has measured twice.
    revisits: Revisits = field(default_factory=dict)
    #: :attr:`launches` that are not those of its facts: a session's, or changed.
    figures: Sequence[Mapping[str, float]] = ()
    #: What fwbench recorded of the session that measured it.
    session: SessionFacts = field(default_factory=SessionFacts)

    # Names

    @property
    def name(self) -> str:
        """The id of the case, or the name of a test; parameters alone would not tell which one."""
        return (self.param if self.facts else "") or self.test or self.param

    @property
    def framework(self) -> str:
        """Its framework without an environment; empty for a benchmark that is not fwbench's."""
        return framework_of(self.facts.get("framework", ""))

    @property
    def key(self) -> str:
        """Its node id, in which a framework has the same name in every environment."""
        return without_environment(self.nodeid, self.facts.get("framework", ""))

    @property
    def label(self) -> str:
        """Its name to show beside the same case of another environment.

        Of a benchmark that is not fwbench's the node id: its parameters alone name no test.
        """
        named = (self.param if self.facts else "") or self.nodeid
        return without_environment(named, self.facts.get("framework", ""))

    @property
    def work(self) -> str:
        """A text that stays the same when its test is renamed."""
        return self.label if self.facts else self.nodeid

    @property
    def contestant(self) -> str:
        """Framework, execution and requested toggles: ``torch eager workers=2``."""
        return self.contestant_with(lambda _: True)

    def contestant_with(self, shows: Callable[[str], bool]) -> str:
        """Framework, execution and some of the requested toggles."""
        toggles = (f"{name}={value}" for name, value in self.requested.items() if shows(name))
        number = [f"#{self.repeat}"] * (self.repeat > 1)
        return " ".join([self.facts.framework, self.facts.execution, *toggles, *number])

    @property
    def build(self) -> Mapping[str, Any]:
        """Build of its framework; empty where its session does not say."""
        manifest = (self.session.frameworks or {}).get(self.facts.get("framework", ""))
        return (manifest.build if manifest else None) or {}

    @property
    def values_text(self) -> str:
        """The number of its values: ``5 launches``, ``1 round``."""
        if self.has_launches:
            return count(self.number, "launch", "launches")
        return count(self.number, "epoch" if "epochs" in self.facts else "round")

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

    # Launches

    @cached_property
    def launches(self) -> Sequence[Mapping[str, float]]:
        """Figures of each launch by name; of a single process, those of its rounds."""
        if self.figures:
            return self.figures
        launches = self.facts.launches or (self._single(),)
        return [_figures(launch, self.facts.statistic) for launch in launches]

    def _single(self) -> Launch:
        """Measurements of a single process, as a launch."""
        measured = {name: self.facts[name] for name in Launch.declared() if name in self.facts}
        least_s = self.smallest_s
        median_s = least_s if self.stats.median is None else self.stats.median
        times_s = {"launch": 0, "value_s": least_s, "min_s": least_s, "median_s": median_s}
        return Launch(**{**measured, **times_s})

    @property
    def contended(self) -> bool:
        """True if a launch had to share its processors, or the only process."""
        in_launches = self.facts.contended
        return self.facts.condition == CONTENDED if in_launches is None else in_launches

    def known(self, name: str) -> tuple[float, ...]:
        """A figure of the launches that have it."""
        return tuple(launch[name] for launch in self.launches if name in launch)

    def values(self, name: str) -> tuple[float, ...]:
        """A figure of each launch; empty if one of them lacks it."""
        values = self.known(name)
        return values if len(values) == len(self.launches) else ()

    @property
    def times_s(self) -> tuple[float, ...]:
        """One time of each launch, whichever statistic they have."""
        return self.values(MINIMUM) or self.values(MEDIAN)

    def in_turns(self, base: Self, ratios: Mapping[str, float]) -> tuple[Self, Self]:
        """A base and this, of a launch each, with the ratios of their times.

        Args:
            ratios: logarithms, by the names of figures, of those that adjacent visits have, and
                their number; empty if the launches have taken no turns.
        """
        before, after = ({**side.launches[0]} for side in (base, self))
        after[VISITS] = ratios.get(VISITS, 0.0)
        if SLOW in ratios and base.stats.data and self.stats.data:
            before[SLOW], after[SLOW] = _slow_s(base.stats.data), _slow_s(self.stats.data)
        for name, figure in TURNS.items():
            if name in before and name in after:
                after[figure] = ratios.get(name, math.log(after[name] / before[name]))
        return replace(base, figures=[before]), replace(self, figures=[after])

    def of_session(self) -> Self:
        """The same with one value of each figure, the median over its launches."""
        medians = {
            name: statistics.median(self.known(name)) for name in _FIGURES if self.known(name)
        }
        return replace(self, figures=[medians])

    def joined(self, other: Self) -> Self:
        """The same with the figures of another measurement of the case behind these."""
        facts = self.facts
        if other.contended and not self.contended:
            facts |= CaseFacts(contended=True)
        if other.facts.different_results and not facts.different_results:
            facts |= CaseFacts(different_results=other.facts.different_results)
        return replace(self, facts=facts, figures=[*self.launches, *other.launches])

    @cached_property
    def repeatability(self) -> Repeatability:
        """Repeatability of its median: by its launches, or else by its session and its rounds."""
        if self.has_launches or self.figures:
            return known(self.values(MEDIAN) or self.times_s, self.revisits, self.framework)
        between = known((), self.revisits, self.framework, self.nodeid)
        # Not of the rounds, which the terminal does not have: it must name the winner of a report.
        low_s, high_s = self.stats.q1, self.stats.q3
        if low_s is None or high_s is None:
            return between
        if between.change is not None and high_s < _TWO_SPEEDS * low_s:
            return between
        blocks = min(self.stats.rounds or 1, _BLOCKS)
        return between.beside(_median_sd(math.log(high_s / low_s), blocks))

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
        """The same without its values and its session: a history keeps thousands of them."""
        return replace(self, values_s=(), stats=Statistics(), session=SessionFacts())


def in_turns(base: RowVisits | None, case: RowVisits | None) -> list[float]:
    """Logarithms of the ratios of visits that two cases made by turns; none where they did not."""
    if base is None or case is None or base.row != case.row:
        return []
    return [math.log(b / a) for a, b in zip(base.visits_s, case.visits_s, strict=False)]


class Ratio(NamedTuple):
    """The time of a case over that of another."""

    value: float
    #: Standard deviation between processes of its logarithm, or of the mean of two of these.
    sd: float
    #: Degrees of freedom of that.
    freedom: float
    #: Logarithm of the value over the mean of the ratios of two measurements; 0 if there is one.
    above_mean: float = 0.0

    def off(self, quantile: float) -> float:
        """The most that its logarithm is off, in either direction; ``1 - quantile`` are more."""
        return student(self.freedom, quantile) * self.sd

    def interval(self, quantile: float) -> tuple[float, float]:
        """Where it lies elsewhere: beyond either end in a share of ``1 - quantile``."""
        mean = math.log(self.value) - self.above_mean
        return math.exp(mean - self.off(quantile)), math.exp(mean + self.off(quantile))


#: Of cases that took turns, the standard deviation between processes of their ratio's logarithm:
#: with it 90 % intervals held in 86 of 100 pairs of sessions (docs/figures.md).
_IN_TURNS_SD = 0.06


def ratio(base: Measurement, case: Measurement) -> Ratio:
    """The time of a case over that of another: of adjacent visits where they took turns."""
    both = _both_launches(base, case) if base is not case else ()
    launches = [logs for visits in both if (logs := in_turns(*visits))]
    medians = [statistics.median(logs) for logs in launches]
    if not medians:
        # Cases of one session share what it has measured twice.
        together = base.revisits is case.revisits and base is not case
        off = of_ratio(base.repeatability, case.repeatability, together=together)
        value = case.median_s / base.median_s
        if off.change is None:
            return Ratio(value, off.sd, off.freedom)
        # The mean of both ratios scatters less than one of them, and not with their difference.
        return Ratio(value, off.sd / math.sqrt(2), off.freedom, -off.change / 2)
    value, number = math.exp(statistics.median(medians)), len(medians)
    if number >= _LAUNCHES_AT_LEAST:
        sd = statistics.stdev(medians) * math.sqrt(math.pi / 2 / number)
        return Ratio(value, sd, number - 1)
    within = max(_median_sd(_middle_half(logs), len(logs)) for logs in launches)
    return Ratio(value, math.hypot(_IN_TURNS_SD, within), math.inf)


def uncertainty(cases: Iterable[Measurement]) -> str:
    """Say how far medians of cases repeat, and ratios of those that took turns."""
    every = list(cases)
    text = stated(((case.framework, case.repeatability) for case in every), every[0].revisits)
    if far := far_apart(every[0].revisits, {case.nodeid: case.name for case in every}):
        text = f"{text}; {far}"
    offs = [
        math.expm1(ratio(row[0], case).off(INTERVAL))
        for row in _rows(every).values()
        for case in row[1:]
    ]
    if not offs:
        return text
    percent = max(1, round(100 * statistics.median(offs)))
    return (
        f"{text}; half of the ratios of cases that took turns, which are not those of their "
        f"medians, to within {percent} %"
    )


def took_turns(cases: Iterable[Measurement]) -> bool:
    """True if some took turns with each other, so that their ratios are those of visits."""
    return any(len(row) > 1 for row in _rows(cases).values())


def _rows(cases: Iterable[Measurement]) -> dict[str, list[Measurement]]:
    """The cases that took turns, by row."""
    rows: dict[str, list[Measurement]] = {}
    for case in cases:
        launches = (case.facts, *(case.facts.launches or ()))
        for row in dict.fromkeys(each.turns.row for each in launches if each.turns is not None):
            rows.setdefault(row, []).append(case)
    return rows


def _both_launches(
    base: Measurement, case: Measurement
) -> Iterator[tuple[RowVisits | None, RowVisits | None]]:
    """The visits of both in each launch of both; of a session without launches, its own."""
    if not (base.has_launches and case.has_launches):
        yield base.facts.turns, case.facts.turns
        return
    others = {launch.launch: launch.turns for launch in case.facts.launches or ()}
    for launch in base.facts.launches or ():
        yield launch.turns, others.get(launch.launch)


def _middle_half(values: Sequence[float]) -> float:
    """The width of the middle half of values (IQR)."""
    if len(values) < 2:  # noqa: PLR2004 (one has no spread)
        return 0.0
    low, _, high = statistics.quantiles(values, n=4, method="inclusive")
    return high - low


def _median_sd(middle_half: float, number: int) -> float:
    """Standard deviation of the median of so many values, by the width of their middle half."""
    # A normal distribution's middle half is 1.35 deviations wide.
    return middle_half / 1.35 * math.sqrt(math.pi / 2 / number)


def blur(pairs: Iterable[tuple[Measurement, Measurement]], quantile: float = DECIDED) -> float:
    """The most that a ratio of medians is where it is 1 elsewhere; of several, of their mean."""
    ratios = [ratio(*pair) for pair in pairs]
    deviations = student(min(each.freedom for each in ratios), quantile)
    off = deviations * math.hypot(*(each.sd for each in ratios)) / len(ratios)
    return math.exp(off + statistics.fmean(each.above_mean for each in ratios))


def _slow_s(rounds_s: Sequence[float]) -> float:
    """The time that nine of ten rounds do not take."""
    return sorted(rounds_s)[len(rounds_s) * 9 // 10]


def _figures(launch: Launch, statistic: str | None) -> dict[str, float]:
    """Figures of a launch by name; ``statistic`` (``min``, ``median``) is that of a lone time."""
    values = {name: read(launch) for name, read in _FIGURES.items()}
    if launch.rounds_s and launch.min_s is None:
        values[MINIMUM] = min(launch.rounds_s)
        values[MEDIAN] = statistics.median(launch.rounds_s)
    if values[MINIMUM] is None and values[MEDIAN] is None:
        values[MEDIAN if statistic == "median" else MINIMUM] = launch.value_s
    return {name: float(value) for name, value in values.items() if value is not None}


def requested_toggles(params: Mapping[str, Any]) -> dict[str, str]:
    """The toggles among the parameters of a case."""
    return {name: str(value) for name, value in params.items() if name not in _PARTS}


def group_by(items: Iterable[T], key: Callable[[T], K]) -> dict[K, list[T]]:
    """Items by a key, in the order in which keys come first."""
    groups: dict[K, list[T]] = {}
    for item in items:
        groups.setdefault(key(item), []).append(item)
    return groups


def repeats(keys: Iterable[Hashable]) -> Iterator[int]:
    """For each key how often it has occurred so far: 1, and 2 or more for repeats.

    Two tests of a session may measure the same case: ``torch eager`` and ``torch eager #2``.
    """
    seen: Counter[Hashable] = Counter()
    for key in keys:
        seen[key] += 1
        yield seen[key]
