"""The file of ``--fw-places``: the machines that roles run on, and how they reach this one."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from fwbench.errors import UsageError
from fwbench.processes.meeting import is_loopback

_LOOPBACK = "127.0.0.1"

#: The keys of the file and of each of its places, with what they may hold.
_KEYS = {"address": str, "mpiexec": list, "place": list}
_KEYS_OF_PLACE = {"command": list, "python": str, "roles": int, "address": str}


class Machine(NamedTuple):
    """A place for roles.

    Attributes:
        command: what comes before a command that is to run there, such as ``ssh node1``.
        python: the interpreter there, with the same fwbench and frameworks.
        roles: how many run there.
        address: at which the others reach it; empty for that from which it comes to this one.
    """

    command: Sequence[str]
    python: str = "python3"
    roles: int = 1
    address: str = ""


class Machines(NamedTuple):
    """Where the roles of gangs run, as far as a file says it.

    Attributes:
        address: of this machine, as the others reach it; loopback where there are no others.
        mpiexec: the command that starts processes by MPI, with its options.
        places: of each role, in their order; empty where the engine knows them.
        file: that says it, for messages.
    """

    address: str = _LOOPBACK
    mpiexec: Sequence[str] = ("mpiexec",)
    places: Sequence[Machine] = ()
    file: str = ""

    @property
    def are_here(self) -> bool:
        """Whether they all are this machine, which others cannot reach at its address."""
        return is_loopback(self.address)

    @classmethod
    def read(cls, file: Path | None) -> Machines:
        """What a file says; without one, this machine alone.

        Args:
            file: in TOML.

        Raises:
            UsageError: it cannot be read, is not TOML, or says something else.
        """
        if file is None:
            return cls()
        try:
            said = tomllib.loads(file.read_text(encoding="utf-8"))
        except (OSError, ValueError) as error:
            raise UsageError(f"the places of {file} cannot be read: {error}") from None
        _check(said, _KEYS, f"{file}")
        places = [
            machine
            for number, place in enumerate(said.pop("place", []), 1)
            for machine in _machines(place, f"{file}, place {number}")
        ]
        return cls(**said, places=places, file=str(file))

    def refuse_places(self, engine: str, who: str) -> None:
        """Refuse places of a file where something else decides about them.

        Args:
            engine: that is used.
            who: decides.

        Raises:
            UsageError: the file has places.
        """
        if self.places:
            raise UsageError(
                f"{self.file} has places, and with --fw-engine {engine} {who} decides where roles "
                "run: leave them out of the file, or use --fw-engine local"
            )


def _machines(place: Any, where: str) -> list[Machine]:
    """A place, as many times as it has roles."""
    if not isinstance(place, dict):
        raise UsageError(f"{where}: {place!r} is no table; write [[place]], and its keys below")
    _check(place, _KEYS_OF_PLACE, where)
    if not place.get("command"):
        raise UsageError(
            f'{where} does not say how a command is started there: add command = ["ssh", "node1"]'
        )
    machine = Machine(**place)
    if machine.roles < 1:
        raise UsageError(f"{where}: {machine.roles} roles are none; give 1 or more")
    return [machine] * machine.roles


def _are_words(value: Any) -> bool:
    return bool(value) and all(isinstance(word, str) for word in value)


def _check(said: Mapping[str, Any], known: Mapping[str, type], where: str) -> None:
    for key, value in said.items():
        if key not in known:
            raise UsageError(f"{where}: {key!r} is not known; known: {', '.join(known)}")
        is_text = not isinstance(value, list) or key == "place"
        if type(value) is not known[key] or not (is_text or _are_words(value)):
            kind = {str: "a text", int: "a whole number", list: "a list of words"}[known[key]]
            raise UsageError(f"{where}: {key} = {value!r} is not {kind}")
