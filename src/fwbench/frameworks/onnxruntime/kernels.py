"""ONNX's operators as functions: the namespace of implementations, and models made of their calls.

An implementation is called once, with values that stand for its arrays; each call of an operator
adds a node to a graph, whose answer is the implementation's result::

    @swish.implement("onnxruntime")
    def _(op):
        return lambda x: op.Mul(x, op.Sigmoid(x))
"""

import difflib
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fwbench.workloads.operations.convolution import Window

# Elementwise arithmetic


def cast(to: int) -> Any:
    return lambda op: lambda x: op.Cast(x, to=to)


# Reductions


def reduction(operator: str, axis: int) -> Any:
    """A reduction, whose axes are an input."""
    axes = np.array([axis], np.int64)
    return lambda op: lambda x: getattr(op, operator)(x, axes, keepdims=0)


# Convolution


def convolving(operator: str) -> Any:
    """A convolution with the attributes of a window."""

    def implementation(op: Any, window: Window) -> Any:
        def convolution(x: Any, w: Any) -> Any:
            return getattr(op, operator)(
                x,
                w,
                strides=[window.stride] * window.rank,
                pads=[window.padding] * (2 * window.rank),
                dilations=[window.dilation] * window.rank,
                group=window.groups,
            )

        return convolution

    return implementation


CONV = convolving("Conv")


# Shapes and orders of elements


def slice_square(op: Any, begin: int, end: int) -> Any:
    begins, ends = np.array([begin] * 2, np.int64), np.array([end] * 2, np.int64)
    return lambda x: op.Slice(x, begins, ends)


#: The version of the operators.
OPSET = 21

#: The version of the file format, which onnx would write in its newest.
_IR_VERSION = 10


class GraphValue:
    """A result in a graph, or an input of it."""

    def __init__(self, graph: "_Graph", name: str) -> None:
        self.graph = graph
        self.name = name


class _Graph:
    """Nodes and constants, in the order in which they were made."""

    def __init__(self) -> None:
        self.nodes: list[Any] = []
        self.constants: list[Any] = []

    def call(self, operator: str, inputs: Sequence[Any], results: int, **attributes: Any) -> Any:
        """The result of an operator, or several; None stands for an input that is left out."""
        from onnx import helper

        prefix = f"{operator}_{len(self.nodes)}"
        names = [f"{prefix}_{number}" for number in range(results)]
        taken = [self._name(given) for given in inputs]
        self.nodes.append(helper.make_node(operator, taken, names, **attributes))
        values = [GraphValue(self, name) for name in names]
        return values if results > 1 else values[0]

    def _name(self, given: Any) -> str:
        if isinstance(given, GraphValue):
            return given.name
        if given is None:
            return ""
        from onnx import numpy_helper

        name = f"constant_{len(self.constants)}"
        self.constants.append(numpy_helper.from_array(_array(given), name))
        return name


def _array(constant: Any) -> NDArray[Any]:
    """A constant as an array; Python's numbers as ONNX has them: float32, or int64."""
    if isinstance(constant, np.ndarray):
        return constant
    array = np.asarray(constant)
    return array.astype(np.float32) if array.dtype == np.float64 else array


class Operators:
    """The operators of ONNX by their names, to be called with at least one value.

    An operator with several results takes their number: ``op.Split(x, results=2, axis=1)``.
    """

    def __getattr__(self, name: str) -> Callable[..., Any]:
        """The operator of a name; an AttributeError if there is none."""
        if name.startswith("_"):  # Python's own, whose names Python looks up everywhere
            raise AttributeError(name)
        from onnx import defs

        if not defs.has(name):
            known = {schema.name for schema in defs.get_all_schemas()}
            close = difflib.get_close_matches(name, known, n=1)
            hint = f"; did you mean {close[0]}?" if close else ""
            raise AttributeError(f"ONNX has no operator {name!r} in opset {OPSET}{hint}")
        return partial(_call, name)


def _call(operator: str, *inputs: Any, results: int = 1, **attributes: Any) -> Any:
    graph = next((given.graph for given in inputs if isinstance(given, GraphValue)), None)
    if graph is None:
        raise TypeError(
            f"{operator} was called without a value of the graph; constants alone are computed by "
            "NumPy"
        )
    return graph.call(operator, inputs, results, **attributes)


def model_of(function: Callable[..., Any], operands: Sequence[NDArray[Any]]) -> bytes:
    """The model of a function of values.

    Args:
        function: returns a value, or a list or tuple of several.
        operands: arrays of the dtypes and shapes that it is for.
    """
    from onnx import helper

    graph = _Graph()
    names = [f"input_{number}" for number in range(len(operands))]
    answer = function(*(GraphValue(graph, name) for name in names))
    answers = answer if isinstance(answer, list | tuple) else [answer]
    inputs = [
        helper.make_tensor_value_info(
            name, helper.np_dtype_to_tensor_dtype(operand.dtype), operand.shape
        )
        for name, operand in zip(names, operands, strict=True)
    ]
    # An input that is returned as it is needs a node between the two.
    outputs = [graph.call("Identity", [value], 1).name for value in answers]
    made = helper.make_graph(
        graph.nodes,
        "implementation",
        inputs,
        [helper.make_empty_tensor_value_info(name) for name in outputs],
        graph.constants,
    )
    opsets = [helper.make_opsetid("", OPSET)]
    model = helper.make_model(made, opset_imports=opsets, ir_version=_IR_VERSION)
    serialized: bytes = model.SerializeToString()
    return serialized
