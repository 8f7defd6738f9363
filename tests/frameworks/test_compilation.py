"""Frameworks tell how often a first call compiled, and what its phases took."""

from __future__ import annotations

import importlib.util
import shutil

import pytest

from support import programs

#: Those of JAX are traced within the trace of another function.
_CALLS = {
    "torch": "torch.compile(function)(torch.ones(8))",
    "jax": "jax.jit(lambda x: jax.jit(function)(x))(jax.numpy.ones(8)).block_until_ready()",
}

_SCRIPT = """
import json, time, FRAMEWORK
from fwbench.frameworks.FRAMEWORK.compilation import watch

def call(*functions):
    compiled, start_s = watch(), time.perf_counter()
    for function in functions:
        CALL
    return *compiled(), time.perf_counter() - start_s

call(lambda x: x - 1)
print(json.dumps([call(), call(lambda x: x + 1), call(lambda x: x * 2, lambda x: x * x - 3)]))
"""


@pytest.mark.skipif(not shutil.which("g++"), reason="torch.compile needs a C++ compiler")
@pytest.mark.parametrize("framework", _CALLS)
def test_a_call_that_compiles_twice_says_so(framework: str) -> None:
    if importlib.util.find_spec(framework) is None:
        pytest.skip(f"{framework} is not installed")
    script = _SCRIPT.replace("CALL", _CALLS[framework]).replace("FRAMEWORK", framework)
    (none, *_), (once, phases_s, took_s), (twice, *_) = programs.result("-c", script)
    assert (none, once, twice) == (0, 1, 2)
    assert [*phases_s] == ["trace", "lower", "compile", "load from cache"]
    assert min(phases_s.values()) >= 0
    assert 0 < sum(phases_s.values()) < took_s
