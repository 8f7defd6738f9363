"""Kernels that TensorFlow's build for GPUs lacks for fwbench's operations; needs no GPU.

``python -m support.tensorflow_kernels`` in an environment with that build, whose registry has the
kernels of all devices, prints what the cells on a GPU lack::

    {"built_for_gpus": true, "traced": 1266, "lacking": {"lrn forward float16": ["LRN"]}}
"""

import json
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from fwbench.frameworks.declared import manifests
from fwbench.terms.manifest import Device
from fwbench.workloads.grid import Cell
from support.verification import EVERYTHING, cells

#: A kernel's attributes, such as types, with the values that it is for.
Kernel = Mapping[str, set[Any]]


def _graphs(device: str) -> Iterator[Cell]:
    """The operations of TensorFlow as graphs on a device: all dtypes, both directions, and gaps."""
    declared = manifests()["tensorflow"]
    here = replace(declared, devices=(*declared.devices, Device("gpu:0", "")))
    return (cell for cell in cells(here, EVERYTHING, device) if cell.execution == "graph")


def traceable() -> Mapping[str, tuple[Cell, bool]]:
    """Graphs that are no gap on CPUs or on GPUs, by name, and whether they are one on GPUs."""
    pairs = zip(_graphs("cpu"), _graphs("gpu:0"), strict=True)
    return {
        _name(cpu): (cpu, gpu.gap is not None) for cpu, gpu in pairs if None in (cpu.gap, gpu.gap)
    }


def _name(cell: Cell) -> str:
    """A name that a cell has on every device."""
    return f"{cell.workload.name} {cell.direction} {cell.dtype}"


def registered(kernels: Iterable[Any]) -> Mapping[str, Sequence[Kernel]]:
    """The kernels on GPUs, or on any device, of each operation of TensorFlow's."""
    on_gpus = defaultdict(list)
    for kernel in kernels:
        if kernel.device_type in {"GPU", "DEFAULT"}:
            allowed = {each.name: each.allowed_values.list for each in kernel.constraint}
            on_gpus[kernel.op].append({key: {*x.type, *x.s} for key, x in allowed.items()})
    return on_gpus


def lacking(graph: Any, on_gpus: Mapping[str, Sequence[Kernel]]) -> set[str]:
    """TensorFlow's operations in a graph, and in the functions that it calls, without a kernel.

    Some gradients have a few on the CPU by their own wish.
    """
    functions = {function.signature.name for function in graph.library.function}
    nodes = [*graph.node, *(each for called in graph.library.function for each in called.node_def)]
    return {
        node.op
        for node in nodes
        if node.op not in functions and "CPU" not in node.device.upper()
        if not any(_is_for(kernel, node.attr) for kernel in on_gpus.get(node.op, ()))
    }


def _is_for(kernel: Kernel, attributes: Any) -> bool:
    return all((attributes[key].type or attributes[key].s) in kernel[key] for key in kernel)


def main() -> None:
    """Trace each graph as it is bound for a case, on the CPU, and look its kernels up."""
    import tensorflow as tf
    from tensorflow.python.framework import kernels

    from fwbench.cases.case import bind
    from fwbench.frameworks.registry import load

    framework = load("tensorflow", 1)
    on_gpus = registered(kernels.get_all_registered_kernels().kernel)
    found = {}
    for name, (cell, _) in traceable().items():
        with framework.scope("cpu", cell.dtype):
            run: Any = bind(cell, framework).run
            traced = run.func.get_concrete_function(*run.args)
        found[name] = sorted(lacking(traced.graph.as_graph_def(), on_gpus))
    outcome = {
        "built_for_gpus": tf.test.is_built_with_cuda(),
        "traced": len(found),
        "lacking": {name: operations for name, operations in found.items() if operations},
    }
    print(json.dumps(outcome))


if __name__ == "__main__":
    main()
