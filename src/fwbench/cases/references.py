"""What a training must come to: parameters and first losses, by NumPy or in float64.

Networks of fwbench's have a reference in NumPy. A model that a user brings is verified against its
own run in float64: the same framework's version of it, called as simply as can be, with the same
weights and batches.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fwbench.errors import Diverged, WrongResult
from fwbench.frameworks.contract import Framework
from fwbench.frameworks.learner import Learner
from fwbench.frameworks.models import ModelLearner
from fwbench.records.facts import CaseFacts
from fwbench.workloads.models import trajectories

#: A failure is shown where the test stands; ``pytest --full-trace`` shows these frames too.
__tracebackhide__ = True


class Reference(ABC):
    """What a learner is held against."""

    @property
    @abstractmethod
    def parameters(self) -> int:
        """How many numbers are trained."""

    @property
    @abstractmethod
    def losses(self) -> Sequence[float]:
        """The first losses from the initial weights on, at least as many as are checked."""

    @property
    @abstractmethod
    def differs_in_training(self) -> bool:
        """Whether a model's answers are not those that a step computes its loss from."""

    def facts(self) -> CaseFacts:
        """What the record says of it."""
        return CaseFacts()


class InNumPy(Reference):
    """The reference of fwbench's networks.

    Args:
        learner: of a network.
    """

    def __init__(self, learner: Learner) -> None:
        self._job = learner.job
        self._lazy = learner.notes().get("update") == "lazy"

    @property
    def parameters(self) -> int:
        """Those of the graph."""
        return self._job.training.parameters

    @property
    def losses(self) -> Sequence[float]:
        """Stored, or computed in NumPy."""
        return trajectories.expected_losses(self._job.training, self._job.batch, lazy=self._lazy)

    @property
    def differs_in_training(self) -> bool:
        """With dropout and batch normalization."""
        return any(node.layer.differs_in_training for node in self._job.training.graph.nodes)


class InFloat64(Reference):
    """A user's model in float64, in the framework that is measured.

    It is built when it is asked for the first time, and given up with its answers known: nothing of
    it is in memory while a case is timed.

    Args:
        framework: that is measured.
        learner: that is measured.
    """

    def __init__(self, framework: Framework, learner: ModelLearner) -> None:
        self._framework = framework
        self._learner = learner
        self._answers: dict[int, list[NDArray[Any]]] = {}
        self._flops: float | None = None

    @property
    def parameters(self) -> int:
        """Those of the version that is measured: it has no other description."""
        return self._learner.parameters()

    @property
    def differs_in_training(self) -> bool:
        """It may: nothing is known of its layers."""
        return True

    @cached_property
    def losses(self) -> Sequence[float]:
        """Of as many steps as are checked.

        Raises:
            Diverged: the first loss is not a number.
        """
        job = self._learner.job
        with self._scope():
            wide = self._wide()
            wide.reset(exact=True)
            placed = map(wide.place, job.training.check_batches(job.batch, self._steps))
            found = [wide.step(*batch) for batch in placed]
            losses = [float(loss) for loss in wide.losses(found)]
            self._count(wide, training=True)
        if not np.isfinite(losses[0]):
            raise Diverged(
                f"the first loss of {job.training.name} in {self._framework.name} is "
                f"{losses[0]}, also in float64 and before any update; correct the model, the loss "
                "or the range of its inputs and targets"
            )
        return losses

    def answers(self, changed: int) -> list[NDArray[Any]]:
        """The results for the first batch, or for the second.

        Args:
            changed: 1 for the second.

        Raises:
            WrongResult: the first result does not have the shape that the model declares.
        """
        if not self._answers:
            job = self._learner.job
            with self._scope():
                wide = self._wide()
                for place, batch in enumerate(job.training.check_batches(job.batch, 2)):
                    inputs, _ = wide.place(batch)
                    results = [wide.on_host(x) for x in wide.inference(inputs)()]
                    self._answers[place] = wide.restored(results)
                self._count(wide, training=False)
            self._check_shape(self._answers[0])
        return self._answers[changed]

    def _check_shape(self, results: Sequence[NDArray[Any]]) -> None:
        model, batch = self._learner.model, self._learner.job.batch
        if model.output is None:
            return
        expected = tuple(batch if length == "batch" else length for length in model.output)
        found = results[0].shape if results else None
        if found != expected:
            raise WrongResult(
                f"the first result of {model.name} in {self._framework.name} has the shape "
                f"{found}, and the model declares {expected}; correct the model or `output`"
            )

    @property
    def _steps(self) -> int:
        return self._learner.job.training.checked_steps

    def _scope(self) -> AbstractContextManager[Any]:
        return self._framework.scope(self._learner.job.device, "float64")

    def _wide(self) -> ModelLearner:
        plain = replace(self._learner.job, dtype="float64", execution=self._learner.plain)
        wide = self._framework.model_learner(plain)
        wide.begin_with(self._learner.initial)
        return wide

    def _count(self, wide: ModelLearner, *, training: bool) -> None:
        job = self._learner.job
        (batch,) = job.training.check_batches(job.batch, 1)
        self._flops = wide.flops(wide.place(batch), training=training)

    def facts(self) -> CaseFacts:
        """What it was verified against, and the operations that the framework counts."""
        name, version = self._framework.name, self._framework.version
        facts = CaseFacts(verified_against=f"{name} {version} in float64")
        return facts if self._flops is None else facts | CaseFacts(flops=self._flops)
