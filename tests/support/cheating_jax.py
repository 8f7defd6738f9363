"""JAX's replicas, each with a mistake of its own: which one, the batch of a replica says."""

from collections.abc import Callable
from typing import Any, ClassVar

import jax
from jax import lax

from fwbench.frameworks.jax.framework import Jax
from fwbench.frameworks.jax.replicas import JaxMember
from fwbench.frameworks.learner import Job
from fwbench.frameworks.member import Place
from support.cheats import skips_a_step


def exchanges_nothing(learner: Any, _: int) -> None:
    """Every replica trains alone, by the gradients of its own share."""
    learner.exchanged = lambda gradients: gradients


def adds_up(learner: Any, _: int) -> None:
    """Gradients are summed where they should be averaged."""
    learner.exchanged = lambda gradients: lax.psum(gradients, "replicas")


def begins_otherwise(learner: Any, rank: int) -> None:
    """The second replica has one other weight."""
    put = learner.put

    def wrong(tree: Any) -> Any:
        if rank and hasattr(tree, "parameters"):
            leaves, structure = jax.tree.flatten(tree.parameters)
            leaves[0] = leaves[0].at[(0,) * leaves[0].ndim].add(1e-4)
            tree = tree._replace(parameters=jax.tree.unflatten(structure, leaves))
        return put(tree)

    learner.put = wrong


def skips(learner: Any, rank: int) -> None:
    """The second replica does not update its weights in its third step."""

    def taken() -> Any:
        return jax.tree.map(
            lambda array: array.addressable_data(0).copy(), learner._state.parameters
        )

    def put_back(earlier: Any) -> None:
        learner._state = learner._state._replace(parameters=learner.put(earlier))

    if rank:
        skips_a_step(learner, taken, put_back)


#: By the batch of a replica; others are honest.
CHEATS: dict[int, Callable[[Any, int], None]] = {
    8: exchanges_nothing,
    16: adds_up,
    24: begins_otherwise,
    32: skips,
}


class Member(JaxMember):
    """One of its replicas, whose learners are tampered with before they are compiled."""

    def learner(self, job: Job) -> Any:
        made: Any = super().learner(job)
        if job.batch in CHEATS:
            CHEATS[job.batch](made.learner, self.place.rank)
            made.learner.build()
        return made


class CheatingJax(Jax):
    """Loaded by roles through an entry point, as any framework."""

    name: ClassVar = "cheating_jax"

    def member(self, place: Place) -> Member:
        return Member(place, self._keep)
