"""A model in training: the one shape that every framework's training code has."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import xxhash
from numpy.typing import NDArray

from fwbench.errors import DeclarationError
from fwbench.workloads.models.gradients import LOSS_SCALE
from fwbench.workloads.models.layer import Arrays
from fwbench.workloads.objective import Adam, Batch, Classifier, Objective, RMSprop

#: By the kind of optimiser, where :mod:`fwbench.workloads.objective` adds epsilon.
EPSILON_AS_DEFINED: Mapping[type, str] = {
    Adam: "added to the root of the second moment",
    RMSprop: "added to the mean square",
}

#: One batch as a framework has it: examples and labels on the device.
Placed = tuple[Any, Any]


@dataclass(frozen=True)
class Job:
    """A training: its model, device, execution and dtype.

    Attributes:
        dtype: of the computation; parameters are float32 where it is narrower.
        batch: examples in a batch.
        workers: processes (TensorFlow and JAX: threads) that load data; 0 for the training one
            itself.
        sparse: whether the gradient of an embedding holds only the rows that occurred.
        tf32: whether products of float32 may be in TF32.
        recompute: whether the backward pass computes the results of all segments of the network
            but the last (:attr:`fwbench.workloads.models.graph.Graph.segments`) once more, instead
            of keeping them.
        model_parallel: how many devices the layers are divided among.
        data_parallel: how many devices train on equal parts of a batch.
        synchronized: whether replicas normalize by the batch of all of them together.
        as_reference: whether a user's model runs to verify others, in float64, and is not timed.

    Raises:
        DeclarationError: results are to be recomputed of layers on several devices.
    """

    training: Objective
    device: str
    execution: str
    dtype: str
    batch: int
    workers: int = 0
    sparse: bool = False
    tf32: bool = False
    recompute: bool = False
    model_parallel: int = 1
    data_parallel: int = 1
    synchronized: bool = False
    as_reference: bool = False

    def __post_init__(self) -> None:
        if self.recompute and self.model_parallel > 1:
            raise DeclarationError(
                "fwbench has no recompute=on for layers on several devices; ask for it with "
                "--fw-toggle model_parallel=1"
            )

    @property
    def devices(self) -> tuple[str, ...]:
        """Where the layers or their copies are: the device, and those that follow it."""
        kind, _, first = self.device.partition(":")
        number = self.model_parallel * self.data_parallel
        return tuple(f"{kind}:{int(first or 0) + place}" for place in range(number))

    @property
    def only_device(self) -> str:
        """The device, where there is one; empty of a job whose layers or copies are on several."""
        return self.device if len(self.devices) == 1 else ""

    @property
    def verified_as(self) -> str:
        """The dtype whose bounds its results are held to: TF32 has the mantissa of float16."""
        return "float16" if self.tf32 else self.dtype


class Loader(ABC):
    """Batches of a data set in the order that is set, in the framework's own loader."""

    @abstractmethod
    def set_order(self, order: NDArray[Any]) -> None:
        """Which examples the next pass visits, in this order; as many as whole batches need."""

    @abstractmethod
    def __iter__(self) -> Iterator[Placed]:
        """One pass: the batches, on the device."""


class Order:
    """Indices in a given order: a sampler for loaders that ask for one."""

    def __init__(self, examples: int) -> None:
        self.indices: list[int] = []
        self._examples = examples

    def __iter__(self) -> Iterator[int]:
        return iter(self.indices)

    def __len__(self) -> int:
        return self._examples


#: Names of a rate in a class that drops out, and parts of the names of such classes.
_RATES, _DROPPING = ("p", "rate", "_rate"), ("drop", "stochasticdepth")


class Dropouts:
    """Rates of dropout that layers have as attributes, and that checks switch off.

    These are shares in attributes with ``drop`` in their names, and the rates of classes that have
    it in theirs: the exponent ``p`` of a pooling is none.
    """

    def __init__(self, layers: Iterable[Any]) -> None:
        self._rates = [
            (layer, name, value)
            for layer in layers
            for name, value in vars(layer).items()
            if isinstance(value, float) and 0 < value <= 1 and _is_rate(layer, name)
        ]

    def switch(self, *, on: bool) -> bool:
        """Drop out at the rates of the layers, or not at all; True if that changes any rate."""
        changed = False
        for layer, name, rate in self._rates:
            wanted = rate if on else 0.0
            changed = changed or getattr(layer, name) != wanted
            setattr(layer, name, wanted)
        return changed


def _is_rate(layer: Any, name: str) -> bool:
    if name in _RATES:
        classes = (base.__name__.lower() for base in type(layer).mro())
        return any(part in base for base in classes for part in _DROPPING)
    return "drop" in name.lower()


@contextmanager
def averages_kept(norms: Sequence[Any], momentum: float) -> Iterator[None]:
    """Moving averages have followed the batch in the forward pass, and do so once.

    Args:
        norms: layers that normalize by batch.
        momentum: by which the framework leaves averages as they are.
    """
    momenta = [norm.momentum for norm in norms]
    for norm in norms:
        norm.momentum = momentum
    try:
        yield
    finally:
        for norm, usual in zip(norms, momenta, strict=True):
            norm.momentum = usual


class Predictor(ABC):
    """A network in use: it answers, with its initial weights.

    Attributes:
        exported_from: the framework that the network was built in, if it was exported from there.

    Raises:
        DeclarationError: the job asks for another execution.
    """

    executions: ClassVar[Collection[str]] = ("eager",)
    exported_from: str | None = None

    def __init__(self, job: Job) -> None:
        if job.execution not in self.executions:
            raise DeclarationError(
                f"{type(self).__name__} was asked for {job.training.name} in the execution "
                f"{job.execution!r}; it names {', '.join(self.executions)}. Add it to the "
                "executions of the class, or take it out of the framework's training_executions, "
                "network_executions and int8_executions"
            )
        self.job = job

    @abstractmethod
    def parameters(self) -> int:
        """Count of trained numbers of the network in the framework."""

    @abstractmethod
    def place(self, batch: Batch) -> Placed:
        """A batch from the host on the device, in the framework's layout.

        It has all numbers of the examples and labels, unchanged but for their dtype.
        """

    @abstractmethod
    def inference(self, examples: Any) -> Callable[[], Any]:
        """Bind the network with its initial weights to a batch, to answer as it does in use.

        Dropout is off, and batch normalization goes by its moving averages as they begin: means of
        0 and variances of 1.

        Args:
            examples: of one batch, on the device. Where arrays cannot be written they are an
                argument of the :class:`functools.partial` that is returned.

        Returns:
            ``run()``, which returns the logits as the framework has them.
        """

    def calibration_examples(self) -> Any:
        """The examples that set the scales of activations in int8, as :meth:`place` places them.

        Raises:
            DeclarationError: the job has none.
        """
        training = self.job.training
        if not isinstance(training, Classifier):
            raise DeclarationError(
                f"{training.name} was asked for in int8 without examples to calibrate it with; "
                "give the job a fwbench.workloads.objective.Classifier, which has them"
            )
        placed, _ = self.place((training.calibration, np.zeros(0, np.int32)))
        return placed

    def calibration_batches(self) -> Iterator[Any]:
        """Examples for calibration in batches as large as the job's, without a shorter last one."""
        examples, batch = self.calibration_examples(), self.job.batch
        for start in range(0, len(examples) - batch + 1, batch):
            yield examples[start : start + batch]

    def model_bytes(self) -> int | None:
        """Size of the file that the network is saved to; None where the framework has no format."""
        return None

    def planned_bytes(self, *, training: bool) -> int | None:
        """Bytes that a planner reserves for the results of the network; None without a planner.

        Args:
            training: of forward and backward pass, and not of the forward pass alone.
        """
        return None

    def planned_by_strategy(self, *, training: bool) -> dict[str, int] | None:
        """Bytes that a planner would reserve by each of its strategies; None where not known.

        Called in a process of its own, instead of :meth:`planned_bytes`, which is its ``both``.
        """
        return None


class ConvertedPredictor(Predictor):
    """A network that is made of a learner's, such as one in int8: its first operator converts."""

    _learner: "Learner"

    def parameters(self) -> int:
        """The parameters before the conversion."""
        return self._learner.parameters()

    def place(self, batch: Batch) -> Placed:
        """Examples in float32, as the learner places them."""
        return self._learner.place(batch)


class Learner(Predictor):
    """One model with its optimiser, built once and trained from the initial weights on.

    Attributes:
        epsilon_placement: where the framework's optimisers add epsilon, by their kind; for the
            record.
        sparse_update: of its Adam where gradients are sparse, for the record; see
            :func:`fwbench.workloads.models.reference.losses`.
    """

    epsilon_placement: ClassVar[Mapping[type, str]] = {}
    sparse_update: ClassVar[str] = "dense"

    @abstractmethod
    def step(self, examples: Any, labels: Any) -> Any:
        """Forward pass, backward pass and update, the framework's own way.

        Returns:
            The loss before the update, as the framework has it.
        """

    @abstractmethod
    def reset(self, *, exact: bool) -> None:
        """Go back to the initial weights and to an optimiser that has not seen a gradient.

        Args:
            exact: with dropout off and the optimiser's constants placed as in
                :mod:`fwbench.workloads.objective`, for the check; otherwise as the framework
                has them.
        """

    @abstractmethod
    def set_learning_rate(self, learning_rate: float) -> None:
        """Set the learning rate of the steps to come."""

    @abstractmethod
    def weights(self) -> Iterable[NDArray[Any]]:
        """Every parameter that is trained, as it is now: on the host, in any order and layout."""

    def placement(self) -> Mapping[str, int]:
        """Count of trained numbers on each device, by the framework's own account.

        By the names of :attr:`Job.devices`; empty where the framework does not tell, which it must
        of several.
        """
        return {}

    def checksum(self) -> int:
        """A number that changes with the weights; updates are counted by it."""
        return xxhash.xxh3_64_intdigest(np.array(self.checksums(), np.uint64).data)

    def checksums(self) -> list[int]:
        """One for each of the arrays of weights."""
        arrays = map(np.ascontiguousarray, self.weights())
        return [xxhash.xxh3_64_intdigest(array.data) for array in arrays]

    def save(self, folder: Path) -> None:
        """Write weights, averages and the optimiser's state, the framework's own way."""
        raise NotImplementedError(f"{type(self).__name__} saves no checkpoints")

    def restore(self, folder: Path) -> None:
        """Read what :meth:`save` has written, of this learner or of another one of its job."""
        raise NotImplementedError(f"{type(self).__name__} restores no checkpoints")

    def parameters(self) -> int:
        """Count of numbers that the framework trains."""
        return sum(array.size for array in self.weights())

    @abstractmethod
    def loader(self, batch: Batch, steps: int) -> Loader:
        """A loader over a data set.

        Args:
            batch: the whole data set: float32 images from 0 to 1 or int32 tokens, int32 labels. Of
                labels (examples, length) a batch has those of an example one after the other, as
                the loss takes them.
        """

    def epoch(self, batches: Iterable[Placed]) -> Sequence[Any]:
        """Train on every batch: what is timed.

        Returns:
            The loss of every step, as :meth:`losses` takes it.
        """
        step = self.step
        return [step(examples, labels) for examples, labels in batches]

    def losses(self, losses: Sequence[Any]) -> NDArray[Any]:
        """The losses that :meth:`epoch` returned, as NumPy's numbers; waits for them."""
        return np.asarray([float(loss) for loss in losses])

    @abstractmethod
    def logits(self, examples: NDArray[Any]) -> NDArray[Any]:
        """The model's answers, with dropout off, on the host."""

    def inference(self, examples: Any) -> Callable[[], Any]:
        """Not every learner answers as in use."""
        raise NotImplementedError(f"{type(self).__name__} answers in no inference of its own")

    def forward_backward(self, examples: Any, labels: Any) -> Callable[[], Any]:
        """Bind the loss and its gradients, with the initial weights, to a batch: no update.

        As in training, but for dropout, which is off.

        Args:
            examples: of one batch, on the device; see :meth:`inference`.

        Returns:
            ``run()``, which returns ``(loss, [gradient, ...])`` as the framework has them: the mean
            loss, and its gradient by each array of :meth:`trained`.
        """
        raise NotImplementedError(f"{type(self).__name__} has no gradients without an update")

    def trained(self, of_nodes: Sequence[Arrays]) -> list[NDArray[Any]]:
        """NumPy's arrays in the order and the layouts of the framework's parameters.

        Args:
            of_nodes: for each node of the graph arrays shaped as its parameters.

        Returns:
            Those that stand for a parameter that is trained.
        """
        raise NotImplementedError(f"{type(self).__name__} tells no layouts of its parameters")

    def notes(self) -> dict[str, Any]:
        """Differences of this framework's training from others', for the record."""
        kind = type(self.job.training.optimizer)
        if kind not in self.epsilon_placement:
            return {}
        notes: dict[str, Any] = {"epsilon_placement": self.epsilon_placement[kind]}
        if kind is Adam:
            notes["update"] = self.sparse_update if self.job.sparse else "dense"
        if self.job.dtype == "float16":
            notes["first_loss_scale"] = LOSS_SCALE
        return notes
