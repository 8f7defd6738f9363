"""Geometries of Shapely."""

import numpy as np
import shapely


def test_new_polygon(benchmark):
    coordinates = ((0.0, 0.0), (0.0, 1.0), (1.0, 1.0), (1.0, 0.0), (0.0, 0.0))
    benchmark(shapely.Polygon, coordinates)


def test_equal_lines(benchmark):
    points = np.random.default_rng(0).random((20, 2))
    one, other = shapely.LineString(points), shapely.LineString(points + 1)
    benchmark(lambda: one == other)
