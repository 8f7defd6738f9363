"""TensorFlow's replicas, each with a mistake of its own: which one, the batch of a replica says."""

from collections.abc import Callable
from typing import Any, ClassVar

from fwbench.frameworks.learner import Job
from fwbench.frameworks.member import Participant, Place
from fwbench.frameworks.tensorflow import servers
from fwbench.frameworks.tensorflow.framework import TensorFlow
from fwbench.frameworks.tensorflow.replicas import MirroredMember
from support.cheats import LeavingOut, served_cheats, skips_a_step


def exchanges_nothing(learner: Any, _: int) -> None:
    """Every replica trains alone, by the gradients of its own share."""
    multiply_gradients(learner, learner.strategy.num_replicas_in_sync)
    learner.optimizer._all_reduce_sum_gradients = lambda pairs: pairs


def adds_up(learner: Any, _: int) -> None:
    """Gradients are summed where they should be averaged."""
    multiply_gradients(learner, 2)


def multiply_gradients(learner: Any, factor: float) -> None:
    """Update by other gradients; losses stay right."""
    differentiated = learner._differentiated

    def wrong(*arguments: Any) -> Any:
        loss, gradients = differentiated(*arguments)
        return loss, [factor * gradient for gradient in gradients]

    learner._differentiated = wrong


def begins_otherwise(learner: Any, rank: int) -> None:
    """The second replica has one other weight."""
    reset = learner.reset

    def wrong(*, exact: bool) -> None:
        reset(exact=exact)
        if rank:
            weights = learner.variables[0].numpy()
            weights.flat[0] += 1e-4
            learner.variables[0].assign(weights)

    learner.reset = wrong


def skips(learner: Any, rank: int) -> None:
    """The second replica does not update its weights in its third step."""

    def put_back(earlier: list[Any]) -> None:
        for variable, each in zip(learner.variables, earlier, strict=True):
            variable.assign(each)

    if rank:
        skips_a_step(learner, lambda: [each.numpy() for each in learner.variables], put_back)


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


#: By strategy and the batch of a replica; others are honest.
CHEATS: dict[tuple[str, int], Callable[[Any, int], None]] = {
    ("allreduce", 8): exchanges_nothing,
    ("allreduce", 16): adds_up,
    ("allreduce", 24): begins_otherwise,
    ("allreduce", 32): skips,
    ("ps_async", 8): adds_up,
    ("ps_async", 16): loses_a_step,
    ("ps_async", 24): never_updates,
}


class _Cheating:
    """A member whose learners are tampered with before they are compiled."""

    place: Place

    def learner(self, job: Job) -> Any:
        made = super().learner(job)  # type: ignore[misc]
        cheat = CHEATS.get((self.place.strategy, job.batch))
        if cheat is not None:
            cheat(made.learner, self.place.rank)
            made.learner.build()
        return made


class Mirrored(_Cheating, MirroredMember):
    """One of its replicas."""


class Coordinator(_Cheating, LeavingOut, servers.Coordinator):
    """The object that gives its workers their steps."""

    served_cheats = served_cheats(fetches_nothing, loses_an_update)


class CheatingTensorFlow(TensorFlow):
    """Loaded by roles through an entry point, as any framework."""

    name: ClassVar = "cheating_tensorflow"

    def member(self, place: Place) -> Participant:
        if not place.servers:
            return Mirrored(place)
        return (
            Coordinator(place)
            if place.role == self.capabilities.coordinator
            else super().member(place)
        )
