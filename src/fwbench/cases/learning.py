"""Check of a learner: its first losses and its updates, and both again in what was timed.

Code that does less once it is repeated passes the first check. Steps are checked before anything is
timed; loops after it, since their first epoch is to be as cold as their users'.
"""

import math
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fwbench.cases import verify
from fwbench.cases.epochs import as_many, judge, surprise
from fwbench.cases.references import InNumPy, Reference
from fwbench.errors import WrongTraining
from fwbench.frameworks.learner import Learner
from fwbench.records.facts import CaseFacts
from fwbench.workloads.objective import Batch

#: How many losses are compared where nothing is timed: an eager LSTM takes TensorFlow seconds a
#: step.
CHECKED_UNTIMED = 3

#: How many updates are watched after the timing, and how many losses are compared once more: as few
#: as show that every third update is left out, or that less is trained on from the third step on.
UPDATES_TIMED = 3
LOSSES_TIMED = 3

#: What an optimiser's own place for epsilon moves a loss by, relative to it; seen were 3e-4.
_BY_EPSILON = 1e-3

#: Batches that timed steps take by turns: a step on the batch of the one before could be left out.
TURNS = 2

#: What timed steps may end apart from as many untimed ones, in parts of the way that these have
#: gone, and how much longer or shorter their own way may be where dropout draws anew. On a CPU 99
#: cases of three frameworks ended where they had, to the last bit; lengths differed by 0.7 %.
_APART, _LENGTH = 0.01, 1.2

#: What rounding alone moves an array of weights by, relative to the array that moves farthest.
_BY_ROUNDING = 1e-4

#: Trains on batches, one after the other, the way that was timed; returns the losses of the steps.
Train = Callable[[Sequence[Batch]], Sequence[Any]]


def check(learner: Learner, steps: int, reference: Reference | None = None) -> CaseFacts:
    """Check that this is the same training everywhere: parameters, first losses, and updates.

    Args:
        learner: trained for a few steps, and then back at its initial weights.
        reference: what they must be; None for NumPy's.

    Returns:
        What was found, for the record.

    Raises:
        WrongTraining: the parameters or the losses differ from the reference's, or a step leaves
            the weights as they were.
        WrongResult: answers have fewer digits than the dtype.
    """
    training = learner.job.training
    optimizer = training.optimizer
    reference = reference or InNumPy(learner)
    verify.parameters(learner.parameters(), reference.parameters)
    reference.losses  # noqa: B018 (before the first step: they may say that it makes no sense)
    learner.reset(exact=True)
    losses: list[Any] = []
    for batch in training.check_batches(learner.job.batch, steps):
        placed = learner.place(batch)
        before = learner.checksums()
        losses.append(learner.step(*placed))
        _changed(learner, before, len(losses))
    deviation, allowed = _first_losses(learner, reference, losses, steps)
    learner.reset(exact=True)
    reference.check_answers(learner)
    facts = _placement(learner) | CaseFacts(
        parameters=reference.parameters,
        checked_steps=steps,
        checked_updates=steps,
        max_loss_deviation=deviation,
        loss_tolerance=allowed,
        optimizer={"name": type(optimizer).__name__, **vars(optimizer), **learner.notes()},
    )
    learner.reset(exact=False)
    return facts | reference.facts()


def check_timed(
    learner: Learner, batches: Sequence[Batch], train: Train, reference: Reference | None = None
) -> CaseFacts:
    """Check that what was timed is still the training that was checked before.

    First as the timing left the learner: every step changes the weights, and returns the loss of
    its whole batch. The model's answers to that batch have the same loss, unless dropout or batch
    normalization make them differ. Then from the initial weights on: the first losses are the
    reference's, without telling the learner that it is examined unless there is dropout.

    Args:
        batches: at least as many as :data:`UPDATES_TIMED`, which it has not just learned.
        train: trains on batches the way that was timed.
        reference: what the first losses must be; None for NumPy's.

    Returns:
        What was found, for the record.

    Raises:
        WrongTraining: it trains otherwise, less often, or on other examples.
    """
    reference = reference or InNumPy(learner)
    answers = not reference.differs_in_training
    try:
        learned = set[int]()
        for step, batch in enumerate(batches[:UPDATES_TIMED], 1):
            learned |= check_update(learner, step, batch, train, answers=answers)
        learner.reset(exact=reference.drops_out)
        first = learner.job.training.check_batches(learner.job.batch, LOSSES_TIMED)
        before = copied(learner)
        _first_losses(learner, reference, train(first), len(first), _BY_EPSILON)
        _all_learn(learner, before, learned)
        learner.reset(exact=False)
    except WrongTraining as error:
        raise WrongTraining(f"after the timing, {error}") from None
    return CaseFacts(checked_updates_timed=UPDATES_TIMED, checked_steps_timed=LOSSES_TIMED)


def check_repeated(learner: Learner, batches: Sequence[Batch], *, is_exact: bool) -> None:
    """Check that timed steps have trained the model as untimed ones do from the beginning.

    Args:
        learner: as the timing left it.
        batches: of the timed steps, in their order. Each is placed once more for its step, so that
            none is known again.
        is_exact: whether the same steps lead to the same weights; else they go about as far.

    Raises:
        WrongTraining: the weights are elsewhere, or not as far from the initial ones.
    """
    timed = copied(learner)
    learner.reset(exact=False)
    initial = copied(learner)
    for batch in batches:
        learner.step(*learner.place(batch))
    way = distance(learner.weights(), initial)
    gone, apart = distance(timed, initial), distance(learner.weights(), timed)
    is_as_far = way / _LENGTH <= gone <= way * _LENGTH
    if not (apart <= _APART * way if is_exact else is_as_far):
        raise WrongTraining(
            f"after the timing, {len(batches)} timed steps have not trained as untimed ones: they "
            f"moved the weights by {gone:.3g}, the same steps on batches placed anew by {way:.3g}, "
            f"to a place {apart:.3g} away; compute every step, and draw nothing but dropout at "
            "random"
        )


def _in_order(batch: Batch, rows: NDArray[Any]) -> Batch:
    """The batch with its examples in another order."""
    examples, labels = batch
    return examples[rows], labels.reshape(len(examples), -1)[rows].ravel()


def copied(learner: Learner) -> list[NDArray[Any]]:
    """The weights as they are now."""
    return [*map(np.array, learner.weights())]


def distance(weights: Iterable[NDArray[Any]], others: Iterable[NDArray[Any]]) -> float:
    """The Euclidean distance of all weights from others."""
    norms = [float(np.linalg.norm(x - y)) for x, y in zip(weights, others, strict=True)]
    return math.hypot(*norms)


def _all_learn(learner: Learner, before: Sequence[NDArray[Any]], learned: set[int]) -> None:
    """Check that steps that were timed change all arrays of weights that the first ones do.

    Arrays that only errors of rounding change need not, such as a convolution's bias before batch
    normalization, whose gradient is 0.
    """
    moves = zip(learner.weights(), before, strict=True)
    ways = [
        float(np.max(np.abs(np.subtract(x, y, dtype=np.result_type(x, float))), initial=0.0))
        for x, y in moves
    ]
    at_first = {place for place, way in enumerate(ways) if way > _BY_ROUNDING * max(ways)}
    if idle := at_first - learned:
        raise WrongTraining(
            f"{len(idle)} of {len(at_first)} arrays of weights have stayed as they were in "
            f"{UPDATES_TIMED} steps, and the first steps change them: compute all gradients in "
            "every step"
        )


def check_update(
    learner: Learner, step: int, batch: Batch, train: Train, *, answers: bool
) -> set[int]:
    """Train on one batch, and check what became of weights and, by answers to it, of the loss.

    Its examples come in the order of their losses, so that a part of it has another loss.

    Returns:
        The numbers of the arrays of weights that have changed.
    """
    examples, labels = batch
    logits = learner.logits(examples) if answers else None
    if logits is not None:
        by_example = surprise(logits, labels).reshape(len(examples), -1).mean(axis=1)
        batch = _in_order(batch, np.argsort(by_example, kind="stable"))
    before = learner.checksums()
    losses = as_many(learner.losses(train([batch])), 1)
    changed = _changed(learner, before, step)
    if logits is None:
        return changed
    expected, _ = judge(logits, labels)
    allowed = verify.NETWORK_LOSS_TOLERANCES[learner.job.verified_as] * max(
        1.0, float(np.abs(logits).max())
    )
    if not abs(losses[0] - expected) <= allowed:
        raise WrongTraining(
            f"a step does not train on its whole batch: the loss of step {step} is "
            f"{losses[0]:.9g}, and that of the model's answers to the same examples "
            f"{expected:.9g}; {allowed:.3g} is allowed"
        )
    return changed


def _placement(learner: Learner) -> CaseFacts:
    """Where the layers or their copies are, if on several devices; it is as it must be, on one too.

    There what they count is the framework's own affair, such as running means.
    """
    job, actual = learner.job, dict(learner.placement())
    if len(job.devices) == 1:
        verify.placement(actual, dict.fromkeys(job.devices, sum(actual.values())) if actual else {})
        return CaseFacts()
    stages = job.training.graph.divided(job.model_parallel) * job.data_parallel
    expected = {name: stage.parameters for name, stage in zip(job.devices, stages, strict=True)}
    verify.placement(actual, expected)
    return CaseFacts(parameters_on_devices=actual)


def _differing(before: Sequence[int], after: Sequence[int]) -> set[int]:
    return {place for place, pair in enumerate(zip(before, after, strict=True)) if len({*pair}) > 1}


def _changed(learner: Learner, before: Sequence[int], step: int) -> set[int]:
    """The numbers of the arrays of weights that a step has changed."""
    changed = _differing(before, learner.checksums())
    if not changed:
        raise WrongTraining(
            f"an update is missing: step {step} left all weights as they were; the learner "
            "trains less often than it is timed"
        )
    return changed


def _first_losses(
    learner: Learner, reference: Reference, losses: Sequence[Any], steps: int, spare: float = 0.0
) -> tuple[float, float]:
    """Deviation of the worst of the first losses from the reference's, and its tolerance.

    Args:
        spare: what is allowed beyond rounding, relative to a loss.
    """
    job, expected = learner.job, reference.losses[:steps]
    actual = as_many(learner.losses(losses), steps)
    allowed = verify.loss_tolerances(
        job.training, expected, job.verified_as, rounding=reference.rounding
    )
    try:
        return verify.losses(actual, expected, allowed + spare * np.abs(expected))
    except WrongTraining as error:
        raise WrongTraining(f"{error}{reference.advice}") from None
