"""Random results: no two calls have the same, and all have the moments of their distribution.

A result cannot be compared with another one, so every one that is verified is verified by itself:
by its shape, dtype and range, by mean and variance, and by the correlation of neighbours, which a
ramp or a pattern that repeats would have. An honest generator fails less than one check in 1e9, of
1,000 numbers or more.

If errors were normal, the bounds would be 6.3 standard deviations. Means of skewed numbers are far
off more often, and those of their squares and of products of neighbours more often still. So the
bounds are wider by the first term of Cornish and Fisher's expansion (Abramowitz and Stegun,
26.2.49), with skewnesses that follow from the kurtosis.

Simulated, NumPy's generator, 1,000 numbers: of 4 million samples of exponential ones, 96 had a
variance, 42 a correlation and 6 a mean that was off by more than five standard deviations, at most
7.1, 6.6 and 5.5; 10.8, 10.8 and 6.9 are allowed. Of 100,000 samples of each other distribution of
the suite one was, the mean of normal numbers, by 5.5. By convolution, one in 6e9 sums of 1,000
squares is off by 10.2 (exponential), 9.1 (gamma, shape 1.5) or 6.9 (normal); 10.8, 9.8 and 7.8 are
allowed.
"""

import time
from collections.abc import Iterable, Iterator, Sequence
from math import sqrt
from statistics import NormalDist
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fwbench.cases import verify
from fwbench.cases.forward import Forward, check_count
from fwbench.cases.inputs import digest, in_dtype, is_float, widest
from fwbench.errors import WrongResult
from fwbench.records.facts import CaseFacts
from fwbench.records.units import count
from fwbench.workloads.operation import Moments

#: What a normal mean, variance or correlation may be off by, in standard deviations.
_SIGMAS = NormalDist().inv_cdf(1 - 1e-9 / 6)
#: What is taken for the skewness of squares and of products, as a multiple of the kurtosis. Squares
#: of exponential numbers have 1.2; the rest stands for the further terms of the expansion.
_SKEWNESS = 2.5
#: What a variance may be off by in any case, as a share of it: rounding and truncated tails.
_OF_VARIANCE = 0.05

#: Random numbers are multiples of this in a range of 1, so that much their mean may be off by.
_GRAINS = {"float64": 2.0**-52, "float32": 2.0**-23, "float16": 2.0**-10, "bfloat16": 2.0**-7}


class Random(Forward):
    """An operation whose results are random."""

    def _compare(self, on_host: Sequence[NDArray[Any]]) -> CaseFacts:
        self._checked_numbers(on_host)
        return CaseFacts()

    def _checked_numbers(self, on_host: Sequence[NDArray[Any]]) -> NDArray[Any]:
        """The numbers, if they can be, with those of the distribution taken for 0 and 1."""
        inputs = self._checked(on_host)
        expected = self._reference(inputs)
        check_count(on_host, expected)
        (result,) = self.layout.restore_results(on_host)
        verify.check_shape(result, expected[0].shape)
        self._check_dtype(result)
        assert self.operation.moments is not None  # noqa: S101 (what makes it random)
        operands = self.layout.restore([*map(widest, inputs)])
        moments = self.operation.moments(self.cell.size, *operands)
        drawn = moments.drawn(result.astype(np.float64), *operands)
        check_range(drawn, moments, self.allowed)
        return check_moments(drawn, moments, _GRAINS[self.cell.dtype])

    def _verify_last(self, result: Any, right: Sequence[int]) -> CaseFacts:
        """And the numbers of the next calls have nothing to do with it."""
        facts = super()._verify_last(result, right)
        if not self._on_zeros:
            read = self._read(result)
            check_unrelated(*map(self._checked_numbers, (read, self._read(self.run()))))
            check_new(read[0], self._later())
        return facts

    def _later(self) -> Iterator[NDArray[Any]]:
        """The numbers of further calls, as many as there is time for."""
        until_s = time.monotonic() + _CALLS_S
        for _ in range(_CALLS):
            yield self._read(self.run())[0]
            if time.monotonic() > until_s:
                return

    def _check_dtype(self, result: NDArray[Any]) -> None:
        """Numbers of float32 in a case of float64 would be half of the work."""
        expected = in_dtype(np.zeros(1), self.cell.dtype).dtype
        if is_float(result) and result.dtype != expected:
            raise WrongResult(
                f"the random numbers are {result.dtype}, and the case is in {self.cell.dtype}"
            )

    def _verify_same(self, result: Any, right: Sequence[int]) -> CaseFacts:
        """Verify as :meth:`verify`: the same numbers as in an earlier call would be wrong."""
        if [digest(array) for array in self._read(result)] == right:
            raise WrongResult("the numbers are those of the first call; draw new ones in each")
        return self.verify(result)


def check_range(drawn: NDArray[Any], moments: Moments, allowed: float) -> None:
    """Check that every number is one that the distribution has.

    Raises:
        WrongResult: one is not.
    """
    if not np.all(np.isfinite(drawn)):
        raise WrongResult("among the random numbers are infinities or NaNs")
    low, high = float(np.min(drawn)), float(np.max(drawn))
    if low < moments.lowest or high > moments.highest:
        raise WrongResult(
            f"the random numbers are between {low:.9g} and {high:.9g}, those of the distribution "
            f"between {moments.lowest:.9g} and {moments.highest:.9g}"
        )
    if moments.values is not None:
        off = _off(drawn, np.array(moments.values))
        if np.any(off > allowed * np.maximum(np.abs(drawn), 1.0)):
            worst = drawn[np.argmax(off)]
            raise WrongResult(f"the distribution has no such number as {worst:.9g}")
    if moments.distinct and len(np.unique(drawn)) < drawn.size:
        raise WrongResult("a number occurs twice, and every one should occur once")


def _off(drawn: NDArray[Any], values: NDArray[Any]) -> NDArray[Any]:
    """Distance of each number from the nearest of a few."""
    above = np.clip(np.searchsorted(values, drawn), 1, len(values) - 1)
    return np.minimum(np.abs(drawn - values[above - 1]), np.abs(drawn - values[above]))


#: Two calls' numbers are compared up to so many, and may be correlated by this at any lag, and so
#: many standard deviations of independent ones. Of 1,000 numbers these are 0.48.
_COMPARED = 2**22
_CORRELATED, _LAG_SIGMAS = 0.1, 12.0


def check_unrelated(x: NDArray[Any], y: NDArray[Any]) -> None:
    """Check that the numbers of two calls are not the same ones in turned order.

    Args:
        x: with the mean 0 and the variance 1, like ``y``.

    Raises:
        WrongResult: they are correlated at a lag.
    """
    x, y = x[:_COMPARED], y[:_COMPARED]
    spectrum = np.fft.rfft(x) * np.conj(np.fft.rfft(y))
    correlations = np.abs(np.fft.irfft(spectrum, x.size)) / x.size
    lag = int(np.argmax(correlations))
    if correlations[lag] > _CORRELATED + _LAG_SIGMAS / sqrt(x.size):
        raise WrongResult(
            f"the random numbers of two calls have a correlation of {correlations[lag]:.3g} where "
            f"one is turned by {lag} of {x.size}; draw new ones in each call"
        )


#: Calls that come after it, and how long they may take. Pools of numbers that were drawn ahead are
#: found where they are used again within these.
_CALLS, _CALLS_S = 16, 0.2

#: So many numbers in a row are looked for, from so many places, in so many of a call, and may be
#: there at so many of these places by chance.
_ROW, _PLACES, _SEARCHED, _BY_CHANCE = 8, 64, 2**18, 3


def check_new(numbers: NDArray[Any], others: Iterable[NDArray[Any]]) -> None:
    """Check that later calls do not return the numbers of a call, turned or in reverse order.

    Of few numbers, or few different ones, such as ones and zeros, nothing is known: rows of them
    are there by chance.

    Raises:
        WrongResult: numbers in a row are there again.
    """
    if numbers.size < _ROW * _PLACES:
        return
    rows = _rows(numbers)
    chosen = np.unique(np.random.default_rng().choice(rows, _PLACES))
    if _found(chosen, rows).size > chosen.size + _BY_CHANCE:
        return
    for call, other in enumerate(others, 1):
        found = np.unique(_found(chosen, _rows(other.reshape(-1)[:_SEARCHED]))).size
        if found > _BY_CHANCE:
            raise WrongResult(
                f"numbers of a call are there again {count(call, 'call')} later: {_ROW} in a row "
                f"from {found} of {chosen.size} places; draw new ones in each call"
            )


def _rows(numbers: NDArray[Any]) -> NDArray[np.uint64]:
    """A hash of each so many numbers in a row, whatever their order."""
    bits = np.ascontiguousarray(numbers).reshape(-1)
    mixed = bits.view(f"u{bits.itemsize}").astype(np.uint64) + np.uint64(1)
    for factor, shift in _MIXING:
        mixed = (mixed ^ (mixed >> shift)) * factor
    sums = np.cumsum(mixed)
    return sums[_ROW:] - sums[:-_ROW]


def _found(chosen: NDArray[np.uint64], rows: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """The rows that are among the chosen ones, which are sorted."""
    places = np.minimum(np.searchsorted(chosen, rows), chosen.size - 1)
    return rows[chosen[places] == rows]


#: Of splitmix64 (Steele, Lea and Flood, "Fast splittable pseudorandom number generators", 2014).
_MIXING = (
    (np.uint64(0xBF58476D1CE4E5B9), np.uint64(30)),
    (np.uint64(0x94D049BB133111EB), np.uint64(27)),
)


def check_moments(drawn: NDArray[Any], moments: Moments, grain: float) -> NDArray[Any]:
    """Check that numbers have the mean and the variance of a distribution, and are independent.

    Args:
        grain: numbers in a range of 1 are multiples of it.

    Returns:
        They, with the mean and the deviation of the distribution taken for 0 and 1.

    Raises:
        WrongResult: they have not, or are not.
    """
    sigma = sqrt(moments.variance)
    x = (drawn.ravel() - moments.mean) / sigma
    coarse = grain * max(1.0, abs(moments.mean) / sigma)
    of_squares = sqrt(max(0.0, moments.kurtosis - 1.0))  # their standard deviation
    of_mean = _allowed(of_squares, x.size)  # no skewness is larger (Pearson, 1916)
    of_products = _allowed(_SKEWNESS * moments.kurtosis, x.size)
    errors = {
        "mean": (float(np.mean(x)), of_mean + coarse),
        "variance": (float(np.var(x)) - 1.0, max(_OF_VARIANCE, of_squares * of_products)),
        "correlation of neighbours": (float(np.mean(x[1:] * x[:-1])), of_products + coarse),
    }
    for name, (off, allowed) in errors.items():
        if not abs(off) <= allowed:
            raise WrongResult(
                f"the {name} of the random numbers, with those of the distribution taken for 0 and "
                f"1, is off by {off:.3g}; {allowed:.3g} is allowed for {x.size} numbers"
            )
    return x


def _allowed(skewness: float, size: int) -> float:
    """Allowed error of a mean, in standard deviations of its numbers."""
    deviations = _SIGMAS + (_SIGMAS**2 - 1) / 6 * skewness / sqrt(size)
    return deviations / sqrt(size)
