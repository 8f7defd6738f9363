"""HOW a framework computes: the shape that every framework's adapter has.

A framework is a class in a module of its own, named by an entry point of the group
``fwbench.frameworks``. The entry point is loaded in the framework's own worker process alone, so
the module imports its framework at the top; its environment variables are set by then.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from functools import cached_property, partial
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fwbench.frameworks import cache, gpus, table
from fwbench.frameworks.gpus import Copies, DeviceClock
from fwbench.frameworks.learner import Job, Learner, Predictor
from fwbench.frameworks.member import Replicable
from fwbench.frameworks.models import ModelLearner
from fwbench.frameworks.profiler import Profiler
from fwbench.frameworks.table import Table
from fwbench.terms.manifest import Capabilities, Device, Gap, Manifest
from fwbench.workloads import COPIES, PHOTOS
from fwbench.workloads.operation import Implementation
from fwbench.workloads.photos import PhotoJob, PhotoLoader

#: A framework's own array; only its file knows more.
Array = Any

#: One call of the bound work, and nothing else: what the clock runs around. Where arrays cannot be
#: written it is a :class:`functools.partial` whose arguments are the inputs.
BoundCall = Callable[[], Any]


class Saved(NamedTuple):
    """Tensors that a forward pass keeps for the backward pass."""

    size_bytes: int
    tensors: int


class Compilation(NamedTuple):
    """Number of compilations, and seconds by phase: each framework has phases of its own."""

    number: int
    phases_s: dict[str, float]


class Framework(Replicable, ABC):
    """One framework's way to compute, wait and differentiate.

    Modules that few sessions need, such as those of learners, members and profilers, are imported
    in the methods that return these: operations need not wait for them.

    Attributes:
        name: as ``--fw`` takes it; equals the name of the entry point.
        namespace: the argument of implementations: ``torch``, ``tf``, ``np``, MXNet's ``nd``.
        operations: by the name of an operation of fwbench's, the dotted path of the function
            below the namespace, or an implementation (:mod:`fwbench.frameworks.table`). Operations
            of other packages are implemented by :meth:`fwbench.Operation.implement`.
        conjugates: whether gradients by complex numbers are conjugate, so that they point where the
            result grows, as PyTorch's and TensorFlow's; JAX's are not, and neither is what they
            begin with.
        variables: the environment variables that change its speed, by their whole names; they are
            recorded, unless a name says that the value is a secret.
        reads_stack: whether its operations look at the Python stack above them: they are called at
            the foot of one (:mod:`fwbench.measure.empty_stack`).
        forks: how many threads it may have started in a process that has done no more than import
            it, for the process to be forked: they end before a fork, start anew behind it, and the
            fork computes as a new process does. None where it may not be forked.
        toggle_gaps: what it cannot do, by (execution, toggle, value), with the reason.
        package: the installed package that names it, for messages; the registry sets it.
    """

    name: ClassVar[str]
    operations: ClassVar[Table]
    capabilities: ClassVar[Capabilities] = Capabilities()
    conjugates: ClassVar[bool] = True
    gaps: ClassVar[Sequence[Gap]] = ()
    variables: ClassVar[tuple[str, ...]] = ()
    reads_stack: ClassVar[bool] = False
    forks: int | None = None
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
        """Every device there is, the CPU first where it is one of them."""
        return (Device("cpu", cpu_model),)

    def scope(self, device: str, dtype: str) -> AbstractContextManager[Any]:
        """A context in which work is placed on ``device``; entered around a whole case."""
        return nullcontext()

    @abstractmethod
    def creator(self, device: str, dtype: str) -> Callable[[Any], Array]:
        """The framework's own call that copies a NumPy array or a list into a new array.

        Args:
            dtype: of the new array: ``float32``, ``bfloat16``, ``int64``, ...
        """

    def place(self, values: NDArray[Any], device: str, dtype: str) -> Array:
        """A new array for work to be bound to, by :meth:`creator`.

        Worth a method where operations look at the order of axes in memory, which the values have
        as the framework's layouts lay them (:class:`fwbench.Layout`).
        """
        return self.creator(device, dtype)(values)

    @abstractmethod
    def to_numpy(self, array: Array) -> NDArray[Any]:
        """The array's values on the host; dtypes that NumPy does not have become float32."""

    def read_element(self, array: Array) -> NDArray[Any]:
        """The first element of the array on the host, or all; waits for the array's values.

        Worth a method where :meth:`to_numpy` copies: its time is compared with that of a call, and
        its value with that of :meth:`to_numpy`.
        """
        return self.to_numpy(array)

    def device_of(self, array: Array) -> str | None:
        """The device that has computed an array, or where it was placed: ``cpu``, ``gpu:0``.

        Every input and result is held against the device of its case. None where arrays can be in
        one place alone, and of what is no array of the framework's.
        """
        return None

    def lacks(self, error: Exception) -> str | None:
        """Lack of a device for a case, of an error that says so; None of any other error.

        It is known only when the case is bound or called, so its gap cannot be declared.
        """
        return None

    def copy_in_layout(self, array: Array) -> Array | None:
        """A new array with the values and the layout of this one; None where reading undoes none.

        Worth a method where results are laid out in blocks: to undo that is no work of the call.
        """
        return None

    def write(self, array: Array, source: Array) -> bool:
        """Copy the values of one array into another of the same shape and dtype, in place.

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
        """
        return array

    def make_like(self, array: Array, bound: Array) -> None:
        """Prepare an array for the place of a bound one, from which gradients may be taken."""

    def address(self, array: Array) -> int | None:
        """The address of the array's first element in memory; None where it is not known."""
        return None

    @abstractmethod
    def waiter(self, device: str) -> Callable[[], Any] | None:
        """Function that waits for all work on ``device``; None if calls return when it is done."""

    def device_clock(self, device: str) -> DeviceClock | None:
        """The device's own clock, for times without launching and waiting; None without access.

        CUPTI, where it is declared and ``cupti-python`` is installed.
        """
        declared = self.capabilities.gpu_clock == gpus.CUPTI
        return gpus.cupti_clock(self.waiter(device)) if declared else None

    def kernel_clock(self, device: str) -> DeviceClock | None:
        """CUPTI, for figures that compare with those of others; None where nothing is to be added.

        Worth a method where :meth:`device_clock` is another clock.
        """
        return None

    def copier(self, device: str, *, pinned: bool) -> Copies:
        """The framework's own calls that copy arrays between the host and a GPU.

        Args:
            pinned: whether the memory of the host is page-locked; a framework that does not offer
                that says so in its ``toggle_gaps``.
        """
        raise NotImplementedError("copies between host and GPU are not written")

    def release(self, device: str) -> None:
        """Give memory of a GPU back that is kept for later, after a case: others need it."""

    def flusher(self, device: str) -> Callable[[], Any] | None:
        """Function that empties a GPU's cache (L2), for ``--fw-toggle l2=cold``; None for none.

        It enqueues work that writes more than the cache holds, and is called outside all times.
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
            execution: one of :attr:`Capabilities.executions`.

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
            variables: the positions of the inputs to differentiate by.
            cotangent: an array shaped like the result, with which its gradient begins; a tuple of
                them where there are several results, with None for those that have no gradient,
                such as indices (:func:`differentiated`).
            execution: one of :attr:`Capabilities.executions`.

        Returns:
            ``run()``, which returns the result and the gradients: ``(result, [gradient, ...])``
            with one for each of ``variables``. A compiler would leave out the forward pass if
            its result were not asked for.
        """
        raise NotImplementedError(f"{self.name} offers no gradient")

    def learner(self, job: Job) -> Learner:
        """A model, for one of its training or network executions."""
        raise NotImplementedError(f"{self.name} trains no models")

    def photo_loader(self, job: PhotoJob) -> PhotoLoader:
        """A loader of photos from files."""
        raise NotImplementedError(f"{self.name} loads no photos")

    def model_learner(self, job: Job) -> ModelLearner:
        """A model that a user brings, of a job whose objective is a :class:`fwbench.Model`'s."""
        raise NotImplementedError(f"{self.name} takes no models of users")

    def predictor(self, job: Job) -> Predictor:
        """A network in use; by default the learner's."""
        return self.learner(job)

    def watch_memory(self, device: str) -> Callable[[], int | None]:
        """Begin to watch the framework's memory on ``device`` (:attr:`Capabilities.gpu_memory`).

        Returns:
            ``peak_bytes()``: the most in use at once since then; None where it is not known.
        """
        return lambda: None

    def saved_for_backward(self, run: BoundCall) -> Saved | None:
        """Tensors that a call keeps for its gradient, parameters apart; None where unknown.

        Args:
            run: bound work, or a step of a learner's; it is called once.
        """
        return None

    def watch_compilation(self) -> Callable[[], Compilation | None]:
        """Begin to note what is compiled, until that is asked for.

        Functions of the framework may be replaced meanwhile, so no round comes in between.

        Returns:
            ``compiled()``: all that was since then; None where the framework does not tell.
        """
        return lambda: None

    def profiler(self, device: str) -> Profiler | None:
        """The framework's own profiler; None where it has none.

        Raises:
            ImportError: what it needs is not installed.
        """
        return None

    def toggles(self) -> dict[str, Any]:
        """Switches other than environment variables that change speed, with their values."""
        return {}

    def defaults(self) -> dict[str, str]:
        """Values of process toggles where none is asked for; gaps may be about them."""
        return {}

    def build(self) -> dict[str, str]:
        """Build of this framework: libraries, compilers, CUDA."""
        return {}

    def gpu_failure(self) -> str:
        """Why its support for GPUs does not start, although it is installed; else empty."""
        return ""

    @cached_property
    def libraries(self) -> dict[str, str]:
        """Libraries that compute for it in this process, and what they chose for this CPU.

        By default the BLAS and OpenMP libraries that are in the package of its own name. Read
        after a case was timed.
        """
        from fwbench.frameworks import libraries

        return libraries.loaded(self.name)

    def onednn_log(self) -> AbstractContextManager[object]:
        """The block within which its oneDNN logs what it does, if that can be had.

        Entered in processes that profile, and time nothing; by default nothing is switched on.
        """
        return nullcontext()

    def implementation(self, operation: str) -> Implementation:
        """The implementation of an operation of fwbench's.

        Raises:
            KeyError: there is none.
        """
        return table.implementation(self.operations, operation)

    def manifest(self, cpu_model: str) -> Manifest:
        """Manifest of this framework and its devices here, for the process that runs pytest."""
        missing = table.missing_paths(self.operations, self.namespace)
        operations = tuple(name for name in self.written() if name not in missing)
        return Manifest(
            **self.declared(),
            version=self.version,
            devices=self.devices(cpu_model),
            operations=operations,
            missing={
                name: f"{self.name} {self.version} has no {path}" for name, path in missing.items()
            },
            threads=self.threads(),
            build=self.build(),
            defaults=self.defaults(),
            gpu_failure=self.gpu_failure(),
            sources=cache.packages_of(type(self)),
            notices=tuple(self._notices(missing, operations)),
        )

    @classmethod
    def declared(cls) -> dict[str, Any]:
        """Manifest as far as it is the same for every version and machine."""
        return {
            **vars(cls.capabilities),
            "name": cls.name,
            "gaps": tuple(cls.gaps),
            "composed": tuple(n for n, row in cls.operations.items() if table.is_composed(row)),
            "toggle_gaps": tuple(cls.every_toggle_gap()),
            "gang_gaps": tuple((*what, reason) for what, reason in cls.gang_gaps.items()),
        }

    @classmethod
    def written(cls) -> tuple[str, ...]:
        """The names of the operations of fwbench's that it has code for, creations apart."""
        copies = () if cls.copier is Framework.copier else COPIES
        photos = () if cls.photo_loader is Framework.photo_loader else PHOTOS
        return (*cls.operations, *(work.name for work in (*copies, *photos)))

    @classmethod
    def every_toggle_gap(cls) -> Iterator[tuple[str, str, str, str]]:
        """:attr:`toggle_gaps`, and those that follow from what else it has or lacks."""
        can = cls.capabilities
        for execution in dict.fromkeys((*can.training_executions, *can.network_executions)):
            what = (execution, "recompute", "on")
            if execution not in can.recomputing_executions and what not in cls.toggle_gaps:
                does_not = f"{cls.name} does not recompute results of networks in {execution}"
                yield *what, f"{does_not} (--fw-toggle recompute=off)"
        yield from ((*what, reason) for what, reason in cls.toggle_gaps.items())
        if cls.flusher is Framework.flusher:
            reason = f"{cls.name}'s adapter cannot empty the cache of a GPU"
            yield from ((execution, "l2", "cold", reason) for execution in can.executions)

    def _notices(self, missing: Mapping[str, str], operations: Sequence[str]) -> Iterator[str]:
        can = self.capabilities
        offered = {
            "operations": operations,
            "executions": can.every_execution,
            "dtypes": (*can.dtypes, *can.training_dtypes),
        }
        package = self.package or type(self).__module__.partition(".")[0]
        for notice in table.notices(self.name, self.version, missing, self.gaps, offered):
            yield f"package {package}: {notice}"


class HostFramework(Framework, ABC):
    """A framework on the CPU with NumPy's arrays, whose calls return when they are done."""

    def creator(self, device: str, dtype: str) -> Callable[[Any], Array]:
        """``np.array`` with the dtype; it copies."""
        return partial(np.array, dtype=dtype)

    def to_numpy(self, array: Array) -> NDArray[Any]:
        """The array itself."""
        return np.asarray(array)

    def copy_in_layout(self, array: Array) -> Array | None:
        """A copy of a data frame, whose columns are put into one array whenever it is read."""
        is_of_pandas = type(array).__module__.partition(".")[0] == "pandas"
        return array.copy() if is_of_pandas else None

    def address(self, array: Array) -> int | None:
        """The address of the array's data."""
        return int(np.asarray(array).ctypes.data)

    def waiter(self, device: str) -> Callable[[], Any] | None:
        """Nothing to wait for."""
        return None


def differentiates_all(cotangent: Any) -> bool:
    """True if every result has a cotangent."""
    return not (isinstance(cotangent, tuple) and any(x is None for x in cotangent))


def differentiated(result: Any, cotangent: Any) -> tuple[Any, Any]:
    """The results that a gradient begins with, and their cotangents."""
    if differentiates_all(cotangent):
        return result, cotangent
    pairs = [(y, g) for y, g in zip(result, cotangent, strict=True) if g is not None]
    results, cotangents = map(list, zip(*pairs, strict=True))
    return results, cotangents


def responds(framework: Framework, device: str) -> bool:
    """Tell whether a framework can still place a number on a device, and read it back.

    An illegal access spoils a device for the process that made it, for good: CUDA returns its error
    from every later call ("sticky" errors; CUDA Runtime API, cudaErrorIllegalAddress: "the process
    must be terminated and relaunched").
    """
    try:
        with framework.scope(device, "float32"):
            wait = framework.waiter(device)
            placed = framework.creator(device, "float32")([0.0])
            if wait is not None:
                wait()
            framework.to_numpy(placed)
    except Exception:  # noqa: BLE001 (a framework may raise anything)
        return False
    return True


def leaves_well(framework: Framework, device: str, *, failed: bool) -> bool:
    """Give back what a case has left on a device, and tell whether another case can run there."""
    if failed and not responds(framework, device):
        return False
    try:
        framework.release(device)
    except Exception:  # noqa: BLE001 (the error of the case that was just over)
        return False
    return True
