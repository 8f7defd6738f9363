"""The networks that people know, as workloads: a training step of each on a batch on the device."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import ClassVar

from fwbench.manifest import Manifest
from fwbench.presets import Form, Shape, Size, Sizes
from fwbench.workloads.models import convolutional, inception, residual
from fwbench.workloads.models.graph import Network
from fwbench.workloads.objective import SGD, Objective
from fwbench.workloads.training import Trains, step_gap
from fwbench.workloads.workload import Cost

#: ``b128i224d1``: images in a batch, their height and width, and what divides the filters and units
#: of every layer but the last.
FORM = Form("b{batch}i{image}d{divisor}")

#: Learning rates are so small that the losses of the first steps differ between frameworks by
#: rounding alone, and so large that an update which is left out shows. Batch normalization makes
#: the gradients of a deep network large at first, and amplifies what they differ by.
_PLAIN = SGD(learning_rate=1e-3, momentum=0.9)
_NORMALIZED = SGD(learning_rate=1e-4, momentum=0.9)
_DEEP = SGD(learning_rate=3e-6, momentum=0.9)

#: What the loss at each of the first steps may be off by, relative to the loss, in parts of what is
#: allowed of a loop: in float32 2e-5, and after the updates 5e-5, 5e-5 and 1e-4. Seen were 8e-6 and
#: 1e-5 (Inception-v3 in MXNet; 5e-6 in all others); the first update moves the second loss by 3e-4
#: at least.
LOSS_GROWTH = (0.4, 1.0, 1.0, 2.0)


@dataclass(frozen=True, eq=False)
class ModelStep(Trains):
    """A training step of a network on pictures: forward pass, backward pass, update.

    Args:
        model: the name of the network.
        network: for what divides its filters.
        sizes: of batch and pictures, by preset.
        optimizer: with its constants.
    """

    model: str
    network: Callable[[int], Network]
    sizes: Sizes
    optimizer: SGD
    family: str = "models"
    representative: bool = False
    on_request: ClassVar[bool] = True

    @property
    def name(self) -> str:  # type: ignore[override]
        """The network's name with a suffix: ``resnet50_step``."""
        return f"{self.model}_step"

    @property
    def by_preset(self) -> Sizes:
        """The sizes of batch and pictures by preset."""
        return self.sizes

    @property
    def smallest(self) -> Size:
        """The first of the quick ones."""
        return self.sizes.quick[0]

    @property
    def form(self) -> Form:
        """How sizes are written."""
        return FORM

    def at(self, size: Size) -> Objective:
        """The network for pictures of a size.

        Args:
            size: of the case.

        Raises:
            DeclarationError: nothing is left of such small pictures.
        """
        return _objective(self, _shape(size))

    def gap(
        self, manifest: Manifest, device: str, execution: str, direction: str, dtype: str
    ) -> str | None:
        """As for all training; in addition, a whole loop has no step of its own."""
        whole = step_gap(manifest, execution)
        return whole or super().gap(manifest, device, execution, direction, dtype)

    def cost_of(self, direction: str, size: Size) -> Cost | None:
        """The arithmetic of kernels alone, and parameters read and written once.

        The gradients by results and by parameters are as much work each as the forward pass; that
        by the pictures is not needed.
        """
        graph = self.at(size).graph
        first = graph.nodes[0]
        needless = first.layer.multiply_adds(*first.shapes)
        multiply_adds = _shape(size)["batch"] * (3 * graph.multiply_adds - needless)
        return Cost(flops=2.0 * multiply_adds, elements=2.0 * graph.parameters)

    def number_of(self, size: Size) -> int:
        """Pixels in a batch, which orders the sizes of a network."""
        shape = _shape(size)
        return shape["batch"] * shape["image"] ** 2


@lru_cache(maxsize=64)
def _objective(step: ModelStep, size: Shape) -> Objective:
    objective = Objective(
        name=step.model,
        network=step.network(size["divisor"]),
        shape=(size["image"], size["image"], 3),
        classes=convolutional.CLASSES,
        optimizer=step.optimizer,
        loss_growth=LOSS_GROWTH,
    )
    objective.graph  # noqa: B018 (refuses pictures that are too small)
    return objective


def _shape(size: Size) -> Shape:
    assert isinstance(size, Shape)  # noqa: S101 (of the form)
    return size


def _step(network: Callable[[int], Network], optimizer: SGD, *quick: str, paper: str) -> ModelStep:
    sizes = FORM.sizes(quick, paper=(paper,))
    return ModelStep(network.__name__, network, sizes, optimizer)


#: A training step of each network, and the published batch and pictures as ``paper``.
MODELS = (
    _step(convolutional.alexnet, _PLAIN, "b4i64d8", "b4i64d2", paper="b128i224d1"),
    _step(convolutional.overfeat, _PLAIN, "b4i96d8", "b4i96d2", paper="b128i231d1"),
    _step(convolutional.vgg_a, _PLAIN, "b4i32d8", "b4i64d4", paper="b64i224d1"),
    _step(convolutional.vgg16, _PLAIN, "b4i32d8", "b4i64d4", paper="b64i224d1"),
    _step(inception.googlenet, _PLAIN, "b4i64d8", "b4i64d1", paper="b128i224d1"),
    _step(inception.googlenet_bn, _NORMALIZED, "b8i64d8", "b8i64d1", paper="b128i224d1"),
    _step(inception.inception_v3, _DEEP, "b8i107d8", "b8i107d2", paper="b32i299d1"),
    _step(residual.resnet50, _DEEP, "b8i64d8", "b8i64d1", paper="b32i224d1"),
)
