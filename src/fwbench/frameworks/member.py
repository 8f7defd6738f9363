"""One process of several that do a case together: the one shape that every framework's part has."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from numpy.typing import NDArray

from fwbench.frameworks.learner import Job, Learner


@dataclass(frozen=True)
class Seat:
    """A process' place among those that do cases together.

    Attributes:
        rank: which replica it is, from 0.
        replicas: how many there are.
        strategy: how they agree, as the toggle ``strategy`` names it.
        host: the address at which the others reach it.
    """

    rank: int
    replicas: int
    strategy: str
    host: str


class ReplicatedLearner(ABC):
    """A model of which every replica has a copy, trained on a share of each batch.

    Attributes:
        learner: the copy of this process; its job has the share's batch size. A step exchanges what
            the strategy exchanges.
    """

    learner: Learner

    @abstractmethod
    def gradients(self) -> Sequence[NDArray[Any]]:
        """The gradients that the latest update was made with, in the order of ``trained``.

        They are what was exchanged: those of the mean loss of the whole batch.
        """


class Member(ABC):
    """One replica, in a process of its own: joins the others, and exchanges with them.

    A member opens what others connect to when it is made, so that ports are chosen where they are
    used, by the kernel.

    Args:
        seat: its place among the others.
    """

    def __init__(self, seat: Seat) -> None:
        self.seat = seat

    @property
    @abstractmethod
    def address(self) -> str:
        """What the others need to reach this process; empty if they need nothing."""

    @abstractmethod
    def join(self, addresses: Sequence[str]) -> None:
        """Connect to the others, and return when all are connected.

        Args:
            addresses: :attr:`address` of every replica, by rank.
        """

    @abstractmethod
    def barrier(self) -> None:
        """Return when all replicas have called this."""

    @abstractmethod
    def all_reduce(self, source: Any) -> Callable[[], Any]:
        """Bind the sum over all replicas to an array of each.

        Args:
            source: the framework's array on the device; its values are read in every call, and
                never written.

        Returns:
            ``run()``, which returns an array with the sum, done.
        """

    def learner(self, job: Job) -> ReplicatedLearner:
        """A replicated model.

        Args:
            job: what to train; its batch is this replica's share.
        """
        raise NotImplementedError(f"{type(self).__name__} trains no models")

    @abstractmethod
    def close(self) -> None:
        """Leave the others."""


class Replicable:
    """What a framework says of cases that several of its processes do together.

    Attributes:
        strategies: how its replicas can agree, by the names of the toggle ``strategy``: each with
            the reason why it offers no such way, or nothing if :meth:`member` does it. What fwbench
            has not built is not among them.
        gang_executions: in which of its executions replicas can work.
    """

    strategies: ClassVar[Mapping[str, str]] = {}
    gang_executions: ClassVar[tuple[str, ...]] = ()

    def member(self, seat: Seat) -> Member:
        """This process as one of several, for one of :attr:`strategies`."""
        raise NotImplementedError(f"{type(self).__name__} has no replicas")
