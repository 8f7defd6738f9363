"""What NVML says of GPUs, for the record."""

from __future__ import annotations

from fwbench.records.checks import NOT_NEGATIVE, POSITIVE
from fwbench.records.table import Table, fact
from fwbench.records.units import BYTES, HERTZ, JOULES, SHARE, WATTS

_UNTOLD = "where NVML does not tell"


class Gpu(Table):
    """What NVML says of a GPU at a moment."""

    utilization: float = fact("share of the last second in which a kernel ran", SHARE, NOT_NEGATIVE)
    memory_bytes: int = fact("memory in use by all processes", BYTES, NOT_NEGATIVE)
    energy_j: float | None = fact(
        "energy that it took in an epoch", JOULES, POSITIVE,
        null="where NVML does not tell, and of less than half a second",
    )  # fmt: skip


class GpuIdentity(Table):
    """Which GPU a case ran on, and how it was set up, as NVML knows it."""

    uuid: str | None = fact("its own, or that of a slice (MIG)", null=_UNTOLD)
    vbios: str | None = fact("version of its firmware", null=_UNTOLD)
    ecc: bool | None = fact("whether its memory corrects errors", null=_UNTOLD)
    power_limit_w: float | None = fact("what it may draw", WATTS, POSITIVE, null=_UNTOLD)
    default_sm_clock_hz: float | None = fact(
        "clock of its multiprocessors unless settings or heat want another", HERTZ, POSITIVE,
        null=_UNTOLD,
    )  # fmt: skip
    mig: str | None = fact("profile of a slice", null="for a whole GPU")
