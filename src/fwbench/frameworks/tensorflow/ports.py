"""A port that nobody else takes between the moment it is told to others and its use."""

from __future__ import annotations

import os
import socket


class ReservedPort:
    """A port of this process' own, for TensorFlow's server.

    TensorFlow opens a port by its number, and takes no socket. So a socket that does not listen
    keeps the port until the server has it: with ``SO_REUSEPORT`` on both, the kernel gives the port
    to further sockets of this user that ask for its number, and to nobody who asks for any.

    Args:
        host: the address at which others reach it.

    Attributes:
        address: host and port.
    """

    def __init__(self, host: str) -> None:
        # tensorflow/core/distributed_runtime/rpc/grpc_server_lib.cc
        os.environ["TF_GRPC_REUSE_PORT"] = "true"
        self._keeper = socket.socket()
        self._keeper.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        self._keeper.bind((host, 0))
        _, port = self._keeper.getsockname()
        self.address = f"{host}:{port}"

    def release(self) -> None:
        """Leave the port to the server, which has it now."""
        self._keeper.close()
