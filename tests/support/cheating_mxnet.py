"""MXNet's replicas, each with a mistake of its own: which one, the batch of a replica says."""

from collections.abc import Callable
from functools import partial
from typing import Any, ClassVar

from fwbench.frameworks.learner import Job
from fwbench.frameworks.member import WORKER, Place
from fwbench.frameworks.mxnet.framework import MXNet, _context
from fwbench.frameworks.mxnet.replicas import MXNetMember
from fwbench.frameworks.mxnet.training import MXNetLearner
from support.cheats import LeavingOut, served_cheats, skips_a_step


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

    def taken() -> list[Any]:
        return [parameter.data().copy() for parameter in learner._parameters]

    def put_back(earlier: list[Any]) -> None:
        for parameter, each in zip(learner._parameters, earlier, strict=True):
            parameter.data()[:] = each

    if rank:
        skips_a_step(learner, taken, put_back, number=4)  # the first is a rehearsal


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


class Member(LeavingOut, MXNetMember):
    """One of its workers."""

    served_cheats = served_cheats(fetches_nothing, loses_an_update)

    def learner(self, job: Job) -> Any:
        made = super().learner(job)
        if job.batch in CHEATS:
            CHEATS[job.batch](made.learner, self.place.rank)
        return made


class CheatingMXNet(MXNet):
    """Loaded by roles through an entry point, as any framework."""

    name: ClassVar = "cheating"

    def member(self, place: Place) -> Any:
        return Member(place, _context) if place.role == WORKER else super().member(place)
