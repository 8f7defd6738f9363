"""The first losses that a training must have, in float64: see :mod:`.reference`.

Those of the suite's loops are stored (``scripts/trajectories.py`` wrote them); others are computed
when they are asked for.
"""

from __future__ import annotations

import functools
import json
from importlib import resources
from typing import Any

from fwbench.workloads.models import networks, reference
from fwbench.workloads.training import CHECKED_STEPS, Training, check_rows


def expected_losses(training: Training, batch: int, *, lazy: bool) -> list[float]:
    """The losses of the first steps over the batches of the check.

    Args:
        training: which loop.
        batch: examples in a batch.
        lazy: with updates of those rows of an embedding alone that occur.

    Returns:
        At least :data:`~fwbench.workloads.training.CHECKED_STEPS` losses.
    """
    rows = check_rows(batch)
    if training in networks.TRAININGS:
        losses: list[float] = _stored()[training.name]["lazy" if lazy else "dense"][str(rows)]
        return losses
    return reference.losses(training, rows, CHECKED_STEPS, lazy=lazy)


@functools.cache
def _stored() -> Any:
    return json.loads((resources.files(__package__) / "trajectories.json").read_text("utf-8"))
