"""Reductions of an n x m matrix: to a number, or every row (or column) to one."""

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fwbench.terms.presets import Shape, sizes_of
from fwbench.workloads.operation import Operation, family
from fwbench.workloads.workload import Counts

Arrays = tuple[NDArray[Any], ...]
Reference = Callable[[NDArray[Any]], Any]

_SIZES = sizes_of("reductions")["matrix"]


def _numbers(size: Shape, rng: np.random.Generator) -> NDArray[Any]:
    return rng.standard_normal((size["n"], size["m"]))


def _sum_off_zero(size: Shape, rng: np.random.Generator) -> Arrays:
    """Numbers of both signs with a sum of some four times the root of their number."""
    x = _numbers(size, rng)
    return (x + 4.0 / np.sqrt(x.size),)


def _mean_off_zero(size: Shape, rng: np.random.Generator) -> Arrays:
    """A variance that forgets the mean is wrong; sums do not come back to zero from far off."""
    return (_numbers(size, rng) + 1.0,)


def _small(size: Shape, rng: np.random.Generator) -> Arrays:
    """The sum of the squares of a million of them is a number of float16, too."""
    return (_numbers(size, rng) / 8.0,)


def _near_one(size: Shape, rng: np.random.Generator) -> Arrays:
    """Numbers of both signs whose product neither overflows nor vanishes."""
    x = np.exp(_numbers(size, rng) / np.sqrt(size["m"]))
    return (np.copysign(x, _numbers(size, rng)),)


def _peaks(size: Shape, rng: np.random.Generator) -> Arrays:
    """One largest and one smallest number in every row: also when rounded there are no ties."""
    x = np.clip(_numbers(size, rng), -4.0, 4.0)
    places = rng.random(x.shape).argsort(axis=1)
    for place, sign in ((0, 1.0), (-1, -1.0)):
        peaks = sign * (5.0 + rng.random((size["n"], 1)))
        np.put_along_axis(x, places[:, [place]], peaks, axis=1)
    return (x,)


def _rare(size: Shape, rng: np.random.Generator) -> Arrays:
    """True in about every other row."""
    return (rng.random((size["n"], size["m"])) < np.log(2) / size["m"],)


def _reduction(
    name: str,
    reference: Reference,
    inputs: Callable[[Shape, np.random.Generator], Arrays] = _sum_off_zero,
    *,
    results: str = "n",
    flops: int = 1,
    gradient: tuple[int, int] | None = (0, 1),
    terms: Callable[[Shape], int] = lambda size: size["m"],
    **more: Any,
) -> Operation:
    """A reduction.

    Args:
        results: how many: one (empty), ``n`` (of rows), ``m`` (of columns), or ``nm``.
        flops: for each element.
        gradient: FLOPs for each element, and how many arrays as large as x the gradient reads and
            writes; None where there is no gradient.
        terms: that an element of the result adds up.
    """
    sums, arrays = gradient or (0, 0)
    counts = Counts("nm", results or "1", f"{arrays}nm", f"{sums}nm", f"{flops}nm")
    return Operation(
        name=name,
        inputs=inputs,
        reference=reference,
        sizes=_SIZES,
        cost=counts.forward,
        backward_cost=counts.backward if gradient else None,
        differentiable=gradient is not None,
        terms=terms,
        **more,
    )


def _logsumexp(x: NDArray[Any]) -> NDArray[Any]:
    peaks = np.max(x, axis=1)
    return np.asarray(np.log(np.sum(np.exp(x - peaks[:, None]), axis=1)) + peaks)


def _every(size: Shape) -> int:
    return size["n"] * size["m"]


def _as_integers(*indices: NDArray[Any]) -> Arrays:
    """Compared without a tolerance, in which the next index might be right."""
    return tuple(np.asarray(x, dtype=np.int64) for x in indices)


_extreme = partial(_reduction, inputs=_peaks, terms=lambda _: 1)
_index = partial(_extreme, gradient=None, compared=_as_integers, branching=True)

# Along rows, which are one after the other in memory, unless the name says otherwise.
REDUCTIONS = family(
    "reductions",
    # What every loss and every normalisation ends with.
    ("sum_rows",),
    _reduction("sum", np.sum, results="", terms=_every),
    _reduction("sum_columns", partial(np.sum, axis=0), results="m", terms=lambda size: size["n"]),
    _reduction("sum_rows", partial(np.sum, axis=1)),
    _reduction("mean", partial(np.mean, axis=1), _mean_off_zero),
    # Not corrected for the degree of freedom that the mean takes.
    _reduction("variance", partial(np.var, axis=1), _mean_off_zero, flops=4, gradient=(2, 2)),
    _reduction("std", partial(np.std, axis=1), _mean_off_zero, flops=4, gradient=(2, 2)),
    _extreme("max", partial(np.max, axis=1), gradient=(1, 2)),
    _extreme("min", partial(np.min, axis=1), gradient=(1, 2)),
    _reduction("prod", partial(np.prod, axis=1), _near_one, gradient=(1, 2)),
    # Euclidean, of all elements.
    _reduction("norm", np.linalg.norm, _small, results="", flops=2, gradient=(1, 2), terms=_every),
    _reduction("logsumexp", _logsumexp, flops=4, gradient=(3, 2)),
    _reduction("cumsum", partial(np.cumsum, axis=1), _mean_off_zero, results="nm", gradient=(1, 1)),
    _reduction("any", partial(np.any, axis=1), _rare, gradient=None, terms=lambda _: 1),
    _index("argmax", partial(np.argmax, axis=1)),
    _index("argmin", partial(np.argmin, axis=1)),
)
