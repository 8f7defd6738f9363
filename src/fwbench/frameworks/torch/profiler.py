"""``torch.profiler``: self times of operators, on the CPU or of the kernels that they launch."""

import re
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import torch
from torch.profiler import ProfilerActivity, profile

from fwbench.frameworks import profiler
from fwbench.frameworks.profiler import Counts, Operator, Profiler


class TorchProfiler(Profiler):
    """Times of operators by PyTorch's profiler."""

    def __init__(self, device: str) -> None:
        self._on_gpu = device != "cpu"

    def profile(self, work: Callable[[], object], trace: Path) -> Sequence[Operator]:
        """With all that a step of an optimiser does as the optimiser's."""
        activities = [ProfilerActivity.CPU]
        if self._on_gpu:
            activities.append(ProfilerActivity.CUDA)
        with profile(activities=activities) as profiled:
            work()
        profiled.export_chrome_trace(str(trace))
        return [*self._operators(profiled.events())]

    def counts(self) -> Counts:
        """Graphs that TorchDynamo has compiled, and breaks between them; events have their time."""
        dynamo = sys.modules.get("torch._dynamo.utils")
        if dynamo is None:  # nothing compiles
            return {}
        counters = dynamo.counters
        return {
            _COMPILATIONS: (counters["stats"]["unique_graphs"], 0.0),
            "graph breaks": (counters["graph_break"].total(), 0.0),
        }

    def _operators(self, events: Any) -> Iterator[Operator]:
        for event in events:
            if event.device_type != torch.autograd.DeviceType.CPU:
                continue  # a kernel: its time is that of the operator which launched it
            time_us = event.self_device_time_total if self._on_gpu else event.self_cpu_time_total
            yield _operator(event, time_us * 1e-6)


def _operator(event: Any, time_s: float) -> Operator:
    """An operator, or a part of a compilation, which is counted elsewhere."""
    outer = event
    while outer is not None:
        if outer.name.startswith(OPTIMISER_RANGE):
            return Operator(event.name, profiler.OPTIMISER, time_s, 1)
        if outer.name.endswith(_OF_COMPILERS):
            return Operator(_COMPILATIONS, profiler.COMPILATION, time_s, 0)
        outer = outer.cpu_parent
    name = next((stem for stem in _NUMBERED if event.name.startswith(stem)), event.name)
    if kernel := _KERNEL.fullmatch(name):
        name = kernel["name"]
    if _MOVING.fullmatch(name):
        return Operator(name, profiler.DATA_MOVEMENT, time_s, 1)
    return Operator(name, profiler.class_of(name, profiler.prefixes("torch")), time_s, 1)


#: What :class:`torch.optim.Optimizer` calls the range around its step, and zero_grad's.
OPTIMISER_RANGE = "Optimizer."

#: How ranges of TorchDynamo's and Inductor's are named at their end.
_OF_COMPILERS = ("(dynamo_timed)", "dynamo")

#: What all of it is called.
_COMPILATIONS = "compilations"

#: Before the number of a graph, or a digest of its code: other processes have others.
_NUMBERED = ("Torch-Compiled Region", "## Call CompiledFxGraph")

#: A kernel of Inductor's, between the numbers of its graph and of itself there.
_KERNEL = re.compile(r"(?:graph_\d+_)?(?P<name>(?:cpp|triton)_\w*?fused_\w+?)(?:_\d+)?")

#: One that only copies, by the operators that it has been made of.
_MOVING = re.compile(
    r"\w+?_fused(?:_(?:clone|copy|_to_copy|t|transpose|permute|contiguous|view|cat))+"
)
