"""Training loops: figures of a record, loss curves of the same work, and when compiling pays."""

import itertools
import math
import statistics
from collections.abc import Iterable, Iterator, Mapping, Sequence

from fwbench.records import equality
from fwbench.records.facts import CaseFacts
from fwbench.records.measurement import Measurement, group_by
from fwbench.records.session_facts import BreakEven, LossCurves
from fwbench.terms.toggles import TOGGLES, Toggle

Known = Mapping[str, Toggle]

#: Loops that did the same work, in any framework and execution, with a title.
Group = tuple[str, list[Measurement]]


def epochs_s(record: Measurement) -> list[float]:
    """Seconds of every epoch of the first repetition, warm-up epochs included."""
    first = record.epochs[0].repetition
    return [epoch.seconds for epoch in record.epochs if epoch.repetition == first]


def accuracy(record: Measurement) -> float | None:
    """The test accuracy (0 to 1), of several repetitions the median; None if it was not tested."""
    last = {test.repetition: test.accuracy for test in record.facts.test_accuracy or ()}
    return statistics.median(last.values()) if last else None


def largest_deviation(
    curves: Mapping[str, Sequence[float]],
) -> tuple[float, int, tuple[str, str]] | None:
    """The largest distance of any two loss curves: nats, epoch (from 1) and the two names.

    None for fewer than two curves.
    """
    deviations = [
        (abs(loss - other_loss), epoch, (name, other))
        for (name, curve), (other, other_curve) in itertools.combinations(curves.items(), 2)
        for epoch, (loss, other_loss) in enumerate(zip(curve, other_curve, strict=False), 1)
    ]
    return max(deviations, key=lambda deviation: deviation[0], default=None)


def deviation_text(curves: Mapping[str, Sequence[float]]) -> str:
    """The largest distance of loss curves, in words; empty for one curve."""
    largest = largest_deviation(curves)
    if largest is None:
        return ""
    deviation, epoch, (name, other) = largest
    return f" (at most {deviation:.2g} nats apart: {name} and {other}, epoch {epoch})"


def groups(loops: Iterable[Measurement], known: Known = TOGGLES) -> list[Group]:
    """Training loops by their work."""
    by_work = group_by(
        (loop for loop in loops if loop.epochs), lambda loop: equality.work(loop.facts, known)
    )
    return [
        (f"{facts.workload} {facts.device} {facts.dtype} {facts.size}", group)
        for group in by_work.values()
        for facts in [group[0].facts]
    ]


def loop_name(loop: Measurement, known: Known = TOGGLES) -> str:
    """Framework, execution, and requested toggles that leave the work alone, or are not known."""
    return loop.contestant_with(lambda name: name not in known or not known[name].changes_work)


def loss_curves(loops: Iterable[Measurement], known: Known = TOGGLES) -> list[LossCurves]:
    """The largest distance of the loss curves of each group of at least two, for the stored run."""
    deviations = []
    for title, group in groups(loops, known):
        curves = {loop_name(loop, known): equality.curve(loop.facts) for loop in group}
        largest = largest_deviation(curves)
        if largest is not None:
            deviation, epoch, between = largest
            deviations.append(
                LossCurves(group=title, max_deviation=deviation, epoch=epoch, between=[*between])
            )
    return deviations


def break_even(loops: Iterable[Measurement], known: Known = TOGGLES) -> list[BreakEven]:
    """The step from which on each execution that compiles is faster, for the stored run."""
    return [
        BreakEven(
            group=title,
            name=loop_name(compiled, known),
            compile_s=compiled.facts.compile_s or 0.0,
            steps=break_even_steps(compiled.facts, eager.facts),
        )
        for title, group in groups(loops, known)
        for compiled, eager in _compiled(group, known)
    ]


def _compiled(
    loops: Sequence[Measurement], known: Known
) -> Iterator[tuple[Measurement, Measurement]]:
    """Each loop in an execution that compiles, with the same loop in ``eager``."""
    for compiled, eager in itertools.permutations(loops, 2):
        if (
            _settings(compiled, known) == _settings(eager, known)
            and compiled.facts.framework == eager.facts.framework
            and eager.facts.execution == "eager" != compiled.facts.execution
        ):
            yield compiled, eager


def _settings(loop: Measurement, known: Known) -> Mapping[str, object]:
    """The value of every toggle that does not change the work."""
    values = loop.facts.toggles or {}
    neutral = [toggle.name for toggle in known.values() if not toggle.changes_work]
    unknown = [name for name in loop.requested if name not in known]
    return {name: values[name] for name in (*neutral, *unknown) if name in values}


def break_even_steps(compiled: CaseFacts, eager: CaseFacts) -> int | None:
    """The number of steps after which an execution has gained what compiling it cost.

    None if a step is not faster than in ``eager``.
    """
    gained_s = (eager.step_s or 0.0) - (compiled.step_s or 0.0)
    return math.ceil((compiled.compile_s or 0.0) / gained_s) if gained_s > 0 else None
