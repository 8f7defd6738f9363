"""Comparison of trainings of the same work by their loss curves.

Every framework begins at the same weights and visits the same examples in the same order, so mean
losses of an epoch differ by little: by rounding, which training amplifies, by the place of the
optimiser's epsilon, and with dropout by chance. What they may differ by was measured; see
``docs/figures.md``.
"""

import math
from collections import defaultdict
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from fwbench.records.facts import CaseFacts, Unequal
from fwbench.terms.toggles import TOGGLES, Toggle

Name = TypeVar("Name", bound=Hashable)
Known = Mapping[str, Toggle]

#: Allowed difference of mean losses of the first epoch: in nats, as a share of the loss, and for
#: the chance in the mean of few steps. Measured was at most a third of it, on MNIST 3 %. In a whole
#: epoch of MNIST a learner that skips every second update is off by 2.8 to 4.1 times as much,
#: one that trains on half of each batch by 1.1 to 1.3 times.
_NATS = 0.02
_OF_LOSS = 0.05
_OF_ONE_STEP = 0.1

#: Factor of that in later epochs: the loss of an LSTM was seen to jump from 0.48 to 0.82 in
#: one step of one framework, honest like the others, where it did not jump.
_LATER = 3.0


@dataclass(frozen=True)
class LossDifference:
    """Largest difference of two loss curves: facts of :class:`Unequal`."""

    nats: float
    allowed: float
    epoch: int

    @property
    def excess(self) -> float:
        """The difference over what is allowed."""
        return self.nats / self.allowed

    @property
    def is_equal(self) -> bool:
        """True if it is the same training."""
        return self.nats <= self.allowed


def allowed_nats(loss: float, steps: int, epoch: int) -> float:
    """Allowed difference of mean losses of an epoch, in nats."""
    allowed = _NATS + _OF_LOSS * loss + _OF_ONE_STEP / math.sqrt(max(1, steps))
    return allowed if epoch == 1 else _LATER * allowed


def curve(facts: CaseFacts) -> list[float]:
    """The mean loss of each epoch of the first repetition."""
    epochs = facts.epochs or []
    return [epoch.train_loss for epoch in epochs if epoch.repetition == epochs[0].repetition]


def largest_difference(facts: CaseFacts, other: CaseFacts) -> LossDifference | None:
    """Largest difference of the loss curves of two trainings; None without a common epoch."""
    steps = facts.steps_per_epoch or 1
    differences = [
        LossDifference(
            abs(loss - another), allowed_nats(max(abs(loss), abs(another)), steps, epoch), epoch
        )
        for epoch, (loss, another) in enumerate(zip(curve(facts), curve(other), strict=False), 1)
    ]
    return max(differences, key=lambda difference: difference.excess, default=None)


def difference(facts: CaseFacts, other: CaseFacts) -> str:
    """Why two measurements of a training are not of the same one; empty if they are."""
    largest = largest_difference(facts, other)
    if largest is None or largest.is_equal:
        return ""
    return (
        f"their loss curves are {largest.nats:.2g} nats apart (epoch {largest.epoch}), and "
        f"{largest.allowed:.2g} are allowed"
    )


def work(facts: CaseFacts, known: Known = TOGGLES) -> tuple[Any, ...]:
    """Key that trainings must have in common for their losses to be comparable."""
    values = facts.toggles or {}
    toggles = [values.get(toggle.name) for toggle in known.values() if toggle.changes_work]
    # Toggles of other packages' frameworks may be lists.
    return (*facts.work, facts.steps_per_epoch, len(curve(facts)), *map(str, toggles))


def unequal(loops: Mapping[Name, CaseFacts], known: Known = TOGGLES) -> dict[Name, Unequal]:
    """The trainings that are not the same as most others of their work, by name.

    One that is equal to more than half of its work's, itself included, is not among them: a
    framework that trains otherwise than three others is unequal, and they are not. Of two that
    differ, both are.
    """
    groups: dict[tuple[Any, ...], dict[Name, CaseFacts]] = defaultdict(dict)
    for name, facts in loops.items():
        if facts.epochs:
            groups[work(facts, known)][name] = facts
    return {name: unequal_to for group in groups.values() for name, unequal_to in _outvoted(group)}


def _outvoted(group: Mapping[Name, CaseFacts]) -> Iterator[tuple[Name, Unequal]]:
    for name, facts in group.items():
        differing = [
            (largest, other)
            for other_name, other in group.items()
            if other_name != name
            and (largest := largest_difference(facts, other))
            and not largest.is_equal
        ]
        if 2 * len(differing) >= len(group):
            largest, other = max(differing, key=lambda pair: pair[0].excess)
            yield (
                name,
                Unequal(
                    to=f"{other.framework} {other.execution}",
                    nats=largest.nats,
                    allowed=largest.allowed,
                    epoch=largest.epoch,
                ),
            )


def annotate(entries: Sequence[Mapping[str, Any]], known: Known = TOGGLES) -> None:
    """Note in each entry of a training whether it is unequal to others of the same work."""
    facts_of_entries = [entry.get("extra_info", {}).get("fwbench") for entry in entries]
    loops = {n: CaseFacts.unchecked(facts) for n, facts in enumerate(facts_of_entries) if facts}
    for n, why in unequal(loops, known).items():
        entries[n]["extra_info"]["fwbench"]["unequal"] = dict(why)
