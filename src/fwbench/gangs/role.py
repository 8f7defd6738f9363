"""A role: one process of a gang, which does what its controller asks.

Requests have a kind and values; each is answered once, ``("done", answer)`` or ``("failed", name of
the error, whether it is of a connection, text)``.

==========================  ====================================================================
from the controller         meaning
==========================  ====================================================================
``("sit", seat)``           load the framework, and open what others connect to
``("join", addresses)``     connect to the others
``("bind", task)``          build a share of a case
``("check", steps)``        take steps from the beginning, and tell what they found
``("round", steps)``        take steps, timed
``("alone", steps)``        take steps without an exchange, timed
``("epoch", r, e)``         train for epoch e of repetition r, timed
``("examine", part, n)``    tell what the model makes of the first n examples of a part of the data
``("look",)``               tell what the last timed step has left
``("used",)``               tell what this process has used since it was started
==========================  ====================================================================

A closed connection ends the role.
"""

from __future__ import annotations

import os
import platform
import socket
import sys
import time
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, suppress
from functools import partial
from typing import Any, cast

from fwbench.frameworks.contract import Framework
from fwbench.frameworks.member import Member, Participant, Seat
from fwbench.frameworks.registry import load
from fwbench.gangs.epochs import LoopShare
from fwbench.gangs.kinds import share_of
from fwbench.gangs.rounds import timed_round, used
from fwbench.gangs.shares import Share, Task
from fwbench.machine import usable_cpus
from fwbench.names import framework_of
from fwbench.processes import child
from fwbench.processes.channel import Channel
from fwbench.version import __version__


def main() -> None:
    """Entry point; arguments of the process: connection's descriptor, framework, threads."""
    descriptor, framework, threads = sys.argv[1:]
    child.begin()
    with suppress(EOFError, BrokenPipeError, ConnectionResetError):
        Role(framework_of(framework), int(threads)).serve(
            Channel(socket.socket(fileno=int(descriptor)))
        )
    # At the interpreter's end frameworks would take leave of others, which may have gone.
    os._exit(0)


def _late(run: Callable[[], Any], delay_s: float) -> Any:
    """A step of a straggler: it begins later than others', and so does what it exchanges."""
    time.sleep(delay_s)
    return run()


class Role:
    """What this process is in a gang.

    Args:
        name: of the framework.
        threads: that it computes with.
    """

    def __init__(self, name: str, threads: int) -> None:
        self._name = name
        self._threads = threads
        self._framework: Framework
        self._participant: Participant
        self._share: Share
        self._answers: Mapping[str, Callable[..., Any]] = {
            "sit": self._sit,
            "join": self._join,
            "bind": self._bind,
            "check": self._check,
            "round": self._round,
            "alone": self._alone,
            "epoch": self._epoch,
            "examine": self._examine,
            "look": self._look,
            "used": self._used,
        }

    def serve(self, channel: Channel) -> None:
        """Do what the controller asks until it hangs up.

        Raises:
            EOFError: it has.
        """
        while True:
            kind, *values = channel.receive()
            try:
                answer = self._answers[kind](*values)
            except Exception as error:  # noqa: BLE001 (whatever it is, the controller reports it)
                connection = isinstance(error, ConnectionError)
                channel.send("failed", type(error).__name__, connection, str(error))
            else:
                channel.send("done", answer)

    def _sit(self, seat: dict[str, Any]) -> dict[str, Any]:
        self._framework = load(self._name, self._threads)
        self._participant = self._framework.member(Seat(**seat))
        return {
            "address": self._participant.address,
            "takes_steps": isinstance(self._participant, Member),
            "host": platform.node(),
            "cpus": usable_cpus(),
            "threads": self._framework.threads(),
            "versions": {
                "fwbench": __version__,
                self._name: self._framework.version,
                "Python": platform.python_version(),
            },
        }

    def _join(self, addresses: list[str]) -> None:
        self._participant.join(addresses)

    @property
    def _member(self) -> Member:
        return cast("Member", self._participant)  # no other is asked for steps

    def _bind(self, task: dict[str, Any]) -> None:
        made = Task(**task)
        with self._framework.scope(made.device, made.dtype):
            self._share = share_of(made, self._framework, self._member)

    def _check(self, steps: int) -> dict[str, Any]:
        with self._scope:
            return self._share.check(steps)

    def _round(self, steps: int) -> dict[str, Any]:
        with self._scope:
            return timed_round(self._member, self._step, self._share.waiter(), steps)

    @property
    def _scope(self) -> AbstractContextManager[Any]:
        """In which arrays are as the case has them, also those that a check makes."""
        task = self._share.task
        return self._framework.scope(task.device, task.dtype)

    @property
    def _step(self) -> Callable[[], Any]:
        """One step of this replica, after the time that it is late."""
        run, late = self._share.run, self._share.task.late
        if late is None or late["rank"] != self._member.seat.rank:
            return run
        return partial(_late, run, late["delay_s"])

    def _alone(self, steps: int) -> dict[str, Any] | None:
        silent = self._share.silent()
        if silent is None:
            return None
        with silent:
            return self._round(steps)

    @property
    def _loop(self) -> LoopShare:
        return cast("LoopShare", self._share)  # no other is asked for epochs

    def _epoch(self, repetition: int, epoch: int) -> dict[str, Any]:
        with self._scope:
            return self._loop.epoch(repetition, epoch)

    def _examine(self, part: str, examples: int) -> dict[str, float]:
        with self._scope:
            return self._loop.examine(part, examples)

    def _look(self) -> dict[str, Any]:
        with self._scope:
            return self._share.look()

    def _used(self) -> dict[str, Any]:
        return used() | {"updates": self._participant.updates()}
