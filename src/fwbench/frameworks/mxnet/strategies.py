"""What MXNet would reserve for the results of a graph if its planner shared less: from its log.

The planner shares memory in two ways: an operator writes its result over an operand that nobody
needs any more (in place), and a result takes the memory of another that is needed no more
(co-share). MXNet 1.9.1 can switch off the second one (``NNVM_EXEC_MATCH_RANGE=0``) and not the
first, so two of four strategies are MXNet's own plans, and two are computed here.
"""

from __future__ import annotations

import math
import re
from bisect import bisect_left, insort
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field

#: The planner takes memory of up to so many times, or so small a part of, what is asked for
#: (``NNVM_EXEC_MATCH_RANGE``).
_MATCH_RANGE = 16

#: Of what is logged (``MXNET_MEM_PLAN_VERBOSE_LOGGING``): a node; what it takes, and its results.
_NODE = re.compile(r"node \d+ (\S+)$")
_VALUE = re.compile(r"\t(input|output) (\d+): \[([\d,]*)\]")

#: A node that computes nothing: an input of the graph.
_VARIABLE = "var"


@dataclass(frozen=True)
class Planned:
    """An operator in a plan.

    Attributes:
        name: of the operator.
        inputs: the numbers of the values that it takes.
        outputs: the shapes of its results, by their numbers.
    """

    name: str
    inputs: list[int] = field(default_factory=list)
    outputs: dict[int, tuple[int, ...]] = field(default_factory=dict)


def read(log: str) -> list[Planned]:
    """The operators of a plan, in the order in which they run.

    Args:
        log: what MXNet wrote when it planned one graph.
    """
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
    """What all results take together, gradients by parameters apart.

    Args:
        nodes: as :func:`read` gives them.
        gradients: the shapes of gradients that have memory of their own.
        itemsize_bytes: of an element.
    """
    given = _given(nodes, gradients)
    return sum(size for _, size in _results(nodes, given, itemsize_bytes))


def shared_bytes(
    nodes: Sequence[Planned], gradients: Sequence[tuple[int, ...]], itemsize_bytes: int
) -> int:
    """What results take that use each other's memory, never that of an operand.

    An upper bound: operators that do not need all of their operands are not known, so some memory
    is freed later than MXNet frees it.

    Args:
        nodes: as :func:`read` gives them.
        gradients: the shapes of gradients that have memory of their own.
        itemsize_bytes: of an element.
    """
    given = _given(nodes, gradients)
    sizes = dict(_results(nodes, given, itemsize_bytes))
    users = Counter(number for node in nodes for number in node.inputs)
    pool = _MemoryPool()
    blocks: dict[int, int] = {}
    for node in nodes:
        own = [number for number in node.outputs if number in sizes]
        blocks |= {number: pool.take(sizes[number]) for number in own}
        users.subtract(node.inputs)
        for number in dict.fromkeys((*own, *node.inputs)):
            if number in blocks and not users[number]:
                pool.free(blocks.pop(number))
    return pool.size_bytes


def _given(nodes: Sequence[Planned], gradients: Sequence[tuple[int, ...]]) -> set[int]:
    """The results that are gradients by parameters: of such shapes, and taken by nobody."""
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
    """Memory that is free, as MXNet's planner looks for it: the next larger, then the next smaller.

    Attributes:
        size_bytes: of all memory, free or not.
    """

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
        """Give a block back."""
        insort(self._free, (self._sizes[block], block))


def computed(
    log: str, gradients: Sequence[tuple[int, ...]], itemsize_bytes: int = 4
) -> dict[str, int]:
    """The two strategies that are computed: by their names, what they reserve.

    Args:
        log: what MXNet wrote when it planned one graph.
        gradients: the shapes of gradients that have memory of their own.
        itemsize_bytes: of an element.
    """
    nodes = read(log)
    return {
        "none": unshared_bytes(nodes, gradients, itemsize_bytes),
        "co-share": shared_bytes(nodes, gradients, itemsize_bytes),
    }
