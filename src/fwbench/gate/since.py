"""Since when: the steps of a row of versions at which a case has changed.

Versions that are measured together are alive at once and take turns by visits, as the sides of
``fwbench ab`` do. Each launch gives one difference for a step from a version to the next one that
is measured: the median of the logarithms of their visits' ratios. Steps are tested by
:mod:`fwbench.gate.sequential`, with a level that all cases and all steps share. A row of more
versions than can take turns is measured at even distances at first, and a step that has changed is
halved until no version lies within it. A step that has not changed is not: what becomes slower and
fast again within it does not show.
"""

from __future__ import annotations

import itertools
import math
import random
import statistics
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np

from fwbench.errors import ComparisonError, InstallationError, UsageError
from fwbench.gate import sequential
from fwbench.gate.lineup import LineupLaunch
from fwbench.gate.samples import Metric
from fwbench.gate.sequential import Floats, MetricTest
from fwbench.gate.verdicts import Rules, Verdict
from fwbench.records.measurement import MEDIAN
from fwbench.records.units import count, duration

#: More would wait for each other too long, as in the rows of a session.
AT_ONCE = 8

#: Launches after which a step is given up.
_MOST = 40

#: Versions that make a row.
TWO = 2

#: What is judged has the whole level.
_METRIC = Metric(MEDIAN, 1.0)

#: Places of two versions, the earlier one first.
Step = tuple[int, int]


@dataclass
class VersionRow:
    """A case in all versions that are measured.

    Attributes:
        places: of these versions, in their order.
        missing: why it was not measured, by place.
        times_s: medians of launches, by place.
        looks: by step, one logarithm of the later version's ratio to the earlier for each launch.
        halved: verdicts on the steps that were halved.
    """

    places: list[int]
    missing: dict[int, str] = field(default_factory=dict)
    times_s: dict[int, list[float]] = field(default_factory=lambda: defaultdict(list))
    looks: dict[Step, list[float]] = field(default_factory=lambda: defaultdict(list))
    halved: dict[Step, Verdict] = field(default_factory=dict)

    @property
    def steps(self) -> list[Step]:
        """The steps between neighbours."""
        return [*itertools.pairwise(self.places)]

    def add(self, logs: Mapping[int, Floats]) -> None:
        """Add the visits of a launch: logarithms of seconds, by place, of as many rounds."""
        for place, visits in logs.items():
            self.times_s[place].append(math.exp(float(np.median(visits))))
        for step in self.steps:
            if step[0] in logs and step[1] in logs:
                self.looks[step].append(float(np.median(logs[step[1]] - logs[step[0]])))

    def lose(self, place: int, why: str) -> None:
        """Measure it no more in a version."""
        self.missing[place] = why
        self.places = [each for each in self.places if each != place]


@dataclass(frozen=True)
class Change:
    """A step at which a case has changed.

    Attributes:
        step: between neighbours if its versions could be told apart.
        ratio: of the later version's time to the earlier one's, with its bounds.
        launches: that have shown it.
    """

    step: Step
    verdict: Verdict
    ratio: float
    low: float
    high: float
    launches: int


class Search:
    """Which versions are to be measured next, of which cases; and what is known of them.

    Args:
        versions: number of versions in the row.
        at_once: how many take turns together.

    Attributes:
        rows: by case.
        lost: why a version cannot be measured at all, by place.
    """

    def __init__(self, versions: int, rules: Rules, at_once: int = AT_ONCE) -> None:
        self.versions = versions
        self.rules = rules
        self.rows: dict[str, VersionRow] = {}
        self.lost: dict[int, str] = {}
        self._at_once = at_once

    def first(self) -> list[int]:
        """The versions of the first launch: all, or at even distances; at least two."""
        usable = [place for place in range(self.versions) if place not in self.lost]
        number = min(len(usable), self._at_once)
        return [usable[round(at)] for at in np.linspace(0, len(usable) - 1, number)]

    def begin(self, places: Sequence[int], cases: Iterable[str]) -> None:
        """Expect these cases in these versions, from the first launch on."""
        self.rows = {case: VersionRow([*places]) for case in cases}

    def lose(self, place: int, why: str) -> None:
        """Do without a version, which cannot be built or launched."""
        self.lost[place] = why
        for row in self.rows.values():
            row.lose(place, why)

    def next(self) -> tuple[list[int], list[str]]:
        """The versions of the next launch and its cases; none when nothing is left to find out."""
        while not (wanted := self._open()):
            if not self._halve():
                return [], []
        places: set[int] = set()
        for _, step in wanted:
            if len(places | {*step}) <= self._at_once:
                places |= {*step}
        return sorted(places), [*dict.fromkeys(case for case, step in wanted if {*step} <= places)]

    def _open(self) -> list[tuple[str, Step]]:
        """The steps without a verdict, those with the fewest launches first."""
        steps = [
            (case, step)
            for case, row in self.rows.items()
            for step in row.steps
            if len(row.looks[step]) < _MOST and self.verdict(row, step) is None
        ]
        return sorted(steps, key=lambda each: len(self.rows[each[0]].looks[each[1]]))

    def _halve(self) -> bool:
        """Put a version into each step that has changed; False if none can be."""
        is_halved = False
        for row in self.rows.values():
            for step in row.steps:
                verdict = self.verdict(row, step)
                within = [
                    place
                    for place in range(step[0] + 1, step[1])
                    if place not in self.lost and place not in row.missing
                ]
                if within and verdict in (Verdict.REGRESSED, Verdict.IMPROVED):
                    row.halved[step] = verdict
                    row.places = sorted([*row.places, within[len(within) // 2]])
                    is_halved = True
        return is_halved

    @property
    def test(self) -> MetricTest:
        """The test of a step: a row of N versions has at most 2 N of them, halved ones included."""
        tests = max(1, len(self.rows)) * 2 * self.versions
        threshold = math.log1p(self.rules.threshold)
        return MetricTest(
            threshold,
            sequential.evidence_needed(_METRIC, self.rules, tests),
            -math.log(1 - self.rules.confidence),
            math.log1p(self.rules.margin),
            _METRIC,
            self.rules,
        )

    def verdict(self, row: VersionRow, step: Step) -> Verdict | None:
        """The verdict on a step; None while there is none."""
        looks = np.array(row.looks[step])
        return self.test.verdict(looks) if looks.size else None

    def changes(self, row: VersionRow) -> list[Change]:
        """The steps at which a case has changed, in their order.

        One that was halved, and whose halves do not tell where it has changed, is one of them.
        """
        found = [
            self._change(row, step, verdict)
            for step in row.steps
            if (verdict := self.verdict(row, step)) in (Verdict.REGRESSED, Verdict.IMPROVED)
        ]
        # The narrowest first: a wide step is explained by any change within it.
        for step, verdict in sorted(row.halved.items(), key=lambda each: each[0][1] - each[0][0]):
            within = (change for change in found if _is_within(change.step, step))
            if not any(change.verdict is verdict for change in within):
                found.append(self._change(row, step, verdict))
        return sorted(found, key=lambda change: change.step)

    def _change(self, row: VersionRow, step: Step, verdict: Verdict) -> Change:
        looks = np.array(row.looks[step])
        low, high = sequential.interval(looks, self.rules.confidence)
        ratio = statistics.median(row.looks[step])
        return Change(
            step, verdict, math.exp(ratio), math.exp(low), math.exp(high), len(row.looks[step])
        )

    def untold(self, row: VersionRow) -> list[Step]:
        """The steps that nothing could be said of."""
        return [step for step in row.steps if self.verdict(row, step) is None]

    def largest(self, row: VersionRow) -> float:
        """The change that no step of a row without one exceeds, as a ratio above 1."""
        bounds: Iterator[float] = (
            bound
            for step in row.steps
            for bound in sequential.interval(np.array(row.looks[step]), self.rules.confidence)
        )
        return max(math.exp(abs(bound)) for bound in bounds)


def _is_within(step: Step, other: Step) -> bool:
    return other[0] <= step[0] and step[1] <= other[1]


class Launches(Protocol):
    """Launches of several versions at once; see :class:`fwbench.gate.lineup.Lineup`."""

    def launch(self, places: Sequence[int], cases: Sequence[str] | None, seed: int) -> LineupLaunch:
        """Measure cases in the versions at some places; all that the arguments select if None."""


class RowOfVersions:
    """Measures a row of versions until nothing is left to find out, or the time is over.

    Args:
        prepare: makes a version ready to be launched, and raises where that is impossible.
        budget_s: no launch begins that would not be over by then, but for the first one.

    Attributes:
        launches: number of launches so far, and of their sessions.
    """

    def __init__(
        self,
        search: Search,
        launches: Launches,
        prepare: Callable[[int], object],
        budget_s: float,
        say: Callable[[str], object],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.search = search
        self.launches = self.sessions = 0
        self.took_s = 0.0
        self._lineup = launches
        self._prepare = prepare
        self._budget_s = budget_s
        self._say = say
        self._clock = clock
        self._ready: set[int] = set()

    def measure(self, seed: int) -> None:
        """Measure; what is known by then stays if that is interrupted.

        Raises:
            ComparisonError: fewer than two versions can be measured.
        """
        draw = random.Random(seed)  # noqa: S311 (no secret)
        begun_s, launch_s = self._clock(), 0.0
        while (wanted := self._wanted())[0]:
            self.took_s = self._clock() - begun_s
            if self.took_s + launch_s > self._budget_s:
                break
            self._tell(*wanted, left_s=self._budget_s - self.took_s)
            started_s = self._clock()
            self._add(*wanted, self._lineup.launch(*wanted, draw.randrange(10**6)))
            launch_s = self._clock() - started_s
        self.took_s = self._clock() - begun_s

    def _wanted(self) -> tuple[list[int], list[str] | None]:
        """The versions of the next launch, ready, and its cases: of the first one all."""
        while True:
            is_begun = bool(self.search.rows)
            places, cases = self.search.next() if is_begun else (self.search.first(), None)
            if not is_begun and len(places) < TWO:
                raise ComparisonError(
                    "fewer than two versions can be measured; the last of the others: "
                    f"{['there is no other', *self.search.lost.values()][-1]}"
                )
            lost = len(self.search.lost)
            for place in {*places} - self._ready:
                self._make_ready(place)
            if len(self.search.lost) == lost:
                return places, cases

    def _make_ready(self, place: int) -> None:
        try:
            self._prepare(place)
        except (ComparisonError, InstallationError, UsageError) as error:
            self.search.lose(place, str(error))
        else:
            self._ready.add(place)

    def _tell(self, places: list[int], cases: list[str] | None, left_s: float) -> None:
        versions = count(len(places), "version")
        of_cases = "all cases" if cases is None else count(len(cases), "case") + " open"
        self._say(f"launch {self.launches + 1}: {versions}, {of_cases}, {duration(left_s)} left")

    def _add(self, places: list[int], cases: list[str] | None, brought: LineupLaunch) -> None:
        self.launches += 1
        self.sessions += len(places)
        for place, why in brought.lost.items():
            self.search.lose(place, why)
        if cases is None:
            if not brought.logs:
                raise ComparisonError(
                    "no version has a benchmark that the arguments select; the last words of one: "
                    f"{[*brought.lost.values(), 'none failed'][0]}"
                )
            usable = [place for place in places if place not in brought.lost]
            if len(usable) >= TWO:  # or else it is tried with others
                self.search.begin(usable, brought.logs)
        for case, row in self.search.rows.items():
            if cases is not None and case not in cases:
                continue
            for place, why in brought.missing.get(case, {}).items():
                row.lose(place, why)
            row.add(brought.logs.get(case, {}))
