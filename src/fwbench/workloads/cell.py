"""One cell of the grid: workload x framework x device x execution x dtype x size."""

from dataclasses import dataclass

from fwbench.terms import toggles
from fwbench.terms.presets import Schedule, Size
from fwbench.terms.toggles import Combination
from fwbench.workloads.data import Found
from fwbench.workloads.workload import Workload


@dataclass(frozen=True, slots=True)
class Cell:
    """One cell of the grid; its id names its pytest node."""

    workload: Workload
    framework: str
    device: str
    execution: str
    #: ``forward``, ``backward`` or ``train``.
    direction: str
    dtype: str
    #: How large; of training loops the batch size.
    size: Size
    #: Why it cannot be measured; None if it can.
    gap: str | None = None
    #: Those that were asked for and make a difference here, with their values.
    toggles: Combination = ()
    schedule: Schedule | None = None
    data: Found | None = None
    #: Why the session must not run if it has this cell; None if it may.
    problem: str | None = None
    #: Whether the workload lacks the requested size or preset, which then is its size.
    unsized: bool = False
    #: Whether it will be timed, and not verified alone.
    timed: bool = True
    #: The smallest change that a gate is to care for, as a share; None for its own.
    threshold: float | None = None
    #: The width of the median's interval at which rounds end, as a share; 0 for never.
    precision: float = 0.0

    @property
    def id(self) -> str:
        """The case id: ``gemm-mxnet-cpu-eager-forward-float32-1024``."""
        parts = [
            *(self.workload.name, self.framework, self.device, self.execution),
            *(self.direction, self.dtype, str(self.size)),
            *(f"{name}:{value}" for name, value in self.toggles),
            *self._synthetic,
        ]
        return "-".join(parts)

    @property
    def group(self) -> str:
        """Key of cells that are compared: frameworks, executions and toggles of the same work."""
        parts = [self.workload.name, self.device, self.direction, self.dtype, str(self.size)]
        return " ".join([*parts, *self._synthetic, *toggles.asynchronous(self.toggles)])

    @property
    def batch(self) -> int:
        """Number of examples in a step of training."""
        return self.size if isinstance(self.size, int) else self.size["batch"]

    @property
    def replicas(self) -> int:
        """Number of processes that share the work."""
        return int(self.toggle("replicas"))

    @property
    def gang(self) -> Combination:
        """The toggles that say which processes do it together; empty for a single one."""
        if self.replicas == 1:
            return ()
        return tuple(setting for setting in self.toggles if toggles.is_of_gang(setting[0]))

    @property
    def _synthetic(self) -> list[str]:
        """A conspicuous mark in the case id of generated data."""
        return ["synthetic"] if self.data is not None and self.data.source == "synthetic" else []

    @property
    def params(self) -> dict[str, str | int]:
        """The parts of the id, for ``--benchmark-group-by=param:framework`` and the like."""
        return {
            "workload": self.workload.name,
            "framework": self.framework,
            "device": self.device,
            "execution": self.execution,
            "direction": self.direction,
            "dtype": self.dtype,
            "size": self.size if isinstance(self.size, int) else str(self.size),
            **dict(self.toggles),
        }

    def toggle(self, name: str) -> str:
        """The value of one of fwbench's toggles: the one asked for, or its default."""
        return dict(self.toggles).get(name, toggles.TOGGLES[name].default)

    @property
    def values(self) -> dict[str, str]:
        """Values by toggle: :attr:`toggles`, and the workload's others at their defaults."""
        defaults = {name: toggles.TOGGLES[name].default for name in self.workload.toggles}
        return defaults | dict(self.toggles)

    @property
    def variables(self) -> dict[str, str]:
        """The environment variables that must be set before the framework is imported."""
        return {
            toggles.variable(name): value
            for name, value in self.toggles
            if toggles.is_of_process(name)
        }
