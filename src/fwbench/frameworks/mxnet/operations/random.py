"""MXNet: random numbers."""

from __future__ import annotations

from typing import Any

import numpy as np

from fwbench.frameworks.table import Call, Table
from fwbench.manifest import Gap
from fwbench.workloads.operation import Implementation
from fwbench.workloads.operations.random import DROPPED


def _filled(name: str, **keywords: Any) -> Implementation:
    """An implementation of ``F.random_<name>(shape=(n,), dtype=...)``."""
    return lambda F, n: (
        lambda like: getattr(F, f"random_{name}")(shape=(n,), dtype=_dtype(like), **keywords)
    )


def _dtype(like: Any) -> str:
    """Of an array; a symbol does not know it, and float32 is what operators make by default."""
    return np.dtype(getattr(like, "dtype", "float32")).name


OPERATIONS: Table = {
    "random_uniform": _filled("uniform"),
    "random_normal": _filled("normal"),
    "random_bernoulli": lambda F: lambda p: F.random_uniform(shape=p.shape, dtype=_dtype(p)) < p,
    "random_integers": lambda F, n: lambda like: F.random_randint(0, 100, shape=(n,)),
    "random_gamma": lambda F: (
        lambda alpha: F.sample_gamma(alpha, F.ones_like(alpha), dtype=_dtype(alpha))
    ),
    "random_poisson": lambda F: lambda rates: F.sample_poisson(rates, dtype=_dtype(rates)),
    "random_exponential": _filled("exponential", lam=2),
    "random_shuffle": "shuffle",
    "random_categorical": lambda F, n: lambda p: F.sample_multinomial(p, shape=n),
    "dropout": Call("Dropout", p=DROPPED, mode="always"),
}

#: MXNet says that nothing in such a graph requires a gradient.
_NO_GRADIENT = "mxnet hybridizes no block whose results have no gradient by its inputs"

#: Their graphs are made before the dtype is known.
_BY_SYMBOL = "mxnet's symbols know no dtype, and so this operator draws float32 there"

GAPS: tuple[Gap, ...] = (
    *(
        Gap(_NO_GRADIENT, f"random_{name}", execution="hybridize")
        for name in ("uniform", "normal", "bernoulli", "integers", "exponential", "shuffle")
    ),
    *(
        Gap(_BY_SYMBOL, f"random_{name}", execution="hybridize", dtype=dtype)
        for name in ("gamma", "poisson")
        for dtype in ("float64", "float16")
    ),
)
