"""One process of several that do a case together: the one shape that every framework's part has."""

import socket
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from functools import partial
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fwbench.frameworks.learner import Job, Learner, Placed
from fwbench.workloads.objective import Adam, Batch, RMSprop

#: The roles of every framework; what coordinates them has the name that the framework gives it.
WORKER = "worker"
SERVER = "server"


@dataclass(frozen=True)
class Place:
    """The place of a process among those that do cases together."""

    #: Its number among the processes of its role, from 0.
    rank: int
    replicas: int
    #: How they agree, as the toggle ``strategy`` names it.
    strategy: str
    #: The address at which the others reach it; empty until it is known.
    host: str = ""
    #: What the process is: a worker, a server, or the framework's
    #: :attr:`fwbench.Capabilities.coordinator`.
    role: str = WORKER
    servers: int = 0
    #: The secret of the gang, for ports that no framework opens.
    key: str = field(default="", repr=False)

    @property
    def name(self) -> str:
        """The process in messages: ``worker 1 of 2``."""
        counts = {WORKER: self.replicas, SERVER: self.servers}
        count = counts.get(self.role)
        return f"the {self.role}" if count is None else f"{self.role} {self.rank} of {count}"

    def by_role(self, addresses: Sequence[str]) -> tuple[Sequence[str], ...]:
        """The addresses of the workers, of the servers, and of what coordinates them."""
        workers, serving = addresses[: self.replicas], addresses[self.replicas :]
        return workers, serving[: self.servers], serving[self.servers :]


def reserved(host: str, option: int = socket.SO_REUSEPORT) -> socket.socket:
    """A bound socket that keeps a port for a server which opens ports by their numbers.

    It does not listen. With the same option on both, the kernel gives the port to further sockets
    of this user that ask for its number, and not to those that ask for any port.
    """
    keeper = socket.socket()
    keeper.setsockopt(socket.SOL_SOCKET, option, 1)
    keeper.bind((host, 0))
    return keeper


def address_of(bound: socket.socket) -> str:
    """Host and port of a socket."""
    host, port = bound.getsockname()
    return f"{host}:{port}"


class Updates(NamedTuple):
    """Updates of the parameters that servers have."""

    #: That workers were to make.
    sent: int
    #: By the servers' own count.
    made: int


class ReplicatedLearner:
    """A model of which every replica has a copy, trained on a share of each batch."""

    def __init__(self, learner: Learner) -> None:
        #: The copy of this process; its job has the share's batch size. A step exchanges what the
        #: strategy exchanges.
        self.learner: Any = learner

    def gradients(self) -> Sequence[NDArray[Any]] | None:
        """The gradients of the first update since the learner was reset; None if they are unknown.

        They are what was exchanged: those of the mean loss of the whole batch, by each array of
        ``trained`` of the learner.
        """
        return None

    def warm_start(self, examples: Any, labels: Any) -> None:
        """Take the first step, if there is no other way to know :meth:`gradients`.

        All replicas call it at once, before the learner is reset.
        """

    def bound(self, batches: Sequence[Batch]) -> Callable[[], Any]:
        """Bind a step to each worker whose steps this process takes.

        Args:
            batches: one for each of :attr:`Member.ranks`.

        Returns:
            ``run()``, which takes these steps; asynchronous ones need not be done when it returns.
        """
        placed = [self.learner.place(batch) for batch in batches]
        return partial(_take_each, self.learner.step, placed)

    def synchronize(self) -> None:
        """Return when all steps that this process has taken are done."""

    def updates(self) -> Updates | None:
        """The updates since the learner was reset; None where servers do not tell."""
        return None

    def without_exchange(self) -> AbstractContextManager[Any] | None:
        """A context in which steps exchange nothing, to see what that takes; None without any.

        Copies differ afterwards, so nothing is done with them.
        """
        return None


class TracedLearner(ReplicatedLearner, ABC):
    """A replicated model whose gradients are read from what the first update left.

    A step that returned them, or kept them, would not be the step that is timed. An optimiser that
    has not seen a gradient before has the gradient itself in its state after one update.
    """

    @abstractmethod
    def state(self) -> Sequence[NDArray[Any]]:
        """State of the optimiser, by each array of ``trained``.

        Adam's first moments, the mean squares of RMSprop, velocities of gradient descent.
        """

    def gradients(self) -> Sequence[NDArray[Any]]:
        """The state or the update, divided by the constants of the optimiser."""
        optimizer = self.learner.job.training.optimizer
        if isinstance(optimizer, Adam):
            return [moment / (1.0 - optimizer.beta_1) for moment in self.state()]
        if isinstance(optimizer, RMSprop):  # the sign of the gradient is that of the update
            return [
                np.sign(decrease) * np.sqrt(square / (1.0 - optimizer.rho))
                for decrease, square in zip(self._decreases(), self.state(), strict=True)
            ]
        if optimizer.momentum:
            return self.state()
        return [decrease / optimizer.learning_rate for decrease in self._decreases()]

    def _decreases(self) -> list[NDArray[Any]]:
        """By how much each parameter has become smaller."""
        initial = self.learner.trained(self.learner.job.training.initial())
        return [before - now for before, now in zip(initial, self.learner.weights(), strict=True)]


class ServedSteps(ABC):
    """Steps of workers with parameter servers that compute nothing."""

    @abstractmethod
    def take(self, which: int) -> Any:
        """Take a step, or have it taken.

        Args:
            which: the rank of its worker, one of :attr:`Member.ranks`, or the place of a set of
                rows, as the method says that has bound these steps.

        Returns:
            What :meth:`fetched` takes.
        """

    @abstractmethod
    def fetched(self, answer: Any) -> Sequence[NDArray[Any]]:
        """The arrays that the last step of a worker, or of a set, has fetched; see :meth:`take`."""

    @abstractmethod
    def synchronize(self) -> None:
        """Return when all steps are done, and their updates made."""


def _take_each(step: Callable[..., Any], batches: Sequence[Placed]) -> None:
    for examples, labels in batches:
        step(examples, labels)


class Participant(ABC):
    """A process of a gang: joins the others, and serves those that take steps.

    It opens what others connect to when it is made, so that ports are chosen where they are used,
    by the kernel.
    """

    def __init__(self, place: Place) -> None:
        self.place = place

    @property
    @abstractmethod
    def address(self) -> str:
        """Address at which the others reach this process; empty if they need none."""

    @abstractmethod
    def join(self, addresses: Sequence[str]) -> None:
        """Connect to the others, and return when all are connected.

        What serves the others does so in a thread of its own from then on.

        Args:
            addresses: :attr:`address` of every worker, by rank, then of every server, then of what
                coordinates them.
        """

    def updates(self) -> Mapping[str, int] | None:
        """Updates of each array of parameters here, by any name; None if there are no parameters.

        Of two processes that have a part of an array each, each counts.
        """
        return None

    @abstractmethod
    def close(self) -> None:
        """Leave the others."""


class Member(Participant):
    """A process that takes steps: it exchanges with the others, and times what it does."""

    @property
    def ranks(self) -> Sequence[int]:
        """The workers whose steps this process takes: its own; all, if it coordinates them."""
        return (self.place.rank,)

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

    def reduce_scatter(self, source: Any) -> Callable[[], Any]:
        """Bind the sum of which every replica gets a part: the first one the first part.

        Args:
            source: as for :meth:`all_reduce`; the number of replicas divides its length.

        Returns:
            ``run()``, which returns this replica's part of the sum, done.
        """
        raise NotImplementedError(f"{type(self).__name__} has no reduce_scatter")

    def all_gather(self, source: Any) -> Callable[[], Any]:
        """Bind the arrays of all replicas, one behind the other by rank.

        Args:
            source: as for :meth:`all_reduce`; those of all replicas have one length.

        Returns:
            ``run()``, which returns the whole array, done.
        """
        raise NotImplementedError(f"{type(self).__name__} has no all_gather")

    def broadcast(self, source: Any) -> Callable[[int], Any]:
        """Bind the array of one replica, which all get.

        Args:
            source: as for :meth:`all_reduce`; read where this replica is the source.

        Returns:
            ``run(root)``, which returns the array of the replica of that rank, done.
        """
        raise NotImplementedError(f"{type(self).__name__} has no broadcast")

    def null_steps(self, shards: Sequence[NDArray[Any]]) -> ServedSteps:
        """Bind steps that fetch all parameters from servers, then send an update of all.

        Args:
            shards: into which parameters are divided, which begin at 0. The update of the worker
                of rank r is r + 1 times these.

        Returns:
            Steps by the rank of their worker.
        """
        raise NotImplementedError(f"{type(self).__name__} has no null_step")

    def sparse_reads(self, table: NDArray[Any], sets: Sequence[NDArray[np.int64]]) -> ServedSteps:
        """Bind reads of rows of a table that is on servers.

        Args:
            sets: numbers of rows, as many in each: no row twice, in ascending order.

        Returns:
            Steps by the place of their set, by any worker; each fetches a single array.
        """
        raise NotImplementedError(f"{type(self).__name__} has no sparse_read")

    def learner(self, job: Job) -> ReplicatedLearner:
        """A replicated model of a job, whose batch is this replica's share."""
        raise NotImplementedError(f"{type(self).__name__} trains no models")


class RoleCopies(NamedTuple):
    """Copies of all parameters in memory while they are fetched and updated."""

    #: By each of them.
    worker: float
    #: By all of them together.
    servers: float
    #: By what there is in addition.
    coordinator: float


class Replicable:
    """A framework's declarations about cases that several of its processes do together."""

    #: What its replicas cannot do though one process can, by (strategy, toggle, value), with the
    #: reason.
    gang_gaps: ClassVar[Mapping[tuple[str, str, str], str]] = {}
    #: What a null step takes of memory, so that a machine is not asked for more.
    null_step_copies: ClassVar[RoleCopies] = RoleCopies(worker=8.0, servers=8.0, coordinator=8.0)

    def member(self, place: Place) -> Participant:
        """This process as one of several, for one of its strategies.

        A :class:`Member`, unless it takes no steps: as servers do.
        """
        raise NotImplementedError(f"{type(self).__name__} has no replicas")
