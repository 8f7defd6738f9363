"""Random numbers: their moments are those of the textbook, and those of NumPy's generator."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from fwbench.cases.random import check_moments, check_range
from fwbench.errors import WrongResult
from fwbench.workloads import RANDOM, Operation
from fwbench.workloads.operation import Moments
from support.operations import for_each

N = 20_000

#: Mean, variance, kurtosis at the operand p, alpha or rate: by formula.
TEXTBOOK: dict[str, Callable[[float], tuple[float, float, float]]] = {
    "random_uniform": lambda _: (0.5, 1 / 12, 1.8),
    "random_normal": lambda _: (0, 1, 3),
    "random_bernoulli": lambda p: (p, p * (1 - p), (1 - 3 * p * (1 - p)) / (p * (1 - p))),
    "random_integers": lambda _: (49.5, (100**2 - 1) / 12, 1.8 - 2.4 / (100**2 - 1)),
    "random_gamma": lambda alpha: (alpha, alpha, 3 + 6 / alpha),
    "random_poisson": lambda rate: (rate, rate, 3 + 1 / rate),
    "random_exponential": lambda _: (0.5, 0.25, 9),
    "random_shuffle": lambda _: ((N - 1) / 2, (N**2 - 1) / 12, 1.8 - 2.4 / (N**2 - 1)),
    "dropout": lambda _: (1, 1, 1),
}

#: The same numbers from NumPy's generator.
DRAWN: dict[str, Callable[..., Any]] = {
    "random_uniform": lambda rng, _: rng.random(N),
    "random_normal": lambda rng, _: rng.standard_normal(N),
    "random_bernoulli": lambda rng, p: rng.binomial(1, p),
    "random_integers": lambda rng, _: rng.integers(100, size=N),
    "random_gamma": lambda rng, alpha: rng.gamma(alpha),
    "random_poisson": lambda rng, rates: rng.poisson(rates),
    "random_exponential": lambda rng, _: rng.exponential(0.5, N),
    "random_shuffle": lambda rng, x: rng.permutation(x),
    "random_categorical": lambda rng, p: rng.choice(4, N, p=p),
    "dropout": lambda rng, x: np.where(rng.random(N) < 0.5, 0.0, 2.0 * x),
}


def moments_of(operation: Operation) -> Moments:
    assert operation.moments is not None
    return operation.moments(N, *operation.operands(N))


def check(drawn: NDArray[Any], moments: Moments) -> None:
    check_range(drawn, moments, 1e-12)
    check_moments(drawn, moments, 0.0)


@for_each(RANDOM)
def test_moments_are_the_textbooks(operation: Operation) -> None:
    """Mean, variance and kurtosis by the formulas; those of four categories by their sums."""
    result, operand = moments_of(operation), operation.operands(N)[0]
    if operation.name == "random_categorical":
        p = [float(x) for x in operand]
        mean = sum(i * x for i, x in enumerate(p))
        expected = (mean, sum((i - mean) ** 2 * x for i, x in enumerate(p)), result.kurtosis)
    else:
        expected = TEXTBOOK[operation.name](float(operand.flat[0]))
    assert (result.mean, result.variance, result.kurtosis) == pytest.approx(expected, rel=1e-6)


@for_each(RANDOM)
def test_numpys_numbers_have_them(operation: Operation) -> None:
    """An honest generator's numbers pass, and have the shape of the reference."""
    operands = operation.operands(N)
    result = DRAWN[operation.name](np.random.default_rng(11), *operands)
    assert result.shape == operation.reference(*operands, *operation.parameters(N)).shape == (N,)
    moments = moments_of(operation)
    drawn = np.asarray(moments.drawn(result, *operands), dtype=float)
    check(drawn, moments)


@for_each(RANDOM)
def test_numbers_of_another_distribution_have_not(operation: Operation) -> None:
    moments = moments_of(operation)
    drawn = DRAWN[operation.name](np.random.default_rng(11), *operation.operands(N))
    drawn = np.asarray(moments.drawn(drawn, *operation.operands(N)), dtype=float)
    for wrong in (1.1 * drawn, -drawn if moments.mean else drawn + 0.1):
        with pytest.raises(WrongResult):
            check(wrong, moments)
