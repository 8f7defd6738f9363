"""Judges stored runs: sessions of different times, which make no pairs.

Between two sessions a machine changes by more than its launches show, and so the session is the
unit: a base of one session informs, and decides nothing.
"""

import dataclasses
import math
import statistics
from collections.abc import Iterable, Sequence
from functools import partial

from fwbench.gate import verdicts
from fwbench.gate.samples import METRICS, Metric, SampleSet, unequal_work
from fwbench.gate.statistics import SessionRatio
from fwbench.gate.verdicts import Comparison, Judgement, Rules, Verdict, one_sided, unjudged
from fwbench.records.measurement import Measurement
from fwbench.records.units import count

#: Of fewer nobody knows how far the sessions of a machine are apart.
SESSIONS_AT_LEAST = 2

#: Standard deviation that sessions are taken to have at least, as a part of the default threshold:
#: three had 8 MiB each, and a fourth one, of the same code, 15.
_LEAST_SPREAD = 0.25

_NOUN = ("session", "sessions")


def compare(
    base: SampleSet, contender: SampleSet, rules: Rules, notes: Sequence[str] = ()
) -> Comparison:
    """Compare the sessions of two stored runs, case by case; the margin of rules is not used."""
    pairs = {
        key: (base.samples[key], sample)
        for key, sample in contender.samples.items()
        if key in base.samples
    }
    level = rules.level / max(len(pairs), 1)
    judgements = [
        judgement for pair in pairs.values() for judgement in _judgements(*pair, rules, level)
    ]
    return Comparison(
        base.name,
        contender.name,
        [*judgements, *one_sided(base, contender)],
        dataclasses.asdict(rules),
        [
            *_interruptions(base, contender),
            *_power(judgements),
            *rules.marked(pairs.values()),
            *notes,
        ],
    )


def _judgements(
    base: Measurement, contender: Measurement, rules: Rules, level: float
) -> list[Judgement]:
    """The verdicts on one case, or the one reason why there is none."""
    if reason := unequal_work(base, contender):
        return [unjudged(contender, Verdict.INCONCLUSIVE, reason)]
    return judge(base, contender, rules, level)


def _power(judgements: Sequence[Judgement]) -> Iterable[str]:
    """A note on the changes that could have shown."""
    of_times = [judgement for judgement in judgements if judgement.metric == METRICS[0].name]
    if not of_times:
        return
    most = (max(len(j.base) for j in of_times), max(len(j.contender) for j in of_times))
    sessions = " against ".join(count(number, *_NOUN) for number in most)
    if most[0] < SESSIONS_AT_LEAST:
        yield (
            f"{sessions}, for information only: sessions of the same work differ, too. Measure "
            f"{SESSIONS_AT_LEAST} or more of the base, or both sides in turns (fwbench ab)"
        )
        return
    slower = statistics.median_low(judgement.visible or math.inf for judgement in of_times)
    change = "not even ten times the time" if slower == math.inf else f"a slow-down by {slower:.0%}"
    yield f"{sessions}: {change} would have shown in half of the cases"


def _interruptions(*sides: SampleSet) -> Iterable[str]:
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


def judge(base: Measurement, contender: Measurement, rules: Rules, level: float) -> list[Judgement]:
    """The verdicts on one case: one for each metric that both sides have."""
    times_alone = base.contended or contender.contended or len(base.launches) < SESSIONS_AT_LEAST
    judgements = [
        _judge(metric, base, contender, rules, level * metric.weight)
        for metric in METRICS
        if base.values(metric.name)
        and contender.values(metric.name)
        and (metric.is_time or not times_alone)
    ]
    judge_again = partial(judge, rules=rules, level=level)
    return verdicts.confirmed(judgements, base, contender, judge_again)


def _judge(
    metric: Metric, base: Measurement, contender: Measurement, rules: Rules, level: float
) -> Judgement:
    measured = base.values(metric.name), contender.values(metric.name)
    least = _LEAST_SPREAD * math.log1p(metric.threshold or Rules.threshold)
    before, after = map(metric.raised, measured)
    shift = SessionRatio.between(before, after, least)
    threshold = rules.threshold_of(metric, base)
    visible = shift.detectable(threshold, level / 2)
    verdict, reason = Verdict.INCONCLUSIVE, ""
    if len(measured[0]) < SESSIONS_AT_LEAST:
        reason = "the base has one session"
    elif base.contended or contender.contended:
        reason = "other processes took its processors"
    elif shift.p <= level / 2 and shift.is_beyond(threshold):
        verdict = Verdict.REGRESSED if shift.ratio > 1 else Verdict.IMPROVED
    elif metric.looks_changed(shift.ratio, 1 + threshold):
        reason = "looks changed, and sessions of the same work may differ as much"
    elif metric.is_time and (visible is None or visible > rules.limit(threshold)):
        reason = "its sessions are too far apart"
    else:
        verdict = Verdict.UNCHANGED
    return Judgement(
        contender.key,
        contender.label,
        contender.framework,
        verdict,
        reason,
        metric.name,
        shift.ratio,
        *shift.interval(rules.confidence),
        shift.p,
        visible,
        threshold,
        *measured,
    )
