"""Network namespaces of Linux: machines of their own, as far as the network goes.

A namespace lasts as long as a process in it, or an open file of it. Here this is a ``cat`` that
waits for the end of its input, which comes when the process that made the namespace closes it or
dies, however it dies. The kernel then removes the namespace with its interfaces and queues, so
nothing has to be cleaned up. See network_namespaces(7), veth(4) and user_namespaces(7).
"""

import os
import subprocess
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from fwbench.errors import NetworkUnavailable

#: How long the process of a namespace gets to end by itself.
_STOP_S = 2.0

_PACKAGES = {"unshare": "util-linux", "nsenter": "util-linux", "ip": "iproute2", "tc": "iproute2"}


class Namespace:
    """A network namespace with nothing but a loopback interface that is down.

    Root creates it directly; other users within a user namespace, in which they are root.

    Args:
        beside: another one, in the user namespace of which it is made; None for a new one.

    Raises:
        NetworkUnavailable: the system makes none.
    """

    def __init__(self, beside: "Namespace | None" = None) -> None:
        self._rootless = os.geteuid() != 0
        user = ["--map-root-user"] if self._rootless and beside is None else []
        entered = [] if beside is None or not self._rootless else beside.entering("--user")
        # The line says that the namespace is there.
        command = [*entered, "unshare", *user, "--net", "--", "sh", "-c", "echo; exec cat"]
        pipes: dict[str, Any] = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)
        try:
            self._holder = subprocess.Popen(command, **pipes, text=True)
        except FileNotFoundError as error:
            raise _missing(error.filename) from None
        assert self._holder.stdout is not None  # noqa: S101 (a pipe was asked for)
        if not self._holder.stdout.readline():
            _, errors = self._holder.communicate()
            raise NetworkUnavailable(_refused(errors, rootless=self._rootless))

    def entering(self, *namespaces: str) -> list[str]:
        """Prefix of a command that is to run in namespaces of this one's process."""
        kept = ["--preserve-credentials"] if self._rootless else []
        return ["nsenter", f"--target={self.pid}", *namespaces, *kept, "--"]

    @property
    def pid(self) -> int:
        """The process that keeps it."""
        return self._holder.pid

    @property
    def prefix(self) -> list[str]:
        """Prefix of a command that is to run in it, and keeps its process."""
        return self.entering(*(["--user"] if self._rootless else []), "--net")

    def configure(self, tool: str, commands: Sequence[str]) -> None:
        """Have ``ip`` or ``tc`` carry out commands in it, all or up to the first that fails."""
        try:
            done = subprocess.run(
                [*self.prefix, tool, "-batch", "-"],
                input="\n".join(commands),
                capture_output=True,
                text=True,
                check=False,
            )
        except FileNotFoundError as error:
            raise _missing(error.filename) from None
        if done.returncode:
            message = " ".join(done.stderr.split()) or f"exit status {done.returncode}"
            if f"failed to execute {tool}" in message:
                raise _missing(tool)
            raise NetworkUnavailable(f"{tool} could not set up a network namespace: {message}")

    def traffic_bytes(self, interface: str) -> tuple[int, int]:
        """Received and sent bytes of an interface.

        Raises:
            OSError: the namespace has gone, or has no such interface.
        """
        lines = Path(f"/proc/{self.pid}/net/dev").read_text(encoding="ascii").splitlines()
        for line in lines:
            name, _, counters = line.partition(":")
            if name.strip() == interface:
                figures = [int(figure) for figure in counters.split()]
                return figures[0], figures[8]
        raise OSError(f"the network namespace has no interface {interface}")

    def close(self) -> None:
        """Let it go; it is removed when no other process is in it."""
        if self._holder.stdin is not None:
            with suppress(BrokenPipeError):
                self._holder.stdin.close()
        try:
            self._holder.wait(_STOP_S)
        except subprocess.TimeoutExpired:
            self._holder.kill()
            self._holder.wait()
        for pipe in (self._holder.stdout, self._holder.stderr):
            if pipe is not None:
                pipe.close()


def _missing(command: str) -> NetworkUnavailable:
    return NetworkUnavailable(
        f"a network namespace needs the command {command}, and it is not there: install "
        f"{_PACKAGES[command]}"
    )


def _refused(message: str, *, rootless: bool) -> str:
    """Why there is no namespace, and what to do."""
    remedy = (
        "allow user namespaces (sysctl user.max_user_namespaces, kernel.unprivileged_userns_clone, "
        "kernel.apparmor_restrict_unprivileged_userns), or run as root"
        if rootless
        else "it takes CAP_SYS_ADMIN, which containers need to be given (docker run --cap-add "
        "SYS_ADMIN --cap-add NET_ADMIN)"
    )
    whose = "for this user" if rootless else "here"
    return f"the system makes no network namespace {whose} ({' '.join(message.split())}): {remedy}"
