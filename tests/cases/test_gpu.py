"""Cases on a simulated GPU: every time that is recorded is right to the digit."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Any

import pytest

from fwbench.cases.case import Case
from fwbench.measure import nvml
from support.fakes import case_of, cell, operation
from support.simulated_gpu import OnSimulatedGpu, SimulatedGpu

LAUNCH_S = 2.0**-18
WAIT_S = 2.0**-17
HZ = 2.0**30

#: Cycles of a kernel that takes half as long as its launch, and of one that takes four times.
SHORT, LONG = 2.0**11, 2.0**14
SHORT_S, LONG_S = SHORT / HZ, LONG / HZ


def on(framework: OnSimulatedGpu, **changes: Any) -> Case:
    """A case of an operation on the GPU; a millisecond of rounds."""
    return case_of(cell(operation(), device="gpu:0", **changes), framework, max_time=2.0**-10)


def facts(framework: OnSimulatedGpu, **changes: Any) -> dict[str, Any]:
    """What is recorded of it."""
    case = on(framework, **changes)
    case.measure()
    found: dict[str, Any] = case.benchmark.extra_info["fwbench"]
    return found


def simulated(cycles: float = SHORT, **more: Any) -> OnSimulatedGpu:
    """The framework on a GPU that takes its time to wait for."""
    return OnSimulatedGpu(gpu=SimulatedGpu(wait_s=WAIT_S), launch_s=LAUNCH_S, cycles=cycles, **more)


@pytest.fixture(autouse=True)
def _no_nvml(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Unless a test says what it tells, whatever this machine has."""
    monkeypatch.setitem(sys.modules, "pynvml", None)
    nvml.gpu.cache_clear()
    yield
    nvml.gpu.cache_clear()


@pytest.mark.parametrize("cycles", [SHORT, LONG])
def test_each_time_is_told_from_the_others(cycles: float) -> None:
    """Launch, kernel and wait make a round; each is recorded for itself."""
    found = facts(simulated(cycles))
    assert found["dispatch_s"] == LAUNCH_S
    assert found["wait_s"] == WAIT_S
    assert found["device_s"] == cycles / HZ
    assert found["device_clock"] == "events"
    assert found["completion_s"] == LAUNCH_S + cycles / HZ + WAIT_S


@pytest.mark.parametrize(("cycles", "further_s"), [(SHORT, LAUNCH_S), (LONG, LONG_S)])
def test_throughput_is_that_of_the_slower_one(cycles: float, further_s: float) -> None:
    """Of many calls each takes as long as its launch, or as its kernel; waits do not count."""
    assert facts(simulated(cycles))["throughput_s"] == further_s


@pytest.mark.parametrize(("cycles", "further_s"), [(SHORT, LAUNCH_S), (LONG, LONG_S)])
def test_without_the_device_s_clock_the_slope_has_to_do(cycles: float, further_s: float) -> None:
    """And the record says so: of short kernels it is the time of their launch."""
    found = facts(simulated(cycles, has_events=False))
    assert (found["device_s"], found["device_clock"]) == (further_s, "slope")


def test_cold_means_that_the_cache_is_emptied_before_each_call() -> None:
    """In the rounds as by the device's clock, and outside of either time."""
    found = facts(simulated(cold_cycles=LONG), toggles=(("l2", "cold"),))
    assert found["device_s"] == LONG_S
    assert found["completion_s"] == LAUNCH_S + LONG_S + WAIT_S
    assert found["throughput_s"] is None
    assert found["toggles"]["l2"] == "cold"


def test_hot_is_the_default_and_recorded() -> None:
    """Nothing empties the cache between calls of one operation."""
    found = facts(simulated(cold_cycles=LONG))
    assert found["device_s"] == SHORT_S
    assert found["toggles"]["l2"] == "hot"


def test_on_a_cpu_there_is_nothing_of_all_that() -> None:
    """No clock but the host's, and no cache that could be emptied."""
    case = case_of(cell(operation()), simulated())
    case.measure()
    found = case.benchmark.extra_info["fwbench"]
    assert {"device_s", "device_clock", "throughput_s", "gpu"} & {
        name for name, value in found.items() if value is not None
    } == set()
    assert "l2" not in found["toggles"]
