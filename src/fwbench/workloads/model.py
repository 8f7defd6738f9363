"""Models that users bring: what they take and how they are trained. It names no framework.

There is no reference in NumPy: a model is verified against its own run in float64.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from fwbench.errors import DeclarationError
from fwbench.terms.manifest import Manifest
from fwbench.terms.presets import Size, Sizes
from fwbench.workloads.input import BATCH, Input
from fwbench.workloads.models.graph import Graph
from fwbench.workloads.objective import SGD, Objective, Optimizer
from fwbench.workloads.training import Trains
from fwbench.workloads.workload import Workload

_NAME = re.compile(r"[A-Za-z]\w*")
_INPUTS_SEED = 31

#: The losses of the first step and of those after each of three updates are compared. They may be
#: off, relative to the loss, by this many times what is allowed of a dtype
#: (:data:`fwbench.cases.verify.NETWORK_LOSS_TOLERANCES`): as those of the deepest networks of
#: fwbench's.
_GROWTH = (0.4, 4.0, 4.0, 4.0)

#: Weights by name: those of a model, or those to share.
Weights = Mapping[str, NDArray[Any]]


def _unchanged(weights: Weights) -> Weights:
    return weights


@dataclass(frozen=True)
class Version:
    """One framework's version of a model."""

    #: The model, a function of the framework's namespace that builds it, a class that is called
    #: without arguments, or a name of a model of another package's (``"torchvision:resnet18"``).
    given: Any
    #: Makes this framework's own names and layouts of the weights to share.
    weights: Callable[[Weights], Weights] = _unchanged
    #: ``loss(result, *targets)``, in the framework's own operations; None for the loss that follows
    #: from the targets.
    loss: Callable[..., Any] | None = None


@dataclass(frozen=True, eq=False)
class Model:
    """A model of your own, in one framework or several: measured in use and in training.

    Args:
        name: letters, digits and underscores; ``<name>_inference`` and ``<name>_step`` are the
            first parts of case ids.
        targets: what it is trained to answer; None where it is not trained, or its loss needs
            none. The loss is the mean softmax cross-entropy over the last axis of the model's first
            result where they are whole numbers, and the mean squared error where they are not.
        models: by framework, as in ``{"torch": Net}``; see :attr:`Version.given`. More can be
            declared by :meth:`implement`.
        batches: batch sizes of inference: one for latency, others for throughput.
        optimizer: of the training step (:class:`fwbench.SGD`, :class:`fwbench.Adam` or
            :class:`fwbench.RMSprop`): a small learning rate, so that losses do not grow apart by
            rounding alone.
        weights: by name, or a function that returns them: those that every framework's version
            begins with. None where each begins with its own.
        output: the shape of the first result, as of an :class:`Input`; None where any will do.
        tolerance: factor on what results and losses may be off by.

    Raises:
        DeclarationError: the name, the inputs, the output or the batches cannot be used.
    """

    name: str
    inputs: Input | Sequence[Input]
    targets: Input | None = None
    models: Mapping[str, Any] = field(default_factory=dict)
    batches: Sizes | Sequence[int] = (1, 32)
    training_batches: Sizes | Sequence[int] = (32,)
    optimizer: Optimizer = SGD(1e-3)  # noqa: RUF009 (it does not change)
    weights: Weights | Callable[[], Weights] | None = None
    output: Sequence[int | str] | None = None
    tolerance: float = 1.0
    versions: dict[str, Version] = field(init=False, default_factory=dict)

    def __post_init__(self) -> None:
        if not _NAME.fullmatch(self.name):
            raise DeclarationError(
                f"a model is named {self.name!r}; the name becomes part of case ids: use letters, "
                "digits and underscores, beginning with a letter"
            )
        wrong: list[Any] = [given for given in self.taken if type(given) is not Input]
        if wrong or not self.taken:
            raise DeclarationError(
                f"model {self.name!r} takes {wrong or 'nothing'}; give it an Input, or several: "
                f"inputs=Input({BATCH!r}, 3, 32, 32)"
            )
        every = (*_sizes(self.batches).every, *_sizes(self.training_batches).every)
        if not every or any(type(batch) is not int or batch < 1 for batch in every):
            raise DeclarationError(
                f"model {self.name!r} has the batches {every}; give positive whole numbers"
            )
        if self.output is not None and not _is_shape(self.output):
            raise DeclarationError(
                f"model {self.name!r} declares the output {self.output!r}; give the shape of its "
                f"first result: output=({BATCH!r}, 10)"
            )
        self.versions.update({name: Version(given) for name, given in self.models.items()})

    def implement(
        self,
        framework: str,
        *,
        weights: Callable[[Weights], Weights] = _unchanged,
        loss: Callable[..., Any] | None = None,
    ) -> Callable[[Any], Any]:
        """Declare one framework's version; use as a decorator of the function that builds it.

        For example::

            @convnet.implement("torch")
            def _(torch):
                return torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(3072, 10))

        The function is called in that framework's process alone, before anything is timed. In
        place of it, what :attr:`Version.given` may be can be passed to what this returns.

        Args:
            framework: the framework's name, as ``--fw`` takes it.
            weights: see :attr:`Version.weights`.
            loss: see :attr:`Version.loss`.

        Raises:
            DeclarationError: this framework's version is declared already.
        """

        def declare(given: Any) -> Any:
            if framework in self.versions:
                raise DeclarationError(f"{self.name} is given twice for {framework}; keep one")
            self.versions[framework] = Version(given, weights, loss)
            return given

        return declare

    @property
    def taken(self) -> tuple[Input, ...]:
        """Inputs of the model, one or several."""
        return (self.inputs,) if isinstance(self.inputs, Input) else tuple(self.inputs)

    @cached_property
    def inference(self) -> "ModelInference":
        """The answers of the model to a batch, as in use."""
        return ModelInference(self)

    @cached_property
    def step(self) -> "ModelTraining":
        """A training step: forward pass, loss, backward pass, update."""
        return ModelTraining(self)

    @property
    def trains(self) -> bool:
        """True if it is declared what a version is trained to do."""
        return self.targets is not None or any(version.loss for version in self.versions.values())

    @property
    def workloads(self) -> tuple[Workload, ...]:
        """Inference, and a training step where there is something to learn."""
        return (self.inference, self.step) if self.trains else (self.inference,)

    @cached_property
    def shared(self) -> Weights | None:
        """The weights that every version begins with."""
        return self.weights() if callable(self.weights) else self.weights


class ModelObjective(Objective):
    """A user's model as what a learner minimises: there is no graph of fwbench's layers."""

    model: Model
    unit = "examples"  # whose nature fwbench does not know
    units_per_example = 1

    def __init__(self, model: Model) -> None:
        super().__init__(model.name, _opaque, (), 0, model.optimizer, _GROWTH)
        object.__setattr__(self, "model", model)

    @property
    def graph(self) -> Graph:
        """None that fwbench knows.

        Raises:
            DeclarationError: always.
        """
        raise DeclarationError(f"{self.name} is a model of your own, whose layers are not known")

    def loss_scales(self, expected: Sequence[float]) -> NDArray[np.float64]:
        """Scales of losses as for networks, times the model's own factor."""
        return self.model.tolerance * np.abs(super().loss_scales(expected))

    def check_batches(self, batch: int, steps: int) -> list[Any]:
        """Batches of different examples: the inputs, and the targets, each a tuple of arrays.

        Args:
            steps: how many batches; the first ones are the same however many there are.
        """
        return [self.other_batch(batch, step) for step in range(steps)]

    timed_batches = check_batches

    def other_batch(self, batch: int, seed: int) -> Any:
        """A batch of different examples by a seed; those of the check have the first numbers."""
        taken, targets = self.model.taken, self.model.targets
        wanted = () if targets is None else (targets,)
        rng = np.random.default_rng([_INPUTS_SEED, batch, seed])
        return (
            tuple(part.draw(batch, rng) for part in taken),
            tuple(part.draw(batch, rng) for part in wanted),
        )


def _opaque(_: Any) -> Any:
    raise DeclarationError("a model of your own is not written in fwbench's layers")


def _sizes(batches: Sizes | Sequence[int]) -> Sizes:
    return batches if isinstance(batches, Sizes) else Sizes(tuple(batches))


def _is_shape(given: Any) -> bool:
    return isinstance(given, tuple | list) and all(
        length == BATCH or (type(length) is int and length > 0) for length in given
    )


@dataclass(frozen=True, eq=False)
class _OfModel(Workload):
    """Work of a user's model."""

    model: Model

    suffix: ClassVar[str]

    @property
    def name(self) -> str:  # type: ignore[override]
        """The model's name with a suffix: ``convnet_inference``."""
        return f"{self.model.name}_{self.suffix}"

    def at(self, size: Size) -> Objective:
        return ModelObjective(self.model)


class ModelInference(_OfModel):
    """The answers of a user's model to a batch on the device."""

    suffix = "inference"
    directions: ClassVar = ("forward",)

    @property
    def by_preset(self) -> Sizes:
        """The batch sizes."""
        return _sizes(self.model.batches)

    def executions(self, manifest: Manifest) -> tuple[str, ...]:
        """Executions of networks; a framework without any has a gap in ``eager``."""
        return manifest.network_executions or ("eager",)


class ModelTraining(_OfModel, Trains):
    """A training step of a user's model on a batch on the device."""

    suffix = "step"

    @property
    def by_preset(self) -> Sizes:
        """The batch sizes."""
        return _sizes(self.model.training_batches)
