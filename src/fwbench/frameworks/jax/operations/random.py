"""JAX: random numbers, by a key that every call splits (:mod:`fwbench.frameworks.jax.keyed`)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import random

from fwbench.frameworks.jax.keyed import Keyed
from fwbench.frameworks.layout import Layout
from fwbench.frameworks.table import Laid, Table
from fwbench.manifest import Gap
from fwbench.workloads.operation import Implementation
from fwbench.workloads.operations.random import DROPPED


def _keyed(draw: Callable[..., Any]) -> Implementation:
    """An implementation of ``draw(key, operand, *parameters)``."""

    def implementation(_jax: Any, *parameters: Any) -> Any:
        return Keyed(lambda key, operand: draw(key, operand, *parameters))

    return implementation


def _dropout(key: Any, x: Any) -> Any:
    kept = 1 - DROPPED
    return jnp.where(random.bernoulli(key, kept, x.shape), x / kept, 0)


#: Logarithms of the probabilities.
_LOGITS = Layout(
    place=lambda operands: [np.log(operands[0])],
    restore=lambda operands: [np.exp(operands[0])],
)

OPERATIONS: Table = {
    "random_uniform": _keyed(lambda key, like, n: random.uniform(key, (n,), like.dtype)),
    "random_normal": _keyed(lambda key, like, n: random.normal(key, (n,), like.dtype)),
    "random_bernoulli": _keyed(random.bernoulli),
    "random_integers": _keyed(lambda key, like, n: random.randint(key, (n,), 0, 100, "int32")),
    "random_gamma": _keyed(lambda key, alpha: random.gamma(key, alpha, dtype=alpha.dtype)),
    "random_poisson": _keyed(random.poisson),
    "random_exponential": _keyed(
        lambda key, like, n: random.exponential(key, (n,), like.dtype) / 2
    ),
    "random_shuffle": _keyed(random.permutation),
    "random_categorical": Laid(
        _keyed(lambda key, logits, n: random.categorical(key, logits, shape=(n,))), _LOGITS
    ),
    "dropout": _keyed(_dropout),
}

GAPS: tuple[Gap, ...] = ()
