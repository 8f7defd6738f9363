"""The TCP port of a controller at which processes connect that something else has started.

A process that connects sends a secret first, then its number. It has the secret from its ticket, in
its environment or its standard input: every user can read command lines.
"""

from __future__ import annotations

import hmac
import os
import secrets
import socket
import struct
import sys
import time
from typing import NamedTuple

from fwbench.errors import GangFailed, UsageError

#: The environment variable with the ticket of a process.
TICKET = "FWBENCH_TICKET"

#: The variables in which programs that start processes on several machines put the number of each:
#: Open MPI; MPICH, Intel MPI and others that speak PMI or PMIx; Slurm.
_RANKS = ("OMPI_COMM_WORLD_RANK", "PMI_RANK", "PMIX_RANK", "SLURM_PROCID")

#: The two connections of a process: that of the role, and that of its launcher.
ROLE, WATCH = 0, 1

_TOKEN_BYTES = 32
_GREETING = struct.Struct(f"!{_TOKEN_BYTES}sIB")  # secret, rank, which connection
_WELCOME = b"+"

#: How long a stranger may take to send its greeting, and a process may wait to be accepted.
_GREETING_S = 1.0
_WELCOME_S = 30.0

#: A machine that has gone without closing its connections is noticed within half a minute.
_KEEPALIVE = {"TCP_KEEPIDLE": 10, "TCP_KEEPINTVL": 5, "TCP_KEEPCNT": 4}


class Ticket(NamedTuple):
    """The data with which a process connects.

    Attributes:
        rank: the number of the process; None if it is in the environment of the process.
    """

    host: str
    port: int
    token: str
    rank: int | None = None

    def __str__(self) -> str:
        """The text that :meth:`parse` reads."""
        return " ".join(str(value) for value in self if value is not None)

    @classmethod
    def parse(cls, text: str) -> Ticket:
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


class Rendezvous:
    """A port at which the processes of a gang connect.

    Args:
        host: the address of this machine that they connect to; other machines cannot reach
            loopback.
    """

    def __init__(self, host: str = "127.0.0.1") -> None:
        try:
            family = socket.AF_INET6 if ":" in host else socket.AF_INET
            self._listener = socket.create_server((host, 0), family=family, backlog=512)
        except OSError as error:
            raise UsageError(
                f"this machine does not have the address {host} ({error.strerror or error}): give "
                "one at which the other machines reach it"
            ) from None
        self._host = host
        self._token = secrets.token_hex(_TOKEN_BYTES // 2)
        self._accepted: dict[tuple[int, int], socket.socket] = {}

    def ticket(self, rank: int | None = None) -> Ticket:
        """The ticket of a process.

        Args:
            rank: its number; None if the program that starts it puts it into its environment.
        """
        return Ticket(self._host, self._listener.getsockname()[1], self._token, rank)

    def wait(self, rank: int, until_s: float) -> tuple[socket.socket, socket.socket] | None:
        """Both connections of a process, once; None if the monotonic clock reaches a time first."""
        while not {(rank, ROLE), (rank, WATCH)} <= self._accepted.keys():
            self._listener.settimeout(max(0.0, until_s - time.monotonic()) or 0.001)
            try:
                end, _ = self._listener.accept()
            except OSError:  # the time is over
                return None
            self._accept(end)
        return self._accepted.pop((rank, ROLE)), self._accepted.pop((rank, WATCH))

    def _accept(self, end: socket.socket) -> None:
        """Keep a new connection that sends the secret; close any other."""
        end.settimeout(_GREETING_S)
        try:
            token, rank, kind = _GREETING.unpack(_read(end, _GREETING.size))
            known = hmac.compare_digest(token, self._token.encode())
            if known and kind in (ROLE, WATCH) and (rank, kind) not in self._accepted:
                end.sendall(_WELCOME)
                _configure(end)
                self._accepted[rank, kind] = end
                return
        except OSError:
            pass
        end.close()

    def close(self) -> None:
        """Close the port, and connections that were not waited for."""
        self._listener.close()
        while self._accepted:
            self._accepted.popitem()[1].close()


def connect(ticket: Ticket, kind: int) -> socket.socket:
    """Connect to the controller that has issued a ticket.

    Args:
        kind: which of its connections: :data:`ROLE` or :data:`WATCH`.

    Raises:
        GangFailed: the controller cannot be reached, or does not accept the secret.
    """
    where = f"the controller at {ticket.host}, port {ticket.port},"
    try:
        end = socket.create_connection((ticket.host, ticket.port), _WELCOME_S)
        end.sendall(_GREETING.pack(ticket.token.encode(), ticket.rank or 0, kind))
        welcome = end.recv(1)
    except OSError as error:
        raise GangFailed(
            f"{where} cannot be reached from {socket.gethostname()} ({error.strerror or error}): "
            "give an address of it that this machine reaches (address, in the file of --fw-places)"
        ) from None
    if welcome != _WELCOME:
        end.close()
        raise GangFailed(f"{where} does not know this process: its secret is another gang's")
    _configure(end)
    return end


def _configure(end: socket.socket) -> None:
    end.settimeout(None)
    end.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    end.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    if sys.platform == "linux":
        for name, value in _KEEPALIVE.items():
            end.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), value)


def _read(end: socket.socket, size_bytes: int) -> bytes:
    read = b""
    while len(read) < size_bytes:
        part = end.recv(size_bytes - len(read))
        if not part:
            raise ConnectionError("closed")
        read += part
    return read
