"""Judges runs that were stored: launches of different times, which make no pairs."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Sequence
from functools import partial
from statistics import median

from fwbench.errors import TooFewLaunches
from fwbench.gate import statistics, verdicts
from fwbench.gate.samples import METRICS, Metric, SampleSet, unequal_work
from fwbench.gate.verdicts import Comparison, Judgement, Rules, Verdict, one_sided, unjudged
from fwbench.records.measurement import Measurement
from fwbench.records.units import count

#: With fewer a side, not even one case differs from chance at any usual significance level.
LAUNCHES_AT_LEAST = 5

#: A launch of seven may be far slower than the others of its side; more are a second speed.
_ODD_ONES = 0.15

_NOUN = ("launch", "launches")

#: The part of the level that each of the two times has.
_WEIGHT = min(metric.weight for metric in METRICS if metric.is_time)


def compare(
    base: SampleSet, contender: SampleSet, rules: Rules, notes: Sequence[str] = ()
) -> Comparison:
    """Compare two stored runs, case by case.

    Args:
        base: the baseline; its own drift between sessions widens the margin.
    """
    pairs = {
        key: (base.samples[key], sample)
        for key, sample in contender.samples.items()
        if key in base.samples
    }
    launches = {key: _launches(*pair) for key, pair in pairs.items() if _is_launched(*pair)}
    enough = [number for number in launches.values() if number >= LAUNCHES_AT_LEAST]
    if pairs and not enough:
        most = count(max(launches.values(), default=1), *_NOUN)
        raise TooFewLaunches(
            f"{base.name} and {contender.name} have {most} of a case at most, and a comparison "
            f"needs {LAUNCHES_AT_LEAST} on both sides; measure both with --fw-launches "
            f"{LAUNCHES_AT_LEAST}"
        )
    level = level_of_each(rules.level, enough)
    judgements: list[Judgement] = []
    for key, pair in pairs.items():
        margin = max(rules.margin, base.drift.get(key, 0.0))
        judgements += _judgements(*pair, dataclasses.replace(rules, margin=margin), level)
    return Comparison(
        base.name,
        contender.name,
        [*judgements, *one_sided(base, contender)],
        dataclasses.asdict(rules),
        [*_interruptions(base, contender), *notes],
    )


def _judgements(
    base: Measurement, contender: Measurement, rules: Rules, level: float
) -> list[Judgement]:
    """The verdicts on one case, or the one reason why there is none."""
    verdict = Verdict.INCONCLUSIVE
    if not _is_launched(base, contender):
        verdict = Verdict.NOT_REPLICATED
        reason = "measured in one process: only fwbench's own cases are launched"
    elif (launches := _launches(base, contender)) < LAUNCHES_AT_LEAST:
        reason = f"only {count(launches, *_NOUN)}"
    else:
        reason = unequal_work(base, contender)
    if reason:
        return [unjudged(contender, verdict, reason)]
    return judge(base, contender, rules, level)


def _is_launched(*sides: Measurement) -> bool:
    """True if a case is one of fwbench's, or was launched on both sides all the same."""
    return all(sample.framework or sample.has_launches for sample in sides)


def _launches(*sides: Measurement) -> int:
    """The launches of a case on the side that has fewer."""
    return min(len(sample.launches) if sample.has_launches else 1 for sample in sides)


def _interruptions(*sides: SampleSet) -> Iterable[str]:
    """Notes on runs that were interrupted."""
    for side in sides:
        if side.interrupted:
            lost = sorted(
                key
                for key, why in side.unmeasured.items()
                if key not in side.samples and not why.startswith(("deselected", "skipped"))
            )
            number = len(side.samples)
            yield (
                f"{side.name} was interrupted: {number} of {number + len(lost)} cases measured"
                + (f"; lost: {', '.join(lost)}" if lost else "")
            )


def level_of_each(level: float, launches: Sequence[int]) -> float:
    """The level of each case, so that all together keep the level (Bonferroni)."""
    if not launches:
        return level
    case_level = level / len(launches)
    fewest = min(launches)
    if statistics.smallest_p(fewest, fewest) > case_level * _WEIGHT:
        needed = statistics.launches_needed(case_level * _WEIGHT)
        raise TooFewLaunches(
            f"{count(fewest, *_NOUN)} a side cannot show a change among {len(launches)} cases at "
            f"a level of {level:g}: {needed} launches a side are needed, or fewer cases (-k), or a "
            "higher level (--level)"
        )
    return case_level


def judge(base: Measurement, contender: Measurement, rules: Rules, level: float) -> list[Judgement]:
    """The verdicts on one case: one for each metric that both sides have."""
    contended = base.contended or contender.contended
    judgements = [
        _judge(metric, base, contender, rules, level * metric.weight)
        for metric in METRICS
        if base.values(metric.name)
        and contender.values(metric.name)
        and (metric.is_time or not contended)
    ]
    judge_again = partial(judge, rules=rules, level=level)
    return verdicts.confirmed(judgements, base, contender, judge_again)


def _judge(
    metric: Metric, base: Measurement, contender: Measurement, rules: Rules, level: float
) -> Judgement:
    measured = base.values(metric.name), contender.values(metric.name)
    before, after = (metric.raised(values) for values in measured)
    threshold = rules.threshold_of(metric, contender)
    margin = rules.margin if metric.is_time else threshold
    ratio = statistics.ratio(before, after)
    low, high = statistics.interval(before, after, rules.confidence, rules.seed)
    slower = statistics.p_slower(before, after, margin)
    faster = statistics.p_slower(after, before, margin)
    visible = statistics.detectable(before, after, margin, threshold, level, rules.seed)
    limit = rules.limit(threshold)
    verdict, reason = Verdict.INCONCLUSIVE, ""
    if base.contended or contender.contended:
        reason = "other processes took its processors"
    elif slower <= level and ratio >= 1 + threshold:
        verdict = Verdict.REGRESSED
    elif faster <= level and 1 / ratio >= 1 + threshold:
        verdict = Verdict.IMPROVED
    elif metric.looks_changed(ratio, 1 + max(threshold, margin)):
        reason = "looks changed, and chance alone may look like that"
    elif metric.is_time and (second := _second_speed(before, after, limit)):
        reason = second
    elif metric.is_time and (visible is None or visible > limit):
        reason = "its launches spread too far"
    else:
        verdict = Verdict.UNCHANGED
    return Judgement(
        contender.key,
        contender.label,
        contender.framework,
        verdict,
        reason,
        metric.name,
        ratio,
        low,
        high,
        min(slower, faster),
        visible,
        threshold,
        *measured,
    )


def _second_speed(base: Sequence[float], contender: Sequence[float], limit: float) -> str:
    """Reason where launches of one side alone are far slower than the others; or empty."""
    sides = {"base": base, "contender": contender}
    far = {
        name: sum(value > (1 + limit) * median(values) for value in values) / len(values)
        for name, values in sides.items()
    }
    slower = max(far, key=far.__getitem__)
    if far[slower] - min(far.values()) <= _ODD_ONES:
        return ""
    number = round(far[slower] * len(sides[slower]))
    return f"{number} of {len(sides[slower])} launches of the {slower} took {limit:.0%} longer"
