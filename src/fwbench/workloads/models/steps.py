"""Well-known networks as workloads: a training step of each on a batch on the device."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import ClassVar

from fwbench.terms.presets import Form, Shape, Size, Sizes, sizes_of
from fwbench.workloads.models import convolutional, language
from fwbench.workloads.models.graph import Network
from fwbench.workloads.objective import SGD, Objective
from fwbench.workloads.training import Trains, cost_of_gradients
from fwbench.workloads.workload import Cost

_SIZES = sizes_of("models")

#: What a divisor divides where one number stands for the size of a network.
_WHOLE = 64


@dataclass(frozen=True)
class _Check:
    """Description of a training, and the tolerances of its first losses.

    Learning rates are so small that the losses differ between frameworks by rounding alone, and so
    large that an update which is left out shows. Batch normalization makes the gradients of a deep
    network large at first, and amplifies what they differ by.
    """

    #: Of gradient descent with a momentum of 0.9, at the smallest size.
    learning_rate: float
    #: See :class:`Objective`: 1 stands for 5e-5 of the loss in float32.
    growth: tuple[float, ...] = (0.4, 1.0, 1.0, 2.0)
    #: By batches, in every block.
    normalized: bool = False

    def optimizer(self, width: float = 1.0, side: float = 1.0) -> SGD:
        """Gradient descent whose updates change the losses alike at all sizes, roughly.

        What an update changes is the rate times the square of the gradients' norm. That grows with
        the square of the filters and units, and with the sides of pictures; in normalized networks
        with the filters. It was 0.2 to 3 times as much (eight networks, two or three sizes each).

        Args:
            width: filters and units of a layer, as a multiple of those at the smallest size.
        """
        grown = width if self.normalized else width**2 * side
        return SGD(self.learning_rate / grown, momentum=0.9)


#: Seen were 1e-6 of the loss, and the first update moves the second loss by 3e-4 of it at least
#: (``benchmarks/harness/deviations.py``).
_PLAIN = _Check(1e-3)

#: As much as the first; at 1e-3 the encoders' second loss moves by twice what is allowed.
_TEXTS = _Check(1e-2)

#: As small as before, with gradients that are small at first: the second loss moves by 3e-3.
_WORDS = _Check(1.0)

#: Seen were 7e-6; the first update moves the second loss by 3e-4.
_NORMALIZED = _Check(1e-4, normalized=True)

#: Seen were 2.5e-5 of the first loss (at `b8i107d2`) and 1.5e-4 of the others (Inception-v3 in
#: PyTorch, two threads); the first update moves the second loss by 3.5e-4.
_DEEP = _Check(3e-6, (1.0, 4.0, 4.0, 4.0), normalized=True)


@dataclass(frozen=True, eq=False)
class ModelStep(Trains):
    """A training step of a network: forward pass, backward pass, update."""

    model: str
    objective: Callable[[Shape], Objective]
    sizes: Sizes
    family: str = "models"
    representative: bool = False
    on_request: ClassVar[bool] = True
    shared: ClassVar[bool] = True
    toggles: ClassVar = frozenset({"recompute"})

    @property
    def name(self) -> str:  # type: ignore[override]
        """The network's name with a suffix: ``resnet50_step``."""
        return f"{self.model}_step"

    @property
    def by_preset(self) -> Sizes:
        """The sizes by preset."""
        return self.sizes

    @property
    def smallest(self) -> Shape:
        """The first of the quick ones."""
        return _shape(self.sizes.quick[0])

    @property
    def form(self) -> Form:
        """Format of sizes."""
        return self.smallest.form

    def at(self, size: Size) -> Objective:
        """The network of a size, with what it is trained by.

        Raises:
            DeclarationError: a layer has no result at this size.
        """
        return _objective(self, _shape(size))

    def grown(self, size: Size, replicas: int) -> Size:
        """The batch that gives each replica the examples of one."""
        shape = _shape(size)
        return shape.with_numbers(batch=replicas * shape["batch"])

    def cost_of(self, direction: str, size: Size) -> Cost | None:
        """Cost of the gradients, and of parameters that are read and written once."""
        return cost_of_gradients(self.at(size).graph, _shape(size)["batch"])

    def number_of(self, size: Size) -> int:
        """Number by which the work grows, which orders the sizes of a network.

        Of pictures the pixels of a batch, by the share of filters and units in 64 that the divisor
        leaves; of texts the tokens of a batch, by the layers and by the square of the units. No
        graph is needed, so that also a size which no layer has a result at has a number.
        """
        shape = _shape(size)
        if "image" in shape:
            side = _WHOLE * shape["image"] // shape["divisor"]
            return shape["batch"] * side**2
        tokens = shape["batch"] * shape["length"]
        return tokens * shape["layers"] * shape["units"] ** 2


@lru_cache(maxsize=64)
def _objective(step: ModelStep, size: Shape) -> Objective:
    objective = step.objective(size)
    objective.graph  # noqa: B018 (refuses what cannot be)
    return objective


def _shape(size: Size) -> Shape:
    assert isinstance(size, Shape)  # noqa: S101 (of the form)
    return size


def _of_pictures(network: Callable[[int], Network], check: _Check) -> ModelStep:
    sizes = _SIZES[network.__name__]
    smallest = _shape(sizes.quick[0])

    def objective(size: Shape) -> Objective:
        width = smallest["divisor"] / size["divisor"]
        side = size["image"] / smallest["image"]
        return Objective(
            name=network.__name__,
            network=network(size["divisor"]),
            shape=(size["image"], size["image"], 3),
            classes=convolutional.CLASSES,
            optimizer=check.optimizer(width, side),
            loss_growth=check.growth,
        )

    return ModelStep(network.__name__, objective, sizes)


def _of_texts(
    network: Callable[[Shape], Network], check: _Check, classes: int | None = None
) -> ModelStep:
    """Training step of a network whose classes are all words, or this number of its answers."""

    def objective(size: Shape) -> Objective:
        return Objective(
            name=network.__name__,
            network=network(size),
            shape=(size["length"],),
            classes=classes or size["vocabulary"],
            optimizer=check.optimizer(),
            loss_growth=check.growth,
        )

    return ModelStep(network.__name__, objective, _SIZES[network.__name__])


#: A training step of each network, and the published setting as ``paper``.
MODELS = (
    _of_pictures(convolutional.alexnet, _PLAIN),
    _of_pictures(convolutional.overfeat, _PLAIN),
    _of_pictures(convolutional.vgg_a, _PLAIN),
    _of_pictures(convolutional.vgg16, _PLAIN),
    _of_pictures(convolutional.googlenet, _PLAIN),
    _of_pictures(convolutional.googlenet_bn, _NORMALIZED),
    _of_pictures(convolutional.inception_v3, _DEEP),
    _of_pictures(convolutional.resnet50, _DEEP),
    _of_texts(language.transformer_encoder, _TEXTS),
    _of_texts(language.gpt_small, _TEXTS),
    _of_texts(language.word_lm, _WORDS),
)

#: Networks without their last layers, by the networks' names. They are in use, and not trained.
EXTRACTORS = {"resnet50": _of_pictures(convolutional.resnet50_features, _DEEP)}

#: Of networks that are trained by fewer answers than they have in use: a word is right or not.
SAMPLED = (_of_texts(language.word_lm_sampled, _WORDS, classes=1),)
