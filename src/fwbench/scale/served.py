"""Steps between workers and parameter servers: what is measured of them, and how it is checked.

Workers of ``ps_sync`` go in lock-step: what each of them fetches in a step is the sum of all
earlier updates, exactly. Of those of ``ps_async`` only the sum of all updates is known, once all
are made.
"""

from __future__ import annotations

import itertools
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from fwbench.cases import verify
from fwbench.composition.strategy import ASYNCHRONOUS
from fwbench.errors import WrongResult
from fwbench.frameworks.contract import Framework
from fwbench.frameworks.member import Member
from fwbench.records.facts import CaseFacts
from fwbench.records.gangs import Checked
from fwbench.scale.case import CHECKED_STEPS, GangCase
from fwbench.scale.judgement import Answers
from fwbench.scale.shares import Share, Task
from fwbench.workloads.serving import COLUMNS, ROWS, SHARDS

#: A failure is shown where the test stands; ``pytest --full-trace`` shows these frames too.
__tracebackhide__ = True

#: Updates are small numbers that depend on the place, so that sums of many are exact in float32.
_PERIOD = 3

#: So many sets of rows are read by turns.
_SETS = 8

_SEED = 16


class NullStepCase(GangCase):
    """All parameters fetched, and an update of all sent."""

    @property
    def elements(self) -> int:
        """The parameters."""
        return cast("int", self.cell.size)

    def judge(self, answers: Answers, when: str) -> tuple[CaseFacts, Checked]:
        """Workers have compared what they fetched."""
        return CaseFacts(), Checked(steps=CHECKED_STEPS)


class SparseReadCase(NullStepCase):
    """Rows of a table."""

    @property
    def elements(self) -> int:
        """Those of the rows."""
        return ROWS * COLUMNS

    @property
    def held(self) -> float:
        """The table, its copy on servers, and what it is made from."""
        return 3.0 * COLUMNS * cast("int", self.cell.size)

    @property
    def least_bytes(self) -> float:
        """Servers send the rows that workers fetch."""
        return float(self.cell.replicas * self.exchanged_bytes)


class NullShare(Share):
    """Parameters that begin at 0, and updates of whole numbers."""

    def __init__(self, task: Task, framework: Framework, member: Member) -> None:
        super().__init__(task, framework, member)
        period = 1 + np.arange(_PERIOD)
        self._update = np.resize(period.astype(task.dtype), task.size)
        self._steps = member.null_steps(np.split(self._update, SHARDS))
        self._taken = 0
        self.run = self._step

    def _step(self) -> None:
        self._steps.run()
        self._taken += 1

    def _check(self, steps: int) -> dict[str, Any]:
        """In lock-step after each step; otherwise once all updates are made."""
        for _ in range(steps):
            self.run()
            if self.member.seat.strategy not in ASYNCHRONOUS:
                self._verify(self._taken - 1)
        if self.member.seat.strategy in ASYNCHRONOUS:
            self._verify_total()
        return {}

    def look(self) -> dict[str, Any]:
        """What the last timed step has fetched."""
        if self.member.seat.strategy in ASYNCHRONOUS:
            self._verify_total()
        else:
            self._verify(self._taken - 1)
        return {}

    def _verify_total(self) -> None:
        """The sum of all updates; nobody sends one meanwhile."""
        self._steps.settle()
        self.member.barrier()
        self._steps.fetch()
        self._verify(self._taken)
        self.member.barrier()

    def _verify(self, updates: int) -> None:
        """What was fetched last is so many updates of every worker; worker r's is r + 1 times."""
        replicas = self.member.seat.replicas
        expected = updates * (replicas * (replicas + 1) // 2) * self._update
        actual = np.concatenate([np.ravel(shard) for shard in self._steps.fetched()])
        _compare(self.task.workload, actual, expected, f"{updates} updates of every worker")


class ReadShare(Share):
    """A table, and rows of it that are drawn before anything is timed."""

    def __init__(self, task: Task, framework: Framework, member: Member) -> None:
        super().__init__(task, framework, member)
        rng = np.random.default_rng([_SEED, member.seat.rank])
        self._sets = [rng.integers(0, task.size, ROWS) for _ in range(_SETS)]
        rows = np.arange(task.size, dtype=task.dtype)[:, None]
        self._table = rows + np.arange(COLUMNS, dtype=task.dtype) / COLUMNS
        self._reads = member.sparse_reads(self._table, self._sets)
        self._turns = itertools.cycle(range(_SETS))
        self.run = self._step

    def _step(self) -> None:
        self._turn = next(self._turns)
        self._last = self._reads[self._turn]()

    def _check(self, steps: int) -> dict[str, Any]:
        """After each step."""
        for _ in range(steps):
            self.run()
            self.look()
        return {}

    def look(self) -> dict[str, Any]:
        """What the last step has read."""
        expected = self._table[self._sets[self._turn]]
        actual = self.framework.to_numpy(self._last)
        _compare(self.task.workload, actual, expected, f"{ROWS} rows of the table")
        return {}


def _compare(what: str, actual: NDArray[Any], expected: NDArray[Any], of: str) -> None:
    verify.same_shape(actual, expected)
    wrong = np.argwhere(actual != expected)
    if wrong.size:
        place = tuple(wrong[0])
        raise WrongResult(
            f"{what} fetched other numbers than {of}: element {', '.join(map(str, place))} is "
            f"{actual[place]:.9g}, and {expected[place]:.9g} is right; {len(wrong):,} of "
            f"{expected.size:,} elements are wrong"
        )
