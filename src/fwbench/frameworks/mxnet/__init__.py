"""Apache MXNet: the framework, its operations, its training."""

from operator import methodcaller

from fwbench.frameworks.results import AwaitedArrays


def awaited() -> AwaitedArrays:
    """Its arrays, NumPy's counterparts among them; errors of the work appear in the wait."""
    import mxnet as mx

    return AwaitedArrays(mx.nd.NDArray, methodcaller("wait_to_read"))
