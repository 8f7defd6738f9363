"""MXNet's replicas, each with a mistake of its own: which one, the batch of a replica says."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, ClassVar

from fwbench.frameworks.learner import Job
from fwbench.frameworks.member import WORKER, Seat
from fwbench.frameworks.mxnet.framework import MXNet, _context
from fwbench.frameworks.mxnet.replicas import MXNetMember
from fwbench.frameworks.mxnet.training import MXNetLearner


def exchanges_nothing(learner: Any, _: int) -> None:
    """Every replica trains alone."""
    learner._trainer_of = partial(MXNetLearner._trainer_of, learner)


def adds_up(learner: Any, _: int) -> None:
    """Gradients are summed where they should be averaged."""
    learner._labels //= 2


def begins_otherwise(learner: Any, rank: int) -> None:
    """The second replica has one other weight."""
    reset = learner.reset

    def wrong(*, exact: bool) -> None:
        reset(exact=exact)
        if rank:
            learner._parameters[0].data()[0, 0, 0, 0] += 1e-4

    learner.reset = wrong


def skips(learner: Any, rank: int) -> None:
    """The second replica does not take over the weights of its third step."""
    steps, step = [0], learner.step

    def wrong(*batch: Any) -> Any:
        steps[0] += 1
        before = [parameter.data().copy() for parameter in learner._parameters]
        loss = step(*batch)
        if rank and steps[0] == 4:  # the first is a rehearsal
            for parameter, earlier in zip(learner._parameters, before, strict=True):
                parameter.data()[:] = earlier
        return loss

    learner.step = wrong


def updates_by_itself(learner: Any, _: int) -> None:
    """MXNet's other way: servers add up, and every worker updates."""
    learner.updates_on_servers = False


#: By the batch of a replica; others are honest.
CHEATS: dict[int, Callable[[Any, int], None]] = {
    8: exchanges_nothing,
    16: adds_up,
    24: begins_otherwise,
    32: skips,
    48: updates_by_itself,
}


def fetches_nothing(steps: Any) -> None:
    """Parameters stay as they were at the beginning."""
    steps._store.pull = lambda key, out: None


def loses_an_update(steps: Any) -> None:
    """Nothing is added up in the third step."""
    taken, take = [0], steps.take

    def wrong(which: int) -> Any:
        taken[0] += 1
        updates = steps._updates
        if taken[0] == 3:
            steps._updates = [0 * update for update in updates]
        answer = take(which)
        steps._updates = updates
        return answer

    steps.take = wrong


def reads_the_step_before(steps: Any) -> None:
    """A step's answer is that of the step before."""
    take = steps.take
    steps.take = lambda which: take(which - 1)


#: By the length of a shard, or of a table; others are honest, and so is the first worker.
SERVED_CHEATS: dict[int, Callable[[Any], None]] = {
    2: fetches_nothing,
    3: loses_an_update,
    96: reads_the_step_before,
}


class Member(MXNetMember):
    """One of its workers."""

    def _tampered(self, steps: Any, length: int) -> Any:
        if self.seat.rank and length in SERVED_CHEATS:
            SERVED_CHEATS[length](steps)
        return steps

    def null_steps(self, shards: Sequence[Any]) -> Any:
        return self._tampered(super().null_steps(shards), len(shards[0]))

    def sparse_reads(self, table: Any, sets: Sequence[Any]) -> Any:
        return self._tampered(super().sparse_reads(table, sets), len(table))

    def learner(self, job: Job) -> Any:
        made = super().learner(job)
        if job.batch in CHEATS:
            CHEATS[job.batch](made.learner, self.seat.rank)
        return made


class CheatingMXNet(MXNet):
    """Loaded by roles through an entry point, as any framework."""

    name: ClassVar = "cheating"

    def member(self, seat: Seat) -> Any:
        return Member(seat, _context) if seat.role == WORKER else super().member(seat)
