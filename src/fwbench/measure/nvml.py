"""State of a GPU from NVIDIA's management library (NVML): identity, use, clocks, temperature.

All of it is None where NVML does not tell: no driver, no permission, no such counter, or a slice of
a GPU (MIG), which has no utilisation of its own. Nothing here fails a case.
"""

import math
import os
import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Any, NamedTuple, TypeVar

import psutil

from fwbench.measure.clock import Clock
from fwbench.terms.manifest import Device, Manifest

T = TypeVar("T")

#: Why clocks are lower than they could be: NVML's "clocks event reasons" (NVML API Reference, group
#: nvmlClocksEventReasons), those that are not a user's own setting. With ``idle`` the clock has not
#: risen yet.
POWER = "power"
_REASONS = {
    0x01: "idle",
    0x04: POWER,
    0x08: "hardware",
    0x20: "heat",
    0x40: "heat (hardware)",
    0x80: "power brake",
}

#: Rounds at a lower share of the GPU's default clock say little of it: the default of nvbench
#: (``--throttle-threshold``; detail/measure_cold.cu).
_THROTTLED_BELOW = 0.75


@dataclass(frozen=True)
class GpuUse:
    """Use of a GPU at a moment, from NVML."""

    #: Share of the last sampling period (a second or less) in which a kernel ran.
    utilization: float
    memory_bytes: int


@dataclass(frozen=True)
class GpuMemory:
    """The memory of a GPU at a moment."""

    free_bytes: int
    total_bytes: int


@dataclass(frozen=True)
class GpuState:
    """Clock, power and heat of a GPU at a moment; None where NVML does not tell."""

    sm_clock_hz: float | None
    reasons: tuple[str, ...] | None
    power_w: float | None
    temperature_c: float | None


class Gpu:
    """A GPU, or a slice of one, as NVML sees it."""

    def __init__(self, nvml: Any, handle: Any) -> None:
        self._nvml = nvml
        self._handle = handle
        # Clocks, power and heat are of the whole device.
        whole = _answer(lambda: nvml.nvmlDeviceGetDeviceHandleFromMigDeviceHandle(handle))
        self._is_slice = whole is not None
        self._whole = whole if self._is_slice else handle

    @property
    def model(self) -> str | None:
        """Model as its maker calls it; of a slice, with its profile."""
        return _answer(lambda: _text(self._nvml.nvmlDeviceGetName(self._handle)))

    def use(self) -> GpuUse | None:
        """Use of the GPU; None for a slice."""
        nvml, handle = self._nvml, self._handle
        return _answer(
            lambda: GpuUse(
                nvml.nvmlDeviceGetUtilizationRates(handle).gpu / 100,
                int(nvml.nvmlDeviceGetMemoryInfo(handle).used),
            )
        )

    def state(self) -> GpuState:
        """Clock, power and heat."""
        nvml, whole = self._nvml, self._whole
        return GpuState(
            self.sm_clock_hz(),
            self.reasons(),
            _answer(self._power_w),
            _answer(lambda: float(nvml.nvmlDeviceGetTemperature(whole, nvml.NVML_TEMPERATURE_GPU))),
        )

    def _power_w(self) -> float | None:
        """At this moment: ``nvmlDeviceGetPowerUsage`` is the mean of the last second."""
        (value,) = self._nvml.nvmlDeviceGetFieldValues(
            self._whole, [self._nvml.NVML_FI_DEV_POWER_INSTANT]
        )
        return None if value.nvmlReturn else value.value.uiVal / 1e3

    def energy_j(self) -> float | None:
        """The energy that it has taken since its driver was loaded; None for a slice.

        A slice has no counter of its own, and that of the device counts other slices, too.
        """
        if self._is_slice:
            return None
        nvml = self._nvml
        return _answer(lambda: nvml.nvmlDeviceGetTotalEnergyConsumption(self._whole) / 1e3)

    def sm_clock_hz(self) -> float | None:
        """The clock of its multiprocessors."""
        nvml = self._nvml
        return _answer(lambda: nvml.nvmlDeviceGetClockInfo(self._whole, nvml.NVML_CLOCK_SM) * 1e6)

    def reasons(self) -> tuple[str, ...] | None:
        """Why that is not higher, apart from settings."""
        nvml, whole = self._nvml, self._whole
        bits = _answer(lambda: int(nvml.nvmlDeviceGetCurrentClocksEventReasons(whole)))
        if bits is None:  # as drivers before 535 name it
            bits = _answer(lambda: int(nvml.nvmlDeviceGetCurrentClocksThrottleReasons(whole)))
        if bits is None:
            return None
        return tuple(name for bit, name in _REASONS.items() if bits & bit)

    @property
    def default_sm_clock_hz(self) -> float | None:
        """The clock that it has unless settings or heat want another; else its highest."""
        nvml = self._nvml
        kind = self._whole, nvml.NVML_CLOCK_SM
        default_mhz = _answer(nvml.nvmlDeviceGetDefaultApplicationsClock, *kind)
        clock_mhz = default_mhz or _answer(nvml.nvmlDeviceGetMaxClockInfo, *kind)
        return float(clock_mhz) * 1e6 if clock_mhz else None

    def identity(self) -> dict[str, Any]:
        """Which GPU it is, and how it is set up; None where NVML does not tell.

        The facts of :class:`~fwbench.records.facts.GpuFacts`, by their names.
        """
        nvml, handle, whole = self._nvml, self._handle, self._whole
        return {
            "uuid": _answer(lambda: _text(nvml.nvmlDeviceGetUUID(handle))),
            "vbios": _answer(lambda: _text(nvml.nvmlDeviceGetVbiosVersion(whole))),
            "ecc": _answer(lambda: bool(nvml.nvmlDeviceGetEccMode(whole)[0])),
            "power_limit_w": _answer(lambda: nvml.nvmlDeviceGetEnforcedPowerLimit(whole) / 1e3),
            "default_sm_clock_hz": self.default_sm_clock_hz,
            "mig": _answer(lambda: _text(nvml.nvmlDeviceGetName(handle)))
            if self._is_slice
            else None,
            "pcie_generation": _answer(lambda: int(nvml.nvmlDeviceGetMaxPcieLinkGeneration(whole))),
            "pcie_lanes": _answer(lambda: int(nvml.nvmlDeviceGetMaxPcieLinkWidth(whole))),
            "numa_node": _answer(lambda: int(nvml.nvmlDeviceGetNumaNodeId(whole))),
        }

    @property
    def link_generation(self) -> int | None:
        """The latest generation of PCI Express that it has; None where another link is faster.

        Not of its slot: a virtual machine may name one that there is not. Copies of a Grace Hopper
        go by NVLink-C2C.
        """
        nvml, whole = self._nvml, self._whole
        if _answer(lambda: nvml.nvmlDeviceGetC2cModeInfoV1(whole).isC2cEnabled):
            return None
        return _answer(lambda: int(nvml.nvmlDeviceGetGpuMaxPcieLinkGeneration(whole)))

    def memory(self) -> GpuMemory | None:
        """Free memory of the GPU."""
        info = _answer(self._nvml.nvmlDeviceGetMemoryInfo, self._handle)
        return None if info is None else GpuMemory(int(info.free), int(info.total))

    def takes_one_process(self) -> bool | None:
        """True if it is in EXCLUSIVE_PROCESS mode."""
        nvml, whole = self._nvml, self._whole
        return _answer(
            lambda: nvml.nvmlDeviceGetComputeMode(whole) == nvml.NVML_COMPUTEMODE_EXCLUSIVE_PROCESS
        )

    def users(self) -> int | None:
        """Number of other processes that use it, from any user."""
        pids = self._pids()
        return None if pids is None else len(pids - {os.getpid()})

    def others(self) -> int | None:
        """Number of other users' processes on it; None where NVML does not tell.

        Those of the same parent are the session's own, which wait while this one is measured. In a
        container NVML may number processes as the host does: this one is not among them then, and
        nothing is known.
        """
        pids = self._pids()
        if pids is None or os.getpid() not in pids:
            return None
        return sum(_answer(lambda p: psutil.Process(p).ppid(), x) != os.getppid() for x in pids)

    def _pids(self) -> set[int] | None:
        running = _answer(self._nvml.nvmlDeviceGetComputeRunningProcesses, self._handle)
        return None if running is None else {int(process.pid) for process in running}


def is_throttled(state: GpuState, default_hz: float | None) -> bool:
    """True if a GPU runs so far below its default clock that its times say little.

    A clock that someone has set lower is meant to be. So is one that the power limit alone keeps
    low: work that draws as much has it for as long as it goes on.
    """
    if state.sm_clock_hz is None or default_hz is None or state.reasons in ((), (POWER,)):
        return False
    return state.sm_clock_hz < _THROTTLED_BELOW * default_hz


def one_at_a_time() -> bool:
    """True if a GPU of this machine is in EXCLUSIVE_PROCESS mode; False where NVML is silent."""
    return bool(_answer(_exclusive))


def _exclusive() -> bool:
    import pynvml

    pynvml.nvmlInit()
    every = map(pynvml.nvmlDeviceGetHandleByIndex, range(pynvml.nvmlDeviceGetCount()))
    return any(Gpu(pynvml, handle).takes_one_process() for handle in every)


def named(manifest: Manifest) -> Manifest:
    """A manifest in which every GPU has the name of its model.

    Ceilings, records and rankings go by it, so all frameworks must call a GPU alike.
    """
    devices = (
        device if device.model else replace(device, model=_model(device))
        for device in manifest.devices
    )
    return replace(manifest, devices=tuple(devices))


def _model(device: Device) -> str:
    known = gpu(device.name, device.uuid)
    return (known.model if known else None) or "NVIDIA GPU"


@cache
def gpu(device: str, uuid: str = "") -> Gpu | None:
    """The GPU that a framework calls ``gpu:N``; None where NVML cannot tell which it is.

    Args:
        device: ``cpu``, or ``gpu:N`` as CUDA counts those that ``CUDA_VISIBLE_DEVICES`` shows.
        uuid: what the framework says of it; empty where it does not tell.
    """
    if device == "cpu":
        return None
    return _answer(lambda: _gpu_of(int(device.removeprefix("gpu:")), uuid))


def _gpu_of(number: int, uuid: str) -> Gpu:
    import pynvml

    pynvml.nvmlInit()
    return Gpu(pynvml, _handle(pynvml, number, uuid, os.environ))


def _handle(nvml: Any, number: int, uuid: str, environ: Mapping[str, str]) -> Any:
    """NVML's handle of the device that CUDA counts as ``number``.

    CUDA numbers the devices that ``CUDA_VISIBLE_DEVICES`` lists, by index or UUID, and of a GPU in
    slices it sees one (CUDA C++ Programming Guide, "CUDA Environment Variables"; NVIDIA
    Multi-Instance GPU User Guide).
    """
    if uuid:
        return _by_uuid(nvml, uuid)
    visible = environ.get("CUDA_VISIBLE_DEVICES")
    name = str(number) if visible is None else visible.split(",")[number].strip()
    if not name.isdecimal():
        return _by_uuid(nvml, name)
    if not _counts_alike(nvml, environ):
        raise LookupError("CUDA and NVML may count these GPUs differently")
    handle = nvml.nvmlDeviceGetHandleByIndex(int(name))
    slice_ = _answer(lambda: nvml.nvmlDeviceGetMigDeviceHandleByIndex(handle, 0))
    return handle if slice_ is None else slice_


def _counts_alike(nvml: Any, environ: Mapping[str, str]) -> bool:
    """True if CUDA's order is NVML's: that of the bus, or of GPUs that are all alike."""
    if environ.get("CUDA_DEVICE_ORDER") == "PCI_BUS_ID":
        return True
    handles = map(nvml.nvmlDeviceGetHandleByIndex, range(nvml.nvmlDeviceGetCount()))
    return len({*map(nvml.nvmlDeviceGetName, handles)}) <= 1


def _by_uuid(nvml: Any, uuid: str) -> Any:
    """The handle of a GPU or a slice; PyTorch leaves out what UUIDs begin with."""
    prefixes = ("",) if uuid.startswith(("GPU-", "MIG-")) else ("GPU-", "MIG-")
    for prefix in prefixes:
        handle = _answer(nvml.nvmlDeviceGetHandleByUUID, prefix + uuid)
        if handle is not None:
            return handle
    raise LookupError(f"NVML knows no {uuid}")


def _text(value: Any) -> str:
    return value.decode() if isinstance(value, bytes) else str(value)


def _answer(ask: Callable[..., T], *arguments: Any) -> T | None:
    """Answer of NVML; None where there is none."""
    try:
        return ask(*arguments)
    except Exception:  # noqa: BLE001 (no driver, no permission, no such counter: all the same)
        return None


#: From one look to the next: NVML answers in 3 us (H200).
_EACH_S = 20e-3

#: How long a throttled GPU is left alone at a time, and all together.
_PAUSE_S = 0.05
_PAUSES_AT_MOST = 10


class GpuWatch:
    """Looks at the clock, power and heat of a GPU between the rounds of a case.

    Not more often than the device would notice. Rounds since the last look are set aside where the
    clock is far below its default, and are made again after a pause, as nvbench does
    (``detail/measure_cold.cu``): for half a second, and then they count as they are.
    """

    def __init__(self, gpu: Gpu, clock: Clock) -> None:
        self._gpu = gpu
        self._clock = clock
        self.energy = EnergyMeter(gpu, clock)
        self._default_hz = gpu.default_sm_clock_hz
        self._states: list[GpuState] = []
        self._unseen_s: list[float] = []
        self._pending_s = 0.0
        self._looked_s = 0.0
        self._pauses = 0
        self._discarded = 0

    def begin(self) -> None:
        """Rounds begin: the next look is due a while later."""
        self._looked_s = self._clock.read()

    def sift(self, round_s: float, wanted_s: float = math.inf) -> Sequence[float]:
        """The rounds that count, once it was looked at the clock that they ran at.

        Args:
            round_s: the time of one more round; it is among those of this call or of a later one,
                or it is set aside.
            wanted_s: the time of rounds after which the case may end, so that they are looked at.
        """
        self._unseen_s.append(round_s)
        self._pending_s += round_s
        if self._pending_s < wanted_s and self._clock.read() - self._looked_s < _EACH_S:
            return ()
        rounds_s, self._unseen_s, self._pending_s = self._unseen_s, [], 0.0
        state = self._look()
        if is_throttled(state, self._default_hz) and self._pauses < _PAUSES_AT_MOST:
            self._set_aside(len(rounds_s))
            return ()
        return rounds_s

    def facts(self) -> dict[str, Any]:
        """State of the GPU from the first reading until now, for the record."""
        last = self._look()
        clocks_hz = [state.sm_clock_hz for state in self._states if state.sm_clock_hz is not None]
        reasons = [state.reasons for state in self._states if state.reasons is not None]
        every = {reason: None for some in reasons for reason in some if reason != "idle"}
        return {
            "sm_clock_hz": statistics.median(clocks_hz) if clocks_hz else None,
            "throttled": [*every] if reasons else None,
            "power_w": last.power_w,
            "temperature_c": last.temperature_c,
            "discarded_rounds": self._discarded,
        }

    def _look(self) -> GpuState:
        self._states.append(self._gpu.state())
        self._looked_s = self._clock.read()
        return self._states[-1]

    def _set_aside(self, rounds: int) -> None:
        self._clock.forget(rounds)
        self._discarded += rounds
        self._pauses += 1
        time.sleep(_PAUSE_S)
        self._looked_s = self._clock.read()


#: An H200's counter moves every 0.1 s. So the energy of the shortest time is known to 5 %.
_COUNTED_EACH_S = 0.1
LEAST_S = 2.0


class Energy(NamedTuple):
    """Energy that a GPU has taken."""

    joules: float
    #: What it may be off by, as a share of it, because its counter moves in steps.
    uncertainty: float


class EnergyMeter:
    """Tells the energy that a GPU takes from now on."""

    def __init__(self, gpu: Gpu | None, clock: Clock) -> None:
        self._gpu = gpu
        self._clock = clock
        self._before_j = self._total_j()
        self._since_s = clock.read()

    def used(self) -> Energy | None:
        """The energy until now; None where NVML does not count it, and after too short a time."""
        after_j, seconds = self._total_j(), self._clock.read() - self._since_s
        if after_j is None or self._before_j is None or seconds < LEAST_S:
            return None
        # Of a driver that was reloaded it begins at 0 again.
        if after_j <= self._before_j:
            return None
        return Energy(after_j - self._before_j, _COUNTED_EACH_S / seconds)

    def _total_j(self) -> float | None:
        return self._gpu.energy_j() if self._gpu else None
