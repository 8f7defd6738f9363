"""``torch.profiler``: self times of operators, on the CPU or of the kernels that they launch."""

import re
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import torch
from torch.profiler import ProfilerActivity, profile, supported_activities

from fwbench.errors import ProbeError
from fwbench.frameworks import profiler
from fwbench.frameworks.profiler import Counts, Operator, Profiler
from fwbench.frameworks.torch import gpus


class TorchProfiler(Profiler):
    """Times of operators by PyTorch's profiler.

    Raises:
        ProbeError: it records nothing of GPUs of that kind, or this build of it does not.
    """

    def __init__(self, device: str) -> None:
        self._on_gpu = device != "cpu"
        self._activities = [ProfilerActivity.CPU]
        if self._on_gpu:
            self._activities.append(_activity_of(gpus.kind()))

    def profile(self, work: Callable[[], object], trace: Path) -> Sequence[Operator]:
        """With all that a step of an optimiser does as the optimiser's."""
        with profile(activities=self._activities) as profiled:
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


def _activity_of(kind: str) -> ProfilerActivity:
    """The profiler's name of a kind of GPUs; it has one of CUDA's and Intel's, not of Apple's."""
    activity = ProfilerActivity.__members__.get(kind.upper())
    if activity not in supported_activities():
        raise ProbeError(f"this build of PyTorch's profiler records nothing of {kind} devices")
    return activity


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
