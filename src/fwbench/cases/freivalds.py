"""Is it the product of two matrices? Found out in a sixteenth of the arithmetic of a product.

Freivalds (Probabilistic Machines Can Use Less Running Time, IFIP Congress 1977) multiplies by a
random vector: of a right product C = A B, C r is A (B r). Rounding leaves more in a sum of all
columns than one wrong element may be off by, so columns are taken in groups of 64, each with random
weights of its own, and four times.

A weight is 1 to 2, with a random sign. So an element that is wrong alone in its group shows with
its whole error, if that is more than a sum may be off by, s: eight tolerances of an element. Where
several are wrong, weights may make their errors cancel: whatever the others add up to, the largest
one, off by e, hides for a share s / e of its weights at most, and four times with a probability of
(s / e) ** 4. Elements of another product are off by 1.4 times the root mean square of the result.
In float32, of 4,096 terms, s is 5e-4 of that: such a result passes once in 6e13 times. In bfloat16,
where s is a third of it, it passes once in 300 times, if all that is wrong is in one group of
columns. A call on changed inputs has to pass, too.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from fwbench.cases.verify import Deviation
from fwbench.errors import VerificationError

#: So many columns are added up, with so many sets of weights.
GROUP = 64
REPETITIONS = 4

#: What a sum may be off by, for each of the square root of its columns: of an element's tolerance.
#: Seen of products of 256 to 2,048 terms: 0.09 in float32, 0.28 in bfloat16 with sums in float32,
#: 1.5 in TF32 where bits are cut off, which moves all elements towards zero.
_OF_TOLERANCE = 1.0
_OF_TF32 = 3.0

#: The mean square of a weight.
_MEAN_SQUARE = 7.0 / 3.0

_SEED = 77


def weights_of(columns: int) -> NDArray[np.float64]:
    """The weights of columns: the same each time, so that a failure can be seen again.

    Args:
        columns: how many.
    """
    rng = np.random.default_rng((_SEED, columns))
    signs = rng.choice((-1.0, 1.0), (REPETITIONS, columns))
    return signs * rng.uniform(1.0, 2.0, (REPETITIONS, columns))


def expected_sums(left: NDArray[Any], right: NDArray[Any]) -> NDArray[np.float64]:
    """The sums of the columns of a product, without the product.

    Args:
        left: ``(..., rows, terms)``.
        right: ``(..., terms, columns)``.

    Returns:
        ``(..., rows, REPETITIONS, groups)``.
    """
    columns = _sums(right, weights_of(right.shape[-1]))
    flat = columns.reshape(*columns.shape[:-2], -1)
    product: NDArray[np.float64] = np.matmul(left.astype(np.float64, copy=False), flat)
    return product.reshape(*product.shape[:-1], *columns.shape[-2:])


def _sums(matrix: NDArray[Any], weights: NDArray[np.float64]) -> NDArray[np.float64]:
    """The weighted sums of each group of columns; the last one may be smaller."""
    whole = matrix.shape[-1] // GROUP * GROUP
    parts = [
        np.einsum(
            "...gk,rgk->...rg",
            columns.reshape(*columns.shape[:-1], -1, size),
            weight.reshape(REPETITIONS, -1, size),
            dtype=np.float64,
        )
        for columns, weight, size in (
            (matrix[..., :whole], weights[:, :whole], GROUP),
            (matrix[..., whole:], weights[:, whole:], matrix.shape[-1] - whole),
        )
        if columns.shape[-1]
    ]
    return np.concatenate(parts, axis=-1)


def compare(
    actual: NDArray[Any],
    expected: NDArray[np.float64],
    limit: float,
    error: type[VerificationError],
    what: str = "the result",
) -> Deviation:
    """Compare a product with what sums of its columns must be.

    Args:
        actual: ``(..., rows, columns)``, of the shape that it must have.
        expected: as :func:`expected_sums` returns them.
        limit: what a sum may be off by, of :func:`sum_tolerance`.
        error: to raise.
        what: it is of, for messages.

    Returns:
        The largest error of a sum, as if a single element had it; and the root mean square of
        errors of elements that have such sums, relative to that of the product.

    Raises:
        VerificationError: of the kind asked for: a sum is off by more than rounding explains.
    """
    weights = weights_of(actual.shape[-1])
    off = _sums(actual, weights) - expected
    columns = _columns(actual)
    scale = _scale(expected, columns)
    errors = np.abs(off) / scale
    errors[~np.isfinite(errors)] = np.inf
    place = np.unravel_index(int(np.argmax(errors)), errors.shape)
    if not errors[place] <= limit:
        *row, repetition, group = map(int, place)
        first, last = group * GROUP, min(actual.shape[-1], (group + 1) * GROUP) - 1
        raise error(
            f"{what} is wrong: the columns {first} to {last} of row {row}, weighted at random "
            f"(Freivalds' method, weights {repetition + 1} of {REPETITIONS}), add up to "
            f"{(off + expected)[place]:.9g}, and those of the NumPy reference to "
            f"{expected[place]:.9g}; relative to an element the error is {errors[place]:.3g}, and "
            f"{limit:.3g} is allowed"
        )
    rms = float(np.sqrt(np.mean((off / scale) ** 2 / columns / _MEAN_SQUARE)))
    return Deviation(float(errors[place]), rms)


def sum_tolerance(allowed: float, *, tf32: bool) -> float:
    """What a weighted sum may be off by, relative to an element.

    Args:
        allowed: the largest relative error allowed of an element.
        tf32: whether factors are rounded to TF32 first.
    """
    return allowed * (_OF_TF32 if tf32 else _OF_TOLERANCE) * float(np.sqrt(GROUP))


def _columns(matrix: NDArray[Any]) -> NDArray[np.float64]:
    """How many columns each group has."""
    starts = np.arange(0, matrix.shape[-1], GROUP)
    return np.minimum(GROUP, matrix.shape[-1] - starts).astype(np.float64)


def _scale(expected: NDArray[np.float64], columns: NDArray[np.float64]) -> NDArray[np.float64]:
    """The root mean square of the elements of each row, or of all where that is larger.

    By the sums: what products of different elements add to their squares has random signs.
    """
    rows = np.mean(expected**2 / columns / _MEAN_SQUARE, axis=(-2, -1), keepdims=True)
    scale: NDArray[np.float64] = np.sqrt(np.maximum(rows, np.mean(rows)))
    return np.where(scale > 0, scale, 1.0)
