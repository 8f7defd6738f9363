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
from fwbench.workloads.objective import Objective, check_rows


def expected_losses(training: Objective, batch: int, *, lazy: bool) -> list[float]:
    """The losses of the first steps over the batches of the check.

    Args:
        lazy: with updates of those rows of an embedding alone that occur.

    Returns:
        At least as many losses as are checked.
    """
    rows = check_rows(batch)
    if training in networks.TRAININGS:
        losses: list[float] = _stored()[training.name]["lazy" if lazy else "dense"][str(rows)]
        return losses
    return _computed(training, rows, lazy)


@functools.lru_cache(maxsize=64)
def _computed(training: Objective, rows: int, lazy: bool) -> list[float]:
    return reference.losses(training, rows, training.checked_steps, lazy=lazy)


@functools.cache
def _stored() -> Any:
    return json.loads((resources.files(__package__) / "trajectories.json").read_text("utf-8"))
