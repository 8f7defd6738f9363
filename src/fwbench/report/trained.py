"""The figures of a record of a training loop."""

from __future__ import annotations

import statistics
from collections.abc import Sequence

from fwbench.records.facts import Epoch
from fwbench.report.model import Record


def first_repetition(record: Record) -> Sequence[Epoch]:
    """The epochs of the first of its repetitions."""
    first = record.epochs[0].repetition
    return [epoch for epoch in record.epochs if epoch.repetition == first]


def epochs_s(record: Record) -> list[float]:
    """Seconds of every epoch of the first repetition, warm-up epochs included."""
    return [epoch.seconds for epoch in first_repetition(record)]


def losses(record: Record) -> list[float]:
    """The training loss after each epoch of the first repetition, in nats."""
    return [epoch.train_loss for epoch in first_repetition(record)]


def accuracy(record: Record) -> float | None:
    """The test accuracy (0 to 1), of several repetitions the median; None if it was not tested."""
    last = {test.repetition: test.accuracy for test in record.facts.test_accuracy or ()}
    return statistics.median(last.values()) if last else None
