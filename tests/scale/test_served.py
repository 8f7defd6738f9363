"""Steps with parameter servers: right ones pass, and what leaves out updates is found."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest

from fwbench.errors import WrongResult
from fwbench.frameworks.member import Member, NullSteps, Seat
from fwbench.frameworks.numpy.framework import NumPy
from fwbench.scale.kinds import share_of
from fwbench.scale.shares import Task

_REPLICAS = 3
_SIZE = 48


@dataclass
class Server:
    """Parameters that all workers of a process have."""

    barrier: threading.Barrier = field(default_factory=lambda: threading.Barrier(_REPLICAS))
    lock: threading.Lock = field(default_factory=threading.Lock)
    parameters: Any = 0.0


class Steps(NullSteps):
    """Null steps: in lock-step, or whenever a worker comes."""

    def __init__(self, member: Worker, shards: Sequence[Any]) -> None:
        self._member, self._shards = member, [*shards]
        self._fetched: Any = None

    def _meet(self) -> None:
        if self._member.seat.strategy == "ps_sync":
            self._member.barrier()

    def fetch(self) -> None:
        with self._member.server.lock:
            whole = self._member.server.parameters + np.zeros_like(np.concatenate(self._shards))
        self._fetched = np.split(whole, len(self._shards))

    def run(self) -> None:
        self.fetch()
        self._meet()
        with self._member.server.lock:
            self._member.server.parameters += self._member.update(np.concatenate(self._shards))
        self._meet()

    def fetched(self) -> list[Any]:
        return list(self._fetched)

    def settle(self) -> None:
        pass


class Worker(Member):
    """A worker in a thread."""

    def __init__(self, seat: Seat, server: Server) -> None:
        super().__init__(seat)
        self.server = server
        self.skips = False

    address = ""

    def join(self, addresses: Sequence[str]) -> None:
        pass

    def close(self) -> None:
        pass

    def barrier(self) -> None:
        self.server.barrier.wait(60)

    def all_reduce(self, source: Any) -> Callable[[], Any]:
        raise NotImplementedError

    def update(self, shards: Any) -> Any:
        """What this worker sends; nothing, if it skips."""
        return 0 if self.skips else (self.seat.rank + 1) * shards

    def null_steps(self, shards: Sequence[Any]) -> Steps:
        return Steps(self, shards)

    def sparse_reads(self, table: Any, sets: Sequence[Any]) -> list[Any]:
        shift = int(self.skips)
        return [lambda rows=rows: table[(rows + shift) % len(table)] for rows in sets]


def _checked(name: str, strategy: str, *, skips: bool = False) -> list[str]:
    """What each worker says of three steps, seven more, and three again; the last one may skip."""
    server = Server()

    def check(rank: int) -> str:
        worker = Worker(Seat(rank, _REPLICAS, strategy, "", servers=1), server)
        worker.skips = skips and rank == _REPLICAS - 1
        share = share_of(
            Task(name, _SIZE, "cpu", "eager", "float32", sparse=False), NumPy(), worker
        )
        try:
            share.check(3)
            for _ in range(7):
                share.run()
            share.look()
            share.check(3)
        except WrongResult as error:
            return str(error)
        except threading.BrokenBarrierError:
            return "another one has failed"
        finally:
            if skips:
                server.barrier.abort()
        return ""

    with ThreadPoolExecutor(_REPLICAS) as threads:
        return [*threads.map(check, range(_REPLICAS))]


@pytest.mark.parametrize("strategy", ["ps_sync", "ps_async"])
@pytest.mark.parametrize("name", ["null_step", "sparse_read"])
def test_right_steps_pass(name: str, strategy: str) -> None:
    """In lock-step every one; otherwise all together."""
    assert _checked(name, strategy) == [""] * _REPLICAS


@pytest.mark.parametrize("strategy", ["ps_sync", "ps_async"])
def test_updates_that_are_left_out_are_found(strategy: str) -> None:
    """By whoever fetches the sums."""
    said = _checked("null_step", strategy, skips=True)
    assert any("null_step fetched other numbers than" in each for each in said)


def test_wrong_rows_are_found() -> None:
    """By the worker that has read them."""
    *right, wrong = _checked("sparse_read", "ps_sync", skips=True)
    assert right == [""] * (_REPLICAS - 1)
    assert "sparse_read fetched other numbers than 32 rows of the table: element 0, 0 is" in wrong
