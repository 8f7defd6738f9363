"""Is what replicas did together the work of one? Judged from what each of them found."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from fwbench.cases import verify
from fwbench.errors import WrongGradient, WrongResult, WrongTraining
from fwbench.records.facts import CaseFacts
from fwbench.records.gangs import Checked
from fwbench.workloads.models import trajectories
from fwbench.workloads.objective import Objective

#: A failure is shown where the test stands; ``pytest --full-trace`` shows these frames too.
__tracebackhide__ = True

Answers = Sequence[Mapping[str, Any]]

#: Losses of different examples differ by more; seen were 5e-2 and more.
_SAME_NATS = 1e-4


def sent(answers: Answers) -> int | None:
    """The bytes that all replicas together have sent; None where one of them cannot tell."""
    told = [answer["sent_bytes"] for answer in answers]
    return None if None in told else sum(told)


def refuse_silence(answers: Answers, steps: int, least_bytes: float, what: str) -> None:
    """Refuse steps in which less was sent than must be.

    Args:
        answers: of all replicas.
        steps: how many there were.
        least_bytes: what they must send in a step, all together.
        what: they exchange.

    Raises:
        WrongResult: less was sent, so something was not exchanged.
    """
    moved = sent(answers)
    if moved is not None and moved < steps * least_bytes:
        raise WrongResult(
            f"{steps} steps of {len(answers)} replicas sent {moved:,} bytes, and an exchange of "
            f"{what} takes {steps * least_bytes:,.0f} at least: they do not exchange all of it"
        )


def same_weights(answers: Answers, when: str) -> None:
    """Refuse replicas whose weights differ, or do not change.

    Args:
        answers: of all replicas, each with the checksums of its ``weights``: before the first step
            and after each.
        when: they were told, for the message.

    Raises:
        WrongTraining: they differ, or an update is missing.
    """
    for step, checksums in enumerate(zip(*(each["weights"] for each in answers), strict=True)):
        others = [rank for rank, checksum in enumerate(checksums) if checksum != checksums[0]]
        if others:
            after = f"after step {step}" if step else "before the first step"
            raise WrongTraining(
                f"{when}, worker {others[0]} has other weights than worker 0 {after}: it began "
                "with others, leaves out updates, or they do not exchange their gradients"
            )
    for rank, each in enumerate(answers):
        for step, (before, after_it) in enumerate(
            zip(each["weights"], each["weights"][1:], strict=False), 1
        ):
            if before == after_it:
                raise WrongTraining(
                    f"{when}, an update is missing: step {step} left all weights of worker {rank} "
                    "as they were"
                )


def training(
    answers: Answers, objective: Objective, batch: int, dtype: str, when: str
) -> tuple[CaseFacts, Checked]:
    """Judge steps of training from the initial weights on.

    Args:
        answers: of all replicas, each with the losses of its share.
        objective: what they train.
        batch: the batch size of all together.
        dtype: of the case.
        when: the steps were taken, for messages.

    Returns:
        What was found, for the record of the case and for that of the gang.

    Raises:
        WrongGradient: that of the first step, which was exchanged, is not the reference's.
        WrongTraining: the mean losses are not the reference's, all shares have the same losses, or
            weights differ.
    """
    wrong = "".join(each["wrong_gradient"] for each in answers)
    if wrong:
        raise WrongGradient(f"{when}, what {len(answers)} replicas exchange is wrong: {wrong}")
    same_weights(answers, when)
    losses = np.array([each["losses"] for each in answers])
    spread = float(np.ptp(losses, axis=0).max())
    if not spread > _SAME_NATS:
        raise WrongTraining(
            f"{when}, all {len(answers)} replicas have the same losses (to {spread:.3g}): they "
            "learn from the same examples, and their batch is not shared"
        )
    lazy = answers[0]["notes"].get("update") == "lazy"
    steps = losses.shape[1]
    expected = trajectories.expected_losses(objective, batch, lazy=lazy)[:steps]
    with verify.within(f"{when}, the mean losses of {len(answers)} replicas are not those of one"):
        deviation, tolerance = verify.losses(
            losses.mean(axis=0), expected, dtype, objective.loss_scales(expected)
        )
    return CaseFacts(max_loss_deviation=deviation, loss_tolerance=tolerance), Checked(
        steps=steps,
        shard_loss_spread=spread,
        gradient_error=answers[0]["gradient_error"],
        weights_equal=True,
    )
