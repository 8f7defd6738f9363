"""The hooks of cases that several processes do together."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from fwbench.machine import usable_cpus
from fwbench.options.options import Options
from fwbench.plugin.session import CELL
from fwbench.scale.case import GangCase
from fwbench.scale.gangs import Gangs


class GangHooks:
    """Keeps the gang of this process, and the cases of one gang together.

    Args:
        options: of the session.
    """

    def __init__(self, options: Options) -> None:
        self._options = options
        self._gangs = Gangs(options.engine)

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        """Put the cases of gangs last, those of one gang one after the other."""
        items[:] = together(items)

    def equip(self, case: GangCase, replicas: int) -> None:
        """Give a case what it needs to have a gang.

        Args:
            case: of several replicas.
            replicas: how many.
        """
        asked = self._options.threads if self._options.threads_asked else None
        threads = asked or max(1, usable_cpus() // replicas)
        case.with_gangs(self._gangs, self._options.engine, threads)

    def pytest_sessionfinish(self) -> None:
        """End the gang."""
        self._gangs.close()

    def pytest_unconfigure(self) -> None:
        """End it however the session ends."""
        self._gangs.close()


def together(items: Sequence[pytest.Item]) -> list[pytest.Item]:
    """Items in their order, but those of gangs last: each gang is started once.

    Args:
        items: of a session.
    """
    gangs: dict[tuple[object, ...], list[pytest.Item]] = {(): []}
    for item in items:
        cell = item.stash.get(CELL, None)
        key = () if cell is None or not cell.gang else (cell.framework, cell.gang)
        gangs.setdefault(key, []).append(item)
    return [item for each in gangs.values() for item in each]
