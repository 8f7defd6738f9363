"""The gang of a process: one at a time, kept for as long as cases need the same."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from pathlib import Path

from fwbench.gangs import engines
from fwbench.gangs.gang import Gang
from fwbench.gangs.machines import Machines
from fwbench.gangs.places import Composition


class Gangs:
    """Starts gangs, and ends each before the next.

    Args:
        engine: the name of what starts them.
        make: makes one that has not been started.
        places: the file that says where they run; None for this machine.
    """

    def __init__(
        self,
        engine: str,
        make: Callable[..., Gang] = Gang,
        places: Path | None = None,
    ) -> None:
        self._name = engine
        self._places = places
        self._make = make
        self._gang: Gang | None = None

    @cached_property
    def _machines(self) -> Machines:
        return Machines.read(self._places)

    @property
    def are_here(self) -> bool:
        """Whether all their processes are on this machine."""
        return self._machines.are_here

    def __call__(self, composition: Composition) -> Gang:
        """A gang that is ready: the one that did the case before, if it is made of the same.

        Raises:
            GangFailed: it cannot be started.
        """
        if self._gang is not None and self._gang.is_alive:
            if self._gang.composition == composition:
                return self._gang
            self.close()
        self._gang = self._make(composition, engines.engine(self._name, self._machines))
        self._gang.start()
        return self._gang

    def close(self) -> None:
        """End the gang, if there is one."""
        if self._gang is not None:
            self._gang.close()
            self._gang = None
