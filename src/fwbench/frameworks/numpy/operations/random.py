"""NumPy: random numbers, by a generator as NumPy's manual recommends it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from fwbench.frameworks.table import Table
from fwbench.manifest import Gap
from fwbench.workloads.operation import Implementation


def _drawing(draw: Callable[..., Any]) -> Implementation:
    """An implementation of ``draw(generator, operand, *parameters)``."""

    def implementation(np: Any, *parameters: Any) -> Callable[..., Any]:
        generator = np.random.default_rng()
        return lambda operand: draw(generator, operand, *parameters)

    return implementation


OPERATIONS: Table = {
    "random_uniform": _drawing(lambda of, like, n: of.random(n, like.dtype)),
    "random_normal": _drawing(lambda of, like, n: of.standard_normal(n, like.dtype)),
    "random_bernoulli": _drawing(lambda of, p: of.random(p.size, p.dtype) < p),
    "random_integers": _drawing(lambda of, like, n: of.integers(100, size=n, dtype="int32")),
    "random_gamma": _drawing(lambda of, alpha: of.standard_gamma(alpha, dtype=alpha.dtype)),
    "random_poisson": _drawing(lambda of, rates: of.poisson(rates)),
    "random_exponential": _drawing(lambda of, like, n: of.standard_exponential(n, like.dtype) / 2),
    "random_shuffle": _drawing(lambda of, x: of.permutation(x)),
    "random_categorical": _drawing(lambda of, p, n: of.choice(4, n, p=p)),
}

GAPS: tuple[Gap, ...] = (
    Gap("numpy has no dropout", "dropout"),
    *(
        Gap("numpy draws no float16 numbers", f"random_{name}", dtype="float16")
        for name in ("uniform", "normal", "bernoulli", "gamma", "exponential")
    ),
)
