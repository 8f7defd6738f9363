"""NVML without a GPU: as much of the module ``pynvml`` as fwbench asks, of GPUs that a test sets.

Names are NVML's own.
"""

from __future__ import annotations

# ruff: noqa: N802
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any


class NVMLError(Exception):
    """What NVML raises whenever it does not answer."""


@dataclass
class Card:
    """A GPU, or a slice of one.

    Attributes:
        uuid: ``GPU-...``, or ``MIG-...``.
        name: its model.
        busy: percent of the last second.
        used_bytes: of its memory.
        clock_mhz: of its multiprocessors; a callable is asked each time.
        reasons: bits.
        slices: what it is cut into.
        whole: of a slice, the GPU that it is of.
        energy_mj: since its driver was loaded; a callable is asked each time.
        pids: of the processes that use it.
        free_bytes: of its memory, whatever processes have.
        total_bytes: of it.
        compute_mode: 3 for EXCLUSIVE_PROCESS.
        silent: names of functions that do not answer.
    """

    uuid: str
    name: str = "NVIDIA H200"
    busy: int = 0
    used_bytes: int = 0
    clock_mhz: float | Callable[[], float] = 1980
    reasons: int = 0
    default_mhz: float = 1980
    slices: Sequence[Card] = ()
    whole: Card | None = None
    energy_mj: int | Callable[[], int] = 0
    pids: Sequence[int] = ()
    free_bytes: int = 8000
    total_bytes: int = 9000
    compute_mode: int = 0
    silent: set[str] = field(default_factory=set)


class FakeNvml:
    """The module, with these GPUs in the order of the bus."""

    NVML_CLOCK_SM = 1
    NVML_TEMPERATURE_GPU = 0
    NVML_COMPUTEMODE_EXCLUSIVE_PROCESS = 3

    def __init__(self, *cards: Card) -> None:
        self.cards = cards
        for card in cards:
            for part in card.slices:
                part.whole = card
        self.is_there = True

    def nvmlInit(self) -> None:
        """Needs a driver."""
        if not self.is_there:
            raise NVMLError("Driver Not Loaded")

    def nvmlSystemGetDriverVersion(self) -> str:
        return "470.82"

    def nvmlSystemGetCudaDriverVersion(self) -> int:
        return 11040

    def nvmlDeviceGetCount(self) -> int:
        return len(self.cards)

    def nvmlDeviceGetHandleByIndex(self, index: int) -> Card:
        return self._one(self.cards[index : index + 1])

    def nvmlDeviceGetHandleByUUID(self, uuid: str) -> Card:
        every = [*self.cards, *(part for card in self.cards for part in card.slices)]
        return self._one([card for card in every if card.uuid == uuid])

    def nvmlDeviceGetMigDeviceHandleByIndex(self, card: Card, index: int) -> Card:
        return self._one(card.slices[index : index + 1])

    def nvmlDeviceGetDeviceHandleFromMigDeviceHandle(self, card: Card) -> Card:
        return self._one([card.whole] if card.whole else [])

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
        return self._of_whole(card, SimpleNamespace(gpu=card.busy, memory=99))

    def nvmlDeviceGetMemoryInfo(self, card: Card) -> Any:
        return SimpleNamespace(total=card.total_bytes, free=card.free_bytes, used=card.used_bytes)

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
        return self._of_whole(card, card.reasons)

    def nvmlDeviceGetCurrentClocksThrottleReasons(self, card: Card) -> int:
        self._answers(card, "older reasons")
        return self._of_whole(card, card.reasons)

    def nvmlDeviceGetPowerUsage(self, card: Card) -> int:
        return self._of_whole(card, 512_500)

    def nvmlDeviceGetTotalEnergyConsumption(self, card: Card) -> int:
        self._answers(card, "energy")
        energy = card.energy_mj
        return energy() if callable(energy) else energy

    def nvmlDeviceGetTemperature(self, card: Card, sensor: int) -> int:
        return self._of_whole(card, 61)

    def nvmlDeviceGetComputeMode(self, card: Card) -> int:
        return self._of_whole(card, card.compute_mode)

    def nvmlDeviceGetComputeRunningProcesses(self, card: Card) -> list[Any]:
        return [SimpleNamespace(pid=pid) for pid in card.pids]

    def _of_whole(self, card: Card, value: Any) -> Any:
        """What a slice does not have of its own."""
        if card.whole is not None:
            raise NVMLError("Not Supported")
        return value

    def _answers(self, card: Card, name: str) -> None:
        if name in card.silent:
            raise NVMLError("Not Supported")

    @staticmethod
    def _one(cards: Sequence[Card | None]) -> Card:
        if not cards or cards[0] is None:
            raise NVMLError("Not Found")
        return cards[0]
