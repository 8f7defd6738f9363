"""Sequential tests of paired launches, valid however often they are evaluated.

A pair is a launch of the base and one of the contender, one after the other, in random order. The
test looks at the logarithm of their ratio, one difference per pair. If nothing has changed, its
sign is a fair coin, in any noise of the machine: drift, two speeds, correlated launches. Evidence
against "the contender is slower by at most x" is the money of a gambler who bets on the sign of
each difference and starts with 1: if the claim is true, the probability that the money ever exceeds
1 / level is at most the level (Ville's inequality), so pairs can be added until there is enough of
it. See Ramdas, Grunwald, Vovk and Shafer, "Game-theoretic statistics and safe anytime-valid
inference", Statistical Science 38, 2023, and for bets on signs Ramdas, Ruf, Larsson and Koolen,
"Admissible anytime-valid sequential inference must rely on nonnegative martingales", 2020,
section 5.

A bet grows with the difference, as in the signed-rank test, in units of the earlier differences: it
is an increasing odd function of it, so the claim may be any centre up to the one that is tested.
"""

import math
import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache, partial
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from fwbench.gate import verdicts
from fwbench.gate.samples import METRICS, Metric
from fwbench.gate.verdicts import Judgement, Rules, Verdict
from fwbench.records.measurement import TURNS, Measurement

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]

#: The gambler has three purses: bold, moderate and cautious, which suit clear and small changes.
_STAKES = np.array([[0.98], [0.7], [0.35]])
_PURSES = np.array([[0.6], [0.25], [0.15]])

#: A difference of half the usual size is bet on with 3/4 of the stake.
_STEEPNESS = 2.0

#: Of a difference from itself; so that its logarithm exists.
_LEAST = 1e-9


def differences(base: Sequence[float], contender: Sequence[float]) -> Floats:
    """Logarithms of the ratios of paired launches."""
    ratios: NDArray[Any] = np.asarray(contender, dtype=float) / np.asarray(base, dtype=float)
    return cast("Floats", np.log(ratios))


def evidence(differences: Floats) -> Floats:
    """The logarithm of the evidence that differences have a centre above 0.

    Args:
        differences: along the last axis, in the order of their pairs.

    Returns:
        The largest so far, for each number of pairs; of the same shape.
    """
    sizes = np.log(np.maximum(np.abs(differences), _LEAST))
    counts = np.arange(1, differences.shape[-1] + 1)
    usual = np.exp(np.cumsum(sizes, axis=-1) / counts)
    # Known before the bet is made; of the first one nothing is, so all is bet on its sign.
    known = np.concatenate([np.full_like(usual[..., :1], _LEAST**2), usual[..., :-1]], axis=-1)
    bets = np.tanh(_STEEPNESS * differences / known)[..., None, :]
    money = np.log(_PURSES) + np.cumsum(np.log1p(_STAKES * bets), axis=-1)
    total = np.logaddexp.reduce(money, axis=-2)
    return cast("Floats", np.maximum.accumulate(total, axis=-1))


def evidence_of_share(hits: Bools, share: float = 0.5) -> Floats:
    """The logarithm of the evidence that hits have a probability above a share.

    Bets do not grow with differences, so nothing is assumed of the shape of these.

    Args:
        hits: along the last axis, in the order of their pairs.

    Returns:
        The largest so far, for each number of pairs; of the same shape.
    """
    gains = np.where(hits, (1 - share) / share, -1.0)[..., None, :]
    money = np.log(_PURSES) + np.cumsum(np.log1p(_STAKES * gains), axis=-1)
    total = np.logaddexp.reduce(money, axis=-2)
    return cast("Floats", np.maximum.accumulate(total, axis=-1))


def evidence_of_sign(differences: Floats) -> Floats:
    """The logarithm of the evidence that differences are above 0 more often than not.

    For contestants of different shape: a difference above 0 as often as below is all that is
    assumed, so sizes do not count.
    """
    return evidence_of_share(differences > 0)


def shows(
    differences: Floats, needed: float, evidence: Callable[[Floats], Floats] = evidence
) -> bool:
    """True if there has ever been enough evidence of a centre above 0."""
    return bool(evidence(differences)[-1] >= needed)


@cache
def pairs_to_reach(needed: float) -> int:
    """The number of pairs that show a clear change if they all agree."""
    pairs = 1
    while evidence(np.ones(pairs))[-1] < needed:
        pairs += 1
    return pairs


@dataclass(frozen=True)
class Sequential:
    """A sequential test of pairs; changes are logarithms of ratios."""

    #: The smallest median difference that counts as a change.
    threshold: float
    #: Logarithm of the evidence that a change takes.
    needed: float
    #: Logarithm of the evidence that excludes one direction of a change.
    needed_to_exclude: float
    margin: float

    def proves(self, differences: Floats) -> Bools:
        """True if the differences have shown a centre above the margin, by number of pairs."""
        return evidence(differences - self.margin) >= self.needed

    def is_slower(self, differences: Floats) -> bool:
        """True if the contender is slower, with enough evidence and by the threshold or more."""
        return bool(
            differences.size
            and median(differences) >= self.threshold
            and self.proves(differences)[-1]
        )

    def excludes(self, differences: Floats, change: float) -> Bools:
        """True if a change by this or more is excluded in both directions, by number of pairs.

        Two one-sided tests (Schuirmann, Journal of Pharmacokinetics and Biopharmaceutics 15, 1987).
        """
        needed = self.needed_to_exclude
        is_less = evidence(change - differences) >= needed
        return is_less & (evidence(change + differences) >= needed)


def interval(
    differences: Floats, confidence: float, evidence: Callable[[Floats], Floats] = evidence
) -> tuple[float, float]:
    """Lower and upper bound of the centre; each holds with this confidence after every pair.

    Infinite where there are too few pairs to exclude anything.

    Args:
        evidence: of a centre above 0.
    """
    needed = -math.log(1 - confidence)
    low = -_upper(-differences, needed, evidence)
    return low, _upper(differences, needed, evidence)


#: Bounds are looked for up to here: a factor of 1,000.
_FARTHEST = math.log(1_000)

#: Bounds are given to a twentieth of a per cent.
_PRECISION = 5e-4


def _upper(differences: Floats, needed: float, evidence: Callable[[Floats], Floats]) -> float:
    return _least(
        lambda bound: shows(bound - differences, needed, evidence),
        float(np.median(differences)),
        _FARTHEST,
    )


def _least(holds: Callable[[float], bool], low: float, high: float) -> float:
    """The smallest value between two that satisfies a condition; infinite if there is none."""
    if not holds(high):
        return math.inf
    while high - low > _PRECISION:
        middle = (low + high) / 2
        low, high = (low, middle) if holds(middle) else (middle, high)
    return high


#: Simulated jobs, and the share of them that must find a change for it to be detectable.
_SIMULATED = 100
_DETECTED = 0.8


def detectable(
    differences: Floats, margin: float, threshold: float, needed: float, seed: int
) -> float | None:
    """The smallest change that as many pairs, spread like these, would have shown.

    It is simulated: differences from the median are resampled, with random signs.

    Returns:
        As a logarithm; what four of five such jobs would have found. None if they would not have
        found any change.
    """
    if differences.size < pairs_to_reach(needed):
        return None
    draw = np.random.default_rng(seed)
    shape = (_SIMULATED, differences.size)
    spread = np.abs(differences - np.median(differences))
    noise = draw.choice(spread, shape) * draw.choice((-1.0, 1.0), shape)
    medians = np.median(noise, axis=-1)

    def is_detected(change: float) -> bool:
        enough = evidence(noise + (change - margin))[..., -1] >= needed
        return bool(np.mean(enough & (medians + change >= threshold)) >= _DETECTED)

    change = _least(is_detected, threshold, _FARTHEST)
    return change if math.isfinite(change) else None


#: Further pairs that are simulated, at most, and how many continuations.
FARTHEST = 200
_CONTINUED = 50

#: Fewer pairs do not tell how many more a verdict would take.
TELLING = 10

#: Shares of the continuations: for what is told, and for what is hoped for while there is time.
USUALLY, WITH_LUCK = 0.5, 0.2


def until_decided(
    differences: Floats, decided: Callable[[Floats], Bools], share: float = USUALLY
) -> float:
    """The number of further pairs like these that would decide, in a share of all cases.

    A few pairs do not tell well what others will be like: each continuation draws from a sample of
    these, drawn anew with replacement.

    Args:
        decided: tells by number of pairs, along the last axis, whether they are enough.

    Returns:
        At least 1; infinite if more than :data:`FARTHEST`.
    """
    draw = np.random.default_rng(differences.size)
    alike = draw.choice(differences, (_CONTINUED, differences.size))
    places = draw.integers(differences.size, size=(_CONTINUED, FARTHEST))
    drawn = np.take_along_axis(alike, places, axis=1)
    future = np.concatenate([np.tile(differences, (_CONTINUED, 1)), drawn], axis=1)
    is_over = decided(future)
    if np.mean(is_over[:, -1]) < share:
        return math.inf
    first = np.where(is_over[:, -1], np.argmax(is_over, axis=1) + 1, future.shape[1])
    return float(max(1, int(np.quantile(first, share)) - differences.size))


def median(values: Floats) -> float:
    """The median of a few values, ten times as fast as NumPy's."""
    return float(statistics.median(values.tolist()))


# The metrics of a case

#: While there is time, a case must not be changed by more than this part of the resolution.
_EARLY = 0.6

#: A larger share of pairs in which one side alone is far slower is not chance.
_LOPSIDED = 0.05

#: A pair is an outlier from this many median deviations on: of a normal spread, one in 140 is.
_OUTLIER = 4.0


@dataclass(frozen=True)
class MetricTest(Sequential):
    """The test of one metric of one case."""

    metric: Metric
    rules: Rules
    #: For reasons: what brings a difference, and what is slower where one is positive or negative.
    words: tuple[str, str, str] = ("pairs", "contender", "base")

    @classmethod
    def create(cls, metric: Metric, rules: Rules, cases: int, base: Measurement) -> "MetricTest":
        """The test of a metric in a job."""
        share = rules.threshold_of(metric, base)
        threshold = math.log1p(share)
        return cls(
            threshold,
            evidence_needed(metric, rules, cases),
            -math.log(1 - rules.confidence),
            math.log1p(rules.margin_of(share)) if metric.is_time else threshold,
            metric,
            rules,
        )

    @property
    def resolution(self) -> float:
        """The largest change that an unchanged case may have."""
        return math.log1p(self.rules.limit(math.expm1(self.threshold)))

    @property
    def early_resolution(self) -> float:
        """The same while there is time for further pairs."""
        resolution = self.rules.resolution_of(math.expm1(self.threshold))
        return max(self.threshold, math.log1p(_EARLY * resolution))

    def verdict(self, differences: Floats) -> Verdict | None:
        """The verdict that further pairs would not alter; None while there is none."""
        if self.is_slower(differences):
            return Verdict.REGRESSED
        if self.is_slower(-differences):
            return Verdict.IMPROVED
        if self.looks_changed(differences):
            return None
        is_within = self._is_within(differences, self.early_resolution)
        is_sharp = is_within and self._would_show(differences) <= self.resolution
        return Verdict.UNCHANGED if is_sharp else None

    def looks_changed(self, differences: Floats) -> bool:
        """True if the pairs' median is beyond the threshold, proven or not."""
        return self.metric.looks_changed(math.exp(median(differences)), math.exp(self.threshold))

    def more_pairs(self, differences: Floats, share: float) -> float:
        """The number of further pairs that bring a verdict; 0 if there is one."""
        if self.verdict(differences) is not None:
            return 0.0

        def decided(future: Floats) -> Bools:
            medians = np.median(future, axis=1)[:, None]
            changed = np.abs(medians) >= self.threshold
            found = self.proves(np.where(medians < 0, -1.0, 1.0) * future)
            return np.where(changed, found, self.excludes(future, self.early_resolution))

        return until_decided(differences, decided, share)

    def final_verdict(self, differences: Floats) -> tuple[Verdict, str, float | None]:
        """The verdict when there will be no more pairs.

        Returns:
            The verdict, the reason if it is inconclusive, and the smallest slow-down that would
            have shown, as a logarithm.
        """
        verdict = self.verdict(differences)
        visible = self._visible(differences, verdict)
        if verdict is not None:
            return verdict, "", visible
        sharp = visible is not None and visible <= self.resolution
        if self.looks_changed(differences):
            reason = self._chance(differences)
        elif self._is_lopsided(differences):
            reason = self._second_speed(differences)
        elif sharp and self._is_within(differences, self.resolution):
            return Verdict.UNCHANGED, "", visible
        else:
            reason = "its launches spread too far"
        return Verdict.INCONCLUSIVE, reason, visible

    def _visible(self, differences: Floats, verdict: Verdict | None) -> float | None:
        """The smallest slow-down that would have shown, as a logarithm; None if none would."""
        if verdict is Verdict.UNCHANGED:
            return self._would_show(differences)
        visible = detectable(differences, self.margin, self.threshold, self.needed, self.rules.seed)
        if visible is None or verdict is not None or not self.metric.is_time:
            return visible
        # What cannot be excluded, and was not found, would not have shown.
        bound = interval(differences, self.rules.confidence)[1]
        return max(visible, bound) if math.isfinite(bound) else None

    def _would_show(self, differences: Floats) -> float:
        """The smallest slow-down of an unchanged case that would have shown, as a logarithm.

        More pairs would have followed, had it been slower by its bound. And of what is slower by
        the threshold every second median is below that: it has to be above by as much as medians
        are uncertain.
        """
        if not self.metric.is_time:
            return self.threshold
        bound = interval(differences, self.rules.confidence)[1]
        return max(bound, self.threshold + bound - median(differences))

    def _is_within(self, differences: Floats, change: float) -> bool:
        """True if a change by this is excluded in both directions; of a time alone that counts."""
        return not self.metric.is_time or (
            not self._is_lopsided(differences) and bool(self.excludes(differences, change)[-1])
        )

    def _is_lopsided(self, differences: Floats) -> bool:
        """True if launches of one side alone are far slower: a second speed that it has."""
        slower, faster = self._outliers(differences)
        return abs(slower - faster) > _LOPSIDED * differences.size

    def _outliers(self, differences: Floats) -> tuple[int, int]:
        """Slower and faster pairs beyond the resolution, and beyond the spread of the others."""
        usual = median(np.abs(differences - median(differences)))
        far = max(self.resolution, _OUTLIER * usual)
        return int(np.sum(differences > far)), int(np.sum(differences < -far))

    def _chance(self, differences: Floats) -> str:
        reason = "looks changed, but chance alone could explain it"
        if number := int(np.sum(differences * median(differences) < 0)):
            reason += f": {number} of {differences.size} {self.words[0]} say the opposite"
        return reason

    def _second_speed(self, differences: Floats) -> str:
        slower, faster = self._outliers(differences)
        what, contender, base = self.words
        side, number = (contender, slower) if slower > faster else (base, faster)
        return (
            f"in {number} of {differences.size} {what} the {side} took longer by over "
            f"{math.expm1(self.resolution):.0%}"
        )


def evidence_needed(metric: Metric, rules: Rules, cases: int) -> float:
    """The logarithm of the evidence that a change takes, in either direction."""
    return math.log(2 * cases / (rules.level * metric.weight))


def clear_pairs(rules: Rules, cases: int) -> int:
    """The number of pairs that show a clear change of a time if they all agree."""
    needed = (evidence_needed(metric, rules, cases) for metric in METRICS if metric.is_time)
    return pairs_to_reach(min(needed))


def metric_tests(
    base: Measurement, contender: Measurement, rules: Rules, cases: int
) -> list[MetricTest]:
    """The tests of a case: one for each metric that both sides of a pair have."""
    return [
        MetricTest.create(metric, rules, cases, base)
        for metric in METRICS
        if _both_known(metric.name, base, contender)
    ]


def verdict_so_far(
    base: Measurement, contender: Measurement, rules: Rules, cases: int
) -> Verdict | None:
    """The verdict on a case that further pairs would not alter; None while there is none."""
    by_metric = _verdicts_so_far(base, contender, rules, cases)
    if sides := verdicts.in_cycles(base, contender):
        of_cycles = _verdicts_so_far(*sides, rules, cases)
        by_metric |= {name: verdicts.both(by_metric[name], of_cycles[name]) for name in of_cycles}
    known = by_metric.values()
    if Verdict.REGRESSED in known:
        return Verdict.REGRESSED
    if None in known:
        return None
    return Verdict.IMPROVED if Verdict.IMPROVED in known else Verdict.UNCHANGED


def _verdicts_so_far(
    base: Measurement, contender: Measurement, rules: Rules, cases: int
) -> dict[str, Verdict | None]:
    return {
        test.metric.name: test.verdict(_differences(test, base, contender))
        for test in metric_tests(base, contender, rules, cases)
    }


def more_pairs(
    base: Measurement, contender: Measurement, rules: Rules, cases: int, share: float = USUALLY
) -> float:
    """The number of further pairs that bring the verdict on a case; see :func:`until_decided`.

    One metric that has changed decides, and that none has takes all of them.
    """
    changed: list[float] = []
    others = [0.0]
    for test in metric_tests(base, contender, rules, cases):
        differences = _differences(test, base, contender)
        looks_changed = test.looks_changed(differences)
        (changed if looks_changed else others).append(test.more_pairs(differences, share))
    return min(changed, default=max(others))


def judge(base: Measurement, contender: Measurement, rules: Rules, cases: int) -> list[Judgement]:
    """The verdicts on a case when there will be no more pairs: one for each metric."""
    judgements = [
        _judgement(test, base, contender) for test in metric_tests(base, contender, rules, cases)
    ]
    return verdicts.confirmed(judgements, base, contender, partial(judge, rules=rules, cases=cases))


def _judgement(test: MetricTest, base: Measurement, contender: Measurement) -> Judgement:
    differences = _differences(test, base, contender)
    verdict, reason, visible = test.final_verdict(differences)
    low, high = -math.inf, math.inf
    if test.metric.is_time or verdict is not Verdict.UNCHANGED:
        low, high = interval(differences, test.rules.confidence)
    return Judgement(
        contender.key,
        contender.label,
        contender.framework,
        verdict,
        reason,
        test.metric.name,
        math.exp(median(differences)),
        math.exp(low) if math.isfinite(low) else None,
        math.exp(high) if math.isfinite(high) else None,
        visible=math.expm1(visible) if visible is not None and math.isfinite(visible) else None,
        threshold=math.expm1(test.threshold),
        base=base.known(test.metric.name),
        contender=contender.known(test.metric.name),
    )


def _both_known(name: str, base: Measurement, contender: Measurement) -> list[tuple[float, float]]:
    """A figure of both sides of the pairs that have it."""
    pairs = zip(base.launches, contender.launches, strict=False)
    return [(both[0][name], both[1][name]) for both in pairs if name in both[0] and name in both[1]]


def _differences(test: MetricTest, base: Measurement, contender: Measurement) -> Floats:
    metric = test.metric
    if in_turns := contender.known(TURNS.get(metric.name, "")):
        return np.asarray(in_turns)
    sides = zip(*_both_known(metric.name, base, contender), strict=True)
    return differences(*map(metric.raised, sides))
