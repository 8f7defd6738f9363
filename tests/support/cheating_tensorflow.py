"""TensorFlow's replicas, whose mistakes depend on the batch of a replica."""

from typing import Any, ClassVar

from numpy.typing import NDArray

from fwbench.frameworks.member import Participant, Place
from fwbench.frameworks.tensorflow import replicas
from fwbench.frameworks.tensorflow.framework import TensorFlow
from fwbench.frameworks.tensorflow.replicas import MirroredMember
from support.cheats import CheatingMember, replica_cheats, served_cheats


def exchanges_nothing(learner: Any, _: int) -> None:
    multiply_gradients(learner, learner.strategy.num_replicas_in_sync)
    learner.optimizer._all_reduce_sum_gradients = lambda pairs: pairs


def adds_up(learner: Any, _: int) -> None:
    multiply_gradients(learner, 2)


def multiply_gradients(learner: Any, factor: float) -> None:
    """Update by other gradients; losses stay right."""
    differentiated = learner._differentiated

    def wrong(*arguments: Any) -> Any:
        loss, gradients = differentiated(*arguments)
        return loss, [factor * gradient for gradient in gradients]

    learner._differentiated = wrong


def _write(learner: Any, weights: list[NDArray[Any]]) -> None:
    for variable, array in zip(learner.variables, weights, strict=True):
        variable.assign(array)


def loses_a_step(learner: Any, _: int) -> None:
    """A step that is said to be given to a worker is not, once all of them are at work."""
    give, last = learner.give, [None]

    def wrong(*arguments: Any) -> Any:
        if learner.sent == 17:
            learner.sent += 1
        else:
            last[0] = give(*arguments)
        return last[0]

    learner.give = wrong


def never_updates(learner: Any, _: int) -> None:
    """Workers compute gradients, and servers do nothing with them."""
    learner.optimizer.apply_gradients = lambda _: None


class _Zeros:
    """Pretend that a worker has fetched parameters as they were at the beginning."""

    def __init__(self, answer: Any) -> None:
        self._answer = answer

    def fetch(self) -> Any:
        return [0 * array for array in self._answer.fetch()]


def fetches_nothing(steps: Any) -> None:
    """Parameters stay as they were at the beginning."""
    take = steps.take
    steps.take = lambda which: _Zeros(take(which))


def loses_an_update(steps: Any) -> None:
    """A step that is said to be given to a worker is not, once all of them are at work."""
    taken, take, last = [0], steps.take, [None]

    def wrong(which: int) -> Any:
        taken[0] += 1
        if taken[0] != 4:
            last[0] = take(which)
        return last[0]

    steps.take = wrong


class Mirrored(CheatingMember, MirroredMember):
    """One of its replicas."""

    replica_cheats = replica_cheats(exchanges_nothing, adds_up, _write)


class Coordinator(CheatingMember, replicas.Coordinator):
    """Its workers get their steps here."""

    replica_cheats: ClassVar = {8: adds_up, 16: loses_a_step, 24: never_updates}
    served_cheats = served_cheats(fetches_nothing, loses_an_update)


class CheatingTensorFlow(TensorFlow):
    """Loaded by roles through an entry point, as any framework."""

    name: ClassVar = "cheating"

    def member(self, place: Place) -> Participant:
        if not place.servers:
            return Mirrored(place)
        if place.role == self.capabilities.coordinator:
            return Coordinator(place)
        return super().member(place)
