"""Replicas in a session of pytest: engines that were checked, its gang, and kinds of cases.

The plugin imports nothing else of this folder, and this only for a session that has replicas.
"""

from collections.abc import Callable, Iterable, Mapping
from functools import cached_property
from importlib import metadata
from pathlib import Path

from fwbench.errors import UsageError
from fwbench.gangs.case import AsynchronousStepCase, GangCase, SharedStepCase
from fwbench.gangs.exchanges import CollectiveCase, NullStepCase, SparseReadCase
from fwbench.gangs.gang import Composition, Gang, composition_of
from fwbench.gangs.launch import Engine, Local, refuse_network
from fwbench.gangs.loops import SharedLoopCase
from fwbench.gangs.network import refuse_impossible
from fwbench.gangs.rounds import GangClock
from fwbench.options import values
from fwbench.options.values import ENGINES, LOCAL
from fwbench.terms.manifest import Manifest
from fwbench.terms.toggles import asynchronous
from fwbench.workloads.collectives import Collective, NullStep, SparseRead
from fwbench.workloads.grid import Cell
from fwbench.workloads.models.steps import ModelStep
from fwbench.workloads.training import Step, Training
from fwbench.workloads.workload import Workload

__all__ = ["GangClock", "GangPool", "case_kinds", "check", "check_places", "engine"]

#: What measures each kind of workload.
_CASES: dict[type[Workload], type[GangCase]] = {
    Collective: CollectiveCase,
    Step: SharedStepCase,
    ModelStep: SharedStepCase,
    Training: SharedLoopCase,
    NullStep: NullStepCase,
    SparseRead: SparseReadCase,
}

#: The same for workers that do not wait for each other; their exchanges and loops are gaps.
_ASYNCHRONOUS_CASES = _CASES | {Step: AsynchronousStepCase, ModelStep: AsynchronousStepCase}


def case_kinds(cell: Cell) -> Mapping[type[Workload], type[GangCase]]:
    """The class that measures each kind of workload by the gang of a cell."""
    return _ASYNCHRONOUS_CASES if asynchronous(cell.toggles) else _CASES


class GangPool:
    """Starts gangs, one at a time, and keeps each for as long as cases need the same."""

    def __init__(
        self, engine: str, create: Callable[..., Gang] = Gang, places: Path | None = None
    ) -> None:
        self._engine = engine
        self._places = places
        self._create = create
        self._gang: Gang | None = None

    @cached_property
    def are_here(self) -> bool:
        """True if all their processes are on this machine."""
        if self._places is None:
            return True
        from fwbench.gangs.engines.places import Machines  # few have such a file

        return Machines.read(self._places).are_here

    def __call__(self, composition: Composition) -> Gang:
        """A running gang: that of the case before, if it has the same composition."""
        if self._gang is not None and self._gang.is_alive:
            if self._gang.composition == composition:
                return self._gang
            self.close()
        self._gang = self._create(composition, engine(self._engine, self._places))
        self._gang.start()
        return self._gang

    def close(self) -> None:
        """End the gang, if there is one."""
        if self._gang is not None:
            self._gang.close()
            self._gang = None


def engine(name: str, places: Path | None = None) -> Engine:
    """The engine that starts gangs.

    Args:
        name: ``local``, or an entry point of the group :data:`~fwbench.options.values.ENGINES`.
    """
    if name == LOCAL and places is None:
        return Local()
    from fwbench.gangs.engines.places import ListedMachines, Machines  # few have other engines

    machines = Machines.read(places)
    if name == LOCAL:
        return ListedMachines(machines)
    (point, *_) = metadata.entry_points(group=ENGINES, name=values.engine(name))
    try:
        created: Engine = point.load()(machines)
    except UsageError:
        raise
    except Exception as error:
        raise UsageError(
            f"the engine {name} ({point.value}) cannot be used: {error!r}; fix it, or use "
            f"-o fw_engine={LOCAL}"
        ) from error
    return created


def check(name: str, places: Path | None, networks: Iterable[str]) -> None:
    """Refuse an engine or networks that cannot be used here, before anything is measured."""
    created = engine(name, places)
    for network in networks:
        refuse_network(network, getattr(created, "joined_by", ""))
    refuse_impossible(networks)


def check_places(
    name: str, places: Path | None, cells: Iterable[Cell], manifests: Mapping[str, Manifest]
) -> None:
    """Refuse gangs that have more processes than there are places, before anything is measured."""
    numbers = [
        len(composition_of(cell, manifests[cell.framework].coordinator).places)
        for cell in cells
        if cell.gang and not cell.gap
    ]
    if numbers:
        engine(name, places).refuse_more(max(numbers))
