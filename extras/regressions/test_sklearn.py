"""Neighbours of sparse samples in scikit-learn."""

import numpy as np
from scipy import sparse
from sklearn.neighbors import KNeighborsRegressor


def test_neighbours_of_sparse(benchmark):
    x = sparse.random(150, 10_000, density=0.01, format="csr", random_state=0)
    y = np.random.default_rng(0).integers(0, 2, size=150)
    regressor = KNeighborsRegressor(n_neighbors=5).fit(x, y)
    benchmark(regressor.kneighbors, x, return_distance=False)
