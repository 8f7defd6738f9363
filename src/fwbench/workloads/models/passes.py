"""Well-known networks without an update: inference, and forward with backward pass."""

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import resources
from typing import ClassVar, cast

import numpy as np

from fwbench.terms.manifest import Manifest
from fwbench.terms.presets import Form, Size, Sizes
from fwbench.workloads.models.layer import Arrays
from fwbench.workloads.models.networks import TRAININGS
from fwbench.workloads.models.steps import EXTRACTORS, MODELS
from fwbench.workloads.objective import Objective
from fwbench.workloads.training import Training, Trains, WithNetwork, cost_of_gradients
from fwbench.workloads.workload import Cost

#: Of the suite's loops those whose networks are measured so, too.
_LOOPS = ("mlp", "lenet")

#: Examples at a time where throughput is what matters.
_SEVERAL = 8


@dataclass(frozen=True, eq=False)
class Pass(WithNetwork):
    """A network on a batch on the device, from its initial weights, without an update."""

    model: str
    trains: Trains
    sizes: Sizes
    family: str = "models"
    representative: bool = False
    on_request: ClassVar[bool] = True
    unable: ClassVar[str] = "runs no networks"
    suffix: ClassVar[str]

    @property
    def name(self) -> str:  # type: ignore[override]
        """The network's name with a suffix: ``resnet50_inference``."""
        return f"{self.model}_{self.suffix}"

    @property
    def by_preset(self) -> Sizes:
        """The sizes by preset."""
        return self.sizes

    @property
    def form(self) -> Form | None:
        """Format of sizes; None where they are batch sizes alone."""
        return self.trains.form

    def at(self, size: Size) -> Objective:
        """The network of a size.

        Raises:
            DeclarationError: a layer has no result at this size.
        """
        return self.trains.at(size)

    def number_of(self, size: Size) -> int:
        """Number for the size, as for the training of the network."""
        return self.trains.number_of(size)

    def offered(self, manifest: Manifest) -> tuple[str, ...]:
        """Executions of networks."""
        return manifest.network_executions

    @abstractmethod
    def cost_of(self, direction: str, size: Size) -> Cost | None:
        """The arithmetic of kernels alone, and parameters once for each time they are moved."""


class Inference(Pass):
    """The logits of a batch, as of a network in use."""

    suffix = "inference"
    directions: ClassVar = ("forward",)

    def cost_of(self, direction: str, size: Size) -> Cost | None:
        """A forward pass, for which parameters are read."""
        graph = self.at(size).graph
        flops = 2.0 * batch_of(size) * graph.multiply_adds
        return Cost(flops=flops, elements=float(graph.parameters))


class Extraction(Inference):
    """The features of a batch: what the last layer of a network takes."""

    suffix = "features"


class Classification(Inference):
    """The logits of a batch by a trained network, whose accuracy is recorded; also in int8."""

    suffix = "classification"

    @property
    def loop(self) -> Training:
        """The loop that the network was trained by."""
        return cast("Training", self.trains)

    @property
    def data(self) -> str:
        """The name of the data set that it was trained on."""
        return self.loop.dataset

    def weights(self) -> Sequence[Arrays]:
        """The trained parameters of each node (``scripts/trained_weights.py``)."""
        file = resources.files(__package__) / f"{self.model}.npz"
        with file.open("rb") as opened:
            stored = np.load(opened)
            arrays = iter([stored[name].astype(np.float64) for name in stored.files])
        return [[next(arrays) for _ in node.weights] for node in self.loop.graph.nodes]

    def offered(self, manifest: Manifest) -> tuple[str, ...]:
        """In addition those of int8."""
        return tuple(dict.fromkeys((*super().offered(manifest), *manifest.int8_executions)))


class ForwardBackward(Pass):
    """The loss of a batch and its gradients by all parameters."""

    suffix = "forward_backward"
    directions: ClassVar = ("backward",)

    @property
    def toggles(self) -> frozenset[str]:
        """Toggles of the network's step that are about its gradients."""
        return self.trains.toggles & {"recompute"}

    def cost_of(self, direction: str, size: Size) -> Cost | None:
        """Cost as for a step of training, whose update is not arithmetic of kernels."""
        return cost_of_gradients(self.at(size).graph, batch_of(size))


def batch_of(size: Size) -> int:
    """Number of examples in a batch."""
    return size if isinstance(size, int) else size["batch"]


def _with_batch(size: Size, batch: int) -> Size:
    return batch if isinstance(size, int) else size.with_numbers(batch=batch)


def _for_inference(sizes: Sizes) -> Sizes:
    """A batch of one for latency, and others for throughput; the smallest comes first."""
    smallest, largest = sizes.quick[0], sizes.quick[-1]
    quick = [_with_batch(smallest, 1), _with_batch(largest, 1), _with_batch(largest, _SEVERAL)]
    paper = [either for size in sizes.paper for either in (_with_batch(size, 1), size)]
    return Sizes(tuple(dict.fromkeys(quick)), tuple(dict.fromkeys(paper)))


#: By name, what trains each network.
_TRAINS: dict[str, Trains] = {
    **{loop.name: loop for loop in TRAININGS if loop.name in _LOOPS},
    **{step.model: step for step in MODELS},
}

#: The answers of each network, and the features of some.
INFERENCES = tuple(
    kind(model, trains, _for_inference(trains.by_preset))
    for kind, networks in ((Inference, _TRAINS), (Extraction, EXTRACTORS))
    for model, trains in networks.items()
)

#: The networks whose trained weights are kept: the answers of each, one by one and in the batches
#: that it was trained in.
CLASSIFICATIONS = tuple(
    Classification(name, _TRAINS[name], Sizes(quick=(1, 200), paper=(1, 200)))
    for name in ("lenet",)
)

#: The loss and the gradients of each network.
FORWARD_BACKWARDS = tuple(
    ForwardBackward(model, trains, Sizes(trains.by_preset.quick, trains.by_preset.paper))
    for model, trains in _TRAINS.items()
)
