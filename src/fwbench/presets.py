"""Presets: how large work is and how long it trains, by ``--fw-size quick``, ``paper``, ``full``.

On the ground floor, because options need it in sessions that use nothing else of workloads.
"""

from __future__ import annotations

from dataclasses import dataclass, fields


@dataclass(frozen=True)
class Sizes:
    """The sizes of an operation, by preset.

    Attributes:
        quick: small, middling and large, for a first look.
        paper: the sizes of the TensorFlow / MXNet report of 2020.
        full: from overhead alone to well beyond the caches.

    A preset that is empty is the quick one.
    """

    quick: tuple[int, ...]
    paper: tuple[int, ...] = ()
    full: tuple[int, ...] = ()

    def preset(self, name: str) -> tuple[int, ...]:
        """The sizes of one of :data:`PRESETS`."""
        return {"quick": self.quick, "paper": self.paper, "full": self.full}[name] or self.quick


#: The presets that ``--fw-size`` knows.
PRESETS = tuple(field.name for field in fields(Sizes))


@dataclass(frozen=True)
class Schedule:
    """How many epochs, repetitions and steps a training loop has.

    Attributes:
        epochs: of one repetition, warm-up epochs included.
        warmup_epochs: the first epochs, which never enter the statistics.
        repetitions: trainings from the initial weights on.
        steps: at most so many batches an epoch; None for all that the data has.
    """

    epochs: int
    warmup_epochs: int = 1
    repetitions: int = 1
    steps: int | None = None
