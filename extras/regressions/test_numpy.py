"""Functions of NumPy that sort."""

import numpy as np


def test_argsort_of_sorted(benchmark):
    values = np.sort(np.random.default_rng(0).integers(0, 1000, 10**5))
    benchmark(values.argsort)


def test_argsort_of_unsorted(benchmark):
    values = np.random.default_rng(0).integers(0, 1000, 10**5)
    benchmark(values.argsort)


def test_unique_of_distinct(benchmark):
    benchmark(np.unique, np.random.default_rng(0).permutation(10**5))


def test_unique_of_repeated(benchmark):
    benchmark(np.unique, np.random.default_rng(0).permutation(np.repeat(np.arange(10), 10**4)))
