"""The TCP port of a controller at which processes connect that something else has started.

Both prove a secret to each other (:mod:`fwbench.processes.greeting`). The process has it from its
ticket, in its environment or its standard input: every user can read command lines.
"""

import os
import secrets
import socket
from itertools import product
from typing import NamedTuple, Self

from fwbench.errors import GangFailed, UsageError
from fwbench.processes import greeting

#: The environment variable with the ticket of a process.
TICKET = "FWBENCH_TICKET"

#: The variables in which programs that start processes on several machines put the number of each:
#: Open MPI; MPICH, Intel MPI and others that speak PMI or PMIx; Slurm.
_RANKS = ("OMPI_COMM_WORLD_RANK", "PMI_RANK", "PMIX_RANK", "SLURM_PROCID")

#: The two connections of a process: that of the role, and that of its launcher.
ROLE, WATCH = 0, 1


class Ticket(NamedTuple):
    """The data with which a process connects."""

    host: str
    port: int
    token: str
    #: The number of the process; None if it is in the environment of the process.
    rank: int | None = None

    def __str__(self) -> str:
        """The text that :meth:`parse` reads."""
        return " ".join(str(value) for value in self if value is not None)

    @classmethod
    def parse(cls, text: str) -> Self:
        """The ticket that a text stands for."""
        try:
            host, port, token, *rank = text.split()
            return cls(host, int(port), token, int(rank[0]) if rank else _rank())
        except ValueError:
            raise UsageError(
                "this process was started without a ticket of fwbench: it is for engines to start"
            ) from None


def _rank() -> int:
    for name in _RANKS:
        if name in os.environ:
            return int(os.environ[name])
    raise UsageError(
        "what started this process does not say which one it is: none of the variables "
        f"{', '.join(_RANKS)} is set; use mpiexec of Open MPI or MPICH, or srun"
    )


class Rendezvous(greeting.GuardedListener):
    """A port at which both connections of each process of a gang arrive.

    Args:
        host: the address of this machine that they connect to; other machines cannot reach
            loopback.
        number: how many processes there are.
    """

    def __init__(self, host: str, number: int) -> None:
        try:
            super().__init__(host, secrets.token_hex(16), product(range(number), (ROLE, WATCH)))
        except OSError as error:
            raise UsageError(
                f"this machine does not have the address {host} ({error.strerror or error}): give "
                "one at which the other machines reach it"
            ) from None

    def ticket(self, rank: int | None = None) -> Ticket:
        """The ticket of a process; without its rank where its environment will have that."""
        return Ticket(self.host, self.port, self.secret, rank)


def connect(ticket: Ticket, kind: int) -> socket.socket:
    """Connect to the controller that has issued a ticket.

    Args:
        kind: which of its connections: :data:`ROLE` or :data:`WATCH`.

    Raises:
        GangFailed: the controller cannot be reached, or does not prove the secret.
    """
    try:
        return greeting.call(ticket[:2], ticket.token, (ticket.rank or 0, kind))
    except OSError as error:
        raise GangFailed(
            f"the controller at {ticket.host}, port {ticket.port}, cannot be reached from "
            f"{socket.gethostname()} ({error.strerror or error}): check that it still runs, and "
            "give an address of it that this machine reaches (address, in the file of fw_places)"
        ) from None
