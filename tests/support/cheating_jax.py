"""JAX's replicas, whose mistakes depend on the batch of a replica."""

from typing import Any, ClassVar

import jax
from jax import lax
from jax import numpy as jnp
from numpy.typing import NDArray

from fwbench.frameworks.jax.framework import Jax
from fwbench.frameworks.jax.replicas import JaxMember
from fwbench.frameworks.member import Place
from support.cheats import CheatingMember, replica_cheats


def exchanges_nothing(learner: Any, _: int) -> None:
    learner.exchanged = lambda gradients: gradients


def adds_up(learner: Any, _: int) -> None:
    learner.exchanged = lambda gradients: lax.psum(gradients, "replicas")


def _write(learner: Any, weights: list[NDArray[Any]]) -> None:
    structure = jax.tree.structure(learner._state.parameters)
    arrays = map(jnp.asarray, weights)
    parameters = learner.put(jax.tree.unflatten(structure, arrays))
    learner._state = learner._state._replace(parameters=parameters)


class Member(CheatingMember, JaxMember):
    """One of its replicas."""

    replica_cheats = replica_cheats(exchanges_nothing, adds_up, _write)


class CheatingJax(Jax):
    """Loaded by roles through an entry point, as any framework."""

    name: ClassVar = "cheating_jax"

    def member(self, place: Place) -> Member:
        return Member(place, self._keep)
