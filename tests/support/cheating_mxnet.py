"""MXNet's replicas, whose mistakes depend on the batch of a replica."""

from functools import partial
from typing import Any, ClassVar

from numpy.typing import NDArray

from fwbench.frameworks.member import WORKER, Place
from fwbench.frameworks.mxnet.framework import MXNet, _context
from fwbench.frameworks.mxnet.replicas import MXNetMember
from fwbench.frameworks.mxnet.training import MXNetLearner
from support.cheats import CheatingMember, replica_cheats, served_cheats


def exchanges_nothing(learner: Any, _: int) -> None:
    learner._trainer_of = partial(MXNetLearner._trainer_of, learner)


def adds_up(learner: Any, _: int) -> None:
    learner._labels //= 2


def _write(learner: Any, weights: list[NDArray[Any]]) -> None:
    for parameter, array in zip(learner._parameters, weights, strict=True):
        parameter.data()[:] = array


def updates_by_itself(learner: Any, _: int) -> None:
    """MXNet's other way: servers add up, and every worker updates."""
    learner.updates_on_servers = False


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


class Member(CheatingMember, MXNetMember):
    """One of its workers; their first step is a rehearsal."""

    replica_cheats: ClassVar = {
        **replica_cheats(exchanges_nothing, adds_up, _write, skipped=4),
        48: updates_by_itself,
    }
    served_cheats = served_cheats(fetches_nothing, loses_an_update)


class CheatingMXNet(MXNet):
    """Loaded by roles through an entry point, as any framework."""

    name: ClassVar = "cheating"

    def member(self, place: Place) -> Any:
        return Member(place, _context) if place.role == WORKER else super().member(place)
