"""Rates that a processor cannot exceed, whatever it computes: what is faster has not been done.

Two bounds of a core, each in a clock cycle:

- Arithmetic: two fused multiply-adds on vectors, the most of any core sold (Intel's Golden Cove,
  AMD's Zen 5; Arm's Neoverse V1 has four on half the width). Intel 64 and IA-32 Architectures
  Optimization Reference Manual, chapter 2; Software Optimization Guide for the AMD Zen 5
  Microarchitecture, section 2; Arm Neoverse V1 Core Software Optimization Guide, section 3.
  Intel's AMX multiplies tiles of 16 bits at 1,024 operations a cycle (the first of these, chapter
  20); twice that is allowed here.
- Data: two vectors loaded from the first cache and one stored (the same manuals).

The clock is taken for that of the fastest processor sold, because the highest frequency that a
system names may leave out boost (Linux' acpi-cpufreq), and virtual machines name none. So the
bounds are some three times what a good product reaches. Nothing is claimed of processors that are
not known here; of GPUs only what the link to the host carries, and their memory.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from fwbench.machine import allowed_cpus, cpu_features
from fwbench.packaged import read_table
from fwbench.terms.names import FLOAT8

#: Of the Intel Core i9-14900KS of 2024.
_HIGHEST_CLOCK_HZ = 6.2e9

#: Bytes of the vectors that two ports multiply and add in a cycle, by the widest unit of a core as
#: Linux names it; of SVE, whose width it does not name, that of Fujitsu's A64FX.
_VECTOR_BYTES = {"avx512f": 128, "avx": 64, "sse2": 32, "sve": 128, "asimd": 64}

#: Units whose rates are not known here.
_UNKNOWN = {"sme"}

_AMX = {"amx_bf16", "amx_fp16", "amx_int8"}
_AMX_FLOPS = 2048

#: Of x86 and of ARM.
_INT8 = {"avx_vnni", "avx_vnni_int8", "avx512_vnni", "amx_int8", "asimddp", "i8mm"}

#: A vector of each port loaded, and one stored.
_DATA_VECTORS = 1.5

#: Bytes of an element, by dtype.
ITEMSIZE_BYTES = {"float64": 8, "float32": 4, "float16": 2, "bfloat16": 2, "int8": 1, FLOAT8: 1}

#: What a case may reach of the best product that was measured.
_OF_MEASURED = 1.2


#: Bytes a second in one direction of a lane of PCI Express, by generation, before the headers of
#: its packets (PCI Express Base Specification 6.0, section 4.2: encoding), and a GPU's lanes.
_LANE_BYTES_PER_S = {1: 0.25e9, 2: 0.5e9, 3: 0.985e9, 4: 1.97e9, 5: 3.94e9, 6: 8e9}
_LANES = 16


@dataclass(frozen=True)
class Limits:
    """Rates that no work on a device can exceed."""

    #: Floating-point operations, by dtype; none where they are not known.
    flops_per_s: Mapping[str, float] = field(default_factory=dict)
    #: Read and written; None where that is not known.
    bytes_per_s: float | None = None
    #: What they are taken from, by dtype and by ``bytes``, for messages.
    source: Mapping[str, str] = field(default_factory=dict)

    def under(self, measured: Mapping[str, float]) -> "Limits":
        """These limits, but for those that follow from measured peaks, in operations a second."""
        source = f"{_OF_MEASURED} times the best product that fwbench doctor --peaks measured"
        return Limits(
            {**self.flops_per_s, **{dtype: _OF_MEASURED * r for dtype, r in measured.items()}},
            self.bytes_per_s,
            {**self.source, **dict.fromkeys(measured, source)},
        )


def of_processor(cpus: int | None = None, proc: Path = Path("/proc")) -> Limits:
    """The limits of this process's processors, or of ``cpus``; none where they are not known."""
    flags = cpu_features(proc)
    unit = next((name for name in _VECTOR_BYTES if name in flags), None)
    if unit is None or flags & _UNKNOWN:
        return Limits()
    cores = cpus or allowed_cpus()  # a quota's burst may use all of them
    cycles_per_s = cores * _HIGHEST_CLOCK_HZ
    per_cycle = {
        dtype: 2.0 * _VECTOR_BYTES[unit] / itemsize for dtype, itemsize in ITEMSIZE_BYTES.items()
    }
    if flags & _AMX:
        per_cycle |= {"float16": _AMX_FLOPS, "bfloat16": _AMX_FLOPS, "int8": 2 * _AMX_FLOPS}
    source = f"{cores} CPUs at {_HIGHEST_CLOCK_HZ / 1e9:g} GHz with {unit}"
    return Limits(
        {dtype: rate * cycles_per_s for dtype, rate in per_cycle.items()},
        _DATA_VECTORS * _VECTOR_BYTES[unit] * cycles_per_s,
        dict.fromkeys((*per_cycle, "bytes"), source),
    )


def of_link(generation: int | None) -> Limits:
    """The limits of copies between the host and a GPU of a generation of PCI Express, if known."""
    rate = _LANE_BYTES_PER_S.get(generation or 0)
    if rate is None:
        return Limits()
    source = f"{_LANES} lanes of PCI Express {generation}"
    return Limits(bytes_per_s=_LANES * rate, source={"bytes": source})


#: What data sheets leave out: they round.
_OF_DATA_SHEET = 1.05


def of_memory(model: str, moved_bytes: float | None) -> Limits:
    """The limit of copies within a GPU's memory; none of models that are not in the table.

    What its cache holds may have stayed there from one call to the next.
    """
    table = read_table(__package__, "gpu_memory.toml")
    memory = table.get(model)
    if memory is None or not moved_bytes or moved_bytes <= memory["cache_bytes"]:
        return Limits()
    through = moved_bytes / (moved_bytes - memory["cache_bytes"])
    rate = _OF_DATA_SHEET * memory["bytes_per_s"] * through
    return Limits(bytes_per_s=rate, source={"bytes": f"the memory of an {model} and its cache"})


def int8_features(proc: Path = Path("/proc")) -> str | None:
    """Processor features for products of 8 bits, as Linux names them; None where unknown."""
    flags = cpu_features(proc)
    return " ".join(sorted(flags & _INT8)) if flags else None
