"""Exchanges of arrays, and steps with parameter servers: their cases, and each replica's share.

Workers of ``ps_sync`` go in lock-step: each of them fetches in a step the sum of all earlier
updates, exactly. For ``ps_async`` that holds if one worker takes a step after another; otherwise a
worker fetches at least its own earlier updates.
"""

import itertools
from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, ClassVar, cast

import numpy as np
from numpy.typing import NDArray

from fwbench.cases import verify
from fwbench.errors import WrongResult
from fwbench.frameworks.contract import Framework
from fwbench.frameworks.member import Member, ServedSteps
from fwbench.gangs import checks
from fwbench.gangs.case import CHECKED_STEPS, GangCase
from fwbench.gangs.checks import Answers
from fwbench.gangs.shares import Share, Task
from fwbench.records.facts import CaseFacts, Checked
from fwbench.terms.replicas import ASYNCHRONOUS
from fwbench.workloads.collectives import COLUMNS, ROWS, SHARDS, Collective

#: The period of the numbers that are exchanged.
_PERIOD = 7


class CollectiveCase(GangCase):
    """An exchange of arrays; roles compare the results themselves."""

    servers_update: ClassVar = False

    @property
    def _collective(self) -> Collective:
        return cast("Collective", self.cell.workload)

    @property
    def least_bytes(self) -> float:
        """The bytes of this exchange; with servers, those that they pass on."""
        if self._has_servers:
            return super().least_bytes
        return self._collective.sent(self.cell.replicas) * self.exchanged_bytes

    @property
    def elements(self) -> int:
        """The size."""
        return cast("int", self.cell.size)

    def judge(self, answers: Answers, when: str) -> tuple[CaseFacts, Checked]:
        """Every role has compared every element."""
        return CaseFacts(), Checked(steps=CHECKED_STEPS)

    def rates(self, step_s: float) -> Mapping[str, float]:
        """The bus bandwidth."""
        factor = self._collective.bus(self.cell.replicas)
        return {"bus_bytes_per_s": factor * self.exchanged_bytes / step_s}


class ExchangedShare(Share):
    """Arrays that replicas exchange: whole numbers, whose sums are exact in any order."""

    def __init__(self, task: Task, framework: Framework, member: Member) -> None:
        super().__init__(task, framework, member)
        self._create = framework.creator(task.device, task.dtype)
        self._begin = 0
        self._source = self._create(self._local_numbers())
        self._last: Any = None
        self.run = self._bound()

    def _bound(self) -> Callable[[], Any]:
        """The exchange, bound to the source; it keeps its result."""
        exchange = getattr(self.member, self.task.workload)(self._source)

        def run() -> None:
            self._last = exchange()

        return run

    def _values(self, factor: int) -> NDArray[Any]:
        """Whole numbers that depend on the place, each times a factor."""
        period = factor * (1 + np.roll(np.arange(_PERIOD), self._begin))
        return np.resize(period.astype(self.task.dtype), self.task.size)

    def _local_numbers(self) -> NDArray[Any]:
        return self._values(self.member.place.rank + 1)

    def _part(self, whole: NDArray[Any]) -> NDArray[Any]:
        return np.split(whole, self.member.place.replicas)[self.member.place.rank]

    def _sum(self) -> NDArray[Any]:
        replicas = self.member.place.replicas
        return self._values(replicas * (replicas + 1) // 2)

    def _expected(self) -> NDArray[Any]:
        """The right result of the latest exchange in this replica: the sums, if not another."""
        return self._sum()

    def _check(self, steps: int) -> dict[str, Any]:
        """The results of each step, of other numbers every time."""
        for step in range(1, steps + 1):
            self._begin = step
            numbers = self._create(self._local_numbers())
            if not self.framework.write(self._source, numbers):
                # Immutable arrays have no aliases that could go wrong.
                self._source = numbers
                self.run = self._bound()
            self.run()
            self._verify(f"step {step}")
        return {}

    def verify_last(self) -> dict[str, Any]:
        """The result of the last step."""
        self._verify("the last timed step")
        return {}

    def _verify(self, which: str) -> None:
        expected = self._expected()
        actual = self.framework.to_numpy(self._last)
        verify.check_shape(actual, expected.shape)
        wrong = np.flatnonzero(actual != expected)
        if wrong.size:
            place = int(wrong[0])
            raise WrongResult(
                f"{self.task.workload} of {self.member.place.replicas} replicas is wrong after "
                f"{which}: element {place} is {actual[place]:.9g}, and {expected[place]:.9g} is "
                f"right; {wrong.size:,} of {expected.size:,} elements are wrong"
            )


class ScatteredShare(ExchangedShare):
    """Arrays that are added up: each replica gets a part of the sums."""

    def _expected(self) -> NDArray[Any]:
        return self._part(self._sum())


class GatheredShare(ExchangedShare):
    """Parts of an array, which all replicas get as a whole."""

    def _local_numbers(self) -> NDArray[Any]:
        return self._part(super()._local_numbers())

    def _expected(self) -> NDArray[Any]:
        replicas = self.member.place.replicas
        parts = (np.split(self._values(rank + 1), replicas)[rank] for rank in range(replicas))
        return np.concatenate([*parts])


class BroadcastShare(ExchangedShare):
    """The array of one replica, which all get; it is another replica's in every step."""

    def __init__(self, task: Task, framework: Framework, member: Member) -> None:
        self._roots = itertools.cycle(range(member.place.replicas))
        super().__init__(task, framework, member)

    def _bound(self) -> Callable[[], Any]:
        exchange = self.member.broadcast(self._source)

        def run() -> None:
            self._root = next(self._roots)
            self._last = exchange(self._root)

        return run

    def _expected(self) -> NDArray[Any]:
        return self._values(self._root + 1)


#: What a replica does of an exchange, by its name.
_SHARES: Mapping[str, type[ExchangedShare]] = {
    "all_reduce": ExchangedShare,
    "reduce_scatter": ScatteredShare,
    "all_gather": GatheredShare,
    "broadcast": BroadcastShare,
}


def exchange_share(task: Task, framework: Framework, member: Member) -> Share:
    """A replica's share of an exchange."""
    return _SHARES[task.workload](task, framework, member)


#: Updates are small numbers that depend on the place, so that sums of many are exact in float32.
_CYCLE = 3

#: Up to here float32 has all whole numbers.
_EXACT = 2**24

#: The number of sets of rows, which are read in turns.
_SETS = 8

_SEED = 16


class NullStepCase(GangCase):
    """All parameters fetched, and an update of all sent."""

    @property
    def elements(self) -> int:
        """The number of parameters."""
        return cast("int", self.cell.size)

    @property
    def role_numbers(self) -> float:
        """The parameters that are fetched, sent, on their way, and compared."""
        composition, copies = self._composition, self.framework.null_step_copies
        of_workers = composition.replicas * copies.worker
        every = of_workers + copies.servers + copies.coordinator
        return every / len(composition.places) * self.elements

    def judge(self, answers: Answers, when: str) -> tuple[CaseFacts, Checked]:
        """Workers have compared what they fetched."""
        checks.refuse_wrong(answers, when)
        return CaseFacts(), Checked(steps=CHECKED_STEPS)

    def judge_last(self, answers: Answers) -> None:
        """Verify what workers have fetched in the last timed step."""
        checks.refuse_wrong(answers, "after the timing")


class SparseReadCase(NullStepCase):
    """Rows of a table."""

    elements = ROWS * COLUMNS

    @property
    def role_numbers(self) -> float:
        """The table, its copy on servers, and what it is made from."""
        return 3.0 * COLUMNS * cast("int", self.cell.size)

    @property
    def least_bytes(self) -> float:
        """Servers send the rows that workers fetch."""
        return float(self.cell.replicas * self.exchanged_bytes)


class ServedShare(Share):
    """Steps of this process' workers, whose servers' part is asynchronous.

    Differences are reported when all steps are taken: others wait for this process in theirs.
    """

    _steps: ServedSteps

    def waiter(self) -> Callable[[], Any]:
        """Until all steps are done, and all updates made."""
        return self._steps.synchronize

    @abstractmethod
    def _differences(self) -> Iterator[str]:
        """The difference in what each worker has fetched last, as text; empty if there is none."""

    def verify_last(self) -> dict[str, Any]:
        """Compare what the last timed steps have fetched."""
        self._steps.synchronize()
        return _answer(self._differences())

    def _compared(
        self, rank: int, actual: NDArray[Any], least: NDArray[Any], most: NDArray[Any], what: str
    ) -> str:
        """The difference of a fetched array, as text; empty if all elements are within bounds."""
        who = f"worker {rank} fetched"
        if actual.shape != least.shape:
            return f"{who} an array of shape {actual.shape} instead of {least.shape}: {what}"
        wrong = np.argwhere(~((least <= actual) & (actual <= most)))  # not a number, too
        if not wrong.size:
            return ""
        place = tuple(wrong[0])
        right = f"{least[place]:.9g}"
        if least[place] != most[place]:
            right = f"{right} to {most[place]:.9g}"
        return (
            f"{who} other numbers than {what} in {self.task.workload}: element "
            f"{', '.join(map(str, place))} is {actual[place]:.9g}, and {right} is right; "
            f"{len(wrong):,} of {actual.size:,} elements are wrong"
        )


class NullShare(ServedShare):
    """Parameters that begin at 0, and updates of whole numbers."""

    def __init__(self, task: Task, framework: Framework, member: Member) -> None:
        super().__init__(task, framework, member)
        period = 1 + np.arange(_CYCLE)
        self._update = np.resize(period.astype(task.dtype), task.size)
        self._steps = member.null_steps(np.split(self._update, SHARDS))
        self._waits = member.place.strategy not in ASYNCHRONOUS
        #: The steps that every worker has taken so far, and what its last one has fetched.
        self._taken = 0
        self._last: dict[int, Any] = {}
        self.run = self._step

    def _step(self) -> None:
        for rank in self.member.ranks:
            self._last[rank] = self._steps.take(rank)
        self._taken += 1

    def _check(self, steps: int) -> dict[str, Any]:
        """In lock-step each step; otherwise steps of one worker after another, too."""
        return _answer([*(self._in_lock_step(steps) if self._waits else self._by_turns(steps))])

    def _in_lock_step(self, steps: int) -> Iterator[str]:
        """Take one step more, which fetches what the last of them has sent."""
        for _ in range(steps + 1):
            self.run()
            yield from self._differences()
        self._steps.synchronize()

    def _by_turns(self, steps: int) -> Iterator[str]:
        """Compare exactly while one worker alone takes steps: it must fetch all updates."""
        yield from self._turns()
        for _ in range(steps):
            self.run()
        yield from self._turns()

    def _turns(self) -> Iterator[str]:
        """A step of each worker, begun when all updates of those before it are made."""
        self._steps.synchronize()
        for rank in range(self.member.place.replicas):
            self.member.barrier()
            if rank in self.member.ranks:
                self._last[rank] = self._steps.take(rank)
                self._steps.synchronize()
                made = self._taken * self._of_all + _sum_of_ranks(rank)
                yield self._between(rank, made, made)
        self.member.barrier()
        self._taken += 1

    def _differences(self) -> Iterator[str]:
        """All earlier updates in lock-step; otherwise some."""
        earlier = (self._taken - 1) * self._of_all
        for rank in self.member.ranks:
            if self._waits:
                yield self._between(rank, earlier, earlier)
            else:
                yield self._between(rank, self._least(rank), self._taken * self._of_all)

    def _least(self, rank: int) -> int:
        """The updates that the last step of a worker must at least have fetched.

        They are those that this process has begun before, but for one of each other worker of its,
        which may have taken its time.
        """
        factors = [rank_ + 1 for rank_ in self.member.ranks]
        begun = (self._taken - 1) * sum(factors) + sum(
            factor for factor in factors if factor <= rank
        )
        return max(0, begun - (len(factors) - 1) * max(factors))

    @property
    def _of_all(self) -> int:
        """The updates of a step of every worker: worker r's is r + 1 times the shards."""
        return _sum_of_ranks(self.member.place.replicas)

    def _between(self, rank: int, least: int, most: int) -> str:
        """The difference of the last fetched array from a number of updates within bounds."""
        if most * _CYCLE > _EXACT:
            return (
                f"worker {rank} was to fetch up to {most * _CYCLE:,}, and float32 counts exactly "
                f"to {_EXACT:,}: measure fewer rounds, or with fewer replicas"
            )
        actual = np.concatenate([np.ravel(x) for x in self._steps.fetched(self._last[rank])])
        what = f"the updates of {self._taken} steps"
        return self._compared(rank, actual, least * self._update, most * self._update, what)


class ReadShare(ServedShare):
    """A table, and rows of it that are drawn before anything is timed."""

    def __init__(self, task: Task, framework: Framework, member: Member) -> None:
        super().__init__(task, framework, member)
        self._sets = [
            _rows(task.size, rank, turn) for turn in range(_SETS) for rank in member.ranks
        ]
        rows = np.arange(task.size, dtype=task.dtype)[:, None]
        self._table = rows + np.arange(COLUMNS, dtype=task.dtype) / COLUMNS
        self._steps = member.sparse_reads(self._table, self._sets)
        self._turns = itertools.cycle(range(len(self._sets)))
        #: Which set each worker has read last, and the answer.
        self._last: dict[int, tuple[int, Any]] = {}
        self.run = self._step

    def _step(self) -> None:
        for rank in self.member.ranks:
            which = next(self._turns)
            self._last[rank] = which, self._steps.take(which)

    def _check(self, steps: int) -> dict[str, Any]:
        """After each step."""
        return _answer([*self._after_each(steps)])

    def _after_each(self, steps: int) -> Iterator[str]:
        for _ in range(steps):
            self.run()
            yield from self._differences()

    def _differences(self) -> Iterator[str]:
        for rank, (which, answer) in self._last.items():
            expected = self._table[self._sets[which]]
            (actual,) = self._steps.fetched(answer)
            yield self._compared(rank, actual, expected, expected, f"{ROWS} rows of the table")


def _answer(wrong: Iterable[str]) -> dict[str, Any]:
    """The answer for the controller: the first difference, if there is any."""
    return {"wrong": next(filter(None, wrong), "")}


def _sum_of_ranks(count: int) -> int:
    """1 + 2 + ... + ``count``: the sum of the updates of the first workers in a step."""
    return count * (count + 1) // 2


def _rows(size: int, rank: int, turn: int) -> NDArray[np.int64]:
    """Rows of a table for a worker: no row twice, in ascending order."""
    rng = np.random.default_rng([_SEED, rank, turn])
    return np.sort(rng.choice(size, ROWS, replace=False, shuffle=False))
