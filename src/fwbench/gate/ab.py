"""A/B comparisons: pairs of launches go on, case by case, until it is decided or time is over.

A pair is a launch of the base and one of the contender, one right after the other, in an order that
chance decides: so a machine that grows slower does so for both, and :mod:`fwbench.gate.paired` may
look at every pair.
"""

from __future__ import annotations

import dataclasses
import random
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass

from fwbench.gate import decisions
from fwbench.gate.samples import Sample, SampleSet, refuse_differences, unequal_work
from fwbench.gate.verdicts import (
    Comparison,
    Judgement,
    Rules,
    Verdict,
    one_sided,
    unjudged,
)

_MINUTE_S = 60


@dataclass(frozen=True)
class Plan:
    """How many pairs are measured, and for how long.

    Attributes:
        pairs: of launches, at least, for every case.
        budget_s: no more pairs after this time, but for cases that look changed: they get as many
            as a verdict takes.
        seed: of the order of launches and cases.
    """

    pairs: int = 5
    budget_s: float = 600.0
    seed: int = 0


#: Measures one launch: of the base (0) or the contender (1), of these cases (None: of all), with
#: this seed for their order.
Measure = Callable[[int, Collection[str] | None, int], SampleSet]


@dataclass
class _Case:
    """A case of both sides, with its pairs so far."""

    base: Sample
    contender: Sample
    lost: str = ""

    @property
    def pairs(self) -> int:
        return len(self.contender.launches)


class PairedComparison:
    """A comparison in pairs of launches, as many as each case needs.

    Args:
        measure: measures one launch.
        plan: how much.
        rules: when a difference is a change.
        tested: the facts that may differ.
        say: called with each line of progress.
        clock: tells the time, in seconds.
    """

    def __init__(
        self,
        measure: Measure,
        plan: Plan,
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
        self._pairs = 0
        self._pair_s = 0.0

    def compare(self, names: tuple[str, str], notes: Sequence[str] = ()) -> Comparison:
        """Measure both sides and judge.

        Args:
            names: of base and contender.
            notes: what else a reader must know.

        Raises:
            DifferentSettings: the sides differ in what is not compared.
        """
        self._ends_s = self._clock() + self.plan.budget_s
        base, contender = self._everything()
        differences = refuse_differences(base, contender, self.tested)
        unequal = {
            key: why
            for key, sample in contender.samples.items()
            if key in base.samples and (why := unequal_work(base.samples[key], sample))
        }
        cases = {
            key: _Case(base.samples[key], sample)
            for key, sample in contender.samples.items()
            if key in base.samples and key not in unequal
        }
        self._go_on(cases)
        judgements = [
            unjudged(contender.samples[key], Verdict.INCONCLUSIVE, why)
            for key, why in unequal.items()
        ]
        for case in cases.values():
            judgements += self._judged(case, len(cases))
        return Comparison(
            *names,
            [*judgements, *one_sided(base, contender)],
            {**dataclasses.asdict(self.rules), **dataclasses.asdict(self.plan)},
            [*differences, *notes, *self._measured(cases)],
        )

    def _everything(self) -> tuple[SampleSet, SampleSet]:
        """The first pairs: of all cases."""
        runs: tuple[list[SampleSet], list[SampleSet]] = ([], [])
        for _ in range(self.plan.pairs):
            for run, measured in zip(runs, self._pair(None, "all cases"), strict=True):
                run.append(measured)
            # Before the rest is measured for nothing.
            refuse_differences(runs[0][0], runs[1][0], self.tested)
        return _joined(runs[0]), _joined(runs[1])

    def _go_on(self, cases: Mapping[str, _Case]) -> None:
        """Further pairs, of the cases that are not decided."""
        open_ = self._undecided(cases, cases)
        while open_ and (selected := self._affordable(cases, open_)):
            left_s = max(0.0, self._ends_s - self._clock())
            what = f"{len(selected)} of {len(cases)} cases are open"
            sides = self._pair(selected, f"{what}, {left_s / _MINUTE_S:.1f} min left")
            for key in selected:
                _extend(cases[key], key, *sides)
            open_ = self._undecided(cases, open_)

    def _undecided(self, cases: Mapping[str, _Case], among: Collection[str]) -> list[str]:
        return [
            key
            for key in among
            if not cases[key].lost
            and decisions.now(cases[key].base, cases[key].contender, self.rules, len(cases)) is None
        ]

    def _affordable(self, cases: Mapping[str, _Case], open_: list[str]) -> list[str]:
        """The cases of the next pair: all that are open, while there is time for it."""
        if self._clock() + self._pair_s <= self._ends_s:
            return open_
        needed = decisions.pairs_needed(self.rules, len(cases))
        return [
            key
            for key in open_
            if cases[key].pairs < needed
            and decisions.looks_changed(
                cases[key].base, cases[key].contender, self.rules, len(cases)
            )
        ]

    def _pair(self, selected: Collection[str] | None, cases: str) -> tuple[SampleSet, SampleSet]:
        """One launch of each side, in random order, with one order of cases."""
        self._pairs += 1
        start = self._clock()
        seed = self._random.randrange(10**6)
        launched: dict[int, SampleSet] = {}
        for side in self._random.sample((0, 1), 2):
            self.say(f"pair {self._pairs}, {('base', 'contender')[side]}: {cases}")
            launched[side] = self.measure(side, selected, seed)
        self._pair_s = self._clock() - start
        return launched[0], launched[1]

    def _judged(self, case: _Case, cases: int) -> list[Judgement]:
        if case.lost:
            return [unjudged(case.contender, Verdict.INCONCLUSIVE, case.lost)]
        return decisions.judge(case.base, case.contender, self.rules, cases)

    def _measured(self, cases: Mapping[str, _Case]) -> list[str]:
        """How many pairs it took, and what stood in the way."""
        if not cases:
            return []
        more = [case for case in cases.values() if case.pairs > self.plan.pairs]
        notes = [f"{len(more)} of {len(cases)} cases took more than {self.plan.pairs} pairs"]
        contended = [
            case for case in cases.values() if case.base.contended or case.contender.contended
        ]
        if contended:
            notes.append(
                f"other processes took processors from launches of {len(contended)} of "
                f"{len(cases)} cases: a quiet machine needs fewer pairs"
            )
        return notes


def _extend(case: _Case, key: str, base: SampleSet, contender: SampleSet) -> None:
    """Add a pair to a case, or note why there is none."""
    if key not in base.samples or key not in contender.samples:
        case.lost = f"then {contender.unmeasured.get(key) or base.unmeasured.get(key, 'lost')}"
        return
    case.base = case.base.joined(base.samples[key])
    case.contender = case.contender.joined(contender.samples[key])


def _joined(runs: Sequence[SampleSet]) -> SampleSet:
    """The launches of one side as one run; a case that a launch lacks is not measured."""
    samples: dict[str, Sample] = {}
    for run in runs:
        for key, sample in run.samples.items():
            samples[key] = samples[key].joined(sample) if key in samples else sample
    unmeasured = {key: why for run in runs for key, why in run.unmeasured.items()}
    lost = [key for key, sample in samples.items() if len(sample.launches) < len(runs)]
    for key in lost:
        unmeasured.setdefault(key, "not measured in every launch")
        del samples[key]
    return SampleSet(runs[0].name, samples, unmeasured)
