"""MXNet's threads: what fwbench reads and places leaves none in the thread that does it."""

from importlib.util import find_spec

import pytest

from support import programs

_COUNTED = """
import json, os
import numpy as np
from fwbench.frameworks.registry import load

mxnet = load("mxnet", 2)
import mxnet as mx

def threads():
    return len(os.listdir("/proc/self/task"))

def convolved():
    # In oneDNN's layout, which the thread that reads it undoes.
    image, kernel = mx.nd.ones((1, 16, 14, 14)), mx.nd.ones((16, 16, 3, 3))
    result = mx.nd.Convolution(image, kernel, num_filter=16, kernel=(3, 3), no_bias=True)
    mx.nd.waitall()
    return result

values = np.random.default_rng(1).standard_normal((1000, 1000))
result = convolved()
before = threads()
large = mxnet.place(values, "cpu", "float32")
is_right = np.allclose(mxnet.to_numpy(large), values)
mxnet.to_numpy(result)
after = threads()
large.asnumpy()
print(json.dumps([before, after, threads(), bool(is_right)]))
"""


@pytest.mark.skipif(find_spec("mxnet") is None, reason="MXNet is not installed")
def test_what_fwbench_copies_leaves_no_threads() -> None:
    """Otherwise those that compute do not wait for each other actively any more."""
    variables = {"OMP_NUM_THREADS": "2"}
    before, after, by_hand, is_right = programs.result("-c", _COUNTED, variables=variables)
    assert is_right
    assert after == before
    assert by_hand == before + 1, "MXNet leaves one by itself"
