"""Steps with parameter servers: right ones pass, and each way to leave something out is found."""

import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest

from fwbench.errors import WrongResult
from fwbench.frameworks.member import Member, Place, ServedSteps
from fwbench.frameworks.numpy.framework import NumPy
from fwbench.gangs import checks
from fwbench.gangs.role import share_of
from fwbench.gangs.shares import Task

_REPLICAS = 3
_SIZE = 96


@dataclass
class Server:
    barrier: threading.Barrier = field(default_factory=lambda: threading.Barrier(_REPLICAS))
    lock: threading.Lock = field(default_factory=threading.Lock)
    parameters: Any = 0.0

    def meet(self) -> None:
        self.barrier.wait(60)


class _Settled(ServedSteps):
    def fetched(self, answer: Any) -> list[Any]:
        return [*answer]

    def synchronize(self) -> None:
        pass


class Steps(_Settled):
    """Null steps: in lock-step, or whenever a worker comes.

    Attributes:
        fault: what the last worker does otherwise.
    """

    def __init__(self, server: Server, place: Place, shards: Sequence[Any], fault: str) -> None:
        self._server, self._shards, self._fault = server, shards, fault
        self._meet = server.meet if place.strategy == "ps_sync" else lambda: None
        self._kept: Any = None

    def _fetch(self) -> Any:
        with self._server.lock:
            fetched = np.split(
                self._server.parameters + np.zeros_like(np.concatenate(self._shards)),
                len(self._shards),
            )
        earlier, self._kept = self._kept, fetched
        if self._fault == "fetches nothing":
            return [np.zeros_like(shard) for shard in self._shards]
        return earlier or fetched if self._fault == "fetches the step before" else fetched

    def take(self, which: int) -> Any:
        answer = self._fetch()
        self._meet()
        if self._fault != "sends nothing":
            with self._server.lock:
                update = (which + 1) * np.concatenate(self._shards)
                self._server.parameters = self._server.parameters + update
        self._meet()
        return answer


class Reads(_Settled):
    def __init__(self, table: Any, sets: Sequence[Any], fault: str) -> None:
        self._table, self._sets, self._fault = table, sets, fault

    def take(self, which: int) -> Any:
        return [self._table[self._sets[which - (self._fault == "fetches the step before")]]]


class Worker(Member):
    def __init__(self, place: Place, server: Server, fault: str) -> None:
        super().__init__(place)
        self._server = server
        self._fault = fault if place.rank == _REPLICAS - 1 else ""

    address = ""

    def join(self, addresses: Sequence[str]) -> None:
        pass

    def close(self) -> None:
        pass

    def barrier(self) -> None:
        self._server.meet()

    def all_reduce(self, source: Any) -> Callable[[], Any]:
        raise NotImplementedError

    def null_steps(self, shards: Sequence[Any]) -> Steps:
        return Steps(self._server, self.place, shards, self._fault)

    def sparse_reads(self, table: Any, sets: Sequence[Any]) -> Reads:
        return Reads(table, sets, self._fault)


def _findings(name: str, strategy: str, fault: str = "") -> list[list[Any]]:
    """The findings of all workers in three steps, the last of seven more, and three again."""
    server = Server()

    def check(rank: int) -> list[Any]:
        worker = Worker(Place(rank, _REPLICAS, strategy, "", servers=1), server, fault)
        task = Task(name, _SIZE, "cpu", "eager", "float32", sparse=False)
        share = share_of(task, NumPy(), worker)
        first = share.check(3)
        for _ in range(7):
            share.run()
        worker.barrier()  # a controller asks all when it has heard of all
        left = share.verify_last()
        worker.barrier()
        return [first, left, share.check(3)]

    with ThreadPoolExecutor(_REPLICAS) as threads:
        return [[*findings] for findings in zip(*threads.map(check, range(_REPLICAS)), strict=True)]


@pytest.mark.parametrize("strategy", ["ps_sync", "ps_async"])
@pytest.mark.parametrize("name", ["null_step", "sparse_read"])
def test_right_steps_pass(name: str, strategy: str) -> None:
    """In lock-step every one; otherwise one after another, and all together."""
    for answers in _findings(name, strategy):
        checks.refuse_wrong(answers, "at any time")


_OTHER = "before the timing, worker [012] fetched other numbers than the updates of"


@pytest.mark.parametrize("strategy", ["ps_sync", "ps_async"])
@pytest.mark.parametrize(
    ("fault", "message"),
    [
        ("sends nothing", _OTHER),
        ("fetches nothing", _OTHER.replace("[012]", "2")),
        ("fetches the step before", _OTHER.replace("[012]", "2")),
    ],
)
def test_null_steps_that_leave_something_out_are_found(
    strategy: str, fault: str, message: str
) -> None:
    """By the worker that fetches something else, before anything is timed."""
    first, *_ = _findings("null_step", strategy, fault)
    with pytest.raises(WrongResult, match=message):
        checks.refuse_wrong(first, "before the timing")


@pytest.mark.parametrize("strategy", ["ps_sync", "ps_async"])
def test_a_timed_step_that_has_fetched_nothing_is_found(strategy: str) -> None:
    """A worker that waits for no other fetches at least the updates that it has sent itself."""
    _, left, _ = _findings("null_step", strategy, "fetches nothing")
    message = "worker 2 fetched other numbers than the updates of .*: element 0 is 0, and "
    with pytest.raises(WrongResult, match=message):
        checks.refuse_wrong(left, "after the timing")


class _Late(Worker):
    """All workers of a coordinator: one of them takes the step before the last all the time."""

    ranks = range(_REPLICAS)

    def __init__(self, missing: int) -> None:
        super().__init__(Place(0, _REPLICAS, "ps_async", "", servers=1), Server(), "")
        self._missing = missing

    def barrier(self) -> None:
        """No other worker takes steps."""

    def null_steps(self, shards: Sequence[Any]) -> Any:
        steps, take = super().null_steps(shards), Steps.take
        lacks = self._missing * np.concatenate(shards)
        steps.take = lambda which: [  # type: ignore[method-assign]
            shard - part
            for shard, part in zip(take(steps, which), np.split(lacks, 16), strict=True)
        ]
        return steps


@pytest.mark.parametrize(("missing", "wrong"), [(6, False), (7, True)])
def test_workers_of_a_coordinator_may_miss_what_others_have_begun(
    missing: int, wrong: bool
) -> None:
    """Two of three workers may be late with an update that is three times the shards."""
    task = Task("null_step", _SIZE, "cpu", "eager", "float32", sparse=False)
    share = share_of(task, NumPy(), _Late(missing))
    for _ in range(7):
        share.run()
    assert bool(share.verify_last()["wrong"]) == wrong


def test_more_updates_than_can_be_counted_are_refused() -> None:
    """Sums of whole numbers are exact as far as float32 has them all."""
    task = Task("null_step", 16, "cpu", "eager", "float32", sparse=False)
    share = share_of(task, NumPy(), _Late(0))
    share.run()
    share._taken = 10**6  # type: ignore[attr-defined]
    message = (
        "worker 0 was to fetch up to 18,000,000, and float32 counts exactly to 16,777,216: mea"
    )
    assert share.verify_last()["wrong"].startswith(message)


def test_rows_of_another_step_are_found() -> None:
    for answers in _findings("sparse_read", "ps_async", "fetches the step before"):
        assert [bool(answer["wrong"]) for answer in answers] == [False, False, True]
        message = (
            "at any time, worker 2 fetched other numbers than 32 rows of the table in sparse_rea"
        )
        with pytest.raises(WrongResult, match=message):
            checks.refuse_wrong(answers, "at any time")
