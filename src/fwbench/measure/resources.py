"""Memory and processors: what a stretch of work used of them."""

from __future__ import annotations

import re
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

_SELF = Path("/proc/self")
#: What resets the peak of resident memory (Linux' Documentation/filesystems/proc.rst).
_RESET_PEAK = "5"


def reset_peak_memory(process: Path = _SELF) -> bool:
    """Forget the largest resident memory of this process so far.

    Returns:
        Whether that could be done; it takes Linux.
    """
    with suppress(OSError):
        (process / "clear_refs").write_text(_RESET_PEAK, encoding="ascii")
        return True
    return False


def peak_memory_bytes(process: Path = _SELF) -> int | None:
    """The largest resident memory since the last reset; None where it cannot be told.

    VmHWM, not ``ru_maxrss``: a child's begins with its parent's. Processes that load data are not
    in it.
    """
    with suppress(OSError):
        status = (process / "status").read_text(encoding="utf-8", errors="replace")
        found = re.search(r"^VmHWM:\s*(\d+) kB", status, re.MULTILINE)
        return int(found[1]) * 1024 if found else None
    return None


@dataclass
class CpuClock:
    """The processor time of all threads of this process, those of data loaders apart."""

    started_s: float = 0.0

    def start(self) -> None:
        """Begin a stretch."""
        self.started_s = time.process_time()

    def utilization(self, wall_s: float, threads: int) -> float:
        """The share of ``threads`` processors that was busy in a stretch of ``wall_s`` seconds."""
        return (time.process_time() - self.started_s) / (wall_s * threads)


@dataclass(frozen=True)
class GpuUse:
    """What NVML says of a GPU at a moment.

    Attributes:
        utilization: share of the last sampling period (a second or less) in which a kernel ran.
        memory_bytes: in use by all processes.
    """

    utilization: float
    memory_bytes: int


def gpu_use(device: str) -> GpuUse | None:
    """What NVML says of a device; None where there is no NVML, or no GPU.

    Args:
        device: ``cpu``, or ``gpu:N`` as NVML counts: without ``CUDA_VISIBLE_DEVICES``.
    """
    if device == "cpu":
        return None
    try:
        import pynvml

        pynvml.nvmlInit()
        handle = pynvml.nvmlDeviceGetHandleByIndex(int(device.removeprefix("gpu:")))
        utilization = pynvml.nvmlDeviceGetUtilizationRates(handle).gpu / 100
        return GpuUse(utilization, int(pynvml.nvmlDeviceGetMemoryInfo(handle).used))
    except Exception:  # noqa: BLE001 (no driver, no permission, no such counter: all the same)
        return None
