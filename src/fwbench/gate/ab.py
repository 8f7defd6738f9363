"""A/B comparisons: pairs of launches, as many as each case needs or time allows.

A pair is a launch of the base and one of the contender, one right after the other, in random order:
a machine that grows slower does so for both, and :mod:`fwbench.gate.sequential` can test after
every pair. A launch is a pytest session in a process of its own.
"""

from __future__ import annotations

import dataclasses
import random
import signal
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from fwbench.errors import ComparisonError, DifferentSettings, UsageError
from fwbench.gate import sequential
from fwbench.gate.resume import ComparisonJob, SavedLaunch
from fwbench.gate.samples import SampleSet, refuse_differences, unequal_work
from fwbench.gate.sides import Side, variables_of
from fwbench.gate.verdicts import Comparison, Judgement, Rules, Verdict, one_sided, unjudged
from fwbench.options.values import FACTS
from fwbench.processes import scratch, session
from fwbench.processes.command import Finished
from fwbench.processes.session import SELECTOR
from fwbench.records.measurement import Measurement
from fwbench.records.stored import parse
from fwbench.records.units import count, duration
from fwbench.workers.environments import Environments


@dataclass(frozen=True)
class PairPlan:
    """Number of pairs, and time for them.

    Attributes:
        budget_s: no more pairs after this time, but for cases that look changed: they get as many
            as a verdict takes.
    """

    pairs: int = 5
    budget_s: float = 600.0
    seed: int = 0


@dataclass(frozen=True)
class Earlier:
    """The launches of the same job that were measured before it was interrupted.

    :data:`Measure` returns them again, in their order, before it measures others.

    Attributes:
        cases: of each of them, the keys of the cases that it was to measure; None for all.
    """

    cases: Sequence[Collection[str] | None] = ()
    took_s: float = 0.0

    def of_pair(self, number: int) -> Collection[str] | None:
        """The cases of a pair of which a launch is there; None if there is none."""
        first = 2 * (number - 1)
        return self.cases[first] if first < len(self.cases) else None


NOTHING = Earlier()

#: Measures one launch: of the base (0) or the contender (1), of these cases (None: of all), with
#: this seed for their order.
Measure = Callable[[int, Collection[str] | None, int], SampleSet]


@dataclass(frozen=True)
class _Case:
    """A case of both sides, with its pairs so far."""

    base: Measurement
    contender: Measurement
    lost: str = ""

    @property
    def pairs(self) -> int:
        return len(self.contender.launches)


class PairedComparison:
    """A comparison in pairs of launches, as many as each case needs."""

    def __init__(
        self,
        measure: Measure,
        plan: PairPlan,
        rules: Rules,
        tested: Collection[str] = (),
        say: Callable[[str], object] = lambda _: None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.measure = measure
        self.plan = plan
        self.rules = rules
        self.tested = tested
        self.say = say
        self._clock = clock
        self._random = random.Random(plan.seed)  # noqa: S311 (no secret)
        self._first: list[tuple[SampleSet, SampleSet]] = []
        self._pairs = 0
        self._pair_s = 0.0
        self._earlier = NOTHING
        self._interrupted = False

    def compare(
        self, names: tuple[str, str], notes: Sequence[str] = (), earlier: Earlier = NOTHING
    ) -> Comparison:
        """Measure both sides and judge; if that is interrupted, judge the pairs that there are."""
        self._earlier = earlier
        self._ends_s = self._clock() + self.plan.budget_s - earlier.took_s
        self._pair_s = 2 * earlier.took_s / max(1, len(earlier.cases))
        sides: _Sides | None = None
        try:
            self._measure_first()
            sides = _Sides(self._first, self.tested)
            self._go_on(sides.cases)
        except KeyboardInterrupt:
            if not self._first:
                raise
            self._interrupted = True
        return self._comparison(sides or _Sides(self._first, self.tested), names, notes)

    def _comparison(
        self, sides: _Sides, names: tuple[str, str], notes: Sequence[str]
    ) -> Comparison:
        judgements = sides.unequal()
        for case in sides.cases.values():
            judgements += self._judged(case, len(sides.cases))
        marked = self.rules.marked((case.base, case.contender) for case in sides.cases.values())
        return Comparison(
            *names,
            [*judgements, *one_sided(sides.base, sides.contender)],
            {**dataclasses.asdict(self.rules), **dataclasses.asdict(self.plan)},
            [*sides.differences, *notes, *marked, *self._measured(sides.cases)],
            interrupted=self._interrupted,
        )

    def _measure_first(self) -> None:
        """The first pairs: of all cases."""
        for number in range(self.plan.pairs):
            left_s = (self.plan.pairs - number) * self._pair_s
            known = f", {duration(left_s)} until pair {self.plan.pairs} is done" * bool(left_s)
            self._first.append(self._pair(None, f"all cases{known}"))
            # Before the rest is measured for nothing.
            refuse_differences(*self._first[0], self.tested)
            if not all(side.samples for side in self._first[0]):
                break

    def _go_on(self, cases: dict[str, _Case]) -> None:
        """Further pairs, of the cases that are not decided."""
        open_ = self._undecided(cases, cases)
        while open_ and (selected := self._selected(cases, open_)):
            left_s = max(0.0, self._ends_s - self._clock())
            what = f"{len(selected)} of {len(cases)} cases are open"
            pair = self._pair(selected, f"{what}, {duration(left_s)} left")
            for key in selected:
                cases[key] = _extended(cases[key], key, *pair)
            open_ = self._undecided(cases, open_)

    def _selected(self, cases: Mapping[str, _Case], open_: list[str]) -> Collection[str]:
        """The cases of the next pair: those of an earlier one, or all that time allows."""
        earlier = self._earlier.of_pair(self._pairs + 1)
        if earlier is None:
            return self._affordable(cases, open_)
        return [key for key in earlier if key in cases]

    def _undecided(self, cases: Mapping[str, _Case], among: Collection[str]) -> list[str]:
        return [
            key
            for key in among
            if not cases[key].lost
            and sequential.verdict_so_far(
                cases[key].base, cases[key].contender, self.rules, len(cases)
            )
            is None
        ]

    def _affordable(self, cases: Mapping[str, _Case], open_: list[str]) -> list[str]:
        """The cases of the next pair: all that are open, while there is time for it."""
        if self._clock() + self._pair_s <= self._ends_s:
            return open_
        needed = sequential.pairs_needed(self.rules, len(cases))
        return [
            key
            for key in open_
            if cases[key].pairs < needed
            and sequential.looks_changed(
                cases[key].base, cases[key].contender, self.rules, len(cases)
            )
        ]

    def _pair(self, selected: Collection[str] | None, cases: str) -> tuple[SampleSet, SampleSet]:
        """One launch of each side, in random order, with one order of cases."""
        start_s = self._clock()
        first = 2 * self._pairs
        seed = self._random.randrange(10**6)
        launched: dict[int, SampleSet] = {}
        for place, side in enumerate(self._random.sample((0, 1), 2)):
            if first + place >= len(self._earlier.cases):
                self.say(f"pair {self._pairs + 1}, {('base', 'contender')[side]}: {cases}")
            launched[side] = self.measure(side, selected, seed)
        self._pairs += 1
        if first >= len(self._earlier.cases):  # both were measured now
            self._pair_s = self._clock() - start_s
        return launched[0], launched[1]

    def _judged(self, case: _Case, cases: int) -> list[Judgement]:
        if case.lost:
            return [unjudged(case.contender, Verdict.INCONCLUSIVE, case.lost)]
        judgements = sequential.judge(case.base, case.contender, self.rules, cases)
        return [self._explained(judgement) for judgement in judgements]

    def _explained(self, judgement: Judgement) -> Judgement:
        """A judgement; if there is none because the job was interrupted, it says so."""
        if self._interrupted and judgement.verdict is Verdict.INCONCLUSIVE:
            return dataclasses.replace(judgement, reason="interrupted before it was decided")
        return judgement

    def _measured(self, cases: Mapping[str, _Case]) -> list[str]:
        """Notes on the number of pairs, and on contended launches."""
        interrupted = [f"interrupted after {count(self._pairs, 'pair')}"] * self._interrupted
        if not cases:
            return interrupted
        more = [case for case in cases.values() if case.pairs > self.plan.pairs]
        took = f"{len(more)} of {len(cases)} cases took more than {self.plan.pairs} pairs"
        notes = [*interrupted, took]
        contended = [
            case for case in cases.values() if case.base.contended or case.contender.contended
        ]
        if contended:
            notes.append(
                f"other processes took processors from launches of {len(contended)} of "
                f"{len(cases)} cases: a quiet machine needs fewer pairs"
            )
        return notes


def _extended(case: _Case, key: str, base: SampleSet, contender: SampleSet) -> _Case:
    """A case with one more pair, or with the reason why there is none."""
    if key not in base.samples or key not in contender.samples:
        why = contender.unmeasured.get(key) or base.unmeasured.get(key, "lost")
        return dataclasses.replace(case, lost=f"then {why}")
    return _Case(case.base.joined(base.samples[key]), case.contender.joined(contender.samples[key]))


class _Sides:
    """Both sides after the first pairs."""

    def __init__(
        self, pairs: Sequence[tuple[SampleSet, SampleSet]], tested: Collection[str]
    ) -> None:
        self.base, self.contender = (_joined(runs) for runs in zip(*pairs, strict=True))
        self.differences = refuse_differences(self.base, self.contender, tested)
        common = {
            key: (self.base.samples[key], sample)
            for key, sample in self.contender.samples.items()
            if key in self.base.samples
        }
        self._unequal = {
            key: why for key, samples in common.items() if (why := unequal_work(*samples))
        }
        self.cases = {
            key: _Case(*samples) for key, samples in common.items() if key not in self._unequal
        }

    def unequal(self) -> list[Judgement]:
        """The judgements of the cases that do not do equal work on both sides."""
        return [
            unjudged(self.contender.samples[key], Verdict.INCONCLUSIVE, why)
            for key, why in self._unequal.items()
        ]


def _joined(runs: Sequence[SampleSet]) -> SampleSet:
    """The launches of one side as one run; a case that a launch lacks is not measured."""
    samples: dict[str, Measurement] = {}
    for run in runs:
        for key, sample in run.samples.items():
            samples[key] = samples[key].joined(sample) if key in samples else sample
    unmeasured = {key: why for run in runs for key, why in run.unmeasured.items()}
    lost = [key for key, sample in samples.items() if len(sample.launches) < len(runs)]
    for key in lost:
        unmeasured.setdefault(key, "not measured in every launch")
        del samples[key]
    return SampleSet(runs[0].name, samples, unmeasured)


#: Settings of a project's own sessions that a launch is measured without: it is a single one, and
#: the comparison judges it.
_ONE_LAUNCH = ("-o", "fw_race=false", "-o", "fw_budget=", "-o", "fw_gate=")

#: What a command line has for the same, and what fwbench ab has instead.
_INSTEAD = {
    "--fw-launches": "--pairs N is the number of launches of each side",
    "--fw-seed": "--seed N is the seed of all launches",
    "--fw-race": "a race is a session of its own: pytest --fw-race",
    "--fw-budget": "--budget MINUTES is that of the comparison",
    "--fw-gate": "--threshold and --fail-on are those of the comparison",
}


def refuse_launching(arguments: Sequence[str]) -> None:
    """Refuse arguments that decide on launches or judge them, as only the comparison does."""
    for flag in (argument.partition("=")[0] for argument in arguments):
        if flag in _INSTEAD:
            raise UsageError(
                f"{flag} cannot be passed on to pytest: fwbench ab chooses the launches and judges "
                f"them itself; leave it out: {_INSTEAD[flag]}"
            )


class Launcher:
    """Measures launches of base and contender; one that dies is repeated, once."""

    def __init__(
        self,
        sides: Sequence[Side],
        arguments: Sequence[str],
        environments: Environments,
        job: ComparisonJob,
        say: Callable[[str], object],
        watching: session.Watching = nullcontext,
    ) -> None:
        self._sides = sides
        self._arguments = arguments
        self._environments = environments
        self._job = job
        self._say = say
        self._watching = watching
        self._earlier = [*job.earlier]
        self._first: dict[int, SampleSet] = {}
        self._nodeids: tuple[dict[str, str], dict[str, str]] = ({}, {})
        self._empty: set[str] = set()

    def __call__(self, side: int, keys: Collection[str] | None, seed: int) -> SampleSet:
        """Measure one launch; see :data:`fwbench.gate.ab.Measure`."""
        launch = self._earlier.pop(0) if self._earlier else self._measured(side, keys, seed)
        lost = {key: "failed" for key in keys or () if key not in launch.run.samples}
        unmeasured = {**lost, **launch.run.unmeasured}
        run = replace(launch.run, name=self._sides[side].name, unmeasured=unmeasured)
        self._refuse_differences(self._first.setdefault(side, run), run)
        self._nodeids[side].update({key: sample.nodeid for key, sample in run.samples.items()})
        return run

    def _refuse_differences(self, first: SampleSet, run: SampleSet) -> None:
        """Refuse to go on with kept launches if what they were measured with has changed."""
        differences = refuse_differences(first, run, FACTS) if self._job.earlier else ()
        if differences:
            raise DifferentSettings(
                f"the kept launches of {run.name} were measured with other settings: "
                f"{'; '.join(differences)}; run the comparison without --resume"
            )

    def _measured(self, side: int, keys: Collection[str] | None, seed: int) -> SavedLaunch:
        selected = None if keys is None else [self._nodeids[side][key] for key in keys]
        start_s = time.monotonic()
        values = self._values(self._sides[side], seed, selected)
        return self._job.save(values, keys, time.monotonic() - start_s)

    def _values(self, side: Side, seed: int, selected: Sequence[str] | None) -> dict[str, Any]:
        """The JSON of a launch."""
        with scratch.folder() as folder:
            results = folder / "results.json"
            done = self._run(side, seed, results, selected)
            if session.has_died(done):
                self._say(f"a launch of {side.name} has died ({_ending(done)}): it is repeated")
                results.unlink(missing_ok=True)
                done = self._run(side, seed, results, selected)
            if results.is_file() and done.status in session.RAN:
                return parse(results)
        if selected is None and session.has_found_nothing(done):
            self._empty.add(side.name)
            if len(self._empty) < len(self._sides):
                return {"benchmarks": []}  # a change may bring the first benchmarks
            raise UsageError(
                "neither side has a benchmark that the arguments select; the last output:\n"
                + "\n".join(done.last_lines)
            )
        if done.status in session.RAN and selected is not None:
            # Once they could be measured: that they cannot now is for the job to judge.
            return {"benchmarks": []}
        what = "measured nothing" if done.status in session.RAN else "broke down"
        raise ComparisonError(
            f"a launch of {side.name} {what} ({_ending(done)}); its last output:\n"
            + "\n".join(done.last_lines)
        )

    def _run(
        self, side: Side, seed: int, results: Path, selected: Sequence[str] | None
    ) -> Finished:
        return session.run(
            [
                *("-p", SELECTOR, *self._arguments, *side.arguments),
                *("--fw-launches", "1", "--fw-seed", str(seed), *_ONE_LAUNCH),
            ],
            folder=side.folder,
            results=results,
            variables=variables_of(side, self._environments),
            selected=selected,
            watching=self._watching,
        )


def _ending(done: Finished) -> str:
    if done.status < 0:
        return f"by {signal.Signals(-done.status).name}"
    return f"pytest's exit status is {done.status}"
