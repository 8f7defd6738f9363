"""TCP connections whose two ends prove a common secret to each other, and never send it.

The listener sends a nonce; the caller another one, who it is, and its proof, an HMAC of all that;
then the listener its proof. Proofs begin differently, so that none can be sent back: those of
multiprocessing can, and have no deadline. What follows is neither encrypted nor signed.
"""

import hmac
import math
import secrets
import socket
import struct
import time
import warnings
from collections.abc import Iterable, Sequence
from contextlib import suppress
from multiprocessing import connection

#: Who calls: a rank, and which of its connections this is.
Caller = tuple[int, int]

_CALLER = struct.Struct("!IB")
_BYTES = 32  # of a nonce, and of a proof
_CALL_BYTES = _BYTES + _CALLER.size + _BYTES

#: How long a caller may take, which holds up nobody, and the listener.
_CALLER_S, _LISTENER_S = 5.0, 30.0

#: A machine that has gone without closing its connections is noticed within half a minute.
_OPTIONS = {"TCP_NODELAY": 1, "TCP_KEEPIDLE": 10, "TCP_KEEPINTVL": 5, "TCP_KEEPCNT": 4}


class GuardedListener:
    """A port at which callers prove a secret, open until all that are expected have.

    Raises:
        OSError: this machine does not have the address.
    """

    def __init__(self, host: str, secret: str, expected: Iterable[Caller]) -> None:
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        self._socket = socket.create_server((host, 0), family=family, backlog=4096)
        self._socket.setblocking(False)
        self.host, self.secret = host, secret
        self.port = int(self._socket.getsockname()[1])
        self._expected = {*expected}
        self._accepted: dict[Caller, socket.socket] = {}
        self._greetings: dict[socket.socket, tuple[float, bytes, bytes]] = {}  # see _begin
        self._strangers = 0

    def wait(self, callers: Sequence[Caller], until_s: float = math.inf) -> list[socket.socket]:
        """The connections of callers; none if the monotonic clock reaches a time first."""
        while not self._accepted.keys() >= {*callers}:
            left_s = min(max(0.0, until_s - time.monotonic()), _LISTENER_S)
            for end in connection.wait([self._socket, *self._greetings], left_s):
                if end is self._socket:
                    self._begin()
                elif isinstance(end, socket.socket):
                    self._hear(end)
            now_s = time.monotonic()
            self._refuse(end for end, (end_s, *_) in self._greetings.items() if end_s <= now_s)
            if not self._expected:
                self._stop()
            elif until_s <= now_s:
                return []
        return [self._accepted[caller] for caller in callers]

    def _begin(self) -> None:
        with suppress(OSError):  # there are no more, or no descriptors for them
            for _ in range(256):
                end, _address = self._socket.accept()
                until_s, nonce = time.monotonic() + _CALLER_S, secrets.token_bytes(_BYTES)
                self._greetings[end] = until_s, nonce, b""  # nothing received
                end.setblocking(False)
                end.sendall(nonce)

    def _hear(self, end: socket.socket) -> None:
        until_s, nonce, received = self._greetings[end]
        with suppress(OSError):
            part = end.recv(_CALL_BYTES - len(received))
            received += part
            if part and len(received) < _CALL_BYTES:
                self._greetings[end] = until_s, nonce, received
                return
        own, proof = received[:-_BYTES], received[-_BYTES:]
        is_proved = hmac.compare_digest(proof, _proof(self.secret, b"caller", nonce, own))
        if not is_proved or (caller := _CALLER.unpack(own[_BYTES:])) not in self._expected:
            self._refuse([end])
            return
        self._expected.remove(caller)
        self._accepted[caller] = end
        del self._greetings[end]
        with suppress(OSError):  # it has gone, which shows when it is used
            end.sendall(_proof(self.secret, b"listener", nonce, own))
            _configure(end)

    def _refuse(self, ends: Iterable[socket.socket]) -> None:
        for end in [*ends]:
            del self._greetings[end]
            end.close()
            self._strangers += 1

    def _stop(self) -> None:
        self._socket.close()
        self._refuse(self._greetings)
        said = f"connections to a gang that did not prove its secret, all closed: {self._strangers}"
        if self._strangers:
            self._strangers = 0
            with suppress(Warning):  # even with -W error strangers end no gang
                warnings.warn(said, stacklevel=2)

    def close(self) -> None:
        """Close the port and all connections."""
        self._stop()
        for end in self._accepted.values():
            end.close()


def call(address: tuple[str, int], secret: str, caller: Caller) -> socket.socket:
    """Connect to a listener, and have both ends prove a secret.

    Raises:
        OSError: it cannot be reached, does not prove the secret, or takes longer.
    """
    until_s = time.monotonic() + _LISTENER_S
    end = socket.create_connection(address, _LISTENER_S)
    try:
        nonce = _read(end, until_s)
        own = secrets.token_bytes(_BYTES) + _CALLER.pack(*caller)
        end.sendall(own + _proof(secret, b"caller", nonce, own))
        if not hmac.compare_digest(_read(end, until_s), _proof(secret, b"listener", nonce, own)):
            raise ConnectionError("it does not know the secret, or does not expect this process")
    except OSError:
        end.close()
        raise
    _configure(end)
    return end


def _read(end: socket.socket, until_s: float) -> bytes:
    """A nonce or a proof, or what came of it before the connection was closed."""
    read, part = b"", b"."
    while part and len(read) < _BYTES:
        end.settimeout(max(0.001, until_s - time.monotonic()))
        part = end.recv(_BYTES - len(read))
        read += part
    return read


def _proof(secret: str, *parts: bytes) -> bytes:
    return hmac.digest(secret.encode(), b"".join(parts), "sha256")


def _configure(end: socket.socket) -> None:
    end.settimeout(None)
    end.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for name, value in _OPTIONS.items():
        if hasattr(socket, name):
            end.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), value)
