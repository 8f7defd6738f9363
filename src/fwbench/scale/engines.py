"""What starts the roles of a gang: child processes of this one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from fwbench.frameworks.member import Seat
from fwbench.machine import thread_variables
from fwbench.processes.role import RoleProcess


class Engine(Protocol):
    """Starts roles, and knows how they reach each other.

    Attributes:
        network: what joins them, as records call it.
    """

    network: str

    def seat(self, rank: int, replicas: int, strategy: str) -> Seat:
        """The place of a replica among the others.

        Args:
            rank: which one, from 0.
            replicas: how many there are.
            strategy: how they agree.
        """

    def start(self, name: str, framework: str, threads: int) -> RoleProcess:
        """Start a role.

        Args:
            name: for messages.
            framework: that it loads.
            threads: that it computes with.

        Raises:
            OSError: it cannot be started.
        """


class Local:
    """Child processes on this machine, which talk over its loopback interface."""

    network = "loopback"

    def seat(self, rank: int, replicas: int, strategy: str) -> Seat:
        """All of them have the address of loopback."""
        return Seat(rank, replicas, strategy, "127.0.0.1")

    def start(self, name: str, framework: str, threads: int) -> RoleProcess:
        """By this interpreter, in this session of processes."""
        return RoleProcess(name, [framework, str(threads)], thread_variables(threads))


#: Every engine, as ``--fw-engine`` names it (:data:`fwbench.options.values.ENGINES`).
ENGINES: Mapping[str, type[Engine]] = {"local": Local}
