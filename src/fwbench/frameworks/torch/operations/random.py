"""PyTorch: random numbers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from fwbench.frameworks.table import Call, Table
from fwbench.manifest import Gap
from fwbench.workloads.operation import Implementation
from fwbench.workloads.operations.random import DROPPED


def _filled(draw: Callable[..., Any]) -> Implementation:
    """An implementation of ``draw(torch, n, dtype=..., device=...)``."""
    return lambda torch, n: lambda like: draw(torch, n, dtype=like.dtype, device=like.device)


OPERATIONS: Table = {
    "random_uniform": _filled(lambda torch, n, **place: torch.rand(n, **place)),
    "random_normal": _filled(lambda torch, n, **place: torch.randn(n, **place)),
    "random_bernoulli": "bernoulli",
    "random_integers": lambda torch, n: (
        lambda like: torch.randint(100, (n,), dtype=torch.int32, device=like.device)
    ),
    # What torch.distributions.Gamma(alpha, 1).sample() calls.
    "random_gamma": "_standard_gamma",
    "random_poisson": "poisson",
    "random_exponential": _filled(
        lambda torch, n, **place: torch.empty(n, **place).exponential_(2.0)
    ),
    "random_shuffle": lambda torch: lambda x: x[torch.randperm(len(x), device=x.device)],
    "random_categorical": lambda torch, n: lambda p: torch.multinomial(p, n, replacement=True),
    "dropout": Call("nn.functional.dropout", p=DROPPED),
}

GAPS: tuple[Gap, ...] = tuple(
    Gap(f"torch has no {dtype} gamma numbers on the CPU", "random_gamma", dtype=dtype, device="cpu")
    for dtype in ("float16", "bfloat16")
)
