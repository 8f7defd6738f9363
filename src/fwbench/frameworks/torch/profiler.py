"""``torch.profiler``: self times of operators, on the CPU or of the kernels that they launch."""

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import torch
from torch.profiler import ProfilerActivity, profile

from fwbench.frameworks import profiler
from fwbench.frameworks.profiler import Operator, Profiler


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

    def _operators(self, events: Any) -> Iterator[Operator]:
        for event in events:
            if event.device_type != torch.autograd.DeviceType.CPU:
                continue  # a kernel: its time is that of the operator which launched it
            time_us = event.self_device_time_total if self._on_gpu else event.self_cpu_time_total
            yield Operator(event.name, _class_of(event), time_us * 1e-6, 1)


def _class_of(event: Any) -> str:
    """Operators that an optimiser calls count as the optimiser's."""
    outer = event
    while outer is not None:
        if outer.name.startswith(OPTIMISER_RANGE):
            return profiler.OPTIMISER
        outer = outer.cpu_parent
    return profiler.class_of(event.name, profiler.prefixes("torch"))


#: What :class:`torch.optim.Optimizer` calls the range around its step, and zero_grad's.
OPTIMISER_RANGE = "Optimizer."
