"""Exchanges of arrays: what is measured of them, and what each replica does and checks."""

import itertools
from collections.abc import Callable, Mapping
from typing import Any, ClassVar, cast

import numpy as np
from numpy.typing import NDArray

from fwbench.cases import verify
from fwbench.errors import WrongResult
from fwbench.frameworks.contract import Framework
from fwbench.frameworks.member import Member
from fwbench.gangs.case import CHECKED_STEPS, GangCase
from fwbench.gangs.checks import Answers
from fwbench.gangs.shares import Share, Task
from fwbench.records.facts import CaseFacts, Checked
from fwbench.workloads.collectives import Collective

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
        """This replica's part of an array."""
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
