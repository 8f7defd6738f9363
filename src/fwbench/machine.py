"""The machine: what it has, what this process may use of it, and the threads that follow."""

import os
import platform
import re
import threading
from collections.abc import Iterator
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any

#: The variables through which OpenMP and the BLAS libraries learn of their threads, at import.
THREAD_VARIABLES = (
    "OMP_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "MKL_NUM_THREADS",
    "BLIS_NUM_THREADS",
    "VECLIB_MAXIMUM_THREADS",
)


def allowed_cpus() -> int:
    """The CPUs that this process may run on, regardless of its quota of their time."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def usable_cpus(proc: Path = Path("/proc"), cgroups: Path = Path("/sys/fs/cgroup")) -> int:
    """The CPUs that this process may use: its affinity, and no more than its cgroup's quota.

    A quota of one and a half CPUs counts as one: a second thread would be throttled, and what is
    throttled is not measured.

    Args:
        cgroups: where the cgroup hierarchy is mounted, version 1 or 2.
    """
    return max(1, int(min([float(allowed_cpus()), *_cgroup_quotas(proc, cgroups)])))


def throttled_s(proc: Path = Path("/proc"), cgroups: Path = Path("/sys/fs/cgroup")) -> float | None:
    """Seconds for which a quota has stopped this process's cgroup; None where none is counted."""
    stopped_s = map(_stopped_s, _cgroups(proc, cgroups))
    return max((seconds for seconds in stopped_s if seconds is not None), default=None)


def _stopped_s(group: Path) -> float | None:
    with suppress(OSError):
        counts = (group / "cpu.stat").read_text("ascii")
        # Version 2 counts microseconds, version 1 nanoseconds.
        if found := re.search(r"^throttled_(usec|time) (\d+)$", counts, re.MULTILINE):
            return int(found[2]) * (1e-6 if found[1] == "usec" else 1e-9)
    return None


def _cgroup_quotas(proc: Path, cgroups: Path) -> list[float]:
    """CPU quotas, in CPUs, of this process's cgroup and of those around it."""
    return [quota for group in _cgroups(proc, cgroups) for quota in _quota(group)]


def _cgroups(proc: Path, cgroups: Path) -> Iterator[Path]:
    """The folders of this process's cgroup, and of those around it, that control CPUs."""
    try:
        lines = (proc / "self" / "cgroup").read_text().splitlines()
    except OSError:
        return
    for line in lines:
        _, controllers, path = line.split(":", 2)
        if controllers and "cpu" not in controllers.split(","):
            continue
        mount = cgroups / controllers if controllers else cgroups
        group = mount / path.lstrip("/")
        for folder in (group, *group.parents):
            if folder == mount.parent:
                break
            yield folder


def _quota(group: Path) -> list[float]:
    try:
        if (group / "cpu.max").exists():
            quota, period = (group / "cpu.max").read_text().split()
        else:
            quota = (group / "cpu.cfs_quota_us").read_text().strip()
            period = (group / "cpu.cfs_period_us").read_text().strip()
        return [] if quota in ("max", "-1") else [int(quota) / int(period)]
    except (OSError, ValueError, ZeroDivisionError):
        return []


def threads_run(process: Path = Path("/proc/self")) -> bool:
    """True if a thread of a process computes, or waits for a processor to do so, at this moment.

    Of this process the calling one does not count. Processor time would not tell: Linux adds that
    of a thread on another CPU to it in ticks, of up to 10 ms.
    """
    own = str(threading.get_native_id())
    with suppress(OSError), os.scandir(process / "task") as threads:  # or the process has ended
        for thread in threads:
            with suppress(OSError):  # this one has
                stat = Path(thread.path, "stat").read_bytes()
                if thread.name != own and stat[stat.rindex(b")") + 2 :].startswith(b"R"):
                    return True
    return False


def thread_variables(threads: int) -> dict[str, str]:
    """The environment in which OpenMP and BLAS libraries start with ``threads`` threads."""
    return dict.fromkeys(THREAD_VARIABLES, str(threads))


#: What NumPy's OpenBLAS reads of its environment when it is imported: for how long its threads go
#: on spinning for more work, as a power of two of cycles.
_SPINNING = "OPENBLAS_THREAD_TIMEOUT"

#: The least that it takes; with a zero, to distinguish it from what a user may have set.
_NOT_SPINNING = "04"

#: Whether threads of NumPy's products go on spinning in this process: a case waits for them then.
REFERENCES_SPIN = os.environ.get(_SPINNING) != _NOT_SPINNING


#: 2 to the power of this many cycles are half a millisecond.
_SPINNING_SHORTLY = "20"


def reference_variables() -> dict[str, str]:
    """The environment in which NumPy's products leave the CPUs to what is measured after them.

    By default their threads spin for 0.1 s after a product of the reference, through the warm-up
    and half of the rounds, or through those of the next framework. Of a process that measures NumPy
    that is part of what is measured. It is to be given to a process at its start, and forgotten
    once NumPy is imported (:func:`forget_reference_variables`): MXNet has an OpenBLAS of its own.
    """
    return {} if _SPINNING in os.environ else {_SPINNING: _NOT_SPINNING}


def spinning_variables() -> dict[str, str]:
    """The environment in which OpenBLAS' threads spin for half a millisecond, not 0.1 s.

    For processes that take turns: each has to wait until the others' threads sleep.
    """
    return {_SPINNING: _SPINNING_SHORTLY}


def forget_reference_variables() -> None:
    """Leave the frameworks' own libraries, which are still to be imported, as they are."""
    if os.environ.get(_SPINNING) == _NOT_SPINNING:
        del os.environ[_SPINNING]


@cache
def cpu_model() -> str:
    """The name of the CPU's model."""
    import cpuinfo  # takes a moment, so only on demand

    return str(
        (cpuinfo.get_cpu_info() or {}).get("brand_raw")
        or platform.processor()
        or platform.machine()
    )


@cache
def cpu_features(proc: Path = Path("/proc")) -> frozenset[str]:
    """Processor features as Linux names them; empty where the system does not tell."""
    try:
        text = (proc / "cpuinfo").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return frozenset()
    line = re.search(r"^(?:flags|Features)\s*:(.*)$", text, re.MULTILINE)
    return frozenset(line[1].split() if line else ())


def _gpu_driver() -> str | None:
    try:
        import pynvml

        pynvml.nvmlInit()
        return str(pynvml.nvmlSystemGetDriverVersion())
    except Exception:  # noqa: BLE001 (no driver, no permission: all the same)
        return None


def gpus() -> dict[str, Any]:
    """NVIDIA's GPUs of this machine, also those that no framework can use.

    Returns:
        ``models``, ``driver``, and ``cuda``: the newest version that the driver is for, as
        ``12.4``. Without a working driver there are no models.
    """
    try:
        import pynvml

        pynvml.nvmlInit()
        numbers = range(pynvml.nvmlDeviceGetCount())
        handles = map(pynvml.nvmlDeviceGetHandleByIndex, numbers)
        models = [str(pynvml.nvmlDeviceGetName(handle)) for handle in handles]
        version = int(pynvml.nvmlSystemGetCudaDriverVersion())
    except Exception:  # noqa: BLE001 (no driver, no permission: all the same)
        return {"models": [], "driver": None, "cuda": None}
    cuda = f"{version // 1000}.{version % 1000 // 10}"
    return {"models": models, "driver": _gpu_driver(), "cuda": cuda}


def _numa_nodes() -> int | None:
    """The nodes that memory is divided into; None where the system does not tell."""
    return len([*Path("/sys/devices/system/node").glob("node[0-9]*")]) or None


def _huge_pages() -> str | None:
    """When memory is had in huge pages; None where the system does not tell."""
    with suppress(OSError):
        text = Path("/sys/kernel/mm/transparent_hugepage/enabled").read_text("ascii")
        if chosen := re.search(r"\[(\w+)\]", text):
            return chosen[1]
    return None


def machine(cpu: str) -> dict[str, Any]:
    """The machine's facts, for ``fwbench doctor`` and stored runs; ``cpu`` of :func:`cpu_model`."""
    # Here, because options need this module in sessions that use nothing else of fwbench.
    import psutil

    return {
        "cpu": cpu,
        "cpus": os.cpu_count(),
        "physical_cores": psutil.cpu_count(logical=False),
        "usable_cpus": usable_cpus(),
        "memory_bytes": psutil.virtual_memory().total,
        "os": platform.platform(),
        "python": platform.python_version(),
        "gpu_driver": _gpu_driver(),
        "numa_nodes": _numa_nodes(),
        "huge_pages": _huge_pages(),
    }
