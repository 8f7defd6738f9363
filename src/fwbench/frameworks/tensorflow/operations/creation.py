"""TensorFlow: new arrays that are not made of host data."""

from __future__ import annotations

from fwbench.frameworks.table import Table
from fwbench.manifest import Gap

OPERATIONS: Table = {
    "zeros_like": "zeros_like",
    "arange": lambda tf, n: lambda x: tf.range(n, dtype=tf.int32),
}

GAPS: tuple[Gap, ...] = ()
