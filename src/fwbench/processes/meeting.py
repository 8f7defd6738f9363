"""Where processes that something else has started come to: a TCP port of their controller.

Whoever connects says a secret first, then which process it is. The secret comes to a process with
its invitation, by its environment or its standard input: command lines can be read by every user.
"""

from __future__ import annotations

import hmac
import os
import secrets
import socket
import struct
import sys
import time
from contextlib import suppress
from ipaddress import ip_address
from typing import NamedTuple

from fwbench.errors import GangFailed, UsageError

#: The environment variable with the invitation of a process.
INVITATION = "FWBENCH_INVITATION"

#: What programs that start processes on several machines call the number of each: Open MPI;
#: MPICH, Intel MPI and others that speak PMI or PMIx; Slurm.
_RANKS = ("OMPI_COMM_WORLD_RANK", "PMI_RANK", "PMIX_RANK", "SLURM_PROCID")

#: The two connections of a process: that of the role, and that of what watches it.
ROLE, WATCH = 0, 1

_TOKEN_BYTES = 32
_GREETING = struct.Struct(f"!{_TOKEN_BYTES}sIB")  # secret, rank, which connection
_WELCOME = b"+"

#: How long a stranger may take to say what it is, and a process to be let in.
_GREETING_S = 1.0
_WELCOME_S = 30.0

#: A machine that has gone without a word is noticed within half a minute.
_KEEPALIVE = {"TCP_KEEPIDLE": 10, "TCP_KEEPINTVL": 5, "TCP_KEEPCNT": 4}


class Invitation(NamedTuple):
    """What a process needs to come.

    Attributes:
        host: of the controller.
        port: at which it waits.
        token: the secret.
        rank: which process it is; None if what starts it says so in its environment.
    """

    host: str
    port: int
    token: str
    rank: int | None = None

    def __str__(self) -> str:
        """As :meth:`parse` reads it."""
        return " ".join(str(value) for value in self if value is not None)

    @classmethod
    def parse(cls, text: str) -> Invitation:
        """The invitation that a text stands for.

        Raises:
            UsageError: the text is none, or nothing says which process this is.
        """
        try:
            host, port, token, *rank = text.split()
            return cls(host, int(port), token, int(rank[0]) if rank else _rank())
        except ValueError:
            raise UsageError(
                "this process was started without an invitation of fwbench's: engines start it"
            ) from None


def _rank() -> int:
    for name in _RANKS:
        if name in os.environ:
            return int(os.environ[name])
    raise UsageError(
        "what started this process does not say which one it is: none of the variables "
        f"{', '.join(_RANKS)} is set; use mpiexec of Open MPI or MPICH, or srun"
    )


class Meeting:
    """A port at which processes are waited for.

    Args:
        host: the address of this machine that they connect to; nobody reaches loopback from
            another machine.

    Raises:
        UsageError: this machine does not have the address.
    """

    def __init__(self, host: str = "127.0.0.1") -> None:
        try:
            family = socket.AF_INET6 if ":" in host else socket.AF_INET
            self._listener = socket.create_server((host, 0), family=family, backlog=512)
        except OSError as error:
            raise UsageError(
                f"the address {host} is none of this machine's ({error.strerror or error}): give "
                "one at which the other machines reach it"
            ) from None
        self._host = host
        self._token = secrets.token_hex(_TOKEN_BYTES // 2)
        self._came: dict[tuple[int, int], socket.socket] = {}

    def invitation(self, rank: int | None = None) -> Invitation:
        """What a process needs to come.

        Args:
            rank: which one; None if what starts it tells it.
        """
        return Invitation(self._host, self._listener.getsockname()[1], self._token, rank)

    def wait(self, rank: int, until_s: float) -> tuple[socket.socket, socket.socket] | None:
        """Both connections of a process, once; None if it has not come in time.

        Args:
            rank: which process.
            until_s: until when, by the monotonic clock.
        """
        while not {(rank, ROLE), (rank, WATCH)} <= self._came.keys():
            self._listener.settimeout(max(0.0, until_s - time.monotonic()) or 0.001)
            try:
                end, _ = self._listener.accept()
            except OSError:  # nobody in time
                return None
            self._let_in(end)
        return self._came.pop((rank, ROLE)), self._came.pop((rank, WATCH))

    def _let_in(self, end: socket.socket) -> None:
        """Keep a connection if it says the secret, and is not there yet; close it otherwise."""
        end.settimeout(_GREETING_S)
        try:
            token, rank, kind = _GREETING.unpack(_read(end, _GREETING.size))
            known = hmac.compare_digest(token, self._token.encode())
            if known and kind in (ROLE, WATCH) and (rank, kind) not in self._came:
                end.sendall(_WELCOME)
                _prepare(end)
                self._came[rank, kind] = end
                return
        except OSError:
            pass
        end.close()

    def close(self) -> None:
        """Wait for nobody any more."""
        self._listener.close()
        while self._came:
            self._came.popitem()[1].close()


def come(invitation: Invitation, kind: int) -> socket.socket:
    """A connection to the controller that has sent an invitation.

    Args:
        invitation: of this process.
        kind: which of its connections.

    Raises:
        GangFailed: the controller is not there, or lets nobody in with this secret.
    """
    where = f"the controller at {invitation.host}, port {invitation.port},"
    try:
        end = socket.create_connection((invitation.host, invitation.port), _WELCOME_S)
        end.sendall(_GREETING.pack(invitation.token.encode(), invitation.rank or 0, kind))
        welcome = end.recv(1)
    except OSError as error:
        raise GangFailed(
            f"{where} cannot be reached from {socket.gethostname()} ({error.strerror or error}): "
            "give an address of it that this machine reaches (address, in the file of --fw-places)"
        ) from None
    if welcome != _WELCOME:
        end.close()
        raise GangFailed(f"{where} does not know this process: its secret is another gang's")
    _prepare(end)
    return end


def _prepare(end: socket.socket) -> None:
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


def is_loopback(address: str) -> bool:
    """Whether an address means the machine itself, whichever it is.

    Args:
        address: of a socket.
    """
    with suppress(ValueError):
        return ip_address(address).is_loopback
    return address == "localhost"
