"""Imports of frameworks: the time until a process can begin to use one."""

from dataclasses import dataclass
from typing import ClassVar

from fwbench.terms.manifest import Manifest
from fwbench.terms.presets import Sizes
from fwbench.workloads.workload import Workload


@dataclass(frozen=True, eq=False)
class Import(Workload):
    """The import of a framework, in a process that has done nothing else."""

    name: str

    family = "startup"
    representative = False
    on_request: ClassVar[bool] = True
    directions: ClassVar = ("forward",)
    by_preset = Sizes(quick=(1,))

    def executions(self, manifest: Manifest) -> tuple[str, ...]:
        """One: nothing is compiled."""
        return ("eager",)


STARTUP = (Import("import"),)
