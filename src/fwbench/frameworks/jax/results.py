"""Results of plain functions of JAX."""

from operator import methodcaller
from typing import Any

import jax

from fwbench.frameworks.results import AwaitedArrays


def awaited() -> AwaitedArrays:
    """Its arrays, and the leaves of registered pytrees."""
    return AwaitedArrays(jax.Array, methodcaller("block_until_ready"), parts=_leaves)


def _leaves(value: Any) -> list[Any] | None:
    leaves: list[Any] = jax.tree_util.tree_leaves(value)
    return None if any(leaf is value for leaf in leaves) else leaves
