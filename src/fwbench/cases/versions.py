"""Several frameworks' versions of a user's model: are they one model?

Each framework runs in a process of its own. The first one of a session leaves in a folder what its
version came to in float64; where weights are shared, the others are verified against that, and not
against their own runs.
"""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fwbench.errors import DeclarationError
from fwbench.frameworks.models import ModelLearner, listed

#: The environment variable with the folder; not set where a session has one version of each model.
VARIABLE = "FWBENCH_VERSIONS"

Shapes = Mapping[str, Sequence[int]]


class Float64Run(NamedTuple):
    """What a run in float64 came to.

    Attributes:
        by: the framework, with its version.
        arrays: results, or losses.
    """

    by: str
    arrays: list[NDArray[Any]]


def check_parameters(learner: ModelLearner) -> None:
    """Check that other frameworks' versions have as many parameters, and as large ones.

    Args:
        learner: which leaves its parameters for others.

    Raises:
        DeclarationError: one differs.
    """
    folder = _folder()
    if folder is None:
        return
    state = learner.state()
    own = {name: list(state[name].shape) for name in learner.trained_names()}
    file = folder / f"{learner.model.name}.json"
    known: dict[str, Shapes] = json.loads(file.read_text("utf-8")) if file.exists() else {}
    for framework, others in known.items():
        _check_equal(learner, own, framework, others)
    file.write_text(json.dumps({**known, learner.framework: own}), "utf-8")


def _check_equal(learner: ModelLearner, own: Shapes, framework: str, others: Shapes) -> None:
    counts = [sum(int(np.prod(shape)) for shape in shapes.values()) for shapes in (own, others)]
    if counts[0] == counts[1]:
        return
    only = f"{_only(learner.framework, own, others)}, {_only(framework, others, own)}"
    raise DeclarationError(
        f"{learner.model.name} has {counts[0]:,} parameters in {learner.framework} and "
        f"{counts[1]:,} in {framework}: {only}; make them the same model, or declare two models"
    )


def _only(framework: str, own: Shapes, others: Shapes) -> str:
    """The parameters whose shapes another version lacks, whatever the order of their axes."""
    left = Counter(tuple(sorted(shape)) for shape in others.values())
    extra = []
    for name, shape in own.items():
        axes = tuple(sorted(shape))
        if left[axes]:
            left[axes] -= 1
        else:
            extra.append(f"{name} {tuple(shape)}")
    return f"{listed(extra) or 'nothing'} in {framework} alone"


def shared_run(
    learner: ModelLearner, what: str, by: str, run: Callable[[], list[NDArray[Any]]]
) -> Float64Run:
    """What a version must come to: another framework's run where weights are shared, or its own.

    Args:
        learner: of the version that is measured.
        what: tells the run from others of the model.
        by: the framework, with its version.
        run: the version's own run in float64.
    """
    folder = _folder()
    if folder is None or learner.model.shared is None:
        return Float64Run(by, run())
    file = folder / f"{learner.model.name}-{learner.job.batch}-{what}.npz"
    if file.exists():
        with np.load(file) as kept:
            places = range(len(kept.files) - 1)
            return Float64Run(str(kept["by"]), [kept[f"array{place}"] for place in places])
    own = Float64Run(by, run())
    arrays = {f"array{place}": array for place, array in enumerate(own.arrays)}
    np.savez(file, by=np.array(by), **arrays)
    return own


def _folder() -> Path | None:
    folder = os.environ.get(VARIABLE)
    return None if folder is None else Path(folder)
