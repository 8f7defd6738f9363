"""NVML without a GPU: as much of the module ``pynvml`` as fwbench asks, of GPUs that a test sets.

Names are NVML's own, and so are the structures and the error that it has.
"""

# ruff: noqa: N802
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pynvml

from fwbench.frameworks.gpus import DeviceClock
from fwbench.testing import FakeFramework, HandClock


@dataclass
class Card:
    """A GPU, or a slice of one.

    Attributes:
        uuid: ``GPU-...``, or ``MIG-...``.
        name: its model.
        busy: percent of the last second.
        used_bytes: of its memory.
        clock_mhz: of its multiprocessors; a callable is asked each time.
        reasons: bits; a callable is asked each time.
        slices: what it is cut into.
        whole: of a slice, the GPU that it is of.
        energy_mj: since its driver was loaded; a callable is asked each time.
        pids: of the processes that use it.
        free_bytes: of its memory, whatever processes have.
        total_bytes: of it.
        compute_mode: 3 for EXCLUSIVE_PROCESS.
        power_error: why it does not tell its power; 0 where it does.
        silent: names of functions that do not answer.
        link_generation: of PCI Express; None where NVML does not tell.
    """

    uuid: str
    name: str = "NVIDIA H200"
    busy: int = 0
    used_bytes: int = 0
    clock_mhz: float | Callable[[], float] = 1980
    reasons: int | Callable[[], int] = 0
    default_mhz: float = 1980
    slices: Sequence["Card"] = ()
    whole: "Card | None" = None
    energy_mj: int | Callable[[], int] = 0
    pids: Sequence[int] = ()
    free_bytes: int = 8000
    total_bytes: int = 9000
    compute_mode: int = 0
    power_error: int = 0
    silent: set[str] = field(default_factory=set)
    link_generation: int | None = None


class FakeNvml:
    """The module, with these GPUs in the order of the bus."""

    NVML_CLOCK_SM = 1
    NVML_TEMPERATURE_GPU = 0
    NVML_COMPUTEMODE_EXCLUSIVE_PROCESS = 3
    NVML_FI_DEV_POWER_INSTANT = 186

    def __init__(self, *cards: Card) -> None:
        self.cards = cards
        for card in cards:
            for part in card.slices:
                part.whole = card
        self.is_there = True

    def nvmlInit(self) -> None:
        """Needs a driver."""
        if not self.is_there:
            raise pynvml.NVMLError(pynvml.NVML_ERROR_DRIVER_NOT_LOADED)

    def nvmlSystemGetDriverVersion(self) -> str:
        return "470.82"

    def nvmlSystemGetCudaDriverVersion(self) -> int:
        return 11040

    def nvmlDeviceGetCount(self) -> int:
        return len(self.cards)

    def nvmlDeviceGetHandleByIndex(self, index: int) -> Card:
        return self._only(self.cards[index : index + 1])

    def nvmlDeviceGetHandleByUUID(self, uuid: str) -> Card:
        every = [*self.cards, *(part for card in self.cards for part in card.slices)]
        return self._only([card for card in every if card.uuid == uuid])

    def nvmlDeviceGetMigDeviceHandleByIndex(self, card: Card, index: int) -> Card:
        return self._only(card.slices[index : index + 1])

    def nvmlDeviceGetDeviceHandleFromMigDeviceHandle(self, card: Card) -> Card:
        return self._only([card.whole] if card.whole else [])

    def nvmlDeviceGetName(self, card: Card) -> str:
        return card.name

    def nvmlDeviceGetUUID(self, card: Card) -> str:
        return card.uuid

    def nvmlDeviceGetVbiosVersion(self, card: Card) -> str:
        return self._of_whole(card, "96.00")

    def nvmlDeviceGetEccMode(self, card: Card) -> list[int]:
        return self._of_whole(card, [1, 1])

    def nvmlDeviceGetEnforcedPowerLimit(self, card: Card) -> int:
        return self._of_whole(card, 700_000)

    def nvmlDeviceGetUtilizationRates(self, card: Card) -> Any:
        return self._of_whole(card, pynvml.c_nvmlUtilization_t(gpu=card.busy, memory=99))

    def nvmlDeviceGetMemoryInfo(self, card: Card) -> Any:
        sizes = {"total": card.total_bytes, "free": card.free_bytes, "used": card.used_bytes}
        return pynvml.c_nvmlMemory_t(**sizes)

    def nvmlDeviceGetClockInfo(self, card: Card, kind: int) -> int:
        assert kind == self.NVML_CLOCK_SM
        self._answers(card, "clock")
        clock = card.clock_mhz
        return self._of_whole(card, clock() if callable(clock) else clock)

    def nvmlDeviceGetDefaultApplicationsClock(self, card: Card, kind: int) -> int:
        self._answers(card, "default")
        return self._of_whole(card, card.default_mhz)

    def nvmlDeviceGetMaxClockInfo(self, card: Card, kind: int) -> int:
        self._answers(card, "highest")
        return self._of_whole(card, 2100)

    def nvmlDeviceGetCurrentClocksEventReasons(self, card: Card) -> int:
        self._answers(card, "reasons")
        return self._of_whole(card, card.reasons() if callable(card.reasons) else card.reasons)

    def nvmlDeviceGetCurrentClocksThrottleReasons(self, card: Card) -> int:
        self._answers(card, "older reasons")
        return self._of_whole(card, card.reasons() if callable(card.reasons) else card.reasons)

    def nvmlDeviceGetFieldValues(self, card: Card, fields: list[int]) -> list[Any]:
        assert fields == [self.NVML_FI_DEV_POWER_INSTANT]
        field_value = pynvml.c_nvmlFieldValue_t(nvmlReturn=card.power_error)
        field_value.value.uiVal = self._of_whole(card, 512_500)
        return [field_value]

    def nvmlDeviceGetTotalEnergyConsumption(self, card: Card) -> int:
        self._answers(card, "energy")
        energy = card.energy_mj
        return energy() if callable(energy) else energy

    def nvmlDeviceGetTemperature(self, card: Card, sensor: int) -> int:
        return self._of_whole(card, 61)

    def nvmlDeviceGetGpuMaxPcieLinkGeneration(self, card: Card) -> int:
        if card.link_generation is None:
            raise pynvml.NVMLError(pynvml.NVML_ERROR_NOT_SUPPORTED)
        return card.link_generation

    def nvmlDeviceGetMaxPcieLinkGeneration(self, card: Card) -> int:
        return self._of_whole(card, 5)

    def nvmlDeviceGetMaxPcieLinkWidth(self, card: Card) -> int:
        return self._of_whole(card, 16)

    def nvmlDeviceGetComputeMode(self, card: Card) -> int:
        return self._of_whole(card, card.compute_mode)

    def nvmlDeviceGetComputeRunningProcesses(self, card: Card) -> list[Any]:
        return [pynvml.c_nvmlProcessInfo_t(pid=pid) for pid in card.pids]

    def _of_whole(self, card: Card, value: Any) -> Any:
        """The functions that a slice does not have of its own."""
        if card.whole is not None:
            raise pynvml.NVMLError(pynvml.NVML_ERROR_NOT_SUPPORTED)
        return value

    def _answers(self, card: Card, name: str) -> None:
        if name in card.silent:
            raise pynvml.NVMLError(pynvml.NVML_ERROR_NOT_SUPPORTED)

    @staticmethod
    def _only(cards: Sequence[Card | None]) -> Card:
        if not cards or cards[0] is None:
            raise pynvml.NVMLError(pynvml.NVML_ERROR_NOT_FOUND)
        return cards[0]


class SimulatedGpu(HandClock):
    """A device that works off a queue at the clock that it has when a kernel begins.

    Attributes:
        frequency_hz: the clock, by the time at which a kernel begins.
        wait_s: what the host takes to wait, whether or not there is anything to wait for.
        busy_s: how long kernels have run, all together.
        is_spoiled: whether a kernel has gone wrong: every wait raises its error from then on.
    """

    def __init__(
        self, frequency_hz: Callable[[float], float] = lambda _: 2.0**30, wait_s: float = 0.0
    ) -> None:
        super().__init__()
        self.frequency_hz = frequency_hz
        self.wait_s = wait_s
        self.busy_s = 0.0
        self.is_spoiled = False

    def launch(self, cycles: float) -> None:
        """Enqueue a kernel of a number of cycles."""
        begin_s = max(self.now_s, self.idle_s)
        seconds = cycles / self.frequency_hz(begin_s)
        self.busy_s += seconds
        self.enqueue(seconds)

    def event(self) -> float:
        """When the device comes to what is enqueued now."""
        return max(self.now_s, self.idle_s)

    def wait(self) -> None:
        """Let time pass until the queue is empty, and what waiting takes.

        Raises:
            RuntimeError: a kernel has gone wrong.
        """
        super().wait()
        self.spend(self.wait_s)
        if self.is_spoiled:
            raise RuntimeError("CUDA error: an illegal memory access was encountered")

    def card(self, default_hz: float = 2.0**30, **facts: Any) -> Card:
        """Its clock now, as NVML reports it."""
        return Card(
            "GPU-simulated",
            clock_mhz=lambda: self.frequency_hz(self.now_s) / 1e6,
            default_mhz=default_hz / 1e6,
            **facts,
        )

    def nvml(self, **facts: Any) -> FakeNvml:
        """NVML, with this GPU alone."""
        return FakeNvml(self.card(**facts))


class Events(DeviceClock):
    """The device's own clock, which a queue keeps busy until all is enqueued."""

    def __init__(self, gpu: SimulatedGpu) -> None:
        self._gpu = gpu

    def times_s(
        self, run: Callable[[], Any], calls: int, enqueue_s: float, before: Callable[[], Any]
    ) -> list[float]:
        """From event to event."""
        self._gpu.enqueue(2 * calls * enqueue_s)
        times_s = []
        for _ in range(calls):
            before()
            start_s = self._gpu.event()
            run()
            times_s.append(self._gpu.event() - start_s)
        self._gpu.wait()
        return times_s


@dataclass
class OnSimulatedGpu(FakeFramework):
    """The fake framework on that GPU.

    Attributes:
        gpu: the device.
        launch_s: what a call takes until it returns.
        cycles: of its kernel, whose data is in the cache.
        cold_cycles: of its kernel where that is not so.
        flush_cycles: of what empties the cache; 0: the framework cannot do that.
        has_events: whether it gives access to the device's own clock.
        cupti: its clock of kernels, beside that one.
    """

    gpu: SimulatedGpu = field(default_factory=SimulatedGpu)
    launch_s: float = 2.0**-18
    cycles: float = 2.0**11
    cold_cycles: float = 2.0**13
    flush_cycles: float = 2.0**15
    has_events: bool = True
    cupti: DeviceClock | None = None
    is_cold: bool = False

    def __post_init__(self) -> None:
        self.clock = self.gpu

    def _cost(self) -> None:
        self.clock.spend(self.launch_s)
        self.gpu.launch(self.cold_cycles if self.is_cold else self.cycles)
        self.is_cold = False

    def device_clock(self, device: str) -> DeviceClock | None:
        """Events, if it has them."""
        return Events(self.gpu) if self.has_events else None

    def kernel_clock(self, device: str) -> DeviceClock | None:
        """CUPTI, if it has that in addition."""
        return self.cupti

    def flusher(self, device: str) -> Callable[[], Any] | None:
        """A kernel that empties the cache, if it has one."""
        return self._flush if self.flush_cycles else None

    def _flush(self) -> None:
        self.gpu.launch(self.flush_cycles)
        self.is_cold = True

    def to_numpy(self, array: Any) -> Any:
        """After all work is done; reading is no wait of the clock's."""
        HandClock.wait(self.gpu)
        return np.asarray(array)
