"""Distinct values in each group, by Polars."""

import numpy as np
import polars as pl


def test_distinct_by_group(benchmark):
    values = np.repeat(np.arange(4096), 2)
    frame = pl.DataFrame({"a": values, "b": values})
    benchmark(lambda: frame.group_by("a").agg(pl.col("b").n_unique()))
