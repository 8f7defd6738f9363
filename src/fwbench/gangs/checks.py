"""Is what replicas did together the work of one? Judged from what each of them found."""

import itertools
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fwbench.cases import verify
from fwbench.errors import VerificationError, WrongGradient, WrongResult, WrongTraining
from fwbench.records.facts import CaseFacts, Checked
from fwbench.workloads.models import trajectories
from fwbench.workloads.objective import Objective

Answers = Sequence[Mapping[str, Any]]

#: Losses of different examples differ by more; seen were 5e-2 and more.
_SAME_NATS = 1e-4


def sent(answers: Answers, before: Answers = (), after: Answers = ()) -> int | None:
    """The bytes that all processes together have sent; None where one of them cannot tell."""
    earlier = [answer["sent_bytes"] for answer in before]
    now = [answer["sent_bytes"] for answer in (*answers, *after)]
    return None if None in (*earlier, *now) else sum(now) - sum(earlier)


def refuse_silence(who: str, moved: int | None, least_bytes: float, what: str) -> None:
    """Refuse steps in which less was sent than must be."""
    if moved is not None and moved < least_bytes:
        raise WrongResult(
            f"{who} sent {moved:,} bytes, and an exchange of {what} takes {least_bytes:,.0f} at "
            "least: they do not exchange all of it"
        )


def refuse_wrong(answers: Answers, when: str, error: type[VerificationError] = WrongResult) -> None:
    """Refuse what replicas have found to be wrong themselves.

    That is what they have fetched from servers, or that they train on less than their share.
    """
    if wrong := next((answer["wrong"] for answer in answers if answer.get("wrong")), ""):
        raise error(f"{when}, {wrong}")


def same_weights(answers: Answers, when: str, step_name: str = "step {}") -> None:
    """Refuse replicas whose weights differ, or do not change.

    Args:
        answers: of all replicas, each with the checksums of its ``weights``: before the first step
            and after each.
        step_name: of each, by its number.
    """
    for step, checksums in enumerate(zip(*(a["weights"] for a in answers), strict=True)):
        others = [rank for rank, checksum in enumerate(checksums) if checksum != checksums[0]]
        if others:
            after = f"after {step_name.format(step)}" if step else "before the first step"
            raise WrongTraining(
                f"{when}, worker {others[0]} has other weights than worker 0 {after}: it began "
                "with others, leaves out updates, or they do not exchange their gradients"
            )
    for rank, answer in enumerate(answers):
        _updated(answer["weights"], f"worker {rank}", when, step_name)


def _updated(weights: Sequence[int], whose: str, when: str, step_name: str = "step {}") -> None:
    """Refuse weights that a step has left as they were."""
    for step, (before, after) in enumerate(itertools.pairwise(weights), 1):
        if before == after:
            raise WrongTraining(
                f"{when}, an update is missing: {step_name.format(step)} left all weights of "
                f"{whose} as they were"
            )


def training(
    answers: Answers, objective: Objective, parts: tuple[int, int], dtype: str, when: str
) -> tuple[CaseFacts, Checked]:
    """Judge steps of training from the initial weights on: facts of the case, and of its check.

    Args:
        answers: of all replicas, each with the losses of its share.
        parts: the batch size, and the number of parts of a batch that are normalized.

    Raises:
        WrongGradient: that of the first step, which was exchanged, is not the reference's.
        WrongTraining: the mean losses are not the reference's, all shares have the same losses, or
            weights differ.
    """
    wrong = "".join(answer["wrong_gradient"] for answer in answers)
    if wrong:
        raise WrongGradient(f"{when}, what {len(answers)} replicas exchange is wrong: {wrong}")
    same_weights(answers, when)
    losses = np.array([answer["losses"] for answer in answers])
    spread = float(np.ptp(losses, axis=0).max())
    if not spread > _SAME_NATS:
        raise WrongTraining(
            f"{when}, all {len(answers)} replicas have the same losses (to {spread:.3g}): they "
            "learn from the same examples, and their batch is not shared"
        )
    update = answers[0]["notes"].get("update", "dense")
    batch, shards = parts
    with verify.within(f"{when}, the mean losses of {len(answers)} replicas are not those of one"):
        compared = _compared(losses.mean(axis=0), objective, batch, dtype, update, shards)
    return compared, Checked(
        steps=losses.shape[1],
        shard_loss_spread=spread,
        gradient_error=answers[0]["gradient_error"],
        weights_equal=True,
    )


def _compared(
    losses: NDArray[Any], objective: Objective, batch: int, dtype: str, update: str, replicas: int
) -> CaseFacts:
    every = trajectories.expected_losses(objective, batch, update=update, replicas=replicas)
    expected = every[: len(losses)]
    rounding = trajectories.rounding_errors(objective, batch, dtype, update, replicas)
    allowed = verify.loss_tolerances(objective, expected, dtype, rounding=rounding)
    deviation, tolerance = verify.losses(losses, expected, allowed)
    return CaseFacts(max_loss_deviation=deviation, loss_tolerance=tolerance)


def asynchronous(
    answers: Answers, objective: Objective, share: int, dtype: str, when: str
) -> tuple[CaseFacts, Checked]:
    """Judge steps of workers that do not wait for each other: facts of the case, and of its check.

    Args:
        answers: of all processes that took steps; the first has what one worker did alone.
        share: the batch size of each worker.

    Raises:
        WrongGradient: that of the first update is not the reference's.
        WrongTraining: what one worker does alone is not the work of one process, updates are
            missing, or the losses of all do not fall.
    """
    first = answers[0]
    if first["wrong_gradient"]:
        raise WrongGradient(f"{when}, what a worker sends is wrong: {first['wrong_gradient']}")
    _updated(first["weights"], "the servers", when)
    update = first["notes"].get("update", "dense")
    alone = np.array(first["alone"])
    with verify.within(f"{when}, updates made one after the other are not those of one process"):
        compared = _compared(alone, objective, share, dtype, update, 1)
    _falling(np.array([answer["losses"] for answer in answers]), when)
    return compared, Checked.unchecked(
        {"steps": len(alone), "gradient_error": first["gradient_error"]} | all_made(answers, when)
    )


def served(before: Answers, after: Answers, expected: int, when: str) -> Checked:
    """Judge the updates that servers have made, by their own count."""
    if all(answer.get("updates") is None for answer in after):
        return Checked()
    had, have = (Counter[tuple[int, str]](_counted(answers)) for answers in (before, after))
    made = {*(have - had).values()} or {0}
    if made != {expected}:
        counts = " or ".join(f"{count:,}" for count in sorted(made))
        raise WrongTraining(
            f"{when}, servers were to update every array {expected:,} times, and have done so "
            f"{counts} times: updates are left out, or made more than once"
        )
    return Checked(updates=expected) if expected else Checked()


def _counted(answers: Answers) -> dict[tuple[int, str], int]:
    """The updates of each array, by the process that counts them."""
    return {
        (process, array): count
        for process, answer in enumerate(answers)
        for array, count in (answer.get("updates") or {}).items()
    }


def _falling(losses: NDArray[np.float64], when: str) -> None:
    """Refuse losses (process, step, worker) on the same examples that do not fall."""
    means = losses.mean(axis=(0, 2))
    if not means[-1] < means[0]:  # not finite, too
        raise WrongTraining(
            f"{when}, workers do not learn: their mean loss is {means[0]:.9g} at their first step "
            f"and {means[-1]:.9g} at their last one, on the same examples"
        )


def all_made(answers: Answers, when: str) -> dict[str, int]:
    """The number of updates, all of which servers must have made once; empty if it is not known."""
    updates = [answer["updates"] for answer in answers]
    if None in updates:
        return {}
    sent, made = map(sum, zip(*updates, strict=True))
    if sent != made:
        raise WrongTraining(
            f"{when}, workers have sent {sent:,} updates, and the servers have made {made:,}"
        )
    return {"updates": made}
