"""Facts of GPUs, from NVML."""

from __future__ import annotations

from fwbench.records.checks import NOT_NEGATIVE, POSITIVE
from fwbench.records.table import Table, fact
from fwbench.records.units import BYTES, CELSIUS, COUNT, HERTZ, JOULES, SHARE, WATTS

UNKNOWN_TO_NVML = "where NVML does not tell"
_UNKNOWN_TO_FRAMEWORK = "where the framework does not tell"


class EpochGpu(Table):
    """State of a GPU at a moment, from NVML."""

    utilization: float = fact("share of the last second in which a kernel ran", SHARE, NOT_NEGATIVE)
    memory_bytes: int = fact("memory in use by all processes", BYTES, NOT_NEGATIVE)
    energy_j: float | None = fact(
        "energy that it took in an epoch", JOULES, POSITIVE,
        null="where NVML does not tell, and of less than half a second",
    )  # fmt: skip


class GpuFacts(Table):
    """Which GPU a case ran on, and how it was set up, as NVML knows it."""

    uuid: str | None = fact("its own, or that of a slice (MIG)", null=UNKNOWN_TO_NVML)
    vbios: str | None = fact("version of its firmware", null=UNKNOWN_TO_NVML)
    ecc: bool | None = fact("whether its memory corrects errors", null=UNKNOWN_TO_NVML)
    power_limit_w: float | None = fact("what it may draw", WATTS, POSITIVE, null=UNKNOWN_TO_NVML)
    default_sm_clock_hz: float | None = fact(
        "clock of its multiprocessors unless settings or heat want another", HERTZ, POSITIVE,
        null=UNKNOWN_TO_NVML,
    )  # fmt: skip
    mig: str | None = fact("profile of a slice", null="for a whole GPU")


class MeasuredOnGpu(Table):
    """Measurements of a case on a GPU."""

    sm_clock_hz: float | None = fact(
        "median clock of a GPU's multiprocessors while it was measured", HERTZ, POSITIVE,
        null=UNKNOWN_TO_NVML,
    )  # fmt: skip
    throttled: list[str] | None = fact(
        "why that was not higher, settings apart, such as `power` or `heat`", null=UNKNOWN_TO_NVML
    )
    power_w: float | None = fact(
        "what the GPU drew at the end", WATTS, NOT_NEGATIVE, null=UNKNOWN_TO_NVML
    )
    energy_j: float | None = fact(
        "energy of a call or an epoch", JOULES, POSITIVE, null=UNKNOWN_TO_NVML
    )
    temperature_c: float | None = fact("its temperature then", CELSIUS, null=UNKNOWN_TO_NVML)
    discarded_rounds: int | None = fact(
        "rounds that were made again, because its clock was below 75 % of its default", COUNT,
        NOT_NEGATIVE,
    )  # fmt: skip
    device_memory_before_bytes: int | None = fact(
        "memory of the GPU that the framework had in use before a call was bound", BYTES,
        NOT_NEGATIVE, null=_UNKNOWN_TO_FRAMEWORK,
    )  # fmt: skip
    device_memory_left_bytes: int | None = fact(
        "what earlier cases of its process had left of that: beyond what the first one found",
        BYTES, NOT_NEGATIVE, null=_UNKNOWN_TO_FRAMEWORK,
    )  # fmt: skip
