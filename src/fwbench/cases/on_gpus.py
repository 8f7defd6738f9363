"""Additions to the failure of a case on a GPU: free memory there, and its other users.

A framework says how much memory it asked for, or that the device is busy, and seldom why.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from fwbench.errors import FwbenchError
from fwbench.measure.nvml import Gpu
from fwbench.records import entry
from fwbench.records.units import count
from fwbench.workloads.grid import Cell

_GIBIBYTE = 2.0**30

_ONE_AT_A_TIME = (
    "it is in EXCLUSIVE_PROCESS mode and takes one process at a time: end the others, or "
    "set the mode with nvidia-smi -c DEFAULT"
)


@contextmanager
def explained(cell: Cell, gpu: Callable[[], Gpu | None]) -> Iterator[None]:
    """Add to an error of a framework's what NVML knows of the GPU at that moment.

    The error stays as it is; what fwbench itself has found wrong needs no explanation.

    Args:
        gpu: gives its GPU; None where NVML does not know it.
    """
    try:
        yield
    except FwbenchError:
        raise
    except Exception as error:
        known = None if cell.device == "cpu" else gpu()
        if known is not None and (said := _occupancy(known, entry.least_bytes(cell))):
            error.add_note(f"{cell.device}: {said}")
        raise


def _occupancy(gpu: Gpu, least_bytes: float | None) -> str:
    memory, users = gpu.memory(), gpu.users()
    parts = []
    if memory is not None:
        parts.append(f"{_size(memory.free_bytes)} of {_size(memory.total_bytes)} are free")
        if least_bytes:
            parts.append(f"operands and results of the case take {_size(least_bytes)} at least")
    if users:
        parts.append(f"{count(users, 'other process', 'other processes')} on it")
    if gpu.takes_one_process():
        parts.append(_ONE_AT_A_TIME)
    return "; ".join(parts)


def _size(size_bytes: float) -> str:
    return f"{size_bytes / _GIBIBYTE:.2f} GiB"
