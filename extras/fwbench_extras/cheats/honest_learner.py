"""The honest learner: the reference's own layers and optimisers, one batch at a time."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fwbench.frameworks.learner import Job, Learner, Loader, Placed
from fwbench.workloads.models import reference
from fwbench.workloads.models.layer import Arrays
from fwbench.workloads.models.reference import Descent
from fwbench.workloads.training import Batch


class HonestLoader(Loader):
    """Batches by index.

    Args:
        learner: places them.
        batch: the whole data set.
    """

    def __init__(self, learner: HonestLearner, batch: Batch) -> None:
        self.learner = learner
        self.examples, self.labels = batch
        self.order: NDArray[Any] = np.arange(0)

    def set_order(self, order: NDArray[Any]) -> None:
        """Visit the examples in this order."""
        self.order = order

    def __iter__(self) -> Iterator[Placed]:
        """One pass."""
        for chosen in np.split(self.order, len(self.order) // self.learner.job.batch):
            yield self.learner.place((self.examples[chosen], self.labels[chosen]))


class HonestLearner(Learner):
    """A model in NumPy, in float64 throughout.

    Attributes:
        loads: the class of its loaders.
    """

    loads: type[HonestLoader] = HonestLoader

    def __init__(self, job: Job) -> None:
        super().__init__(job)
        self.reset(exact=False)

    @property
    def arrays(self) -> Arrays:
        """The parameters, layer by layer."""
        return [array for arrays in self._layers for array in arrays]

    def step(self, examples: Any, labels: Any) -> Any:
        """Forward pass, backward pass and update."""
        graph = self.job.training.graph
        logits, pull_backs = reference.answer(graph, self._layers, examples)
        loss, gradient = reference.cross_entropy(logits, labels)
        of_nodes = reference.accumulate(graph, pull_backs, gradient)
        self.update([array for arrays in of_nodes for array in arrays])
        return loss

    def update(self, gradients: Arrays) -> None:
        """One step of the optimiser, with a gradient for each of :attr:`arrays`."""
        for gradient, descent in zip(gradients, self._descents, strict=True):
            descent.step(gradient)

    def reset(self, *, exact: bool) -> None:
        """Initial weights, and an optimiser that has not seen a gradient."""
        self._layers = self.initial()
        self._descents = [Descent(self.job.training.optimizer, array) for array in self.arrays]

    def initial(self) -> list[Arrays]:
        """The parameters of each layer before the first step."""
        return self.job.training.initial()

    def set_learning_rate(self, learning_rate: float) -> None:
        """Never asked for: the framework declares a gap."""

    def weights(self) -> list[NDArray[Any]]:
        """The parameters of the model, in float64."""
        return self.arrays

    def place(self, batch: Batch) -> Placed:
        """The batch as the model takes it, in float64."""
        examples, labels = batch
        return examples.astype(np.float64), labels

    def loader(self, batch: Batch, steps: int) -> Loader:
        """A loader of :attr:`loads`."""
        return self.loads(self, batch)

    def losses(self, losses: Sequence[Any]) -> NDArray[Any]:
        """The losses as they are."""
        return np.asarray(losses, dtype=np.float64)

    def logits(self, examples: NDArray[Any]) -> NDArray[Any]:
        """The answers of the model to a batch."""
        return reference.answer(self.job.training.graph, self._layers, examples)[0]
