"""Limits of a processor follow from what Linux says of it; of others nothing is claimed."""

from pathlib import Path

import pytest

from fwbench.measure import limits
from fwbench.measure.limits import Limits
from support.tables import tabled

GHZ = 6.2e9


def _limits_of(folder: Path, line: str, cpus: int = 2) -> Limits:
    (folder / "cpuinfo").write_text(f"processor\t: 0\n{line}\nprocessor\t: 1\n", encoding="utf-8")
    return limits.of_processor(cpus, folder)


@tabled
def test_the_widest_unit_counts(
    tmp_path: Path, line: str, flops_per_cycle: int, bytes_per_cycle: int
) -> None:
    """Two fused multiply-adds of float32, two loads and a store, on each CPU in each cycle."""
    result = _limits_of(tmp_path, line)
    assert result.flops_per_s["float32"] == 2 * GHZ * flops_per_cycle
    assert result.flops_per_s["float64"] == result.flops_per_s["float32"] / 2
    assert result.flops_per_s["float16"] == result.flops_per_s["float32"] * 2
    assert result.bytes_per_s == 2 * GHZ * bytes_per_cycle
    assert result.source["bytes"] == result.source["float32"]
    assert result.source["float32"].startswith("2 CPUs at 6.2 GHz with ")


def test_tiles_of_16_bits_have_a_rate_of_their_own(tmp_path: Path) -> None:
    """AMX multiplies bfloat16 faster than any vector unit, and float32 not at all."""
    result = _limits_of(tmp_path, "flags\t: sse2 avx avx512f amx_bf16 amx_tile", cpus=1)
    assert result.flops_per_s["bfloat16"] == GHZ * 2048
    assert result.flops_per_s["float32"] == GHZ * 64


@pytest.mark.parametrize(
    "line", ["flags\t: fpu", "Features\t: fp asimd sve sme", "isa\t: rv64imafdcv"]
)
def test_nothing_is_claimed_of_other_processors(tmp_path: Path, line: str) -> None:
    """Without a unit that is known, or with one that is not."""
    assert _limits_of(tmp_path, line) == Limits()


def test_nothing_is_claimed_without_procfs(tmp_path: Path) -> None:
    assert limits.of_processor(proc=tmp_path) == Limits()


def test_a_peak_that_was_measured_takes_the_place_of_what_is_possible(tmp_path: Path) -> None:
    """In its own dtype; a case may reach 1.2 times as much."""
    possible = _limits_of(tmp_path, "flags\t: avx")
    known = possible.under({"float32": 1e11})
    assert known.flops_per_s["float32"] == 1.2e11
    assert known.flops_per_s["float64"] == possible.flops_per_s["float64"]
    assert known.bytes_per_s == possible.bytes_per_s
    assert "doctor --peaks" in known.source["float32"]
    assert known.source["float64"] == possible.source["float64"]
