"""The figures of a record of a training loop."""

from __future__ import annotations

import statistics
from collections.abc import Mapping
from typing import Any

from fwbench.report.model import Record


def first_repetition(record: Record) -> list[Mapping[str, Any]]:
    """The epochs of the first of its repetitions."""
    first = record.epochs[0]["repetition"]
    return [epoch for epoch in record.epochs if epoch["repetition"] == first]


def epochs_s(record: Record) -> list[float]:
    """Seconds of every epoch of the first repetition, warm-up epochs included."""
    return [epoch["seconds"] for epoch in first_repetition(record)]


def losses(record: Record) -> list[float]:
    """The training loss after each epoch of the first repetition, in nats."""
    return [epoch["train_loss"] for epoch in first_repetition(record)]


def accuracy(record: Record) -> float | None:
    """The test accuracy (0 to 1), of several repetitions the median; None if it was not tested."""
    last = {one["repetition"]: one["accuracy"] for one in record.test_accuracy or ()}
    return statistics.median(last.values()) if last else None


def is_synthetic(record: Record) -> bool:
    """Whether it was trained on generated data."""
    return (record.data or {}).get("source") == "synthetic"
