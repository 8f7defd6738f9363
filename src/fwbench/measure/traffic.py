"""Bytes that this process has sent over TCP, as the kernel counts them.

Counters of network interfaces are those of all processes of a machine; a socket's are its own.
"""

from __future__ import annotations

import os
import socket
import stat
import struct
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

_DESCRIPTORS = Path("/proc/self/fd")

#: ``tcpi_bytes_sent`` in ``struct tcp_info`` (linux/tcp.h, since Linux 4.19).
_BYTES_SENT = struct.Struct("=Q")
_OFFSET_BYTES = 200


def sent_bytes() -> int | None:
    """Bytes sent by the TCP sockets that are open now; None where the system does not tell."""
    if sys.platform != "linux":
        return None
    sent = [*map(_sent_by, _sockets())]
    return None if None in sent else sum(filter(None, sent))


def _sockets() -> Iterator[socket.socket]:
    """Copies of this process' TCP sockets, each closed when the next is asked for."""
    for descriptor in [int(entry.name) for entry in _DESCRIPTORS.iterdir()]:
        with suppress(OSError):  # it has been closed meanwhile
            if not stat.S_ISSOCK(os.fstat(descriptor).st_mode):
                continue
            with socket.socket(fileno=os.dup(descriptor)) as copy:
                internet = copy.family in (socket.AF_INET, socket.AF_INET6)
                if internet and copy.type == socket.SOCK_STREAM:
                    yield copy


def _sent_by(end: socket.socket) -> int | None:
    told = end.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, _OFFSET_BYTES + _BYTES_SENT.size)
    if len(told) < _OFFSET_BYTES + _BYTES_SENT.size:
        return None
    return int(_BYTES_SENT.unpack_from(told, _OFFSET_BYTES)[0])
