"""The honest framework: NumPy with gradients written by hand and a learner of dense layers."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, ClassVar, cast

import numpy as np
from numpy.typing import NDArray

from fwbench.frameworks.contract import BoundCall
from fwbench.frameworks.learner import Job, Learner, Loader, Placed
from fwbench.frameworks.numpy.framework import NumPy
from fwbench.frameworks.table import Table
from fwbench.testing.fake import Differentiable
from fwbench.workloads import photos
from fwbench.workloads.models import reference
from fwbench.workloads.models.layer import Arrays
from fwbench.workloads.models.reference import Descent
from fwbench.workloads.operation import Implementation
from fwbench.workloads.photos import CROP, MEAN, STD, PhotoJob, PhotoLoader
from fwbench.workloads.training import Batch

#: Computes from the inputs: the result; for ``backward`` the result and its gradients.
Compute = Callable[..., Any]


@dataclass(frozen=True)
class Backward:
    """Computes a result and its gradients; the last input is the cotangent.

    Attributes:
        function: the operation with its gradient.
        variables: the positions of the inputs that gradients are taken by.
    """

    function: Differentiable
    variables: Sequence[int]

    def __call__(self, *inputs: Any) -> tuple[Any, list[Any]]:
        """Compute the result and the gradients."""
        return self.function(*inputs[:-1]), self.gradients(*inputs)

    def gradients(self, *inputs: Any) -> list[Any]:
        """Compute the gradients alone."""
        *operands, cotangent = inputs
        gradients = self.function.gradient(cotangent, *operands)
        return [gradients[i] for i in self.variables]


def differentiable(value: Compute, gradient: Compute) -> Implementation:
    """An implementation with a gradient written by hand.

    Args:
        gradient: ``gradient(cotangent, *inputs)`` returns the gradient of every input.
    """
    return lambda np: Differentiable(value, gradient)


def _sigmoid(x: NDArray[Any]) -> NDArray[Any]:
    return 1.0 / (1.0 + np.exp(-x))


_OPERATIONS: Table = {
    "sigmoid": differentiable(_sigmoid, lambda g, x: [g * _sigmoid(x) * (1.0 - _sigmoid(x))]),
    "relu": differentiable(lambda x: np.maximum(x, 0), lambda g, x: [g * (x > 0)]),
    "tanh": differentiable(np.tanh, lambda g, x: [g * (1.0 - np.tanh(x) ** 2)]),
    "dot": differentiable(np.dot, lambda g, x, y: [g * y, g * x]),
    "gemm": differentiable(np.matmul, lambda g, x, y: [g @ y.T, x.T @ g]),
}


class Honest(NumPy):
    """NumPy with gradients and a learner: it does all of the work, every time."""

    name = "honest"
    capabilities = replace(NumPy.capabilities, differentiable=True, training_executions=("eager",))
    operations: ClassVar = _OPERATIONS
    toggle_gaps: ClassVar = {
        ("eager", "decay", "on"): "the learner of the honest framework keeps its learning rate"
    }

    def forward(
        self, implementation: Implementation, inputs: Sequence[Any], execution: str
    ) -> BoundCall:
        """The function with its inputs."""
        return self.bound(implementation(np), inputs)

    def backward(
        self,
        implementation: Implementation,
        inputs: Sequence[Any],
        variables: Sequence[int],
        cotangent: Any,
        execution: str,
    ) -> BoundCall:
        """The function and its gradient, with their inputs."""
        function = cast("Differentiable", implementation(np))
        return self.bound(Backward(function, variables), [*inputs, cotangent])

    def bound(self, compute: Compute, inputs: Sequence[Any]) -> BoundCall:
        """The call that is timed.

        Args:
            compute: returns the result; for ``backward`` the result and the gradients.
            inputs: its arguments; for ``backward`` the cotangent is the last one.
        """
        return partial(compute, *inputs)

    def learner(self, job: Job) -> Learner:
        """A model of dense layers in training."""
        return HonestLearner(job)

    def photo_loader(self, job: PhotoJob) -> PhotoLoader:
        """Photos that Pillow decodes and NumPy cuts."""
        loads = HonestPhotos(job)
        return PhotoLoader(loads.batches, "Pillow")


class HonestPhotos:
    """Photos in files, by Pillow and NumPy."""

    def __init__(self, job: PhotoJob) -> None:
        self.job = job
        self.rng = np.random.default_rng()

    def batches(self) -> Iterator[Placed]:
        """One pass."""
        order = self.order()
        for chosen in np.split(order, len(order) // self.job.batch):
            images = np.stack([self.normalized(self.image(label)) for label in chosen])
            yield images, chosen

    def order(self) -> NDArray[np.int64]:
        """The labels of a pass."""
        labels = np.arange(len(self.job.paths))
        return self.rng.permutation(labels) if self.job.augmented else labels

    def image(self, label: int) -> NDArray[Any]:
        """A photo as it is loaded, from 0 to 255."""
        pixels = self.decode(label)
        return self.cut(pixels) if self.job.augmented else pixels

    def decode(self, label: int) -> NDArray[Any]:
        """A photo's pixels."""
        content = self.job.paths[label].read_bytes()
        return photos.decoded(content, resized=not self.job.augmented)

    def cut(self, pixels: NDArray[Any]) -> NDArray[Any]:
        """A crop at random, mirrored at random."""
        top, left = (int(self.rng.integers(side - CROP + 1)) for side in pixels.shape[:2])
        return pixels[top : top + CROP, left : left + CROP][:, :: self.rng.choice([-1, 1])]

    def normalized(self, image: NDArray[Any]) -> NDArray[np.float32]:
        """An image as networks take it."""
        normalized = (image - np.array(MEAN)) / np.array(STD)
        return normalized.astype(np.float32)


class HonestLoader(Loader):
    """Batches by index."""

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
    """A model in NumPy, in float64, with the reference's layers and optimisers.

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
        by_node = reference.accumulate(graph, pull_backs, gradient)
        self.update([array for arrays in by_node for array in arrays])
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
        """Never called: the framework declares a gap."""

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
        """The losses, unchanged."""
        return np.asarray(losses, dtype=np.float64)

    def logits(self, examples: NDArray[Any]) -> NDArray[Any]:
        """The answers of the model to a batch."""
        return reference.answer(self.job.training.graph, self._layers, examples)[0]
