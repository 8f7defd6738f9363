"""What pairs of launches allow to be said of one metric of one case, now or at the end."""

from __future__ import annotations

import math
import statistics
from dataclasses import dataclass
from functools import partial

import numpy as np

from fwbench.gate import cycles, paired
from fwbench.gate.metrics import METRICS, Metric
from fwbench.gate.paired import Floats
from fwbench.gate.samples import Sample
from fwbench.gate.verdicts import Judgement, Rules, Verdict

#: While there is time, a case must not be changed by more than this part of the resolution.
_EARLY = 0.6

#: So many more pairs in which one side alone is far slower are chance, as a share.
_LOPSIDED = 0.05

#: A pair is far off from so many times the median deviation on: of a normal spread, one in 140 is.
_FAR = 4.0


@dataclass(frozen=True)
class Test:
    """The test of one metric of one case; changes are logarithms of ratios.

    Attributes:
        metric: what is tested.
        rules: when a difference is a change.
        margin: conceded to chance.
        threshold: the smallest change that is worth a verdict.
        needed: the evidence that a change takes.
        misses: the evidence that a bound takes.
    """

    metric: Metric
    rules: Rules
    margin: float
    threshold: float
    needed: float
    misses: float

    @property
    def resolution(self) -> float:
        """A case is unchanged only if it was not changed by more than this."""
        return math.log1p(self.rules.limit(math.expm1(self.threshold)))

    @property
    def early(self) -> float:
        """The same while there is time to look closer."""
        return max(self.threshold, math.log1p(_EARLY * self.rules.resolution))

    def now(self, differences: Floats) -> Verdict | None:
        """The verdict that more pairs would not alter; None while there is none.

        Args:
            differences: the logarithms of the ratios of the pairs so far.
        """
        centre = _median(differences)
        for change, sign in ((Verdict.REGRESSED, 1), (Verdict.IMPROVED, -1)):
            if sign * centre >= self.threshold and paired.shows(
                sign * differences - self.margin, self.needed
            ):
                return change
        if self.looks_changed(differences):
            return None
        return Verdict.UNCHANGED if self._excludes(differences, self.early) else None

    def looks_changed(self, differences: Floats) -> bool:
        """Whether the pairs' median is beyond the threshold, proven or not."""
        return self.metric.looks_changed(math.exp(_median(differences)), math.exp(self.threshold))

    def at_the_end(self, differences: Floats) -> tuple[Verdict, str, float | None]:
        """The verdict when there will be no more pairs.

        Args:
            differences: of all pairs.

        Returns:
            The verdict, the reason if it is inconclusive, and the smallest slow-down that would
            have shown, as a logarithm.
        """
        verdict = self.now(differences)
        visible = self._visible(differences, verdict)
        if verdict is not None:
            return verdict, "", visible
        sharp = visible is not None and visible <= self.resolution
        if self.looks_changed(differences):
            reason = "looks changed, and chance alone may look like that"
        elif self._lopsided(differences):
            reason = self._far(differences)
        elif sharp and self._excludes(differences, self.resolution):
            return Verdict.UNCHANGED, "", visible
        else:
            reason = "its launches spread too far"
        return Verdict.INCONCLUSIVE, reason, visible

    def _visible(self, differences: Floats, verdict: Verdict | None) -> float | None:
        """The smallest slow-down that would have shown, as a logarithm; None if none would."""
        if not self.metric.is_time and verdict is Verdict.UNCHANGED:
            return self.threshold
        bound = paired.interval(differences, self.rules.confidence)[1]
        if self.metric.is_time and verdict is Verdict.UNCHANGED:
            # More pairs would have followed, had it been slower by that.
            return max(self.threshold, bound)
        visible = paired.detectable(
            differences, self.margin, self.threshold, self.needed, self.rules.seed
        )
        if visible is None or verdict is not None or not self.metric.is_time:
            return visible
        # What cannot be excluded, and was not found, would not have shown.
        return max(visible, bound) if math.isfinite(bound) else None

    def _excludes(self, differences: Floats, change: float) -> bool:
        """Whether the case is not changed by so much, in either direction."""
        return not self.metric.is_time or (
            not self._lopsided(differences)
            and paired.shows(change - differences, self.misses)
            and paired.shows(change + differences, self.misses)
        )

    def _lopsided(self, differences: Floats) -> bool:
        """Whether launches of one side alone are far slower: a second speed that it has."""
        slower, faster = self._far_off(differences)
        return abs(slower - faster) > _LOPSIDED * differences.size

    def _far_off(self, differences: Floats) -> tuple[int, int]:
        """How many pairs lie beyond the resolution, and beyond what the others spread."""
        usual = _median(np.abs(differences - _median(differences)))
        far = max(self.resolution, _FAR * usual)
        return int(np.sum(differences > far)), int(np.sum(differences < -far))

    def _far(self, differences: Floats) -> str:
        slower, faster = self._far_off(differences)
        side, number = ("contender", slower) if slower > faster else ("base", faster)
        return (
            f"in {number} of {differences.size} pairs the {side} took longer by over "
            f"{math.expm1(self.resolution):.0%}"
        )


def evidence_needed(metric: Metric, rules: Rules, cases: int) -> float:
    """The logarithm of the evidence that a change takes, in either direction.

    Args:
        metric: has a part of the level.
        rules: the level.
        cases: that are judged in this job; they share it (Bonferroni).
    """
    return math.log(2 * cases / (rules.level * metric.weight))


def pairs_needed(rules: Rules, cases: int) -> int:
    """The pairs after which a clear change of any metric is found.

    Args:
        rules: the level.
        cases: that are judged in this job.
    """
    return max(paired.pairs_needed(evidence_needed(metric, rules, cases)) for metric in METRICS)


def tests(base: Sample, contender: Sample, rules: Rules, cases: int) -> list[Test]:
    """The tests of a case: one for each metric that both sides have in every launch.

    Args:
        base: its launches.
        contender: those of the other side.
        rules: when a difference is a change.
        cases: that are judged in this job; they share the level.
    """
    made = []
    for metric in METRICS:
        if base.values(metric.name) and contender.values(metric.name):
            threshold = math.log1p(rules.threshold_of(metric, contender))
            made.append(
                Test(
                    metric,
                    rules,
                    math.log1p(rules.margin) if metric.is_time else threshold,
                    threshold,
                    evidence_needed(metric, rules, cases),
                    -math.log(1 - rules.confidence),
                )
            )
    return made


def now(base: Sample, contender: Sample, rules: Rules, cases: int) -> Verdict | None:
    """The verdict on a case that more pairs would not alter; None while there is none.

    Args:
        base: its launches.
        contender: those of the other side, in pairs with them.
        rules: when a difference is a change.
        cases: that are judged in this job.
    """
    verdicts = _now(base, contender, rules, cases)
    if sides := cycles.in_cycles(base, contender):
        of_cycles = _now(*sides, rules, cases)
        verdicts |= {name: cycles.both(verdicts[name], of_cycles[name]) for name in of_cycles}
    found = verdicts.values()
    if Verdict.REGRESSED in found:
        return Verdict.REGRESSED
    if None in found:
        return None
    return Verdict.IMPROVED if Verdict.IMPROVED in found else Verdict.UNCHANGED


def _now(base: Sample, contender: Sample, rules: Rules, cases: int) -> dict[str, Verdict | None]:
    """The verdict on each metric so far, by its name."""
    return {
        test.metric.name: test.now(_differences(test, base, contender))
        for test in tests(base, contender, rules, cases)
    }


def looks_changed(base: Sample, contender: Sample, rules: Rules, cases: int) -> bool:
    """Whether one of a case's metrics is beyond its threshold, proven or not.

    Args:
        base: its launches.
        contender: those of the other side, in pairs with them.
        rules: when a difference is a change.
        cases: that are judged in this job.
    """
    return any(
        test.looks_changed(_differences(test, base, contender))
        for test in tests(base, contender, rules, cases)
    )


def judge(base: Sample, contender: Sample, rules: Rules, cases: int) -> list[Judgement]:
    """The verdicts on a case when there will be no more pairs: one for each metric.

    Args:
        base: its launches.
        contender: those of the other side, in pairs with them.
        rules: when a difference is a change.
        cases: that are judged in this job.
    """
    judgements = [_judge(test, base, contender) for test in tests(base, contender, rules, cases)]
    again = partial(judge, rules=rules, cases=cases)
    return cycles.confirmed(judgements, base, contender, again)


def _judge(test: Test, base: Sample, contender: Sample) -> Judgement:
    differences = _differences(test, base, contender)
    verdict, reason, visible = test.at_the_end(differences)
    low, high = -math.inf, math.inf
    if test.metric.is_time or verdict is not Verdict.UNCHANGED:
        low, high = paired.interval(differences, test.rules.confidence)
    return Judgement(
        contender.key,
        contender.name,
        contender.framework,
        verdict,
        reason,
        test.metric.name,
        math.exp(_median(differences)),
        math.exp(low) if math.isfinite(low) else None,
        math.exp(high) if math.isfinite(high) else None,
        visible=math.expm1(visible) if visible is not None and math.isfinite(visible) else None,
        threshold=math.expm1(test.threshold),
        base=base.values(test.metric.name),
        contender=contender.values(test.metric.name),
    )


def _differences(test: Test, base: Sample, contender: Sample) -> Floats:
    metric = test.metric
    return paired.differences(
        metric.raised(base.values(metric.name)), metric.raised(contender.values(metric.name))
    )


def _median(values: Floats) -> float:
    # NumPy's takes ten times as long for so few.
    return float(statistics.median(values.tolist()))
