"""Frameworks tell how often a first call compiled, and what its phases took."""

from __future__ import annotations

import importlib.util
import shutil

import pytest

from fwbench.frameworks.compilation import watch_functions
from support import programs

_TIMED = ("trace", "lower", "compile", "load from cache")

#: By framework, what calls a function that it compiles, and the phases; those of JAX and TensorFlow
#: are traced within the trace of another function.
_CALLS = {
    "torch": ("torch.compile(function)(torch.ones(8))", _TIMED),
    "jax": (
        "jax.jit(lambda x: jax.jit(function)(x))(jax.numpy.ones(8)).block_until_ready()",
        _TIMED,
    ),
    "tensorflow": (
        "tensorflow.function(lambda x: tensorflow.function(function)(x))(tensorflow.ones(8))",
        ("trace", "optimise, compile and run"),
    ),
    "mxnet": (
        "block(mxnet.gluon.nn.HybridLambda(lambda F, x: function(x)))(mxnet.nd.ones(8)).asnumpy()",
        ("trace", "infer shapes", "bind", "plan memory and enqueue"),
    ),
    "onnxruntime": (
        "watched.session(model_of(watched.namespace.Tanh, [numpy.ones(8)]))",
        ("load", "optimise"),
    ),
}

_SCRIPT = """
import json, time, numpy
from fwbench.frameworks import registry

watched = registry.load("FRAMEWORK", 1)
import FRAMEWORK
if "FRAMEWORK" == "onnxruntime":
    from fwbench.frameworks.onnxruntime.kernels import model_of

def block(made):
    made.hybridize()
    return made

def call(*functions):
    compiled, start_s = watched.watch_compilation(), time.perf_counter()
    for function in functions:
        CALL
    took_s = time.perf_counter() - start_s
    return *compiled(), took_s

call(lambda x: x - 1)
print(json.dumps([call(), call(lambda x: x + 1), call(lambda x: x * 2, lambda x: x * x - 3)]))
"""


@pytest.mark.parametrize("framework", _CALLS)
def test_a_call_that_compiles_twice_says_so(framework: str) -> None:
    if importlib.util.find_spec(framework) is None:
        pytest.skip(f"{framework} is not installed")
    if framework == "torch" and not shutil.which("g++"):
        pytest.skip("torch.compile needs a C++ compiler")
    call, phases = _CALLS[framework]
    script = _SCRIPT.replace("CALL", call).replace("FRAMEWORK", framework)
    (none, *_), (once, phases_s, took_s), (twice, *_) = programs.result("-c", script)
    assert (none, once, twice) == (0, 1, 2)
    assert tuple(phases_s) == phases
    assert min(phases_s.values()) >= 0
    assert 0 < sum(phases_s.values()) < took_s


class _Compiler:
    """Its functions call each other."""

    def whole(self, depth: int) -> int:
        return self.part(depth) + 1

    def part(self, depth: int) -> int:
        if depth < 0:
            raise ValueError(depth)
        return self.whole(depth - 1) if depth else 0


def test_functions_are_replaced_while_they_are_watched_and_not_longer() -> None:
    """Calls within one another count once; an error ends nothing."""
    before = dict(vars(_Compiler))
    compiled = watch_functions({"a": (_Compiler, "whole"), "b": (_Compiler, "part")}, "a")
    assert _Compiler().whole(2) == 3
    with pytest.raises(ValueError, match="-1"):
        _Compiler().whole(-1)
    compilation = compiled()
    assert compilation is not None
    assert compilation.number == 2
    assert min(compilation.phases_s.values()) > 0
    assert dict(vars(_Compiler)) == before


def test_a_version_without_one_of_the_functions_tells_nothing() -> None:
    before = dict(vars(_Compiler))
    compiled = watch_functions({"a": (_Compiler, "whole"), "b": (_Compiler, "gone")}, "a")
    assert compiled() is None
    assert dict(vars(_Compiler)) == before
