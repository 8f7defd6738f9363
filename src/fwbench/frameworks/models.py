"""A model that a user brings, in use and in training: what every framework's code for it shares."""

import copy
import inspect
import re
from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from importlib import import_module
from typing import Any, ClassVar, NamedTuple, cast

import numpy as np
from numpy.typing import NDArray

from fwbench.errors import DeclarationError, some
from fwbench.frameworks.layout import Layout
from fwbench.frameworks.learner import Job, Learner, Loader, Placed
from fwbench.frameworks.table import layout_of
from fwbench.workloads.model import Model, ModelObjective, Version, Weights
from fwbench.workloads.objective import Batch

#: Weights that a model draws for itself are the same in every process.
SEED = 32

#: Examples of the first call, which makes what depends on shapes.
_FIRST = 2

#: How many parameters a message names.
_NAMED = 6

_NARROW = re.compile(r"b?float(?:16|8)\w*")

_COLORS = re.compile(r"\x1b\[[\d;]*m")


class Results(NamedTuple):
    """Elements of a forward pass: of all arrays, as a gradient needs them, and of the largest."""

    elements: int
    largest: int


class ModelLearner(Learner):
    """One framework's version of a user's model, built once.

    Args:
        job: whose objective is a :class:`~fwbench.workloads.model.ModelObjective`.

    Raises:
        DeclarationError: the version is not a model, refuses its inputs, or its parameters are not
            those of the weights to share.
    """

    framework: ClassVar[str]
    #: What a version must be, for messages.
    takes: ClassVar[str]
    #: The execution of the run in float64 that others are verified against.
    plain: ClassVar[str] = "eager"
    #: Advice for a model that makes arrays of its own in float32, where it runs in float64.
    remedy: ClassVar[str]

    def __init__(self, job: Job) -> None:
        super().__init__(job)
        self.objective = cast("ModelObjective", job.training)
        self.model: Model = self.objective.model
        self.version: Version = self.model.versions[self.framework]
        self._layout: Layout = layout_of(self.version.given)
        self._build()
        self._call_first()
        shared = self.model.shared
        if shared is not None:
            self._share(self.version.weights(shared))
        self.initial = self.state()

    @abstractmethod
    def _build(self) -> None:
        """Make the model of :meth:`built`, in the dtype of the job."""

    @abstractmethod
    def _is_model(self, given: Any) -> bool:
        """Tell whether a version is a model of this framework already."""

    @abstractmethod
    def state(self) -> dict[str, NDArray[Any]]:
        """The arrays of the model, by name: its parameters, and buffers such as moving averages."""

    @abstractmethod
    def load(self, values: Iterable[NDArray[Any]]) -> None:
        """Set what the model keeps, in the order of :meth:`state`."""

    @abstractmethod
    def trained_names(self) -> list[str]:
        """The names, among those of :meth:`state`, of the parameters that are trained."""

    @abstractmethod
    def _answer(self, inputs: Sequence[Any]) -> Any:
        """The model's results in use, by a plain call; nothing is timed."""

    @abstractmethod
    def placed(self, array: NDArray[Any]) -> Any:
        """A copy on the device: floating-point numbers in the dtype of the model's inputs."""

    def flops(self, batch: Any, *, training: bool) -> float | None:
        """Floating-point operations of a training step, or of answers, where they are counted."""
        return None

    def results(self, shapes: Sequence[tuple[tuple[int, ...], str]]) -> Results | None:
        """Shapes and dtypes of a forward pass, without computing it; None if unknown.

        Args:
            shapes: of the inputs as the framework has them, each with its dtype on the host.
        """
        return None

    def built(self, namespace: Any, named: Mapping[str, Callable[[str], Any]] | None = None) -> Any:
        """The model of the version, which no other learner changes.

        Raises:
            DeclarationError: it is not one.
        """
        given = getattr(self.version.given, "entry", self.version.given)
        if isinstance(given, str):
            made = self._by_name(given, named or {})
        elif self._is_model(given):
            made = copy.deepcopy(given)
        else:
            made = given() if inspect.isclass(given) else given(namespace)
        if not self._is_model(made):
            raise DeclarationError(
                f"{self.model.name} for {self.framework} is of the type {type(made).__name__}; "
                f"give {self.takes}, or a function of the framework that returns one"
            )
        return made

    def check_precision(self, dtypes: Iterable[Any]) -> None:
        """Refuse a version that is built in a narrow dtype: it would be measured in another.

        Args:
            dtypes: of its parameters, or of what its layers compute in.

        Raises:
            DeclarationError: one of them is narrower than float32.
        """
        narrow = {found for dtype in dtypes for found in _NARROW.findall(str(dtype))}
        if narrow and not isinstance(self.version.given, str):
            raise DeclarationError(
                f"{self.model.name} for {self.framework} is built in {some(sorted(narrow), 2)}, "
                f"and this case is in {self.job.dtype}; build it in float32, as fwbench converts "
                "models to the dtype of a case (--fw-dtype), or measure it as it is as a function "
                "(fwbench.function)"
            )

    def refuse_compiled(self, part: object, ways: Sequence[str]) -> None:
        """Refuse a version that is compiled: it would be recorded as another execution.

        Args:
            part: what is compiled.
            ways: the executions to select instead.

        Raises:
            DeclarationError: always.
        """
        options = " or ".join(f"--fw-execution {way}" for way in ways)
        raise DeclarationError(
            f"{self.model.name} for {self.framework} is compiled already ({type(part).__name__}), "
            f"and this case is {self.job.execution!r}; give the model as it is before that, and "
            f"have fwbench compile it: {options}"
        )

    def _by_name(self, name: str, named: Mapping[str, Callable[[str], Any]]) -> Any:
        package, _, model = name.partition(":")
        if package not in named or not model:
            known = ", ".join(f"'{package}:<name>'" for package in named) or "none"
            raise DeclarationError(
                f"{self.model.name} for {self.framework} is named {name!r}; known are {known}"
            )
        try:
            import_module(package)
        except Exception as error:  # noqa: BLE001 (torchvision: RuntimeError, next to another build)
            raise self._unimportable(name, package, error) from None
        try:
            return named[package](model)
        except ImportError as error:  # Transformers imports its parts when they are used
            raise self._unimportable(name, package, error) from None
        except Exception as error:  # noqa: BLE001 (another package may raise anything)
            raise DeclarationError(
                f"{self.model.name} is {name!r}, and {package} does not have it here: "
                f"{text_of(error)}; fwbench downloads nothing"
            ) from None

    def _unimportable(self, name: str, package: str, error: Exception) -> DeclarationError:
        return DeclarationError(
            f"{self.model.name} is {name!r}, and {package} cannot be imported: {text_of(error)}; "
            f"install a build of it that fits the installed {self.framework}, or give a function "
            "that builds the model"
        )

    def _call_first(self) -> None:
        """Call the model once: frameworks make parameters when they see the first inputs."""
        (batch,) = self.objective.check_batches(min(self.job.batch, _FIRST), 1)
        inputs, _ = self.place(batch)
        try:
            self._answer(inputs)
        except Exception as error:
            raise self._refusal(batch[0], error) from error

    def _refusal(self, inputs: Sequence[NDArray[Any]], error: Exception) -> DeclarationError:
        if self.job.as_reference:
            return self.fails_as_reference(error)
        is_wide = self.job.dtype == "float64"
        shapes = ", ".join(
            f"{x.shape} {'float64' if is_wide and x.dtype.kind == 'f' else x.dtype}"
            for x in self.laid(inputs)
        )
        more = f"; if it works in float32, {self.remedy}" if is_wide else ""
        return DeclarationError(
            f"{self.model.name} in {self.framework} refuses what it is declared to take "
            f"({shapes}): {text_of(error)}; correct `inputs` of the Model{more}"
        )

    def fails_as_reference(self, error: Exception) -> DeclarationError:
        """The error to raise where the model works as it is measured, but not in float64."""
        return DeclarationError(
            f"{self.model.name} in {self.framework} fails in float64, in the reference run that "
            f"it is verified against: {text_of(error)}; correct the model or its loss: arrays "
            f"that it makes in float32 do not fit there, so {self.remedy}"
        )

    def _share(self, weights: Weights) -> None:
        """Begin with weights that all versions share; what is not among them stays."""
        here = self.state()
        known = {name: here[name].shape for name in self.trained_names()}
        given = {name: np.asarray(array) for name, array in weights.items()}
        wrong = [f"{name} {shape} is missing" for name, shape in known.items() if name not in given]
        for name, array in given.items():
            if name not in here:
                wrong.append(f"{name} {array.shape} is not a parameter of it")
            elif array.shape != here[name].shape:
                wrong.append(f"{name} is {here[name].shape}, and was given {array.shape}")
            elif np.iscomplexobj(array) and not np.iscomplexobj(here[name]):
                wrong.append(f"{name} is real, and was given complex numbers")
        if wrong:
            raise DeclarationError(
                f"the weights to share are not those of {self.model.name} in {self.framework}: "
                f"{some(wrong, _NAMED, '; ')}; give them by this framework's names and in its "
                f'layouts: implement("{self.framework}", weights=...)'
            )
        self.load([given.get(name, array) for name, array in here.items()])

    def begin_with(self, initial: Mapping[str, NDArray[Any]]) -> None:
        """Have another learner's initial weights."""
        self.initial = dict(initial)

    def check_trained(self) -> None:
        """Refuse to train what has nothing to learn.

        Raises:
            DeclarationError: no parameter is trained.
        """
        if not self.trained_names():
            raise DeclarationError(
                f"{self.model.name} has no parameters in {self.framework}, and cannot be trained; "
                f"measure {self.model.name}.inference alone"
            )

    def weights(self) -> Iterator[NDArray[Any]]:
        """The parameters that are trained."""
        state = self.state()
        return (state[name] for name in self.trained_names())

    def place(self, batch: Any) -> Placed:
        """Inputs in the layout of the framework, and targets: each a tuple of arrays."""
        inputs, targets = batch
        return tuple(map(self.placed, self.laid(inputs))), tuple(map(self.placed, targets))

    def shapes(self, batch: int) -> list[tuple[tuple[int, ...], str]]:
        """Shapes and host dtypes of ``batch`` inputs in the framework's layout; none is made."""
        small, larger = (
            self.laid(self.objective.check_batches(few, 1)[0][0]) for few in (_FIRST, 1 + _FIRST)
        )
        return [
            (
                tuple(batch if a != b else a for a, b in zip(x.shape, y.shape, strict=True)),
                str(x.dtype),
            )
            for x, y in zip(small, larger, strict=True)
        ]

    def laid(self, inputs: Sequence[NDArray[Any]]) -> list[NDArray[Any]]:
        """Inputs in the layout of the framework."""
        return self._layout.place(inputs)

    def loader(self, batch: Batch, steps: int) -> Loader:
        """None: a step has its batch on the device."""
        raise NotImplementedError("a model of the user's is trained in single steps")

    def logits(self, examples: Any) -> NDArray[Any]:
        """The first result in use."""
        inputs, _ = self.place((examples, ()))
        return self.restored([self.on_host(x) for x in arrays_of(self._answer(inputs))])[0]

    @abstractmethod
    def on_host(self, array: Any) -> NDArray[Any]:
        """A result as NumPy's array."""

    def restored(self, results: Sequence[NDArray[Any]]) -> list[NDArray[Any]]:
        """Results in the layout that all versions share."""
        return self._layout.restore_results(results)

    def loss_of(
        self, losses: Mapping[bool, Callable[..., Any]], returned: Any, targets: Any
    ) -> Any:
        """The loss of what the model returned.

        Args:
            losses: of the first result and the targets: where these are whole numbers, and where
                not.

        Raises:
            DeclarationError: there are not as many answers as targets.
        """
        if self.version.loss is not None:
            return self.version.loss(returned, *targets)
        wanted = self.model.targets
        assert wanted is not None  # noqa: S101 (a gap otherwise)
        result, (target,) = arrays_of(returned)[0], targets
        answered = tuple(result.shape)
        for_each = answered[:-1] if wanted.is_whole else answered
        if np.prod(for_each) != np.prod(tuple(target.shape)):
            raise DeclarationError(
                f"the first result of {self.model.name} in {self.framework} has the shape "
                f"{answered}, which does not answer targets of the shape {tuple(target.shape)}; "
                f'correct `targets`, or declare a loss: implement("{self.framework}", loss=...)'
            )
        return losses[wanted.is_whole](result, target)


def arrays_of(returned: Any) -> list[Any]:
    """The arrays in what a model returned, in their order: of its containers, too."""
    if returned is None:
        return []
    if isinstance(returned, Mapping):
        returned = list(returned.values())
    elif fields := getattr(type(returned), "__dataclass_fields__", None):
        returned = [getattr(returned, name) for name in fields]
    if isinstance(returned, list | tuple):
        return [array for part in returned for array in arrays_of(part)]
    return [returned]


def convert_attributes(parts: Iterable[Any], kind: type, convert: Callable[[Any], Any]) -> None:
    """Convert arrays that parts of a model have as plain attributes: they are not of its state."""
    for part in parts:
        for name, value in [*vars(part).items()]:
            if isinstance(value, kind):
                setattr(part, name, convert(value))


def text_of(error: Exception) -> str:
    """The type of an error, and what its message says first.

    Keras begins with the layer, on a line of its own, and MXNet with a traceback.
    """
    every = (line.strip() for line in _COLORS.sub("", str(error)).splitlines())
    lines = [*filter(None, every)] or [""]
    first = lines[-1:] if lines[0].startswith("Traceback") else lines[:2]
    return f"{type(error).__name__}: {' '.join(first)}"
