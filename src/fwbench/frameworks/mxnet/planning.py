"""The memory that MXNet's planner reserves for the results of a graph.

Blocks do not report it; executors do, in whole MiB, and plan in the same way.
"""

import math
import os
import re
import tempfile
from bisect import bisect_left, insort
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import IO, Any

import mxnet as mx

#: The end of an executor's description.
_TOTAL = re.compile(r"Total (\d+) MB allocated")

#: Lets a process write every plan to its error output, from its first executor on.
_LOGGED = "MXNET_MEM_PLAN_VERBOSE_LOGGING"

#: How far the size of memory may be from that of the result which takes it; 0: no result does.
_MATCH_RANGE_VARIABLE = "NNVM_EXEC_MATCH_RANGE"


def planned_bytes(
    graph: Any, arrays: Mapping[str, Any], *, training: bool, constant: Collection[str] = ()
) -> int:
    """Bytes reserved for the results of a graph, inputs and their gradients apart.

    Args:
        arrays: values of its inputs, by their names; those of parameters may be left out.
        training: whether there is a backward pass.
        constant: the inputs that it does not go to.
    """
    return _allocated_bytes(_executor(graph, arrays, training=training, constant=constant))


def by_strategy(
    graph: Any, arrays: Mapping[str, Any], *, training: bool, constant: Collection[str] = ()
) -> dict[str, int]:
    """Bytes reserved by what the planner shares: nothing, in place, between results, both.

    The process must not have made an executor before.
    """
    how: dict[str, Any] = {"training": training, "constant": constant}
    with _set(_LOGGED, "1"), _errors() as log:
        executor = _executor(graph, arrays, **how)
        log.seek(0)
        gradients = [array.shape for array in executor.grad_arrays if array is not None]
        estimated = computed(log.read(), gradients)
        both = _allocated_bytes(executor)
        with _set(_MATCH_RANGE_VARIABLE, "0"):
            in_place = _allocated_bytes(_executor(graph, arrays, **how))
    return {**estimated, "in place": in_place, "both": both}


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
    """Bytes reserved for an operation's results, and for gradients by inputs at these positions."""
    arrays = {f"input{number}": array for number, array in enumerate(inputs)}
    result = function(*map(mx.sym.var, arrays))
    graph = mx.sym.Group([*result]) if isinstance(result, list | tuple) else result
    constant = [name for number, name in enumerate(arrays) if number not in variables]
    return planned_bytes(graph, arrays, training=bool(variables), constant=constant)


# What MXNet would reserve if its planner shared less, from its log. It shares memory in two
# ways: an operator writes its result over an operand that nothing needs any more (in place), and a
# result takes the memory of another that is needed no more (co-share). MXNet 1.9.1 can switch off
# the second one (``NNVM_EXEC_MATCH_RANGE=0``) and not the first, so two of four strategies are
# MXNet's own plans, and two are computed here.

#: The planner takes memory up to this factor larger or smaller than requested
#: (``NNVM_EXEC_MATCH_RANGE``).
_MATCH_RANGE = 16

#: Of what is logged (``MXNET_MEM_PLAN_VERBOSE_LOGGING``): a node; what it takes, and its results.
_NODE = re.compile(r"node \d+ (\S+)$")
_VALUE = re.compile(r"\t(input|output) (\d+): \[([\d,]*)\]")

#: A node that computes nothing: an input of the graph.
_VARIABLE = "var"


@dataclass(frozen=True)
class Planned:
    """An operator in a plan."""

    name: str
    #: The numbers of the values that it takes.
    inputs: list[int] = field(default_factory=list)
    #: The shapes of its results, by their numbers.
    outputs: dict[int, tuple[int, ...]] = field(default_factory=dict)


def read(log: str) -> list[Planned]:
    """The operators of a plan, in running order, from what MXNet logged of one graph."""
    nodes: list[Planned] = []
    for line in log.splitlines():
        if node := _NODE.search(line):
            nodes.append(Planned(node[1]))
        elif nodes and (value := _VALUE.search(line)):
            kind, number, shape = value[1], int(value[2]), value[3]
            if kind == "input":
                nodes[-1].inputs.append(number)
            else:
                nodes[-1].outputs[number] = tuple(map(int, filter(None, shape.split(","))))
    return [node for node in nodes if node.name != _VARIABLE]


def unshared_bytes(
    nodes: Sequence[Planned], gradients: Sequence[tuple[int, ...]], itemsize_bytes: int
) -> int:
    """Bytes of all results of :func:`read`'s nodes together, but for gradients of these shapes."""
    given = _given(nodes, gradients)
    return sum(size for _, size in _results(nodes, given, itemsize_bytes))


def shared_bytes(
    nodes: Sequence[Planned], gradients: Sequence[tuple[int, ...]], itemsize_bytes: int
) -> int:
    """Bytes of results that use each other's memory, never that of an operand.

    An upper bound: operators that do not need all of their operands are not known, so some memory
    is freed later than MXNet frees it.
    """
    given = _given(nodes, gradients)
    sizes = dict(_results(nodes, given, itemsize_bytes))
    users = Counter(number for node in nodes for number in node.inputs)
    pool = _MemoryPool()
    blocks: dict[int, int] = {}
    for node in nodes:
        results = [number for number in node.outputs if number in sizes]
        blocks |= {number: pool.take(sizes[number]) for number in results}
        users.subtract(node.inputs)
        for number in dict.fromkeys((*results, *node.inputs)):
            if number in blocks and not users[number]:
                pool.free(blocks.pop(number))
    return pool.size_bytes


def _given(nodes: Sequence[Planned], gradients: Sequence[tuple[int, ...]]) -> set[int]:
    """The results that are gradients by parameters: of such shapes, and not operands."""
    taken = {number for node in nodes for number in node.inputs}
    wanted = Counter(gradients)
    given = set()
    for node in reversed(nodes):
        for number, shape in node.outputs.items():
            if number not in taken and wanted[shape]:
                wanted[shape] -= 1
                given.add(number)
    return given


def _results(
    nodes: Sequence[Planned], given: Collection[int], itemsize_bytes: int
) -> Iterator[tuple[int, int]]:
    """The number and the size of each result that needs memory."""
    for node in nodes:
        for number, shape in node.outputs.items():
            if number not in given:
                yield number, itemsize_bytes * math.prod(shape)


class _MemoryPool:
    """Free memory, as MXNet's planner looks for it: the next larger, then the next smaller."""

    def __init__(self) -> None:
        self._sizes: list[int] = []
        self._free: list[tuple[int, int]] = []

    @property
    def size_bytes(self) -> int:
        return sum(self._sizes)

    def take(self, size_bytes: int) -> int:
        """The number of a block of at least that size; a smaller one becomes as large."""
        place = bisect_left(self._free, (size_bytes, 0))
        for at in (place, place - 1):
            if 0 <= at < len(self._free) and self._fits(self._free[at][0], size_bytes):
                _, block = self._free.pop(at)
                self._sizes[block] = max(self._sizes[block], size_bytes)
                return block
        self._sizes.append(size_bytes)
        return len(self._sizes) - 1

    @staticmethod
    def _fits(free_bytes: int, size_bytes: int) -> bool:
        return size_bytes / _MATCH_RANGE <= free_bytes <= size_bytes * _MATCH_RANGE

    def free(self, block: int) -> None:
        insort(self._free, (self._sizes[block], block))


def computed(
    log: str, gradients: Sequence[tuple[int, ...]], itemsize_bytes: int = 4
) -> dict[str, int]:
    """The two strategies that are computed: by their names, what they reserve."""
    nodes = read(log)
    return {
        "none": unshared_bytes(nodes, gradients, itemsize_bytes),
        "co-share": shared_bytes(nodes, gradients, itemsize_bytes),
    }
