"""A/B comparisons: pairs of launches, as many as each case needs or time allows.

A pair is a launch of the base and one of the contender that are alive together, and whose cases
take turns by visits of milliseconds (:mod:`fwbench.turns`): a machine that grows slower does so for
both. What a pair says of a case is the median of the ratios of adjacent visits, and
:mod:`fwbench.gate.sequential` can test after every pair. A launch is a pytest session in a process
of its own.
"""

from __future__ import annotations

import dataclasses
import itertools
import json
import math
import random
import re
import signal
import statistics
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, nullcontext
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from fwbench.errors import DifferentSettings, UsageError, some
from fwbench.gate import sequential
from fwbench.gate.launches import SideLauncher, key_of, measured_by_then, notes_on_launches, parsed
from fwbench.gate.patience import BudgetIsOver, InterruptedPair, PairCutShort
from fwbench.gate.resume import ComparisonJob, Ratios, SavedPair
from fwbench.gate.samples import (
    SampleSet,
    agreement,
    different_results,
    refuse_differences,
    unequal_work,
)
from fwbench.gate.sequential import FARTHEST, TELLING, USUALLY, WITH_LUCK
from fwbench.gate.sides import Side
from fwbench.gate.verdicts import (
    CHANGING_ID,
    Comparison,
    Judgement,
    Rules,
    Verdict,
    lasting,
    one_sided,
    unjudged,
)
from fwbench.measure.resources import processors_s
from fwbench.measure.stopping import ranks_outside
from fwbench.options.values import FACTS
from fwbench.processes import scratch, session
from fwbench.processes.command import Finished
from fwbench.processes.session import LEFT_OUT_VARIABLE, RESULTS_VARIABLE, SIDE_VARIABLE, SIDES
from fwbench.records.measurement import MEDIAN, MINIMUM, SLOW, VISITS, Measurement
from fwbench.records.session_facts import FAILED, NOT_REACHED
from fwbench.records.units import count, duration
from fwbench.terms.names import without_environment
from fwbench.turns.contest import CaseVisits, Effort
from fwbench.turns.referee import Referee


@dataclass(frozen=True)
class PairPlan:
    """Number of pairs, and time for them.

    Attributes:
        pairs: of launches for every case, if there is time for them.
        budget_s: no pair begins that would not be over by then, but for the first one.
    """

    pairs: int = 5
    budget_s: float = 600.0
    seed: int = 0


@dataclass(frozen=True)
class Earlier:
    """The pairs of the same job that were measured before it was interrupted.

    :data:`Measure` returns them again, in their order, before it measures others.

    Attributes:
        cases: of each of them, the keys of the cases that it was to measure; None for all.
    """

    cases: Sequence[Collection[str] | None] = ()
    took_s: float = 0.0


NOTHING = Earlier()

#: A launch of the base, and one of the contender, whose figures have the ratios of their turns.
Pair = tuple[SampleSet, SampleSet]

#: Measures a pair: of these cases (None: of all), with this seed for their order.
Measure = Callable[[Collection[str] | None, int], Pair]


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
        self._first: list[Pair] = []
        self._pairs = 0
        self._pair_s = 0.0
        self._earlier = NOTHING
        self._interrupted = False
        self._over: PairCutShort | None = None

    def compare(
        self, names: tuple[str, str], notes: Sequence[str] = (), earlier: Earlier = NOTHING
    ) -> Comparison:
        """Measure both sides and judge; if that is interrupted, judge the pairs that there are.

        Raises:
            PairCutShort: there are none.
        """
        self._earlier = earlier
        self._ends_s = self._clock() + self.plan.budget_s - earlier.took_s
        self._pair_s = earlier.took_s / max(1, len(earlier.cases))
        sides: _Sides | None = None
        try:
            self._measure_first()
            sides = _Sides(self._first, self.tested)
            self._go_on(sides.cases)
        except (KeyboardInterrupt, PairCutShort) as error:
            self._first = self._first or [*filter(None, [getattr(error, "pair", None)])]
            if not self._first:
                raise
            if isinstance(error, PairCutShort):
                self.say(str(error))
                self._over = error
            self._interrupted = isinstance(error, KeyboardInterrupt)
        return self._comparison(sides or _Sides(self._first, self.tested), names, notes)

    def _comparison(
        self, sides: _Sides, names: tuple[str, str], notes: Sequence[str]
    ) -> Comparison:
        judgements = sides.unequal()
        for case in sides.cases.values():
            judgements += self._judged(case, len(sides.cases))
        pairs = [(case.base, case.contender) for case in sides.cases.values()]
        marked = [*self.rules.marked(pairs), *agreement(pairs)]
        took_s = self._clock() - (self._ends_s - self.plan.budget_s)
        rules = {**self.rules.recorded(), **dataclasses.asdict(self.plan)}
        return Comparison(
            *names,
            [*judgements, *one_sided(sides.base, sides.contender)],
            {**rules, "took_s": round(took_s, 1)},
            [*sides.differences, *notes, *marked, *self._measured(sides.cases)],
            interrupted=self._interrupted,
        )

    def _measure_first(self) -> None:
        """The first pairs: of all cases."""
        while len(self._first) < self.plan.pairs and (not self._first or self._has_time()):
            left_s = (self.plan.pairs - len(self._first)) * self._pair_s
            known = f", {duration(left_s)} until pair {self.plan.pairs} is done" * bool(left_s)
            if left_s and self._last() < self.plan.pairs:
                known = f", for which the budget has time until pair {self._last()}"
            if len(self._first) == 1:
                known += self._usual(len(self._first[0][1].samples))
            self._first.append(self._pair(None, f"all cases{known}"))
            # Before the rest is measured for nothing.
            refuse_differences(*self._first[0], self.tested)
            if not all(side.samples for side in self._first[0]):
                break

    def _usual(self, cases: int) -> str:
        """Say how long the usual verdict takes here, now that the first pair has shown it."""
        pairs = max(sequential.clear_pairs(self.rules, max(1, cases)), self.plan.pairs)
        took = duration((pairs - 1) * self._pair_s)
        return f"; a clear change is told after {count(pairs, 'pair')}, in {took}"

    def _has_time(self) -> bool:
        """True if another pair is there, or would be over before the time is."""
        is_there = self._pairs < len(self._earlier.cases)
        return is_there or self._clock() + self._pair_s <= self._ends_s

    def _last(self) -> int:
        """Number of the last pair that the budget has time for, once one has been measured."""
        return self._pairs + max(1, int((self._ends_s - self._clock()) / self._pair_s))

    def _go_on(self, cases: dict[str, _Case]) -> None:
        """Further pairs, of the cases that are not decided."""
        open_ = self._undecided(cases, cases)
        while open_ and self._has_time() and (selected := self._selected(cases, open_)):
            left_s = max(0.0, self._ends_s - self._clock())
            verb = "is" if len(selected) == 1 else "are"
            what = f"{len(selected)} of {count(len(cases), 'case')} {verb} open"
            left = f"{duration(left_s)} left, for pair {self._last()} at most"
            pair = self._pair(selected, f"{what}, {left}")
            for key in selected:
                cases[key] = _extended(cases[key], key, *pair)
            open_ = self._undecided(cases, open_)

    def _selected(self, cases: Mapping[str, _Case], open_: list[str]) -> Collection[str]:
        """The cases of the next pair: those of an earlier one, or that the time may decide."""
        if self._pairs < len(self._earlier.cases):
            return [key for key in self._earlier.cases[self._pairs] or () if key in cases]
        left = (self._ends_s - self._clock()) / self._pair_s
        return [
            key
            for key in open_
            if cases[key].pairs < TELLING
            or min(self._more_pairs(cases[key], len(cases), WITH_LUCK), FARTHEST) <= left
        ]

    def _more_pairs(self, case: _Case, cases: int, share: float = USUALLY) -> float:
        return sequential.more_pairs(case.base, case.contender, self.rules, cases, share)

    def _undecided(self, cases: Mapping[str, _Case], among: Collection[str]) -> list[str]:
        return [
            key
            for key in among
            if not cases[key].lost
            and not different_results(cases[key].base, cases[key].contender)
            and sequential.verdict_so_far(
                cases[key].base, cases[key].contender, self.rules, len(cases)
            )
            is None
        ]

    def _pair(self, selected: Collection[str] | None, cases: str) -> Pair:
        """A launch of each side, with one order of cases."""
        start_s, is_new = self._clock(), self._pairs >= len(self._earlier.cases)
        if is_new:
            self.say(f"pair {self._pairs + 1}: {cases}")
        pair = self.measure(selected, self._random.randrange(10**6))
        self._pairs += 1
        if is_new:
            self._pair_s = self._clock() - start_s
        return pair

    def _judged(self, case: _Case, cases: int) -> list[Judgement]:
        if case.lost:
            return [unjudged(case.contender, Verdict.INCONCLUSIVE, case.lost)]
        if why := different_results(case.base, case.contender):
            return [unjudged(case.contender, Verdict.DIFFERENT, why)]
        judgements = sequential.judge(case.base, case.contender, self.rules, cases)
        if all(judgement.verdict is not Verdict.INCONCLUSIVE for judgement in judgements):
            return judgements
        needed = self._needed(case, cases)
        return [
            dataclasses.replace(judgement, reason=needed.format(judgement.reason))
            if judgement.verdict is Verdict.INCONCLUSIVE
            else judgement
            for judgement in judgements
        ]

    def _needed(self, case: _Case, cases: int) -> str:
        """A reason why a case is not decided, with a place for what its launches say."""
        if self._interrupted:
            return "interrupted before it was decided"
        if self._over is not None and self._over.key == case.contender.key:
            return self._over.why.replace("{", "{{").replace("}", "}}")  # of a node id
        more = self._more_pairs(case, cases)
        if not more:
            return "{}; another metric has decided the case"
        if math.isinf(more):
            return "{}; more than " + f"{FARTHEST} more pairs would tell"
        took = f" ({duration(more * self._pair_s)})" if self._pairs else ""
        pairs = count(int(more), "more pair would tell", "more pairs would tell")
        return "{}; " + f"about {pairs}{took}"

    def _measured(self, cases: Mapping[str, _Case]) -> list[str]:
        """Notes on the number of pairs, and on contended launches."""
        when = f"after {count(self._pairs, 'pair')}" if self._pairs else "in the first pair"
        early = [f"interrupted {when}"] * self._interrupted
        if self._over is not None:
            what = "does not count" if self._pairs else "was cut short"
            early = [f"pair {self._pairs + 1} {what}: {self._over.why}"]
        if not cases:
            return early
        more = [case for case in cases.values() if case.pairs > self.plan.pairs]
        every, pairs = count(len(cases), "case"), count(self.plan.pairs, "pair")
        took = f"{len(more)} of {every} took more than {pairs}"
        apart = [case for case in cases.values() if not all(case.contender.values(VISITS))]
        notes = [*early, took]
        if apart:
            notes.append(
                f"{len(apart)} of {every} took no turns: there a pair is one launch "
                "after the other, and needs more of them"
            )
        contended = [
            case for case in cases.values() if case.base.contended or case.contender.contended
        ]
        if contended:
            notes.append(
                f"other processes took processors from launches of {len(contended)} of {every}: "
                "a quiet machine needs fewer pairs"
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

    def __init__(self, pairs: Sequence[Pair], tested: Collection[str]) -> None:
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
    ids = Counter(map(lasting, lost))
    for key in lost:
        if ids[lasting(key)] > 1:
            unmeasured[lasting(key)] = CHANGING_ID
        else:
            unmeasured.setdefault(key, "not measured in every launch")
        del samples[key]
    return SampleSet(runs[0].name, samples, unmeasured)


#: Options of a project's own sessions, and what fwbench ab has instead.
_INSTEAD = {
    "--fw-launches": "--pairs N is the number of launches of each side",
    "--fw-seed": "--seed N is the seed of all launches",
    "--fw-resume": "--resume goes on with the comparison",
    "--fw-race": "a race is a session of its own: pytest --fw-race",
    "--fw-budget": "--budget TIME is that of the comparison",
    "--fw-profile": "--explain profiles the cases that changed, after the comparison",
    "--fw-gate": "--threshold and --fail-on are those of the comparison",
    **dict.fromkeys(("--stepwise", "--sw"), "-x ends a launch at the first test that fails"),
}


#: With these a launch measures nothing.
_UNMEASURED = ("--collect-only", "--co", "--benchmark-disable", "--benchmark-skip")

#: pytest-xdist's number of processes, which may be the next argument.
_PROCESSES = re.compile(r"(?:-[lqsvx]*n|--numprocesses)(?:=?(?P<value>\d+|auto|logical))?")


def refuse_launching(arguments: Sequence[str]) -> None:
    """Refuse arguments that decide on launches, judge them, or keep them from measuring."""
    for argument, following in itertools.zip_longest(arguments, arguments[1:], fillvalue=""):
        flag = argument.partition("=")[0]
        if flag in _INSTEAD:
            raise UsageError(
                f"{flag} cannot be passed on to pytest: fwbench ab chooses the launches and judges "
                f"them itself; leave it out: {_INSTEAD[flag]}"
            )
        processes = _PROCESSES.fullmatch(argument)
        if flag in _UNMEASURED or (processes and (processes["value"] or following) != "0"):
            what = "with pytest-xdist nothing" if processes else "nothing"
            raise UsageError(
                f"{argument} cannot be passed on to pytest: {what} would be measured; leave it out"
            )


class Launcher(SideLauncher[ComparisonJob]):
    """Measures pairs of launches of base and contender; one that dies is repeated, once."""

    def __post_init__(self) -> None:
        super().__post_init__()
        self._earlier = [*self.job.earlier]
        self._first: Sequence[SampleSet] = ()
        self._nodeids: tuple[dict[str, str], dict[str, str]] = ({}, {})
        self._takes_turns = True
        self._tried_alone: set[str] = set()
        self._left_out: dict[str, PairCutShort] = {}  # of tests that launches have died at twice
        self._took_s: list[list[Mapping[str, float]]] = [[], []]  # by side
        self._referee: Referee | None = None  # of the launches that were the last, if by turns
        self._medians: dict[str, list[float]] = defaultdict(list)

    def __call__(self, keys: Collection[str] | None, seed: int) -> Pair:
        """Measure a pair; see :data:`fwbench.gate.ab.Measure`."""
        pair = self._earlier.pop(0) if self._earlier else self._measured(keys, seed)
        return self._paired(pair, keys)

    def _paired(self, pair: SavedPair, keys: Collection[str] | None) -> Pair:
        for key, ratios in pair.ratios.items():
            self._medians[key] += [ratios[MEDIAN]] if MEDIAN in ratios else []
        runs = [self._named(side, pair.sides[side], keys) for side in range(2)]
        self._first = self._first or runs
        for first, run, nodeids in zip(self._first, runs, self._nodeids, strict=True):
            self._refuse_differences(first, run)
            nodeids.update({key: sample.nodeid for key, sample in run.samples.items()})
        return _in_turns((runs[0], runs[1]), pair.ratios)

    def notes(self) -> list[str]:
        """Notes on tests that take no turns, and on what launches take."""
        why: dict[str, list[str]] = defaultdict(list)
        for key, reason in self.apart.items():
            why[reason].append(key)
        notes = [
            f"{some(keys)}: no turns, since {reason}; compared by launches one after the other"
            for reason, keys in why.items()
        ]
        return [*notes, *notes_on_launches(self._took_s)]

    def _named(self, side: int, run: SampleSet, keys: Collection[str] | None) -> SampleSet:
        lost = {key: "failed" for key in keys or () if key not in run.samples}
        return replace(run, name=self.sides[side].name, unmeasured={**lost, **run.unmeasured})

    def _refuse_differences(self, first: SampleSet, run: SampleSet) -> None:
        """Refuse to go on with kept launches if what they were measured with has changed."""
        differences = refuse_differences(first, run, FACTS) if self.job.earlier else ()
        if differences:
            raise DifferentSettings(
                f"the kept launches of {run.name} were measured with other settings: "
                f"{'; '.join(differences)}; run the comparison without --resume"
            )

    def _measured(self, keys: Collection[str] | None, seed: int) -> SavedPair:
        start_s = time.monotonic()
        values: list[dict[str, Any] | None] = []
        with scratch.folder() as folder:
            results = [folder / "base.json", folder / "contender.json"]
            try:
                done, ratios = self._repeated(keys, seed, results)
                each = zip(range(2), done, results, strict=True)
                values = [self._values(*launch, keys) for launch in each]
                if self._takes_turns:
                    self._add_apart(keys, seed, results, values)
            except KeyboardInterrupt as error:
                raise InterruptedPair(self._by_then(results, values)) from error
            except PairCutShort as error:
                if self._leaves_out(error):
                    return self._measured(keys, seed)
                error.pair = self._by_then(results, values, error)
                raise
        if keys is None and not any(values) and not self._left_out:
            raise UsageError(
                "neither side has a benchmark that the arguments select; the last output:\n"
                + "\n".join(done[1].last_lines)
            )
        sides = [_leaving_out(self._left_out, *side) for side in enumerate(values)]
        self._origins |= {
            side: session.origin_of(value) for side, value in enumerate(values) if value
        }
        return self.job.save(sides, ratios, keys, time.monotonic() - start_s)

    def _repeated(
        self, keys: Collection[str] | None, seed: int, results: Sequence[Path]
    ) -> tuple[Sequence[Finished], Ratios]:
        """Run a launch of each side; once more if one of them dies."""
        self._referee = None
        done, ratios = self._launched(keys, seed, results)
        died = [number for number, ended in enumerate(done) if session.has_died(ended)]
        for number in died:
            how = ending(done[number], self._ended_at(number))
            self.say(
                f"a launch of {self.sides[number].name} has died ({how}): its pair is repeated, "
                "one launch after the other, in case both need too much memory"
            )
            self._takes_turns = False
        return self._launched(keys, seed, results) if died else (done, ratios)

    def _add_apart(
        self,
        keys: Collection[str] | None,
        seed: int,
        results: Sequence[Path],
        values: list[dict[str, Any] | None],
    ) -> None:
        """Measure one launch after the other what cannot take turns, or failed and may be that."""
        for launches, value in zip(self._took_s, values, strict=True):
            launches.extend(filter(None, [_took_s(value)]))
        for nodeids, value in zip(self._nodeids, values, strict=True):
            nodeids.update(nodeids_in(value))
        failed = [_failed(value) for value in values]
        new = {*failed[0], *failed[1]} - self._tried_alone
        tried = new | {key for key in self.apart if keys is None or key in keys}
        if not tried:
            return
        self._tried_alone |= new
        for path in results:
            path.unlink(missing_ok=True)
        self._one_by_one(partial(self._started, tried, seed), results, seed)
        for side, path in enumerate(results):
            alone = parsed(self.sides[side], path) if path.is_file() else _NOTHING
            measured = {*map(key_of, alone["benchmarks"])} - _failed(alone).keys()
            for key in measured & new & failed[side].keys():
                self._set_apart(key, f"{failed[side][key]} while both sides had it, and not alone")
            values[side] = _with_apart(values[side], alone, tried)

    def _values(
        self, number: int, done: Finished, results: Path, keys: Collection[str] | None
    ) -> dict[str, Any] | None:
        """The JSON of a launch; None if it has measured nothing, and may have."""
        side = self.sides[number]
        if results.is_file() and done.status in session.RAN:
            return parsed(side, results)
        # A change may bring the first benchmarks. And of what could be measured once, that it
        # cannot now is for the job to judge.
        may_lack = session.has_found_nothing(done) if keys is None else done.status in session.RAN
        may_lack |= done is _NOT_STARTED
        if may_lack:
            return None
        if refusal := session.refusal(done):
            raise UsageError(f"pytest refuses the arguments in {side.name}: {refusal}")
        what = "measured nothing" if done.status in session.RAN else "broke down"
        at = self._ended_at(number)
        raise PairCutShort(
            f"a launch of {side.name} {what} ({ending(done, at)}){_advice(side)}",
            at,
            [number],
            "; its last output:\n" + "\n".join(done.last_lines),
        )

    def _launched(
        self, keys: Collection[str] | None, seed: int, results: Sequence[Path]
    ) -> tuple[Sequence[Finished], Ratios]:
        """Run a launch of each side: both at once, by turns, or one after the other."""
        if not self._takes_turns:
            return self._one_by_one(partial(self._started, keys, seed), results, seed), {}
        in_turns = self._taking_turns(keys)
        if in_turns is not None and not in_turns:
            return [_NOT_STARTED] * len(self.sides), {}
        start = partial(self._started, in_turns, seed)
        with scratch.folder() as folder, ExitStack() as running:
            referee = self._referee = Referee(
                folder,
                len(self.sides),
                Effort(self._is_enough),
                seed,
                used_s=lambda side: processors_s(children[side].program.process.pid),
                tell=partial(self.patience.tell, [side.name for side in self.sides]),
            )
            children = {
                side: running.enter_context(start(side, results[side], referee.variables(side)))
                for side in random.Random(seed).sample((0, 1), 2)  # noqa: S311 (no secret)
            }
            referee.serve([children[0], children[1]])
        for key in referee.stalled:
            self._tried_alone.add(key)
            self._set_apart(key, STALLED)
        return [children[0].done, children[1].done], _ratios(referee)

    def _ended_at(self, side: int) -> str:
        """The test at which a launch by turns has ended; empty if none is known."""
        return self._referee.ended_at(side) if self._referee else ""

    def _leaves_out(self, error: PairCutShort) -> bool:
        """Leave out from now on what a launch has died at; false if that would not help."""
        is_over = isinstance(error, BudgetIsOver) or time.monotonic() > self.patience.ends_s
        is_new = bool(error.key) and error.key not in self._left_out
        if is_over or not is_new or len(self._left_out) == _LEFT_OUT_AT_MOST:
            return False
        self._left_out[error.key] = error
        self._takes_turns = True
        self.say(f"{error}\n{error.key} is left out: the pair is measured again without it")
        return True

    def _by_then(
        self,
        results: Sequence[Path],
        values: Sequence[Mapping[str, Any] | None],
        error: PairCutShort | None = None,
    ) -> Pair | None:
        """The first pair, if it was cut short; None if nothing is known of it.

        Args:
            values: of the launches by turns, if it was cut short behind them.
        """
        if self._first or self._referee is None:
            return None
        why = [error.why if error and side in error.sides else NOT_REACHED for side in range(2)]
        left = [self._referee.left.get(side, []) for side in range(2)]
        every = [self._referee.announced] * 2
        runs = values or [*map(measured_by_then, results, left, why, every)]
        whole = (_leaving_out(self._left_out, *side) for side in enumerate(runs))
        base, contender = (SampleSet.from_json("", run) for run in whole)
        if not (base.samples and contender.samples) and not (error and any(left)):
            return None
        return self._paired(SavedPair((base, contender), _ratios(self._referee), None, 0.0), None)

    def _one_by_one(
        self,
        start: Callable[[int, Path, Mapping[str, str]], AbstractContextManager[Any]],
        results: Sequence[Path],
        seed: int,
    ) -> Sequence[Finished]:
        """Run a launch of each side, one after the other."""
        done: dict[int, Finished] = {}
        for side in random.Random(seed).sample((0, 1), 2):  # noqa: S311 (no secret)
            results[side].unlink(missing_ok=True)
            with start(side, results[side], {}) as child:
                records = session.records_beside(results[side])
                self.patience.wait(self.sides[side].name, child, records)
            done[side] = child.done
        return [done[0], done[1]]

    def _taking_turns(self, keys: Collection[str] | None) -> Collection[str] | None:
        """The cases of a launch by turns; None for all."""
        if keys is None and not self.apart:
            return None
        # Those that failed are run, too: deselected ones would have no reason.
        every = {*self._nodeids[0], *self._nodeids[1], *self._tried_alone}
        return (every if keys is None else {*keys}) - self.apart.keys() - self._left_out.keys()

    def _is_enough(self, key: str, contest: CaseVisits) -> bool:
        return is_enough(self._medians[key], contest)

    def _started(
        self,
        keys: Collection[str] | None,
        seed: int,
        side: int,
        results: Path,
        variables: Mapping[str, str],
    ) -> AbstractContextManager[session.ChildSession]:
        return self._start(
            side,
            seed,
            results,
            {
                RESULTS_VARIABLE: str(results.parent),
                SIDE_VARIABLE: SIDES[side],
                LEFT_OUT_VARIABLE: json.dumps([*self._left_out]),
                **variables,
            },
            # Of what one side alone has, the other one knows no node id.
            selected=None if keys is None else [self._nodeids[side].get(key, key) for key in keys],
            watching=self.watching if side or not variables else nullcontext,
        )


def _in_turns(pair: Pair, ratios: Ratios) -> Pair:
    """A pair whose cases have the ratios of their turns."""
    base, contender = pair
    paired = {
        key: contender.samples[key].in_turns(sample, ratios.get(key, {}))
        for key, sample in base.samples.items()
        if key in contender.samples
    }
    before = {**base.samples, **{key: sides[0] for key, sides in paired.items()}}
    after = {**contender.samples, **{key: sides[1] for key, sides in paired.items()}}
    return replace(base, samples=before), replace(contender, samples=after)


#: Tests that are left out: where more of them end launches, hardly any is measured.
_LEFT_OUT_AT_MOST = 5

#: In the place of launches that would have nothing to do, and of the runs of those.
_NOT_STARTED = Finished(session.NOTHING, [])
_NOTHING: dict[str, Any] = {"benchmarks": []}

#: Why a test cannot take turns that one side waits for.
STALLED = "a side computed nothing for ten seconds, in its fixtures or waiting for the other side"


def _missing(run: Mapping[str, Any] | None) -> dict[str, dict[str, Any]]:
    """Facts of the tests that a launch has not measured, by key."""
    missing = (run or {}).get("fwbench", {}).get("missing") or ()
    return {without_environment(fact["nodeid"], fact["framework"]): fact for fact in missing}


def _leaving_out(
    errors: Mapping[str, PairCutShort], side: int, run: Mapping[str, Any] | None
) -> Mapping[str, Any]:
    """A run of a side with the reasons why tests were left out, by key."""
    run, missing = run or _NOTHING, _missing(run)
    for key, error in errors.items():
        is_at_fault = side in error.sides
        if is_at_fault or key in missing:
            since = error.why if is_at_fault else f"left out, since {error.why}"
            missing[key] = {"nodeid": key, "framework": "", "why": since if side else "left out"}
    if not errors:
        return run
    return {**run, "fwbench": {**run.get("fwbench", {}), "missing": [*missing.values()]}}


def nodeids_in(run: Mapping[str, Any] | None) -> dict[str, str]:
    """The node ids of a launch by key, also of tests that it has not measured."""
    missing = {key: fact["nodeid"] for key, fact in _missing(run).items()}
    return missing | {key_of(e): e["fullname"] for e in (run or {}).get("benchmarks", ())}


def _failed(run: Mapping[str, Any] | None) -> dict[str, str]:
    """Why tests failed in a launch, by key."""
    return {key: fact["why"] for key, fact in _missing(run).items() if fact["why"] in FAILED}


def _took_s(run: Mapping[str, Any] | None) -> Mapping[str, float]:
    took_s: Mapping[str, float] = (run or {}).get("fwbench", {}).get("took") or {}
    return took_s


def _with_apart(
    run: dict[str, Any] | None, alone: dict[str, Any], tried: Collection[str]
) -> dict[str, Any]:
    """Results of a launch, with the tests that were tried once more from another."""
    if run is None:
        return alone
    facts, later = run.get("fwbench", {}), alone.get("fwbench", {})
    kept = [entry for entry in run["benchmarks"] if key_of(entry) not in tried]
    if "missing" in facts and "missing" in later:
        missing = [fact for key, fact in _missing(run).items() if key not in tried]
        again = [fact for key, fact in _missing(alone).items() if key in tried]
        facts = {**facts, "missing": [*missing, *again]}
    return {**run, "benchmarks": [*kept, *alone["benchmarks"]], "fwbench": facts}


#: A contest is enough when the median of its ratios is known to a third of what the ratios of
#: launches differ by, or to an eighth of their median, which another launch tells more about;
#: within these bounds, and after so many visits; looks are a few visits apart.
_OF_SPREAD, _OF_CHANGE = 3, 8
ERROR, _FINEST_ERROR = 12e-3, 2e-3
_VISITS_AT_LEAST, _EACH = 12, 4

#: The share of a normal distribution beyond one deviation: what the interval leaves outside.
_OUTSIDE = 0.32

#: The quantiles that stand for the smallest and the slow rounds, and of how many they are taken.
_LOW, _HIGH, _ROUNDS = 0.1, 0.9, 10


def is_enough(earlier: Sequence[float], contest: CaseVisits) -> bool:
    """True if the median of a contest's ratios is known as well as it is of use.

    Args:
        earlier: the medians of the same case in earlier pairs, as logarithms.
    """
    if len(contest.sides) < 2:  # noqa: PLR2004 (the other one has died)
        return True
    error = ERROR
    if len(earlier) > 1:
        change = abs(statistics.median(earlier))
        error = max(statistics.stdev(earlier) / _OF_SPREAD, change / _OF_CHANGE, _FINEST_ERROR)
    return are_known(contest, min(error, ERROR))


def are_known(contest: CaseVisits, error: float) -> bool:
    """True if the median ratios of every two neighbours are known to an error, as a logarithm."""
    visits = len(contest.visits_s)
    if visits < _VISITS_AT_LEAST or visits % _EACH:
        return False
    outside = ranks_outside(visits, _OUTSIDE)
    ratios = np.sort(np.diff(np.log(contest.medians_s()), axis=0), axis=1)
    return bool(np.all(ratios[:, -outside] - ratios[:, outside - 1] < 2 * error))


def _ratios(referee: Referee) -> Ratios:
    return {key: _ratios_of(contest) for key, contest in referee.contests.items()}


def _ratios_of(contest: CaseVisits) -> dict[str, float]:
    """The logarithms of the ratios of a contest, by metric."""
    if not contest.visits_s or len(contest.sides) < 2:  # noqa: PLR2004 (the other one has died)
        return {}
    return {
        VISITS: len(contest.visits_s),
        MEDIAN: float(np.median(contest.ratios())),
        MINIMUM: float(np.median(contest.ratios(_LOW, _ROUNDS))),
        SLOW: float(np.median(contest.ratios(_HIGH, _ROUNDS))),
    }


def _advice(side: Side) -> str:
    return f"; {side.remedy}" if side.remedy else ""


def ending(done: Finished, at: str | None = None) -> str:
    """The signal that ended a session, or its exit status; and the case at which it did."""
    where = f", at {at}" if at and done.status not in session.RAN else ""
    if done.status < 0:
        return f"by {signal.Signals(-done.status).name}{where}"
    return f"pytest's exit status is {done.status}{where}"
