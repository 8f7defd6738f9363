"""The hooks of cases that several processes do together, and the order of cases by process."""

from collections.abc import Sequence
from functools import cached_property
from operator import itemgetter
from types import ModuleType
from typing import TYPE_CHECKING, Any

import pytest

from fwbench.machine import usable_cpus
from fwbench.options.options import Options
from fwbench.plugin.session import CELL

if TYPE_CHECKING:
    from fwbench.gangs.pool import GangPool


def pool() -> ModuleType:
    """The module of replicas that sessions need; most have none, and import nothing of it."""
    from fwbench.gangs import pool

    return pool


class GangHooks:
    """Keeps the gang of this process, and the cases of one gang together."""

    def __init__(self, options: Options) -> None:
        self._options = options

    @cached_property
    def _gangs(self) -> "GangPool":
        from fwbench.gangs.pool import GangPool

        return GangPool(self._options.engine, places=self._options.places)

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        """Put cases on GPUs behind others, and those of gangs last, each process's together."""
        items[:] = together(items)

    def equip(self, case: Any, replicas: int) -> None:
        """Give a case what it needs to have a gang."""
        requested = self._options.threads if self._options.threads_asked else None
        threads = requested or max(1, usable_cpus() // replicas)
        are_here = self._gangs.are_here
        case.with_gangs(self._gangs, self._options.engine, threads, are_here=are_here)

    def pytest_sessionfinish(self) -> None:
        """End the gang."""
        self.pytest_unconfigure()

    def pytest_unconfigure(self) -> None:
        """End the gang, however the session ends."""
        if "_gangs" in vars(self):
            self._gangs.close()


def together(items: Sequence[pytest.Item]) -> list[pytest.Item]:
    """Items in their order, but those of one worker on GPUs together, and those of gangs last.

    Each gang is started once. And a worker ends with its last case on a GPU, so that no other
    framework's process holds a part of a GPU, or all of it in EXCLUSIVE_PROCESS mode, while it is
    measured; where frameworks took turns case by case each would hold its part to the end. Of each
    group those that must be cold come first: the first of them has a worker that has run nothing.
    """
    groups: dict[tuple[object, ...], list[pytest.Item]] = {}
    for item in items:
        groups.setdefault(_started_for(item), []).append(item)
    in_order = (groups[key] for key in sorted(groups, key=itemgetter(0)))
    return [item for group in in_order for item in sorted(group, key=is_cold, reverse=True)]


def is_cold(item: pytest.Item) -> bool:
    """True if no case may run before an item in its process."""
    return CELL in item.stash and item.stash[CELL].workload.cold


def _started_for(item: pytest.Item) -> tuple[object, ...]:
    """Gang that a process must hold for an item, after a number that sorts larger ones last."""
    cell = item.stash.get(CELL, None)
    if cell is not None and cell.gang:
        return 2, cell.framework, cell.gang
    if cell is not None and cell.device != "cpu":
        return 1, cell.framework, *cell.variables.items()
    return (0,)
