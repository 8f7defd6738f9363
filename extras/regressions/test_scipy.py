"""Solvers of SciPy."""

import numpy as np
from scipy import optimize


def test_nnls(benchmark):
    random = np.random.default_rng(0)
    benchmark(optimize.nnls, random.random((8, 4)), random.random(8))


def test_linprog(benchmark):
    """A median regression: the sum of absolute errors, in its linear form."""
    random = np.random.default_rng(0)
    samples, features = 200, 10
    x, y = random.random((samples, features)), random.random(samples)
    costs = np.concatenate([np.zeros(2 * features), np.ones(2 * samples)])
    errors = np.eye(samples)
    equations = np.hstack([x, -x, errors, -errors])
    benchmark(optimize.linprog, costs, A_eq=equations, b_eq=y)
