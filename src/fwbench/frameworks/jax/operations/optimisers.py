"""JAX: optimisers, by the formulas; JAX has none, and its arrays are not overwritten."""

from __future__ import annotations

from functools import partial
from typing import Any

import jax.numpy as jnp

from fwbench.frameworks.table import Table
from fwbench.manifest import Gap
from fwbench.workloads.operations.optimisers import (
    BETA1,
    BETA2,
    DECAY,
    L1,
    MOMENTUM,
    RATE,
    RHO,
    TINY,
)


def _sgd(x: Any, g: Any) -> Any:
    return x - RATE * g


def _momentum(x: Any, g: Any, m: Any) -> Any:
    m = MOMENTUM * m + g
    return x - RATE * m, m


def _nesterov(x: Any, g: Any, m: Any) -> Any:
    m = MOMENTUM * m + g
    return x - RATE * (g + MOMENTUM * m), m


def _adam(x: Any, g: Any, m: Any, v: Any, decay: float = 0.0) -> Any:
    m = BETA1 * m + (1 - BETA1) * g
    v = BETA2 * v + (1 - BETA2) * jnp.square(g)
    step = m / (jnp.sqrt(v) + TINY)
    return x - RATE * (step + decay * x if decay else step), m, v


def _rmsprop(x: Any, g: Any, v: Any) -> Any:
    v = RHO * v + (1 - RHO) * jnp.square(g)
    return x - RATE * g / (jnp.sqrt(v) + TINY), v


def _adagrad(x: Any, g: Any, v: Any) -> Any:
    v = v + jnp.square(g)
    return x - RATE * g / (jnp.sqrt(v) + TINY), v


def _ftrl(x: Any, g: Any, z: Any, v: Any) -> Any:
    later = v + jnp.square(g)
    z = z + g - (jnp.sqrt(later) - jnp.sqrt(v)) / RATE * x
    pulled = jnp.sign(z) * jnp.maximum(jnp.abs(z) - L1, 0)
    return -RATE * pulled / jnp.sqrt(later), z, later


OPERATIONS: Table = {
    "sgd": lambda jax: _sgd,
    "momentum": lambda jax: _momentum,
    "nesterov": lambda jax: _nesterov,
    "adam": lambda jax: _adam,
    "adamw": lambda jax: partial(_adam, decay=DECAY),
    "rmsprop": lambda jax: _rmsprop,
    "adagrad": lambda jax: _adagrad,
    "ftrl": lambda jax: _ftrl,
}

GAPS: tuple[Gap, ...] = ()
