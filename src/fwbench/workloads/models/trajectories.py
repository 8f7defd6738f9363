"""The first losses that a training must have, in float64: see :mod:`.reference`.

Those of the suite's loops are stored (``scripts/trajectories.py`` wrote them); others are computed
when they are asked for.
"""

import functools
from dataclasses import replace
from typing import Any

import numpy as np

from fwbench.packaged import read_table
from fwbench.workloads.models import networks, reference
from fwbench.workloads.models.gradients import FORMATS, Rounded, at_random, forward
from fwbench.workloads.objective import Objective, check_rows


def expected_losses(
    training: Objective, batch: int, *, update: str, replicas: int = 1
) -> list[float]:
    """The losses of the first steps over the batches of the check.

    Args:
        update: of embeddings: see :func:`.reference.losses`.
        replicas: that share each batch.

    Returns:
        At least as many losses as are checked.
    """
    rows = check_rows(batch)
    stored = read_table(__package__, "trajectories.json")
    if training in networks.TRAININGS and update in stored[training.name]:
        losses: list[float] = stored[training.name][update][str(rows)]
        return losses
    rows, replicas = training.reduced(batch, replicas)
    repeats = batch // rows if update == "slices" else 1
    return _computed(training, rows, update, repeats, replicas)


@functools.lru_cache(maxsize=64)
def rounding_errors(
    training: Objective, batch: int, dtype: str, update: str, replicas: int = 1
) -> Any:
    """Deviation of the checked losses in mixed precision, the largest so far; None of other dtypes.

    The root mean square over three ways to round, as one may be right by chance; or the effect of
    rounding all gradients alike, as those of right classes are, if it is larger.
    """
    if dtype not in FORMATS:
        return None
    steps, sgd = training.checked_steps, training.optimizer
    rows, shares = training.reduced(batch, replicas)
    ways = [Rounded(dtype, batch // rows, way) for way in (np.rint, at_random(24), at_random(25))]
    repeats = batch // rows if update == "slices" else 1

    def losses_of(trained: Objective, layer: Any = forward) -> list[float]:
        return reference.losses(trained, rows, steps, update, repeats, shares, layer)

    losses = [losses_of(training, way.forward) for way in ways]
    slower = replace(sgd, learning_rate=sgd.learning_rate * (1.0 - 2.0 ** -FORMATS[dtype][0]))
    losses.append(losses_of(replace(training, optimizer=slower)))
    expected = expected_losses(training, batch, update=update, replicas=replicas)
    errors = np.subtract(losses, expected[:steps])
    deviations = np.maximum(np.sqrt(np.mean(errors[:-1] ** 2, axis=0)), np.abs(errors[-1]))
    deviations[0] = deviations[:2].max()  # few numbers make a poor estimate
    return np.maximum.accumulate(deviations)


@functools.lru_cache(maxsize=64)
def _computed(
    training: Objective, rows: int, update: str, repeats: int, replicas: int
) -> list[float]:
    return reference.losses(training, rows, training.checked_steps, update, repeats, replicas)
