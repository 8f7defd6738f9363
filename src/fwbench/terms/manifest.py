"""Manifest of a framework: all that the parent process knows of it."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import asdict, dataclass, field
from functools import cached_property
from typing import Any, Self

from fwbench.errors import FrameworkMissing, FrameworkUnavailable
from fwbench.machine import cpu_features
from fwbench.terms.names import framework_of
from fwbench.terms.toggles import CACHE, PIN, Toggle


@dataclass(frozen=True)
class Device:
    """A device as a framework sees it.

    Attributes:
        name: ``cpu``, or ``gpu:N``.
        model: what the maker calls it; of a GPU empty where the framework does not name it, until
            NVML has been asked (:func:`fwbench.measure.nvml.named`).
        uuid: the GPU's own; empty where the framework does not name it, and of the CPU.
    """

    name: str
    model: str
    uuid: str = ""


@dataclass(frozen=True)
class Gap:
    """A part of the grid that a framework cannot fill. What is left open holds for all of it.

    Attributes:
        reason: a clause that follows on a case id: ``mxnet has no float16 product on the CPU``.
        workload: the name of an operation, of a training loop (its step and its loader included),
            or of such a step or loader alone.
        execution: ``eager``, ``compile``, ...
        direction: ``forward``, ``backward`` or ``train``.
        dtype: ``float16``, ...
        device: ``cpu`` or ``gpu``, which stands for every GPU.
        terms_above: holds only at sizes where an element of an operation's result adds up more
            terms than these.
        toggle: a toggle of fwbench's that is asked for, with the value: ``tf32=on``; of a process
            also the value that it has where none is asked for (:attr:`Manifest.defaults`).
        lacks: features of processors as Linux names them, ``avx512f or avx_ne_convert``: it holds
            where the CPU has none of them.
    """

    reason: str
    workload: str | None = None
    execution: str | None = None
    direction: str | None = None
    dtype: str | None = None
    device: str | None = None
    terms_above: int | None = None
    toggle: str | None = None
    lacks: str | None = None

    @property
    def whole(self) -> bool:
        """True if a workload is missing altogether."""
        parts = (self.execution, self.direction, self.dtype, self.device, self.toggle, self.lacks)
        return not any(parts) and self.terms_above is None

    def holds_with(self, features: Set[str]) -> bool:
        """True if it holds on CPUs with these features; they are empty where none is known."""
        if self.lacks is None:
            return True
        return bool(features) and features.isdisjoint(self.lacks.split(" or "))

    def covers(self, *cell: Any) -> bool:
        """True if the gap holds for one cell of the grid.

        Args:
            cell: workload, execution, direction, dtype and device (``gpu:0``); the terms that an
                element of the result adds up, 0 for what holds at every size; toggles that are
                asked for, as in :attr:`toggle`.
        """
        *names, device, terms, toggles = cell
        if self.terms_above is not None and terms <= self.terms_above:
            return False
        if self.toggle is not None and self.toggle not in toggles:
            return False
        parts = (self.workload, self.execution, self.direction, self.dtype, self.device)
        values = (*names, device.partition(":")[0])
        return all(part in (None, value) for part, value in zip(parts, values, strict=True))


@dataclass(frozen=True, kw_only=True)
class Capabilities:
    """Capabilities of a framework: one row, which its adapter declares and everything else reads.

    Attributes:
        executions: what ``--fw-execution`` takes for operations, in the order to show them.
        on_request: executions that run only when they are asked for by name, sorted.
        enqueues: whether the thread that calls it on the CPU goes on to enqueue operations while
            its own threads compute, and so is one more.
        dtypes: of operations: what ``--fw-dtype`` takes.
        differentiable: whether operations have gradients (``backward``).
        training_executions: in which it trains models; each is also in
            :attr:`fwbench.Learner.executions`.
        whole_loops: training executions without single steps, such as Keras's ``fit``.
        training_dtypes: in which it trains, and runs networks.
        network_executions: in which it answers with networks and differentiates them, without an
            update (:meth:`fwbench.Predictor.inference`).
        int8_executions: in which trained networks answer in int8, and in float32.
        users_models: the dtypes in which it runs models that users bring (:class:`fwbench.Model`).
        checkpoints: whether its learners save and restore (:meth:`fwbench.Learner.save`).
        recomputing_executions: of training and networks, those that heed
            :attr:`fwbench.frameworks.learner.Job.recompute`; a gap in all others.
        process_toggles: fwbench's toggles of a whole process that it reads when it is imported.
        own_toggles: toggles that it adds; it reads each from the environment when it is imported
            (:func:`fwbench.terms.toggles.variable`).
        strategies: how replicas agree, by values of the toggle ``strategy``: the reason why it
            offers no such way, or an empty text. What fwbench has not built is left out.
        gang_executions: in which replicas can work.
        collectives: the exchanges between replicas that it has.
        coordinated: the strategies whose workers take no steps of their own: they do what the
            coordinator gives them.
        coordinator: its name for the process that gangs have in addition to workers and parameter
            servers; empty if there is none.
        gpu_memory: whether it knows the peak of its memory on a GPU.
        gpu_clock: the GPU's clock that times its calls: ``events``; ``cupti``, where that is
            installed; empty where it has no GPU.
        imports: the module that users import; empty where its import cannot be measured.
        imports_after: what has to run before that, a part of the import.
        cache_variables: the environment variables that redirect its compiled code on disk, each
            with its value: ``{folder}`` stands for the folder, ``{given}`` for what the variable
            has already.
        cached_executions: those whose compiled code is kept there.
        uncached: why there are none, a sentence.
    """

    executions: tuple[str, ...] = ("eager",)
    on_request: tuple[str, ...] = ()
    enqueues: bool = False
    dtypes: tuple[str, ...] = ("float32", "float64")
    differentiable: bool = True
    training_executions: tuple[str, ...] = ()
    whole_loops: tuple[str, ...] = ()
    training_dtypes: tuple[str, ...] = ("float32",)
    network_executions: tuple[str, ...] = ()
    int8_executions: tuple[str, ...] = ()
    users_models: tuple[str, ...] = ()
    checkpoints: bool = False
    recomputing_executions: tuple[str, ...] = ()
    process_toggles: tuple[str, ...] = ()
    own_toggles: tuple[Toggle, ...] = ()
    strategies: Mapping[str, str] = field(default_factory=dict)
    gang_executions: tuple[str, ...] = ()
    collectives: tuple[str, ...] = ("all_reduce",)
    coordinated: tuple[str, ...] = ()
    coordinator: str = ""
    gpu_memory: bool = False
    gpu_clock: str = "cupti"
    imports: str = ""
    imports_after: str = ""
    cache_variables: Mapping[str, str] = field(default_factory=dict)
    cached_executions: tuple[str, ...] = ()
    uncached: str = "its adapter names no folder of compiled code (`cache_variables`)"

    @property
    def every_execution(self) -> tuple[str, ...]:
        """Executions of operations, training and networks; one may occur more than once."""
        trained = (*self.training_executions, *self.network_executions)
        return (*self.executions, *trained, *self.int8_executions)

    def reads(self, toggle: str) -> bool:
        """True if it has a toggle of a whole process: one of fwbench's, or of its own."""
        own_names = (own_toggle.name for own_toggle in self.own_toggles)
        return toggle in (PIN, CACHE, *self.process_toggles, *own_names)


@dataclass(frozen=True, kw_only=True)
class Manifest(Capabilities):
    """A framework that can be used here: its capabilities, and what was found of it."""

    #: As ``--fw`` takes it; ``torch@nightly`` in an environment of its own.
    name: str
    version: str
    #: Every device, the CPU first where it is one of them.
    devices: tuple[Device, ...]
    operations: tuple[str, ...]
    #: Operations of its table that this version of it does not offer, with the reason.
    missing: dict[str, str]
    gaps: tuple[Gap, ...]
    #: (execution, toggle, value, reason) of what it cannot do.
    toggle_gaps: tuple[tuple[str, str, str, str], ...]
    #: (strategy, toggle, value, reason) of what its replicas cannot do.
    gang_gaps: tuple[tuple[str, str, str, str], ...] = ()
    #: The threads that it computes with; None where it is not known.
    threads: int | None
    build: dict[str, str]
    #: Toggles of a process with the values that they have where none is asked for.
    defaults: dict[str, str] = field(default_factory=dict)
    #: Why its support for GPUs does not start, although it is installed; else empty.
    gpu_failure: str = ""
    #: The operations for which fwbench calls several of its functions.
    composed: tuple[str, ...] = ()
    #: The packages of its class, folders or single files, whose change may change what it has.
    sources: tuple[str, ...]
    #: Sentences about its declaration that its author should read.
    notices: tuple[str, ...] = ()

    def to_json(self) -> dict[str, Any]:
        """The manifest in JSON's own types; toggles of its own only where there are any."""
        values = asdict(self)
        if not self.own_toggles:
            del values["own_toggles"]
        return values

    @classmethod
    def from_json(cls, values: dict[str, Any]) -> Self:
        """The inverse of :meth:`to_json`, also after a trip through JSON text."""
        tuples: dict[str, Any] = {
            k: tuple(v) if isinstance(v, list | tuple) else v for k, v in values.items()
        }
        tuples["devices"] = tuple(Device(**device) for device in values["devices"])
        tuples["gaps"] = tuple(Gap(**gap) for gap in values["gaps"])
        tuples["toggle_gaps"] = tuple(tuple(gap) for gap in values["toggle_gaps"])
        tuples["gang_gaps"] = tuple(tuple(gap) for gap in values.get("gang_gaps", ()))
        own_toggles = values.get("own_toggles", ())
        tuples["own_toggles"] = tuple(Toggle.from_json(toggle) for toggle in own_toggles)
        return cls(**tuples)

    @property
    def framework(self) -> str:
        """Its name, wherever it is installed."""
        return framework_of(self.name)

    def device(self, name: str) -> Device:
        """The device of that name.

        Raises:
            KeyError: there is none.
        """
        return {device.name: device for device in self.devices}[name]

    @property
    def different_devices(self) -> Sequence[str]:
        """The CPU and the first GPU of each model, which stands for others like it."""
        first: dict[str, str] = {}
        for device in self.devices:
            first.setdefault(device.model, device.name)
        return [*first.values()]

    @property
    def sees_gpu(self) -> bool:
        """True if one of its devices is not the CPU."""
        return any(device.name != "cpu" for device in self.devices)

    def has(self, device: str) -> bool:
        """True if the framework sees a device of that name."""
        return any(there.name == device for there in self.devices)

    def gap(self, workload: str, *cell: Any) -> str | None:
        """Why the framework declares that it cannot fill a cell of the grid; None if it can.

        The arguments are those of :meth:`Gap.covers`.
        """
        gaps = self._gaps_by_workload
        if not gaps:
            return None
        candidates = (*gaps.get(workload, ()), *gaps.get(None, ()))
        return next((gap.reason for gap in candidates if gap.covers(workload, *cell)), None)

    @cached_property
    def _gaps_by_workload(self) -> Mapping[str | None, Sequence[Gap]]:
        """Found once: a grid of thousands of cells asks for each, and most workloads have none."""
        gaps = defaultdict(list)
        features = cpu_features()
        for gap in self.gaps:
            if gap.holds_with(features):
                gaps[gap.workload].append(gap)
        return dict(gaps)

    def value_gap(self, toggle: str, value: str) -> str | None:
        """Why the framework's own toggle cannot have a value; None if it can, or is not its own."""
        for own in self.own_toggles:
            if own.name == toggle and own.values is not None and value not in own.values:
                return f"the toggle {toggle} of {self.name} has no value {value}"
        return None

    def toggle_gap(self, execution: str, toggle: str, value: str) -> str | None:
        """Why an execution cannot do what a toggle asks for; None if it can."""
        return _reasons(self.toggle_gaps).get((execution, toggle, value))

    def gang_gap(self, strategy: str, toggle: str, value: str) -> str | None:
        """Why replicas cannot do what a toggle asks for, though one process may; else None."""
        return _reasons(self.gang_gaps).get((strategy, toggle, value))


def _reasons(gaps: Iterable[tuple[str, str, str, str]]) -> dict[tuple[str, str, str], str]:
    return {(how, toggle, value): reason for how, toggle, value, reason in gaps}


@dataclass(frozen=True)
class Absent:
    """A framework that cannot be used here."""

    #: As ``--fw`` takes it.
    name: str
    reason: str
    remedy: str
    #: Whether a package is not installed, which stays so until one is.
    missing: bool = False

    @classmethod
    def because(cls, name: str, error: FrameworkUnavailable) -> Self:
        """From the error that loading it raised."""
        return cls(name, error.reason, error.remedy, isinstance(error, FrameworkMissing))

    def __str__(self) -> str:
        return f"{self.reason}; {self.remedy}" if self.remedy else self.reason
