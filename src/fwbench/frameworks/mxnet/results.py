"""Results of plain functions of MXNet."""

from operator import methodcaller

import mxnet as mx

from fwbench.frameworks.results import AwaitedArrays


def awaited() -> AwaitedArrays:
    """Its arrays, NumPy's counterparts among them; errors of the work appear in the wait."""
    return AwaitedArrays(mx.nd.NDArray, methodcaller("wait_to_read"))
