"""Hosts of which the processes come by themselves, as something else starts them."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from typing import Protocol

from fwbench.errors import GangFailed
from fwbench.machine import thread_variables
from fwbench.processes.meeting import INVITATION, Meeting
from fwbench.processes.role import RoleProcess
from fwbench.processes.usher import Ushered

#: How long processes may take until they come: the start of a Python, on a busy machine or by way
#: of a network's file system.
ARRIVAL_S = 60.0

#: How often what starts them is looked at meanwhile.
_LOOK_S = 0.2

#: What a role elsewhere gets of this process' environment: toggles of the process.
_OWN_VARIABLES = "FWBENCH_"


class Starter(Protocol):
    """What starts processes, and runs as long as they do."""

    def failure(self) -> str:
        """How it ended, and what it wrote, as a clause; empty while it runs."""

    def tail(self) -> str:
        """What it wrote last, as a clause."""

    def end(self) -> None:
        """Let it end, as what it has started has ended."""


def work(framework: str, threads: int) -> tuple[list[str], dict[str, str]]:
    """What a role is started with, whoever starts it: arguments, and variables of its environment.

    Args:
        framework: that it loads.
        threads: that it computes with.
    """
    own = {name: value for name, value in os.environ.items() if name.startswith(_OWN_VARIABLES)}
    own.pop(INVITATION, None)
    return [framework, str(threads)], own | thread_variables(threads)


class Arrivals:
    """Hosts for roles that come to a meeting.

    Args:
        meeting: where they come to.
        starters: what starts them: one for each, or one for all.
        addresses: of each, as the others reach it; empty for that from which it comes.
        within_s: how long they may take.
    """

    def __init__(
        self,
        meeting: Meeting,
        starters: Sequence[Starter],
        addresses: Sequence[str] = (),
        within_s: float = ARRIVAL_S,
    ) -> None:
        self._meeting = meeting
        self._starters = starters
        self._addresses = dict(enumerate(addresses))
        self._until_s = time.monotonic() + within_s
        self._within_s = within_s

    def address(self, host: int) -> str:
        """That from which it came, if none was given."""
        return self._addresses[host]

    def start(self, host: int, name: str, framework: str, threads: int) -> RoleProcess:
        """Wait until what is to start the role has come, and have it do so.

        Raises:
            GangFailed: it does not come.
            OSError: it starts no process.
        """
        starter = self._starters[min(host, len(self._starters) - 1)]
        while (came := self._meeting.wait(host, time.monotonic() + _LOOK_S)) is None:
            if failure := starter.failure():
                raise GangFailed(f"{name} was not started: {failure}")
            if time.monotonic() > self._until_s:
                raise GangFailed(
                    f"{name} did not come within {self._within_s:g} s: {starter.tail()}"
                )
        end, watch = came
        self._addresses[host] = self._addresses.get(host) or end.getpeername()[0]
        try:
            return RoleProcess(name, Ushered(watch, *work(framework, threads)), end)
        except OSError:
            end.close()
            raise

    def traffic_bytes(self, host: int) -> int | None:
        """What comes and goes elsewhere is not counted."""
        return None

    def close(self) -> None:
        """Let those go that have come, and what has started them."""
        self._meeting.close()
        for starter in self._starters:
            starter.end()
