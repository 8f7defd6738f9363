"""A framework that fwbench knows nothing of: NumPy in one thread, whose calls return at once.

``Project.install`` in projects.py makes a package of this file; its entry point is all that fwbench
gets to see.
"""

import os
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from typing import Any, ClassVar

import numpy as np

from fwbench import Capabilities, Framework

#: As it stood when this module was imported, which is when a framework reads it.
OMP_NUM_THREADS_AT_IMPORT = os.environ.get("OMP_NUM_THREADS")

_IMAGINARY = 1e-30

_thread = ThreadPoolExecutor(max_workers=1)


def _value(function: Callable[..., Any], *inputs: "Future[Any]") -> Any:
    return function(*(x.result() for x in inputs))


def _inline(function: Callable[..., Any], *arguments: Any) -> "Future[Any]":
    future: Future[Any] = Future()
    future.set_result(function(*arguments))
    return future


_EXECUTIONS: dict[str, Callable[..., "Future[Any]"]] = {"eager": _thread.submit, "inline": _inline}


class Pool(Framework):
    """Arrays are futures; what is submitted first is done first."""

    name = "pool"
    version = "1.0"
    namespace = np
    capabilities = Capabilities(executions=tuple(_EXECUTIONS), on_request=("inline",))
    operations: ClassVar = {
        "sigmoid": lambda np: lambda x: 1.0 / (1.0 + np.exp(-x)),
        "tanh": lambda np: np.tanh,
        "noop": lambda np: lambda x: x,
    }

    def set_threads(self, threads: int) -> None:
        """There is one."""

    def threads(self) -> None:
        """It cannot be told."""

    def creator(self, device: str, dtype: str) -> Callable[[Any], Any]:
        return partial(_thread.submit, np.array, dtype=dtype)

    def to_numpy(self, array: "Future[Any]") -> Any:
        return array.result()

    def waiter(self, device: str) -> Callable[[], Any]:
        return lambda: _thread.submit(int).result()

    def forward(self, implementation: Any, inputs: Sequence[Any], execution: str) -> Any:
        return partial(_EXECUTIONS[execution], _value, implementation(np), *inputs)

    def backward(
        self,
        implementation: Any,
        inputs: Sequence[Any],
        variables: Sequence[int],
        cotangent: Any,
        execution: str,
    ) -> Any:
        """By a complex step, which is exact element by element."""
        function = implementation(np)

        def gradient(*values: Any) -> Any:
            *xs, g = values
            return g * np.imag(function(*xs)) / _IMAGINARY

        def call(*inputs: Any) -> Any:
            *xs, _ = inputs
            submit = _EXECUTIONS[execution]
            return submit(_value, function, *xs), [
                submit(_value, partial(_stepped, gradient, i), *inputs) for i in variables
            ]

        return partial(call, *inputs, cotangent)

    def toggles(self) -> dict[str, Any]:
        return {"omp_num_threads_at_import": OMP_NUM_THREADS_AT_IMPORT}


def _stepped(gradient: Callable[..., Any], i: int, *values: Any) -> Any:
    return gradient(*values[:i], values[i] + _IMAGINARY * 1j, *values[i + 1 :])
