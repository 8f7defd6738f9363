"""What a framework says of itself: all that the parent process knows of it."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from fwbench.errors import FrameworkMissing, FrameworkUnavailable
from fwbench.names import framework_of


@dataclass(frozen=True)
class Device:
    """A device as a framework sees it.

    Attributes:
        name: ``cpu``, or ``gpu:N``.
        model: what the maker calls it.
    """

    name: str
    model: str


@dataclass(frozen=True)
class Manifest:
    """A framework that can be used here.

    Attributes:
        name: as ``--fw`` takes it; ``torch@nightly`` in an environment of its own.
        version: of the framework.
        devices: every device, the CPU first.
        executions: every execution, in the order to show them.
        on_request: executions that run only when they are asked for by name.
        dtypes: every dtype.
        operations: the names of the operations that its file implements.
        differentiable: whether it offers gradients.
        gaps: (operation, dtype, ``cpu`` or ``gpu``, reason) of what it does not offer.
        training_executions: how it can train models.
        whole_loops: those of them that have no single steps.
        training_dtypes: in which it can train.
        process_toggles: the toggles of a whole process that it knows.
        toggle_gaps: (execution, toggle, value, reason) of what it cannot do.
        threads: the threads that it computes with; None where it cannot be told.
        build: how it was built.
        source: the file of its class.
    """

    name: str
    version: str
    devices: tuple[Device, ...]
    executions: tuple[str, ...]
    on_request: tuple[str, ...]
    dtypes: tuple[str, ...]
    operations: tuple[str, ...]
    differentiable: bool
    gaps: tuple[tuple[str, str, str, str], ...]
    training_executions: tuple[str, ...]
    whole_loops: tuple[str, ...]
    training_dtypes: tuple[str, ...]
    process_toggles: tuple[str, ...]
    toggle_gaps: tuple[tuple[str, str, str, str], ...]
    threads: int | None
    build: dict[str, str]
    source: str

    def to_json(self) -> dict[str, Any]:
        """As JSON's own types."""
        return asdict(self)

    @classmethod
    def from_json(cls, values: dict[str, Any]) -> Manifest:
        """The inverse of :meth:`to_json`, also after a trip through JSON text."""
        tuples: dict[str, Any] = {
            k: tuple(v) if isinstance(v, list | tuple) else v for k, v in values.items()
        }
        tuples["devices"] = tuple(Device(**device) for device in values["devices"])
        for gaps in ("gaps", "toggle_gaps"):
            tuples[gaps] = tuple(tuple(gap) for gap in values[gaps])
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

    def has(self, device: str) -> bool:
        """Whether the framework sees a device of that name."""
        return any(there.name == device for there in self.devices)

    def gap(self, operation: str, dtype: str, device: str) -> str | None:
        """Why the framework does not offer the operation in the dtype there; None if it does."""
        place = (operation, dtype, device.partition(":")[0])
        return {(o, d, kind): reason for o, d, kind, reason in self.gaps}.get(place)

    def toggle_gap(self, execution: str, toggle: str, value: str) -> str | None:
        """Why an execution cannot do what a toggle asks for; None if it can."""
        what = (execution, toggle, value)
        return {(e, t, v): reason for e, t, v, reason in self.toggle_gaps}.get(what)


@dataclass(frozen=True)
class Absent:
    """A framework that cannot be used here.

    Attributes:
        name: as ``--fw`` takes it.
        reason: what was found.
        remedy: what to do about it.
        missing: whether a package is not installed, which stays so until one is.
    """

    name: str
    reason: str
    remedy: str
    missing: bool = False

    @classmethod
    def because(cls, name: str, error: FrameworkUnavailable) -> Absent:
        """From the error that loading it raised."""
        return cls(name, error.reason, error.remedy, isinstance(error, FrameworkMissing))

    def __str__(self) -> str:
        return f"{self.reason}; {self.remedy}" if self.remedy else self.reason
