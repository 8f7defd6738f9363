"""Random functions of JAX, which take a key and have no state.

JAX's users keep the state: every step splits the key that the step before has left, and draws with
one half. So does every timed call, in one compiled function where there is one. A key that stood
for itself would give the same numbers in every call, and one that a compiled function closes over
would make them a constant.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax


class Keyed:
    """A random function with a key that it splits in every call.

    Args:
        draw: ``draw(key, *operands)`` returns random numbers.
    """

    def __init__(self, draw: Callable[..., Any]) -> None:
        self._draw = draw

    def executed(self, execute: Callable[[Any], Any]) -> Callable[..., Any]:
        """The function of the operands.

        Args:
            execute: makes the function that is executed of one, as ``jax.jit`` does.
        """
        step = execute(self._step)
        key = jax.random.key(0)

        def call(*operands: Any) -> Any:
            nonlocal key
            key, result = step(key, *operands)
            return result

        return call

    def _step(self, key: Any, *operands: Any) -> tuple[Any, Any]:
        """The key for the next call, and what is drawn in this one."""
        key, own = jax.random.split(key)
        return key, self._draw(own, *operands)
