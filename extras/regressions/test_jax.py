"""Loops and differences of JAX on a CPU."""

import jax
from jax import lax
from jax import numpy as jnp


def test_while_loop(benchmark):
    values = jnp.arange(2**14)

    @jax.jit
    def search(values):
        stop = jnp.max(values)
        return lax.while_loop(
            lambda state: state[0] < stop,
            lambda state: (jnp.maximum(state[0], values[state[1]]), state[1] + 1),
            (0, 0),
        )[1]

    benchmark(lambda: search(values).block_until_ready())


def test_gradient_of_differences(benchmark):
    def squared(x):
        return sum(jnp.sum(jnp.square(jnp.diff(x, axis=axis))) for axis in range(x.ndim))

    gradient = jax.jit(jax.grad(squared))
    x = jax.random.normal(jax.random.key(0), (128, 128, 128), dtype="float32")
    benchmark(lambda: gradient(x).block_until_ready())
