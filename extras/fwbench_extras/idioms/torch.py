"""Other public ways of PyTorch to compute operations, and why they are not called."""

from __future__ import annotations

from typing import Any

import torch
from torch.nn import functional

from fwbench.frameworks.layout import CHANNELS_FIRST, axes
from fwbench.frameworks.table import Call, Laid, Table
from fwbench.frameworks.torch import formats, kernels
from fwbench.frameworks.torch.operations import FUSED, IMAGES, OPERATIONS
from fwbench.workloads.operations.normalisation import EPSILON
from fwbench.workloads.operations.random import DROPPED
from fwbench_extras.idioms.table import Idiom, Idioms, beside, by


def instances_as_groups(x: Any, gamma: Any, beta: Any) -> Any:
    return functional.group_norm(x, x.shape[1], gamma, beta, EPSILON)


#: Other ways than PyTorch's own function for an operation, by the operation.
_FORMULAS: dict[str, Table] = {
    "square": {"x * x": by(lambda x: x * x), "x ** 2": by(lambda x: x**2)},
    "clip": {"hardtanh": Call("nn.functional.hardtanh", min_val=-0.5, max_val=0.5)},
    "multiply_add": {"x * y + z": by(lambda x, y, z: x * y + z)},
    "where": {"lerp": by(lambda c, x, y: torch.lerp(y, x, c.to(x.dtype)))},
    "mean": {"sum / n": by(lambda x: x.sum(1) / x.shape[1])},
    "variance": {
        "var_mean": by(lambda x: torch.var_mean(x, 1, correction=0)[0]),
        "mean of squares": by(lambda x: (x - x.mean(1, keepdim=True)).square().mean(1)),
    },
    "std": {"mean of squares": by(lambda x: (x - x.mean(1, keepdim=True)).square().mean(1).sqrt())},
    "max": {"max": by(lambda x: x.max(1).values)},
    "min": {"min": by(lambda x: x.min(1).values)},
    "argmax": {"max": by(lambda x: x.max(1).indices)},
    "any": {"amax": Call("amax", dim=1), "sum > 0": by(lambda x: x.sum(1) > 0)},
    "dot": {"sum(x * y)": by(lambda x, y: (x * y).sum()), "vdot": "vdot", "inner": "inner"},
    "l2_normalize": {"x / norm": by(lambda x: x / x.norm(dim=1, keepdim=True))},
    "outer": {"matmul": by(lambda x, y: x[:, None] @ y[None]), "ger": "ger"},
    "einsum": {"bmm": by(lambda x, y: torch.bmm(x, y.mT))},
    "instance_norm": {"group_norm": Laid(lambda torch: instances_as_groups, CHANNELS_FIRST)},
    "global_avg_pool": {
        "mean": formats.laid(Laid(Call("mean", dim=(2, 3), keepdim=True), CHANNELS_FIRST))
    },
    "huber": {"huber_loss": "nn.functional.huber_loss"},
    "gather_rows": {"x[i]": by(lambda x, i: x[i])},
    "embedding": {"x[i]": by(lambda w, i: w[i])},
    "gather_nd": {
        "take": Laid(by(lambda x, i: x.take(i[0] * x.shape[1] + i[1])), axes("", "kc->ck"))
    },
    "one_hot": {
        "scatter_": lambda _, d: lambda i: torch.zeros(len(i), d).scatter_(1, i[:, None], 1)
    },
    "boolean_mask": {"x[mask]": by(lambda x, mask: x[mask])},
    "sort": {"stable": by(lambda x: torch.sort(x, dim=1, stable=True).values)},
    "unique": {"sorted=False": Call("unique", sorted=False)},
    "tile": {"cat": by(lambda x: torch.cat([torch.cat([x] * 3, 1)] * 2))},
    "random_bernoulli": {"rand < p": by(lambda p: (torch.rand_like(p) < p).to(p.dtype))},
    "random_exponential": {
        "log": lambda _, n: lambda like: torch.rand_like(like[:1].expand(n)).log_() / -2
    },
    "random_shuffle": {"x[randperm]": by(lambda x: x[kernels.places(x, torch.int64)])},
    "sgd": {"fused": kernels.optimiser("SGD", fused=True)},
    "dropout": {"rand > p": by(lambda x: x * (torch.rand_like(x) > DROPPED) / (1 - DROPPED))},
}

#: Reasons to call a function that takes longer than another way.
_ACCEPTED = {
    "clip": "hardtanh is an activation, whose gradient is 0 at the bounds",
    "where": "lerp is not defined where the other operand is not finite",
    **dict.fromkeys(
        ("variance", "std"),
        "PyTorch's function for it: on the CPU it adds up in float64, one number after the other, "
        "and on GPUs it reads its operand once, the formula three times",
    ),
    "mean": "the gradient of the sum is a view of one number a row, that of the mean is written",
    "random_bernoulli": "what torch.distributions calls",
    "random_exponential": "of 24 random bits each, the formula's large numbers are few",
    "dropout": "torch.nn.Dropout calls it",
    "tile": "the largest result takes 1.6 times as long by cat; tile's gradient is what is slow",
    **dict.fromkeys(("max", "min"), "max(dim) takes ten times as long without a gradient"),
    "einsum": "it calls bmm once it has read its equation",
    "one_hot": "its numbers are int64, those of the scatter float32",
    "gather_nd": "places in the flattened array are another operand",
}

IDIOMS: Idioms = {
    **beside(
        OPERATIONS,
        "PyTorch's documentation and layers call it",
        _FORMULAS,
        _ACCEPTED,
        "PyTorch's own function for it; the other is a formula",
    ),
    **{
        name: Idiom(
            "channels_last",
            "PyTorch's Performance Tuning Guide recommends it for networks of images",
            {"contiguous (NCHW)": entry, **_FORMULAS.get(name, {})},
            "a network has one memory format, and its layers call these functions",
        )
        for name, entry in IMAGES.items()
    },
    **{
        name: Idiom(
            "fused=True",
            'torch.optim\'s documentation: the fused implementation is "typically" the fastest',
            {"for-loop": step(), "foreach": step(foreach=True)},
        )
        for name, step in FUSED.items()
    },
}
