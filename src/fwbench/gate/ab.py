"""A/B comparisons in two stages: everything a few times, then what looks changed again.

Launches of both sides alternate in one job, so that a machine which grows slower does so for both.
What looks changed is measured afresh, and judged by the fresh launches alone: the first ones were
chosen for looking so.
"""

from __future__ import annotations

import dataclasses
import math
import random
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass

from fwbench.errors import TooFewLaunches
from fwbench.gate import statistics
from fwbench.gate.samples import Sample, SampleSet, refuse_differences
from fwbench.gate.verdicts import (
    CHANGES,
    Comparison,
    Judgement,
    Rules,
    Verdict,
    judge,
    level_of_each,
    one_sided,
    unjudged,
)


@dataclass(frozen=True)
class Stages:
    """How often is measured, and what is measured again.

    Attributes:
        launches: of each side, for every case.
        flag: a case is flagged if the probability of the first test is below.
        fresh: launches of each side, for flagged cases alone.
        seed: of the order of launches and cases.
    """

    launches: int = 5
    flag: float = 0.15
    fresh: int = 10
    seed: int = 0


#: Measures one launch: of the base (0) or the contender (1), of these cases (None: of all), with
#: this seed for their order.
Measure = Callable[[int, Collection[str] | None, int], SampleSet]


class StagedComparison:
    """A comparison in two stages: all cases first, then the flagged ones with fresh launches.

    Args:
        measure: measures one launch.
        stages: how often.
        rules: when a difference is a change.
        tested: the facts that may differ.
        say: called with each line of progress.
    """

    def __init__(
        self,
        measure: Measure,
        stages: Stages,
        rules: Rules,
        tested: Collection[str] = (),
        say: Callable[[str], object] = lambda _: None,
    ) -> None:
        self.measure = measure
        self.stages = stages
        self.rules = rules
        self.tested = tested
        self.say = say
        self._random = random.Random(stages.seed)  # noqa: S311 (no secret)

    def compare(self, names: tuple[str, str], notes: Sequence[str] = ()) -> Comparison:
        """Measure both sides and judge.

        Args:
            names: of base and contender.
            notes: what else a reader must know.

        Raises:
            TooFewLaunches: with so few launches nothing could be flagged, or confirmed.
            DifferentSettings: the sides differ in what is not compared.
        """
        self._refuse_hopeless(1)
        base, contender = self._everything()
        differences = refuse_differences(base, contender, self.tested)
        judged = {
            key: judge(base.samples[key], sample, self.rules, self.stages.flag)
            for key, sample in contender.samples.items()
            if key in base.samples
        }
        # Contended cases too: fresh launches may be quiet ones.
        flagged = {
            key: judgement.change for key, judgement in judged.items() if self._looks(judgement)
        }
        judged = {key: _unconfirmed(judgement) for key, judgement in judged.items()}
        judged |= self._again(flagged, contender.samples)
        return Comparison(
            *names,
            [*judged.values(), *one_sided(base, contender)],
            {**dataclasses.asdict(self.rules), **dataclasses.asdict(self.stages)},
            [*differences, *notes, f"{len(flagged)} of {len(judged)} cases were measured again"],
        )

    def _looks(self, judgement: Judgement) -> bool:
        return judgement.p is not None and judgement.p < self.stages.flag

    def _everything(self) -> tuple[SampleSet, SampleSet]:
        """The first stage: launches of all cases."""
        runs: tuple[list[SampleSet], list[SampleSet]] = ([], [])
        for number in range(self.stages.launches):
            self._pair(f"launch {number + 1} of {self.stages.launches}", None, runs)
            # Before the rest is measured for nothing.
            self._refuse_hopeless(max(len(run[0].samples) for run in runs))
            refuse_differences(runs[0][0], runs[1][0], self.tested)
        return _joined(runs[0]), _joined(runs[1])

    def _again(
        self, flagged: Mapping[str, Verdict | None], first: Mapping[str, Sample]
    ) -> dict[str, Judgement]:
        """The second stage: judge flagged cases by fresh launches alone.

        A case that could not be confirmed any more, whatever is still to come, is not measured to
        the end; that saves time and does not alter the verdicts.
        """
        if not flagged:
            return {}
        fresh = self.stages.fresh
        level = level_of_each(self.rules.level, [fresh] * len(flagged))
        runs: tuple[list[SampleSet], list[SampleSet]] = ([], [])
        open_, judged = dict(flagged), {}
        for number in range(fresh):
            what = f"fresh launch {number + 1} of at most {fresh}"
            self._pair(what, open_, runs)
            base, contender = _joined(runs[0], open_), _joined(runs[1], open_)
            for key, change in list(open_.items()):
                if key not in base.samples or key not in contender.samples:
                    lost = contender.unmeasured.get(key) or base.unmeasured.get(key, "")
                    judged[key] = unjudged(first[key], Verdict.INCONCLUSIVE, f"then {lost}")
                    del open_[key]
                    continue
                before, after = base.samples[key], contender.samples[key]
                assert change is not None  # noqa: S101 (it was judged)
                if number + 1 == fresh or self._is_hopeless(before, after, change, level):
                    judged[key] = judge(before, after, self.rules, level, [change])
                    del open_[key]
            if not open_:
                break
        return judged

    def _is_hopeless(self, base: Sample, contender: Sample, change: Verdict, level: float) -> bool:
        slow, fast = (contender, base) if change is Verdict.REGRESSED else (base, contender)
        return (
            statistics.p_at_best(fast.values_s, slow.values_s, self.rules.margin, self.stages.fresh)
            > level
        )

    def _pair(
        self,
        what: str,
        selected: Collection[str] | None,
        runs: tuple[list[SampleSet], list[SampleSet]],
    ) -> None:
        """One launch of each side, in random order."""
        cases = "all cases" if selected is None else f"{len(selected)} flagged cases"
        for side in self._random.sample((0, 1), 2):
            self.say(f"{what}, {('base', 'contender')[side]}: {cases}")
            runs[side].append(self.measure(side, selected, self._random.randrange(10**6)))

    def _refuse_hopeless(self, cases: int) -> None:
        stages = self.stages
        # What is flagged lies below, not at it.
        needed = statistics.launches_needed(math.nextafter(stages.flag, 0))
        if stages.launches < needed:
            raise TooFewLaunches(
                f"{stages.launches} launches a side cannot flag anything at {stages.flag:g}: "
                f"{needed} are needed (--launches)"
            )
        needed = statistics.launches_needed(self.rules.level / max(cases, 1))
        if stages.fresh < needed:
            raise TooFewLaunches(
                f"{stages.fresh} fresh launches a side cannot confirm a change if all of {cases} "
                f"cases are flagged, at a level of {self.rules.level:g}: {needed} are needed "
                "(--fresh-launches), or fewer cases (-k), or a higher --level"
            )


def _unconfirmed(judgement: Judgement) -> Judgement:
    """The first launches alone never make a case regressed or improved."""
    if judgement.verdict in CHANGES:
        return dataclasses.replace(judgement, verdict=Verdict.UNCHANGED)
    return judgement


def _joined(runs: Sequence[SampleSet], selected: Collection[str] | None = None) -> SampleSet:
    """The launches of one side as one run; a case that a launch lacks is not measured."""
    samples: dict[str, Sample] = {}
    for run in runs:
        for key, sample in run.samples.items():
            if selected is not None and key not in selected:
                continue
            samples[key] = samples[key].joined(sample) if key in samples else sample
    unmeasured = {key: why for run in runs for key, why in run.unmeasured.items()}
    lost = [key for key, sample in samples.items() if len(sample.values_s) < len(runs)]
    for key in lost:
        unmeasured.setdefault(key, "not measured in every launch")
        del samples[key]
    return SampleSet(runs[0].name, samples, unmeasured)
