"""What MXNet's planner reserves for the results of a graph.

Blocks do not tell; executors do, in whole MiB, and plan in the same way.
"""

from __future__ import annotations

import os
import re
import tempfile
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import IO, Any

import mxnet as mx

from fwbench.frameworks.mxnet import strategies

#: The end of an executor's description.
_TOTAL = re.compile(r"Total (\d+) MB allocated")

#: Lets a process write every plan to its error output, from its first executor on.
_LOGGED = "MXNET_MEM_PLAN_VERBOSE_LOGGING"

#: How far the size of memory may be from that of the result which takes it; 0: no result does.
_MATCH_RANGE = "NNVM_EXEC_MATCH_RANGE"


def planned_bytes(
    graph: Any, arrays: Mapping[str, Any], *, training: bool, constant: Collection[str] = ()
) -> int:
    """What is reserved for the results of a graph, inputs and their gradients apart.

    Args:
        graph: a symbol.
        arrays: values of its inputs, by their names; those of parameters may be left out.
        training: whether there is a backward pass.
        constant: the inputs that it does not go to.
    """
    return _allocated_bytes(_executor(graph, arrays, training=training, constant=constant))


def by_strategy(
    graph: Any, arrays: Mapping[str, Any], *, training: bool, constant: Collection[str] = ()
) -> dict[str, int]:
    """What is reserved by what the planner shares: nothing, in place, between results, both.

    The process must not have made an executor before.

    Args:
        graph: a symbol.
        arrays: values of its inputs, by their names; those of parameters may be left out.
        training: whether there is a backward pass.
        constant: the inputs that it does not go to.
    """
    how: dict[str, Any] = {"training": training, "constant": constant}
    with _set(_LOGGED, "1"), _errors() as log:
        executor = _executor(graph, arrays, **how)
        log.seek(0)
        gradients = [array.shape for array in executor.grad_arrays if array is not None]
        computed = strategies.computed(log.read(), gradients)
        both = _allocated_bytes(executor)
        with _set(_MATCH_RANGE, "0"):
            in_place = _allocated_bytes(_executor(graph, arrays, **how))
    return {**computed, "in place": in_place, "both": both}


def _executor(
    graph: Any, arrays: Mapping[str, Any], *, training: bool, constant: Collection[str]
) -> Any:
    # Executors would put oneDNN's fused operators into a graph, and blocks do not. It is read when
    # an executor is made; this process times nothing.
    os.environ["MXNET_SUBGRAPH_BACKEND"] = "NONE"
    requests = {
        name: "write" if training and name not in constant else "null"
        for name in graph.list_arguments()
    }
    context = next(iter(arrays.values())).context
    shapes = {name: array.shape for name, array in arrays.items()}
    return graph.simple_bind(ctx=context, grad_req=requests, **shapes)


def _allocated_bytes(executor: Any) -> int:
    total = _TOTAL.search(executor.debug_str())
    assert total is not None  # noqa: S101 (every description ends so)
    return int(total[1]) * 2**20


@contextmanager
def _set(name: str, value: str) -> Iterator[None]:
    """An environment variable while executors are made."""
    before = os.environ.get(name)
    os.environ[name] = value
    try:
        yield
    finally:
        if before is None:
            del os.environ[name]
        else:
            os.environ[name] = before


@contextmanager
def _errors() -> Iterator[IO[str]]:
    """A file with what the process writes to its error output, MXNet's own log among it."""
    with tempfile.TemporaryFile("w+", encoding="utf-8", errors="replace") as file:
        before = os.dup(2)
        os.dup2(file.fileno(), 2)
        try:
            yield file
        finally:
            os.dup2(before, 2)
            os.close(before)


def of_operation(
    function: Callable[..., Any], inputs: Sequence[Any], variables: Sequence[int] = ()
) -> int:
    """What is reserved for the results of an operation.

    Args:
        function: takes symbols.
        inputs: arrays.
        variables: the positions of those that it is differentiated by; none for a forward pass.
    """
    arrays = {f"input{number}": array for number, array in enumerate(inputs)}
    result = function(*map(mx.sym.var, arrays))
    graph = mx.sym.Group([*result]) if isinstance(result, list | tuple) else result
    constant = [name for number, name in enumerate(arrays) if number not in variables]
    return planned_bytes(graph, arrays, training=bool(variables), constant=constant)
