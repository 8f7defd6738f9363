"""Times on a GPU in cycles of its clock: what changed in seconds alone is the clock's change.

A GPU that is warmer, or has less power, takes longer for the same kernels. So a change counts only
if the time and the cycles agree, as in nvbench's robust comparison. The clock is the median of each
launch; where NVML did not tell it, and on a CPU, the time alone decides.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from statistics import median

from fwbench.gate.metrics import CLOCK, MEDIAN, MINIMUM
from fwbench.gate.samples import Sample
from fwbench.gate.verdicts import CHANGES, Judgement, Verdict

#: Judges the launches of both sides: one judgement for each metric.
Judge = Callable[[Sample, Sample], Sequence[Judgement]]


def in_cycles(base: Sample, contender: Sample) -> tuple[Sample, Sample] | None:
    """Both sides with cycles in place of seconds, and with nothing else.

    Args:
        base: its launches.
        contender: those of the other side.

    Returns:
        None where the clock of a launch is not known.
    """
    ours, theirs = _in_cycles(base), _in_cycles(contender)
    return None if ours is None or theirs is None else (ours, theirs)


def _in_cycles(sample: Sample) -> Sample | None:
    clocks_hz = sample.values(CLOCK)
    if not clocks_hz:
        return None
    launches = tuple(
        {name: launch[name] * hz for name in (MINIMUM, MEDIAN) if name in launch}
        for launch, hz in zip(sample.launches, clocks_hz, strict=True)
    )
    return dataclasses.replace(sample, launches=launches)


def both(in_seconds: Verdict | None, in_cycles: Verdict | None) -> Verdict | None:
    """The verdict on a time that seconds and cycles have in common; None while there is none.

    Args:
        in_seconds: the verdict on the time.
        in_cycles: that on its cycles.
    """
    if in_seconds not in CHANGES:
        return in_seconds
    is_open = in_cycles in (None, Verdict.INCONCLUSIVE)
    return in_cycles if is_open or in_cycles is in_seconds else Verdict.UNCHANGED


def confirmed(
    judgements: Sequence[Judgement], base: Sample, contender: Sample, judge: Judge
) -> list[Judgement]:
    """Judgements in which a change of the time is one of the cycles too.

    Args:
        judgements: of the time, and of what else was judged.
        base: its launches.
        contender: those of the other side.
        judge: made them; judges the cycles alike.
    """
    sides = in_cycles(base, contender)
    if sides is None:
        return [*judgements]
    of_cycles = {each.metric: each for each in judge(*sides)}
    return [
        _confirmed(each, of_cycles[each.metric], base, contender)
        if each.metric in of_cycles
        else each
        for each in judgements
    ]


def _confirmed(time: Judgement, cycles: Judgement, base: Sample, contender: Sample) -> Judgement:
    known = dataclasses.replace(time, cycles_ratio=cycles.ratio)
    verdict = both(time.verdict, cycles.verdict)
    if verdict is None or verdict is time.verdict:
        return known
    mhz = " and ".join(f"{median(side.values(CLOCK)) / 1e6:,.0f}" for side in (base, contender))
    what = "no change" if verdict is Verdict.UNCHANGED else "no change in cycles is certain"
    reason = f"{what}: the clock differed ({mhz} MHz)"
    return dataclasses.replace(known, verdict=verdict, reason=reason, visible=cycles.visible)
