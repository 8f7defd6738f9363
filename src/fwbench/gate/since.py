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
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

import numpy as np

from fwbench.errors import ComparisonError, InstallationError, UsageError
from fwbench.gate import sequential
from fwbench.gate.lineup import LineupLaunch
from fwbench.gate.patience import BudgetIsOver
from fwbench.gate.samples import Metric
from fwbench.gate.sequential import TELLING, WITH_LUCK, Floats, MetricTest
from fwbench.gate.verdicts import Rules, Verdict
from fwbench.records.measurement import MEDIAN
from fwbench.records.session_facts import StoredRow, StoredRowCase, StoredStep
from fwbench.records.units import count, duration

#: More would wait for each other too long, as in the rows of a session.
AT_ONCE = 8

#: Launches after which a step is given up.
_MOST = 40

#: Versions that make a row.
TWO = 2

#: What is judged has the whole level.
_METRIC = Metric(MEDIAN, 1.0)

_CHANGED = (Verdict.REGRESSED, Verdict.IMPROVED)

#: Places of two versions, the earlier one first.
Step = tuple[int, int]


@dataclass
class VersionRow:
    """A case in all versions that are measured.

    Attributes:
        places: of these versions, in their order.
        missing: why it was not measured, by place.
        times_s: medians of launches, by place.
        looks: by any two places, the earlier first, one logarithm of the later version's ratio to
            the earlier one's for each launch.
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

    @property
    def measured_steps(self) -> list[Step]:
        """The same without versions that were put into a step, and not measured yet."""
        return [*itertools.pairwise(place for place in self.places if self.times_s.get(place))]

    @property
    def whole(self) -> Step:
        """From the first version to the last."""
        return self.places[0], self.places[-1]

    def add(self, logs: Mapping[int, Floats]) -> None:
        """Add the visits of a launch: logarithms of seconds, by place, of as many rounds."""
        for place, visits in logs.items():
            self.times_s[place].append(math.exp(float(np.median(visits))))
        # Not of neighbours alone: others become neighbours where a version is lost.
        for step in itertools.combinations(sorted(logs), 2):
            self.looks[step].append(float(np.median(logs[step[1]] - logs[step[0]])))

    def lose(self, place: int, why: str) -> None:
        """Measure it no more in a version."""
        self.missing[place] = why
        self.places = [each for each in self.places if each != place]


@dataclass(frozen=True)
class Change:
    """A step, and what it has brought.

    Attributes:
        step: between neighbours if its versions could be told apart.
        ratio: of the later version's time to the earlier one's; None where no launch has both.
        bounds: of the ratio, the lower one first; none where so few launches exclude nothing.
        launches: that have shown it.
        reason: why there is no verdict; empty if there is one.
    """

    step: Step
    verdict: Verdict | None
    ratio: float | None
    bounds: Sequence[float]
    launches: int
    reason: str = ""


class Search:
    """Which versions are to be measured next, of which cases; and what is known of them.

    Args:
        versions: number of versions in the row.

    Attributes:
        at_once: how many take turns together.
        rows: by case.
        lost: why a version cannot be measured at all, by place.
        died: how sessions of versions have ended that may do better the next time, or beside fewer
            others, by place.
    """

    def __init__(self, versions: int, rules: Rules, at_once: int = AT_ONCE) -> None:
        self.versions = versions
        self.rules = rules
        self.rows: dict[str, VersionRow] = {}
        self.lost: dict[int, str] = {}
        self.died: dict[int, str] = {}
        self.at_once = at_once

    def first(self, measured: Collection[int] = ()) -> list[int]:
        """The versions of the first launch: all, or at even distances; at least two.

        Args:
            measured: by earlier calls; of many versions these are taken, with both ends.
        """
        usable = [place for place in range(self.versions) if place not in self.lost]
        if measured and len(usable) > self.at_once:
            return sorted({usable[0], usable[-1], *measured})
        number = min(len(usable), self.at_once)
        return [usable[round(at)] for at in np.linspace(0, len(usable) - 1, number)]

    def begin(self, places: Sequence[int], cases: Iterable[str]) -> None:
        """Expect these cases in these versions, from the first launch on."""
        self.rows = {case: VersionRow([*places]) for case in cases}

    def lose(self, place: int, why: str) -> None:
        """Do without a version, which cannot be built or launched."""
        self.lost[place] = why
        for row in self.rows.values():
            row.lose(place, why)

    def unmeasured(self) -> dict[int, str]:
        """The versions that have broken down and never been measured, with the reasons."""
        measured = {
            place for row in self.rows.values() for place, times_s in row.times_s.items() if times_s
        }
        died = {place: why for place, why in self.died.items() if place not in measured}
        return {**died, **self.lost}

    def next(self) -> tuple[list[int], list[str]]:
        """The versions of the next launch and its cases; none when nothing is left to find out."""
        while not (wanted := self._open()):
            if not self._halve():
                return [], []
        places: set[int] = set()
        for _, step in wanted:
            if len(places | {*step}) <= self.at_once:
                places |= {*step}
        return sorted(places), [*dict.fromkeys(case for case, step in wanted if {*step} <= places)]

    def _open(self) -> list[tuple[str, Step]]:
        """The steps without a verdict, those with the fewest launches first."""
        steps = [(case, step) for case, row in self.rows.items() for step in self._open_steps(row)]
        return sorted(steps, key=lambda each: len(self.rows[each[0]].looks[each[1]]))

    def _open_steps(self, row: VersionRow) -> list[Step]:
        """Open steps of a case; where none has changed, its whole row, as small steps add up."""
        steps = [step for step in row.steps if self._is_open(row.looks[step])]
        if steps or not row.steps or any(self.verdict(row, step) in _CHANGED for step in row.steps):
            return steps
        return [row.whole] if self._is_open(row.looks[row.whole]) else []

    def _is_open(self, looks: Sequence[float]) -> bool:
        """True if there is no verdict, and further launches may bring one."""
        if len(looks) < TELLING:
            return not looks or self.test.verdict(np.array(looks)) is None
        more = self.test.more_pairs(np.array(looks), WITH_LUCK)
        return more > 0 and len(looks) + more <= _MOST

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
                if within and verdict in _CHANGED:
                    row.halved[step] = verdict
                    row.places = sorted([*row.places, within[len(within) // 2]])
                    is_halved = True
        return is_halved

    @property
    def test(self) -> MetricTest:
        """The test of a step.

        A row of N versions has N - 1 of them, and at most as many again where steps are halved; of
        more than one, the whole row is tested, too.
        """
        steps = (self.versions - 1) * (1 if self.versions <= self.at_once else 2)
        tests = max(1, len(self.rows) * (steps + (self.versions > TWO)))
        threshold = math.log1p(self.rules.threshold)
        return MetricTest(
            threshold,
            sequential.evidence_needed(_METRIC, self.rules, tests),
            -math.log(1 - self.rules.confidence),
            math.log1p(self.rules.margin_of(self.rules.threshold)),
            _METRIC,
            self.rules,
            ("launches", "later version", "earlier version"),
        )

    def verdict(self, row: VersionRow, step: Step) -> Verdict | None:
        """The verdict on a step; None while there is none."""
        looks = np.array(row.looks[step])
        return self.test.verdict(looks) if looks.size else None

    def changes(self, row: VersionRow) -> list[Change]:
        """The steps at which a case has changed, in their order.

        One that was halved, and whose halves do not tell where it has changed, is one of them. So
        is the whole row if it has changed, and no step for certain.
        """
        found = [
            self._change(row, step, verdict)
            for step in row.steps
            if (verdict := self.verdict(row, step)) in _CHANGED
        ]
        wide = dict(row.halved)
        if row.steps and not found and (verdict := self.verdict(row, row.whole)) in _CHANGED:
            wide[row.whole] = verdict
        # The narrowest first: a wide step is explained by any change within it.
        for step, verdict in sorted(wide.items(), key=lambda each: each[0][1] - each[0][0]):
            within = (change for change in found if _is_within(change.step, step))
            if not any(change.verdict is verdict for change in within):
                found.append(self._change(row, step, verdict))
        return sorted(found, key=lambda change: change.step)

    def _change(self, row: VersionRow, step: Step, verdict: Verdict | None) -> Change:
        looks = row.looks[step]
        if not looks:
            return Change(step, None, None, (), 0)
        bounds = sequential.interval(np.array(looks), self.rules.confidence)
        known = [math.exp(bound) for bound in bounds if math.isfinite(bound)]
        ratio = math.exp(statistics.median(looks))
        return Change(step, verdict, ratio, known if len(known) == len(bounds) else (), len(looks))

    def steps(self, row: VersionRow) -> list[Change]:
        """All steps of a case when no more is measured; None is a verdict that is not known."""
        changes = []
        for step in row.measured_steps:
            verdict, reason = self._last(row.looks[step])
            changes.append(replace(self._change(row, step, verdict), reason=reason))
        return changes

    def _last(self, looks: Sequence[float]) -> tuple[Verdict | None, str]:
        """The verdict; without one the reason."""
        if not looks:
            return None, "no launch has both"
        verdict, reason, _ = self.test.final_verdict(np.array(looks))
        if verdict is not Verdict.INCONCLUSIVE:
            return verdict, ""
        hopeless = f"; {_MOST} would hardly tell, either" * (not self._is_open(looks))
        return None, reason + hopeless


def _stored(change: Change, versions: Sequence[str]) -> StoredStep:
    after, since = (versions[place] for place in change.step)
    return StoredStep(
        after=after,
        since=since,
        verdict=change.verdict,
        ratio=change.ratio,
        bounds=[*change.bounds],
        launches=change.launches,
        reason=change.reason or None,
    )


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
        reused: number of launches of earlier calls.
        is_interrupted: whether more was to be measured.
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
        self.launches = self.sessions = self.reused = 0
        self.is_interrupted = False
        self.took_s = 0.0
        self._lineup = launches
        self._prepare = prepare
        self._budget_s = budget_s
        self._say = say
        self._clock = clock
        self._ready: set[int] = set()

    def resume(self, earlier: Sequence[LineupLaunch]) -> None:
        """Begin with launches of earlier calls, whose versions :meth:`make_ready` was asked for."""
        cases = {case: None for launch in earlier for case in launch.logs}
        measured = {place for launch in earlier for logs in launch.logs.values() for place in logs}
        if len(places := self.search.first(measured)) < TWO or not cases:
            return
        self.search.begin(places, cases)
        self.reused = len(earlier)
        for launch in earlier:
            for case, logs in launch.logs.items():
                self.search.rows[case].add(logs)

    def measure(self, seed: int) -> None:
        """Measure; what is known by then stays if that is interrupted.

        Raises:
            ComparisonError: fewer than two versions can be measured.
        """
        begun_s = self._clock()
        try:
            self._measure(seed, begun_s)
        except KeyboardInterrupt:
            if not self.search.rows:
                raise
            self.is_interrupted = True
        self.took_s = self._clock() - begun_s

    def _measure(self, seed: int, begun_s: float) -> None:
        draw = random.Random(f"{seed} {self.reused}")  # noqa: S311 (no secret)
        launch_s = 0.0
        while (wanted := self._wanted())[0]:
            left_s = self._budget_s - (self._clock() - begun_s)
            if self.launches and launch_s > left_s:
                break
            self._tell(*wanted, left_s)
            started_s = self._clock()
            try:
                brought = self._lineup.launch(*wanted, draw.randrange(10**6))
            except BudgetIsOver as error:
                if not self.search.rows:
                    raise
                self._say(str(error))
                break
            self._add(*wanted, brought)
            launch_s = self._clock() - started_s

    def stored(
        self,
        asked: str,
        versions: Sequence[str],
        gaps: Mapping[str, str],
        settings: Mapping[str, Any],
        apart: Mapping[str, str] | None = None,
    ) -> StoredRow:
        """The figures.

        Args:
            asked: what was asked for: ``numpy>=1.26``.
            versions: their names, by place.
            gaps: why other versions are not among them.
            settings: that it was measured with.
            apart: why cases took no turns.
        """
        lost = {versions[place]: why for place, why in self.search.unmeasured().items()}
        return StoredRow(
            row=asked,
            versions=[*versions],
            gaps={**gaps, **lost},
            cases={case: self._case(row, versions) for case, row in self.search.rows.items()},
            rules={**self.search.rules.recorded(), **settings},
            interrupted=self.is_interrupted,
            launches=self.launches,
            sessions=self.sessions,
            reused=self.reused,
            took_s=self.took_s,
            apart=dict(apart) if apart else None,
        )

    def _case(self, row: VersionRow, versions: Sequence[str]) -> StoredRowCase:
        steps = self.search.steps(row)
        times_s = {}
        if measured := [place for place in row.places if row.times_s.get(place)]:
            times_s = {versions[measured[0]]: statistics.median(row.times_s[measured[0]])}
        for change in steps:
            after, since = (versions[place] for place in change.step)
            if change.ratio is not None and after in times_s:
                times_s[since] = times_s[after] * change.ratio
        return StoredRowCase(
            times_s=times_s,
            steps=[_stored(change, versions) for change in steps],
            changes=[_stored(change, versions) for change in self.search.changes(row)],
            missing={versions[place]: why for place, why in row.missing.items()},
        )

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
            for place in places:
                self.make_ready(place)
            if len(self.search.lost) == lost:
                return places, cases

    def make_ready(self, place: int) -> bool:
        """Make a version ready to be launched; false if that is impossible."""
        if place not in self._ready and place not in self.search.lost:
            try:
                self._prepare(place)
            except (ComparisonError, InstallationError, UsageError) as error:
                self.search.lose(place, str(error))
            else:
                self._ready.add(place)
        return place in self._ready

    def _tell(self, places: list[int], cases: list[str] | None, left_s: float) -> None:
        versions = count(len(places), "version")
        of_cases = "all cases" if cases is None else count(len(cases), "case") + " open"
        number = self.reused + self.launches + 1
        self._say(f"launch {number}: {versions}, {of_cases}, {duration(left_s)} left")

    def _add(self, places: list[int], cases: list[str] | None, brought: LineupLaunch) -> None:
        self.launches += 1
        self.sessions += brought.sessions
        if self._is_repeated(places, brought):
            return
        for place in places:
            if place in brought.lost:
                self.search.lose(place, brought.lost[place])
            else:
                self.search.died.pop(place, None)
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

    def _is_repeated(self, places: list[int], brought: LineupLaunch) -> bool:
        """True if what died may do better: beside fewer others for lack of memory, else once."""
        search = self.search
        again = brought.died if brought.lacked_memory else brought.died - search.died.keys()
        if not again or len(places) == TWO:
            return False
        search.died |= {place: brought.lost[place] for place in brought.died}
        if brought.lacked_memory:
            search.at_once = max(TWO, len(places) // 2)
            self._say(
                f"{search.at_once} versions at once from now on, in case memory is too little"
            )
        return True
