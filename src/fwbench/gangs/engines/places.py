"""The file of ``fw_places``, and the engine that starts roles on the machines that it lists.

Roles on other machines are started by commands, such as mpiexec or ssh.
"""

import os
import time
import tomllib
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any, NamedTuple, Self

from fwbench.errors import GangFailed, UsageError
from fwbench.gangs.engines.launcher import RemoteRole, command
from fwbench.gangs.engines.rendezvous import ROLE, WATCH, Rendezvous
from fwbench.gangs.gang import is_loopback
from fwbench.gangs.launch import Hosts, RoleProcess, refuse_network, role_arguments
from fwbench.options.values import LOCAL
from fwbench.processes.process import Process

_LOOPBACK = "127.0.0.1"

#: The keys of the file and of each of its places, with the types of their values.
_KEYS = {"address": str, "mpiexec": list, "place": list}
_PLACE_KEYS = {"command": list, "python": str, "roles": int, "address": str}

#: How long processes may take to connect: the start of a Python, on a busy machine or by way of a
#: network's file system.
_CONNECT_S = 60.0

#: How often the commands that start them are checked meanwhile.
_POLL_S = 0.2

#: How long a command may take to end, by itself as what it has started has ended, and when asked.
_STOP_S = 2.0

_TYPE_NAMES = {str: "a text", int: "a whole number", list: "a list of words"}


class Machine(NamedTuple):
    """A machine that roles run on."""

    #: The words before a command that is to run there, such as ``ssh node1``.
    command: Sequence[str]
    #: The interpreter there, with the same fwbench and frameworks.
    python: str = "python3"
    roles: int = 1
    #: At which the others reach it; empty for the address from which it connects.
    address: str = ""


class Machines(NamedTuple):
    """Where the roles of gangs run, as far as a file says it."""

    #: Of this machine, as the others reach it; loopback if there are no others.
    address: str = _LOOPBACK
    #: The command that starts processes by MPI, with its options.
    mpiexec: Sequence[str] = ("mpiexec",)
    #: The machine of each role, in their order; empty if the engine decides.
    by_role: Sequence[Machine] = ()
    file: str = ""

    @property
    def are_here(self) -> bool:
        """True if all are this machine, because others cannot reach it at its address."""
        return is_loopback(self.address)

    @classmethod
    def read(cls, file: Path | None) -> Self:
        """Read a TOML file; None stands for this machine alone."""
        if file is None:
            return cls()
        try:
            content = tomllib.loads(file.read_text(encoding="utf-8"))
        except (OSError, ValueError) as error:
            raise UsageError(f"the places of {file} cannot be read: {error}") from None
        _check(content, _KEYS, f"{file}")
        by_role = [
            machine
            for number, place in enumerate(content.pop("place", []), 1)
            for machine in _machines(place, f"{file}, place {number}")
        ]
        return cls(**content, by_role=by_role, file=str(file))

    def refuse_places(self, engine: str, decider: str) -> None:
        """Refuse a file that lists machines for an engine that chooses them itself."""
        if self.by_role:
            raise UsageError(
                f"{self.file} has places, and with -o fw_engine={engine} {decider} decides where "
                "roles run: leave them out of the file, or use -o fw_engine=local"
            )


def _machines(place: Any, where: str) -> list[Machine]:
    """The machine of a place, once for each of its roles."""
    if not isinstance(place, dict):
        raise UsageError(f"{where}: {place!r} is not a table; write [[place]], and its keys below")
    _check(place, _PLACE_KEYS, where)
    if not place.get("command"):
        raise UsageError(
            f'{where} does not say how a command is started there: add command = ["ssh", "node1"]'
        )
    machine = Machine(**place)
    if machine.roles < 1:
        raise UsageError(f"{where}: roles = {machine.roles}; it must be 1 or more")
    return [machine] * machine.roles


def _are_words(value: Any) -> bool:
    return bool(value) and all(isinstance(word, str) for word in value)


def _check(content: Mapping[str, Any], known: Mapping[str, type], where: str) -> None:
    for key, value in content.items():
        if key not in known:
            raise UsageError(f"{where}: {key!r} is not known; known: {', '.join(known)}")
        is_text = not isinstance(value, list) or key == "place"
        if type(value) is not known[key] or not (is_text or _are_words(value)):
            raise UsageError(f"{where}: {key} = {value!r} is not {_TYPE_NAMES[known[key]]}")


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


class ListedMachines:
    """The engine ``local`` with a file of places: it starts roles on the machines of the file."""

    #: What has a network already, for messages.
    joined_by = "the places of a file"

    def __init__(self, machines: Machines) -> None:
        if not machines.by_role:
            raise UsageError(
                f"{machines.file} has no places for -o fw_engine={LOCAL}: add [[place]], and "
                'below it command = ["ssh", "node1"]'
            )
        self._machines = machines

    def refuse_more(self, number: int) -> None:
        """Refuse more roles than the file has places for."""
        places = len(self._machines.by_role)
        if places < number:
            raise UsageError(
                f"a gang of {number} processes needs as many places, and {self._machines.file} has "
                f"{places}: add places, or roles to a place"
            )

    def hosts(self, number: int, network: str) -> RemoteHosts:
        """The first machines of the file."""
        refuse_network(network, self.joined_by)
        self.refuse_more(number)
        machines = self._machines.by_role[:number]
        with ExitStack() as unfinished:
            rendezvous = Rendezvous(self._machines.address, number)
            unfinished.callback(rendezvous.close)
            starters = []
            for rank, machine in enumerate(machines):
                words = [*machine.command, *command(machine.python)]
                starters.append(Starter(words, {}, f"{rendezvous.ticket(rank)}\n"))
                unfinished.callback(starters[-1].end)
            unfinished.pop_all()
        return RemoteHosts(rendezvous, starters, [machine.address for machine in machines])
