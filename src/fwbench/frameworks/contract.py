"""HOW a framework computes: the shape that every framework's adapter has.

A framework is a class in a module of its own, named by an entry point of the group
``fwbench.frameworks``. The entry point is loaded in the framework's own worker process alone, so
the module imports its framework at the top; its environment variables are set by then.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any, ClassVar, NamedTuple

from numpy.typing import NDArray

from fwbench.frameworks import cache, declarations, device_clock, table
from fwbench.frameworks.copies import Copying
from fwbench.frameworks.device_clock import DeviceClock
from fwbench.frameworks.learner import Job, Learner, Predictor
from fwbench.frameworks.member import Replicable
from fwbench.frameworks.models import ModelLearner
from fwbench.frameworks.profiler import Profiler
from fwbench.frameworks.table import Table
from fwbench.manifest import Device, Gap, Manifest
from fwbench.toggles import Toggle
from fwbench.workloads.operation import Implementation

#: A framework's own array; only its file knows more.
Array = Any

#: One call of the bound work, and nothing else: what the clock runs around. Where arrays cannot be
#: written it is a :class:`functools.partial` whose arguments are the inputs.
BoundCall = Callable[[], Any]


class Saved(NamedTuple):
    """What a forward pass keeps for the backward pass.

    Attributes:
        size_bytes: of all of it.
        tensors: how many.
    """

    size_bytes: int
    tensors: int


class Framework(Replicable, Copying, ABC):
    """One framework's way to compute, wait and differentiate.

    Attributes:
        name: as ``--fw`` takes it; equals the name of the entry point.
        version: of the framework.
        namespace: the argument of implementations: ``torch``, ``tf``, ``np``, MXNet's ``nd``.
        operations: by the name of an operation of fwbench's, the dotted path of the function
            below the namespace, or an implementation (:mod:`fwbench.frameworks.table`). Operations
            of other packages are implemented by :meth:`fwbench.Operation.implement`.
        executions: what ``--fw-execution`` takes, in the order to show them.
        on_request: executions that run only when they are asked for by name.
        dtypes: what ``--fw-dtype`` takes.
        differentiable: whether there is a gradient (``backward``).
        conjugates: whether gradients by complex numbers are conjugate, so that they point where the
            result grows, as PyTorch's and TensorFlow's; JAX's are not, and neither is what they
            begin with.
        gaps: what the framework does not offer, of operations and of training.
        variables: the environment variables that change its speed, by their whole names; they are
            recorded, unless a name says that the value is a secret.
        reads_stack: whether its operations look at the Python stack above them: they are called at
            the foot of one (:mod:`fwbench.measure.empty_stack`).
        training_executions: how it can train models; empty: not at all. Each is one that the
            training code names, too (:attr:`fwbench.Learner.executions`).
        whole_loops: those of them that are loops of the framework's own, without single steps.
        network_executions: how it can answer with networks and differentiate them, without an
            update (:meth:`fwbench.Predictor.inference`); empty: not at all. Its predictor names
            each.
        users_models: the dtypes in which it runs models that users bring (:meth:`model_learner`);
            empty: not at all.
        int8_executions: in which trained networks answer in int8, and in float32.
        training_dtypes: in which it can train, and run networks.
        recomputing_executions: those of training and of networks in which its learner heeds
            :attr:`fwbench.frameworks.learner.Job.recompute`; a gap in all others.
        process_toggles: the toggles of a whole process that its file reads when it is imported.
        own_toggles: toggles that it adds to fwbench's; its file reads each from the environment
            (:func:`fwbench.toggles.variable`) when it is imported.
        toggle_gaps: what it cannot do, by (execution, toggle, value), with the reason.
        package: the installed package that names it, for messages; the registry sets it.
    """

    name: ClassVar[str]
    operations: ClassVar[Table]
    executions: ClassVar[tuple[str, ...]] = ("eager",)
    on_request: ClassVar[frozenset[str]] = frozenset()
    dtypes: ClassVar[tuple[str, ...]] = ("float32", "float64")
    differentiable: ClassVar[bool] = True
    conjugates: ClassVar[bool] = True
    gaps: ClassVar[Sequence[Gap]] = ()
    variables: ClassVar[tuple[str, ...]] = ()
    reads_stack: ClassVar[bool] = False
    training_executions: ClassVar[tuple[str, ...]] = ()
    whole_loops: ClassVar[frozenset[str]] = frozenset()
    network_executions: ClassVar[tuple[str, ...]] = ()
    users_models: ClassVar[tuple[str, ...]] = ()
    int8_executions: ClassVar[tuple[str, ...]] = ()
    training_dtypes: ClassVar[tuple[str, ...]] = ("float32",)
    recomputing_executions: ClassVar[tuple[str, ...]] = ()
    process_toggles: ClassVar[tuple[str, ...]] = ()
    own_toggles: ClassVar[tuple[Toggle, ...]] = ()
    toggle_gaps: ClassVar[Mapping[tuple[str, str, str], str]] = {}
    version: str
    namespace: Any
    package: str = ""

    @abstractmethod
    def set_threads(self, threads: int) -> None:
        """Compute with ``threads`` threads, if environment variables have not said so already."""

    @abstractmethod
    def threads(self) -> int | None:
        """The threads that the framework really computes with; None where it is not known."""

    def devices(self, cpu_model: str) -> tuple[Device, ...]:
        """Every device there is, the CPU first where it is one of them.

        Args:
            cpu_model: the name of this machine's CPU; no framework knows it.
        """
        return (Device("cpu", cpu_model),)

    def scope(self, device: str, dtype: str) -> AbstractContextManager[Any]:
        """A context in which work is placed on ``device``; entered around a whole case.

        Args:
            device: where to.
            dtype: of the case, for a framework that needs to know it.
        """
        return nullcontext()

    @abstractmethod
    def creator(self, device: str, dtype: str) -> Callable[[Any], Array]:
        """The framework's own call that copies a NumPy array or a list into a new array.

        Args:
            device: where to.
            dtype: of the new array: ``float32``, ``bfloat16``, ``int64``, ...
        """

    @abstractmethod
    def to_numpy(self, array: Array) -> NDArray[Any]:
        """The array's values on the host; dtypes that NumPy does not have become float32."""

    def read_element(self, array: Array) -> NDArray[Any]:
        """One element of the array on the host, or all of them; waits for the array's values.

        Worth a method where :meth:`to_numpy` copies: what it takes is told from what a call took.
        """
        return self.to_numpy(array)

    def write(self, array: Array, source: Array) -> bool:
        """Copy the values of one array into another of the same shape and dtype, in place.

        Args:
            array: is changed, whatever is bound to it.
            source: has the values.

        Returns:
            Whether it could be done: not where the framework's arrays are immutable.
        """
        try:
            array[...] = source
        except (TypeError, ValueError):  # no assignment to elements; NumPy's read-only arrays
            return False
        return True

    def variable(self, array: Array) -> Array:
        """An array with the values of this one that operations may overwrite.

        The array itself, unless the framework's arrays are immutable and it has others that are
        not.

        Args:
            array: is given up.
        """
        return array

    def address(self, array: Array) -> int | None:
        """Where the array's first element lies in memory; None where it is not known."""
        return None

    @abstractmethod
    def waiter(self, device: str) -> Callable[[], Any] | None:
        """What waits until all work on ``device`` is done; None if calls return when it is."""

    def device_clock(self, device: str) -> DeviceClock | None:
        """The device's own clock, for times without launching and waiting; None without access.

        By default CUPTI, where ``cupti-python`` is installed.

        Args:
            device: a GPU.
        """
        return device_clock.cupti_clock(self.waiter(device))

    def release(self, device: str) -> None:
        """Give memory of a GPU back that is kept for later, after a case: others need it.

        Args:
            device: a GPU.
        """

    def flusher(self, device: str) -> Callable[[], Any] | None:
        """What empties the cache of a GPU (L2), for ``--fw-toggle l2=cold``; None for nothing.

        It enqueues work that writes more than the cache holds, and is called outside all times.

        Args:
            device: a GPU.
        """
        return None

    @abstractmethod
    def forward(
        self, implementation: Implementation, inputs: Sequence[Array], execution: str
    ) -> BoundCall:
        """Bind the operation to its inputs.

        Inputs are arguments of what is compiled and never closed over: a compiler folds constants.
        Where arrays are immutable (:meth:`write`) they are arguments of a ``functools.partial``,
        too: the same function is verified on other inputs once it was timed.

        Args:
            implementation: called with the namespace, it returns the function to run.
            inputs: arrays on the device.
            execution: one of :attr:`executions`.

        Returns:
            ``run()``, which returns the result: an array, or a list or tuple of several.
        """

    def backward(
        self,
        implementation: Implementation,
        inputs: Sequence[Array],
        variables: Sequence[int],
        cotangent: Array,
        execution: str,
    ) -> BoundCall:
        """Bind the forward pass and the gradient.

        Args:
            implementation: called with the namespace, it returns the function to differentiate.
            inputs: arrays on the device.
            variables: the positions of the inputs to differentiate by.
            cotangent: an array shaped like the result, with which its gradient begins; a tuple of
                them where there are several results, with None for those that have no gradient,
                such as indices (:func:`differentiated`).
            execution: one of :attr:`executions`.

        Returns:
            ``run()``, which returns the result and the gradients: ``(result, [gradient, ...])``
            with one for each of ``variables``. A compiler would leave out the forward pass if
            its result were not asked for.
        """
        raise NotImplementedError(f"{self.name} offers no gradient")

    def learner(self, job: Job) -> Learner:
        """A model, for one of :attr:`training_executions` or :attr:`network_executions`."""
        raise NotImplementedError(f"{self.name} trains no models")

    def model_learner(self, job: Job) -> ModelLearner:
        """A model that a user brings, of a job whose objective is a :class:`fwbench.Model`'s."""
        raise NotImplementedError(f"{self.name} takes no models of users")

    def predictor(self, job: Job) -> Predictor:
        """A network in use; by default the learner's."""
        return self.learner(job)

    def watch_memory(self, device: str) -> Callable[[], int | None]:
        """Begin to watch the framework's memory on ``device``.

        Returns:
            ``peak_bytes()``: the most in use at once since then; None where it is not known.
        """
        return lambda: None

    def saved_for_backward(self, run: BoundCall) -> Saved | None:
        """What a call keeps for its gradient, parameters apart; None where that is not told.

        Args:
            run: bound work, or a step of a learner's; it is called once.
        """
        return None

    def profiler(self, device: str) -> Profiler | None:
        """The framework's own profiler; None where it has none.

        Args:
            device: of the work that is to be profiled.

        Raises:
            ImportError: what it needs is not installed.
        """
        return None

    def toggles(self) -> dict[str, Any]:
        """Switches other than environment variables that change speed, with their values."""
        return {}

    def build(self) -> dict[str, str]:
        """How this framework was built: libraries, compilers, CUDA."""
        return {}

    def implementation(self, operation: str) -> Implementation:
        """The implementation of an operation of fwbench's.

        Args:
            operation: its name.

        Raises:
            KeyError: there is none.
        """
        return table.implementation(self.operations, operation)

    def manifest(self, cpu_model: str) -> Manifest:
        """What this framework has and can do here, as the process that runs pytest needs it.

        Args:
            cpu_model: the name of this machine's CPU.
        """
        missing = table.missing_paths(self.operations, self.namespace)
        operations = tuple(name for name in self.written() if name not in missing)
        return Manifest(
            name=self.name,
            version=self.version,
            devices=self.devices(cpu_model),
            executions=self.executions,
            on_request=tuple(sorted(self.on_request)),
            dtypes=self.dtypes,
            operations=operations,
            missing={
                name: f"{self.name} {self.version} has no {path}" for name, path in missing.items()
            },
            differentiable=self.differentiable,
            gaps=tuple(self.gaps),
            training_executions=self.training_executions,
            whole_loops=tuple(sorted(self.whole_loops)),
            network_executions=self.network_executions,
            users_models=self.users_models,
            int8_executions=self.int8_executions,
            training_dtypes=self.training_dtypes,
            process_toggles=(*self.process_toggles, *(own.name for own in self.own_toggles)),
            own_toggles=self.own_toggles,
            toggle_gaps=tuple(self.every_toggle_gap()),
            strategies=dict(self.strategies),
            gang_executions=self.gang_executions,
            collectives=self.collectives,
            coordinated=self.coordinated,
            gang_gaps=tuple((*what, reason) for what, reason in self.gang_gaps.items()),
            coordinator=self.coordinator,
            threads=self.threads(),
            build=self.build(),
            sources=cache.packages_of(type(self)),
            notices=tuple(self._notices(missing, operations)),
        )

    @classmethod
    def written(cls) -> tuple[str, ...]:
        """The names of the operations of fwbench's that it has code for, creations apart."""
        return (*cls.operations, *cls.written_copies())

    @classmethod
    def every_toggle_gap(cls) -> Iterator[tuple[str, str, str, str]]:
        """:attr:`toggle_gaps`, and those that follow from what else it has or lacks."""
        for execution in dict.fromkeys((*cls.training_executions, *cls.network_executions)):
            what = (execution, "recompute", "on")
            if execution not in cls.recomputing_executions and what not in cls.toggle_gaps:
                does_not = f"{cls.name} does not recompute results of networks in {execution}"
                yield *what, f"{does_not} (--fw-toggle recompute=off)"
        yield from ((*what, reason) for what, reason in cls.toggle_gaps.items())
        if cls.flusher is Framework.flusher:
            reason = f"{cls.name}'s adapter cannot empty the cache of a GPU"
            yield from ((execution, "l2", "cold", reason) for execution in cls.executions)

    def _notices(self, missing: Mapping[str, str], operations: Sequence[str]) -> Iterator[str]:
        offered = {
            "operations": operations,
            "executions": (
                *self.executions,
                *self.training_executions,
                *(*self.network_executions, *self.int8_executions),
            ),
            "dtypes": (*self.dtypes, *self.training_dtypes),
        }
        package = self.package or type(self).__module__.partition(".")[0]
        for notice in declarations.notices(self.name, self.version, missing, self.gaps, offered):
            yield f"package {package}: {notice}"


def differentiates_all(cotangent: Any) -> bool:
    """Whether every result has a cotangent.

    Args:
        cotangent: as :meth:`Framework.backward` gets it.
    """
    return not (isinstance(cotangent, tuple) and any(x is None for x in cotangent))


def differentiated(result: Any, cotangent: Any) -> tuple[Any, Any]:
    """The results that a gradient begins with, and their cotangents.

    Args:
        result: of the operation: an array, or several.
        cotangent: as :meth:`Framework.backward` gets it.
    """
    if differentiates_all(cotangent):
        return result, cotangent
    pairs = [(y, g) for y, g in zip(result, cotangent, strict=True) if g is not None]
    results, cotangents = map(list, zip(*pairs, strict=True))
    return results, cotangents
