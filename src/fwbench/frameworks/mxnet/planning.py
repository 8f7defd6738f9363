"""What MXNet's planner reserves for the results of a graph.

Blocks do not tell; executors do, in whole MiB, and plan in the same way.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

import mxnet as mx

#: The end of an executor's description.
_TOTAL = re.compile(r"Total (\d+) MB allocated")


def planned_bytes(
    graph: Any, arrays: Mapping[str, Any], *, training: bool, constant: Collection[str] = ()
) -> int | None:
    """What is reserved for the results of a graph, inputs and their gradients apart.

    Args:
        graph: a symbol.
        arrays: values of its inputs, by their names; those of parameters may be left out.
        training: whether there is a backward pass.
        constant: the inputs that it does not go to.
    """
    # Executors would put oneDNN's fused operators into a graph, and blocks do not. It is read when
    # an executor is made; this process times nothing.
    os.environ["MXNET_SUBGRAPH_BACKEND"] = "NONE"
    requests = {
        name: "write" if training and name not in constant else "null"
        for name in graph.list_arguments()
    }
    context = next(iter(arrays.values())).context
    shapes = {name: array.shape for name, array in arrays.items()}
    executor = graph.simple_bind(ctx=context, grad_req=requests, **shapes)
    total = _TOTAL.search(executor.debug_str())
    return int(total[1]) * 2**20 if total else None


def of_operation(
    function: Callable[..., Any], inputs: Sequence[Any], variables: Sequence[int] = ()
) -> int | None:
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
