"""A role: one process of a gang, which answers the requests of its controller.

Each request, a kind and values, is answered once: ``("done", answer)``, or ``("failed", name of the
error, whether it is of a connection, text)``.

==========================  ====================================================================
from the controller         meaning
==========================  ====================================================================
``("prepare", place)``      load the framework, and open the port that others connect to
``("join", addresses)``     connect to the others
``("bind", task)``          build a share of a case
``("check", steps)``        take steps from the beginning, and return what was found
``("round", steps)``        take steps, timed
``("alone", steps)``        take steps without an exchange, timed
``("epoch", r, e)``         train for epoch e of repetition r, timed
``("examine", part, n)``    evaluate the model on the first n examples of a part of the data
``("verify_last",)``        verify the last timed step
``("usage",)``              return the resources that this process has used since it was started
==========================  ====================================================================

A closed connection ends the role.
"""

import os
import platform
import socket
import sys
import time
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, suppress
from functools import partial
from typing import Any, cast

from fwbench import workloads
from fwbench.frameworks.contract import Framework
from fwbench.frameworks.member import Member, Participant, Place
from fwbench.frameworks.registry import load
from fwbench.gangs.exchanges import NullShare, ReadShare, exchange_share
from fwbench.gangs.loops import LoopShare
from fwbench.gangs.rounds import timed_round, usage
from fwbench.gangs.shares import AsynchronousShare, Share, Task, TrainedShare
from fwbench.machine import usable_cpus
from fwbench.processes import process
from fwbench.processes.channel import Channel
from fwbench.terms.names import framework_of
from fwbench.terms.replicas import ASYNCHRONOUS
from fwbench.version import __version__
from fwbench.workloads.collectives import Collective, NullStep, SparseRead
from fwbench.workloads.models.steps import ModelStep
from fwbench.workloads.training import Step, Training
from fwbench.workloads.workload import Workload

_Share = Callable[[Task, Framework, Member], Share]

#: A replica's share of each kind of workload.
_SHARES: dict[type[Workload], _Share] = {
    Collective: exchange_share,
    Step: TrainedShare,
    ModelStep: TrainedShare,
    Training: LoopShare,
    NullStep: NullShare,
    SparseRead: ReadShare,
}

#: The same for workers that do not wait for each other; their exchanges and loops are gaps.
_ASYNCHRONOUS_SHARES = _SHARES | {Step: AsynchronousShare, ModelStep: AsynchronousShare}


#: Requests that are methods of a share; those for epochs are of :class:`.loops.LoopShare` alone.
_OF_SHARES = ("check", "epoch", "examine", "verify_last")


def share_of(task: Task, framework: Framework, member: Member) -> Share:
    """Build a replica's share of a case."""
    shares = _ASYNCHRONOUS_SHARES if member.place.strategy in ASYNCHRONOUS else _SHARES
    return shares[type(getattr(workloads, task.workload))](task, framework, member)


def main() -> None:
    """Entry point; arguments of the process: connection's descriptor, framework, threads."""
    descriptor, framework, threads = sys.argv[1:]
    process.initialize()
    with suppress(EOFError, BrokenPipeError, ConnectionResetError):
        Role(framework_of(framework), int(threads)).serve(
            Channel(socket.socket(fileno=int(descriptor)))
        )
    # At the interpreter's end frameworks would disconnect from others, which may have gone.
    os._exit(0)


def _late(run: Callable[[], Any], delay_s: float) -> Any:
    """A step of a straggler, which begins later than others."""
    time.sleep(delay_s)
    return run()


class Role:
    """This process in a gang."""

    def __init__(self, name: str, threads: int) -> None:
        self._name = name
        self._threads = threads
        self._framework: Framework
        self._participant: Participant
        self._share: Share
        self._answers: Mapping[str, Callable[..., Any]] = {
            "prepare": self._prepare,
            "join": self._join,
            "bind": self._bind,
            "round": self._round,
            "alone": self._alone,
            **{kind: partial(self._ask_share, kind) for kind in _OF_SHARES},
            "usage": lambda: usage() | {"updates": self._participant.updates()},
        }

    def serve(self, channel: Channel) -> None:
        """Answer requests until the controller closes the connection."""
        while True:
            kind, *values = channel.receive()
            try:
                answer = self._answers[kind](*values)
            except Exception as error:  # noqa: BLE001 (the controller reports any)
                connection = isinstance(error, ConnectionError)
                channel.send("failed", type(error).__name__, connection, str(error))
            else:
                channel.send("done", answer)

    def _prepare(self, place: dict[str, Any]) -> dict[str, Any]:
        self._framework = load(self._name, self._threads)
        self._participant = self._framework.member(Place(**place))
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
        return cast("Member", self._participant)  # others get no requests for steps

    def _bind(self, values: dict[str, Any]) -> None:
        task = Task(**values)
        with self._framework.scope(task.device, task.dtype):
            self._share = share_of(task, self._framework, self._member)

    def _ask_share(self, kind: str, *values: Any) -> dict[str, Any]:
        with self._scope:
            answer: dict[str, Any] = getattr(self._share, kind)(*values)
            return answer

    def _round(self, steps: int) -> dict[str, Any]:
        with self._scope:
            return timed_round(self._member, self._step, self._share.waiter(), steps)

    @property
    def _scope(self) -> AbstractContextManager[Any]:
        """The context in which arrays have the device and dtype of the case."""
        task = self._share.task
        return self._framework.scope(task.device, task.dtype)

    @property
    def _step(self) -> Callable[[], Any]:
        """One step of this replica, after its delay if it is the straggler."""
        run, late = self._share.run, self._share.task.late
        if late is None or late["rank"] != self._member.place.rank:
            return run
        return partial(_late, run, late["delay_s"])

    def _alone(self, steps: int) -> dict[str, Any] | None:
        """A round without an exchange, and whether it has changed the weights; None without any."""
        context = self._share.without_exchange()
        if context is None:
            return None
        before = self._share.checksum()
        with context:
            answer = self._round(steps)
        return answer | {"trained": self._share.checksum() != before}
