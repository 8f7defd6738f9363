"""JAX: the framework, its operations, its training."""

from operator import methodcaller
from typing import Any

from fwbench.frameworks.results import AwaitedArrays


def awaited() -> AwaitedArrays:
    """Its arrays, and the leaves of registered pytrees."""
    import jax

    def leaves(value: Any) -> list[Any] | None:
        found: list[Any] = jax.tree_util.tree_leaves(value)
        return None if any(leaf is value for leaf in found) else found

    return AwaitedArrays(jax.Array, methodcaller("block_until_ready"), parts=leaves)
