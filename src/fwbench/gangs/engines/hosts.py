"""Commands that start roles elsewhere, such as mpiexec or ssh, and the hosts of such roles."""

import os
import time
from collections.abc import Mapping, Sequence

from fwbench.errors import GangFailed
from fwbench.gangs.engines.launcher import RemoteRole
from fwbench.gangs.engines.rendezvous import ROLE, WATCH, Rendezvous
from fwbench.gangs.launch import Hosts, RoleProcess, role_arguments
from fwbench.processes.process import Process

#: How long processes may take to connect: the start of a Python, on a busy machine or by way of a
#: network's file system.
_CONNECT_S = 60.0

#: How often the commands that start them are checked meanwhile.
_POLL_S = 0.2

#: How long a command may take to end, by itself as what it has started has ended, and when asked.
_STOP_S = 2.0


class Starter:
    """A command that runs as long as the processes that it has started elsewhere."""

    def __init__(
        self, command: Sequence[str], variables: Mapping[str, str], given: str = ""
    ) -> None:
        self._name = command[0]
        try:
            self._process = Process(command, {**os.environ, **variables}, given=given)
        except OSError as error:
            raise GangFailed(f"{self._name} cannot be started: {error}") from error

    def failure(self) -> str:
        """The way it ended, with its last output; empty while it runs."""
        ending = self._process.ending()
        return f"{self._name} {ending}{self._process.tail()}" if ending else ""

    def tail(self) -> str:
        """Its last output, as a clause."""
        return f"{self._name} runs{self._process.tail()}"

    def end(self) -> None:
        """Let it end by itself, as all that it has started has; end it if it does not."""
        if self._process.ending(_STOP_S) is None:
            self._process.terminate()
            self._process.ending(_STOP_S)
        self._process.kill()


class RemoteHosts(Hosts):
    """Hosts of roles that connect to a rendezvous.

    Args:
        starters: the commands that start them: one for each role, or one for all.
        addresses: of each host, as the others reach it; empty for that from which it connects.
    """

    def __init__(
        self,
        rendezvous: Rendezvous,
        starters: Sequence[Starter],
        addresses: Sequence[str] = (),
        within_s: float = _CONNECT_S,
    ) -> None:
        self._rendezvous = rendezvous
        self._starters = starters
        self._addresses = dict(enumerate(addresses))
        self._until_s = time.monotonic() + within_s
        self._within_s = within_s

    def address(self, host: int) -> str:
        """The address that was given, or that from which the role has connected."""
        return self._addresses[host]

    def start(self, host: int, name: str, framework: str, threads: int) -> RoleProcess:
        """Wait for the launcher of a role, and have it start the role."""
        starter = self._starters[min(host, len(self._starters) - 1)]
        callers = (host, ROLE), (host, WATCH)
        while not (ends := self._rendezvous.wait(callers, time.monotonic() + _POLL_S)):
            if failure := starter.failure():
                raise GangFailed(f"{name} was not started: {failure}")
            if time.monotonic() > self._until_s:
                raise GangFailed(
                    f"{name} did not connect within {self._within_s:g} s: {starter.tail()}"
                )
        end, watch = ends
        self._addresses[host] = self._addresses.get(host) or end.getpeername()[0]
        try:
            return RoleProcess(name, RemoteRole(watch, *role_arguments(framework, threads)), end)
        except OSError:
            end.close()
            raise

    def close(self) -> None:
        """Close the port, and end the commands that have started the roles."""
        self._rendezvous.close()
        for starter in self._starters:
            starter.end()
