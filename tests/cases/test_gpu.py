"""Cases on a simulated GPU: every time that is recorded is right to the digit."""

import os
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, NoReturn
from unittest.mock import Mock

import numpy as np
import pytest

from fwbench.cases import timing
from fwbench.errors import ImpossibleRate, WrongResult
from fwbench.frameworks.gpus import Cupti, Listener, NoClock
from fwbench.measure import limits, nvml, resources
from fwbench.measure.clock import Clock
from fwbench.measure.nvml import Gpu
from fwbench.measure.warmup import warm_device
from fwbench.terms.manifest import Device
from fwbench.testing import FakeFramework
from fwbench.workloads import Cost
from support.fake_nvml import Card, OnSimulatedGpu, SimulatedGpu
from support.fakes import case_of, cell, operation, recorded

LAUNCH_S = 2.0**-18
WAIT_S = 2.0**-17
HZ = 2.0**30

#: Cycles of a kernel that takes half as long as its launch, and of one that takes four times.
SHORT, LONG = 2.0**11, 2.0**14
SHORT_S, LONG_S = SHORT / HZ, LONG / HZ


def facts(framework: FakeFramework | None = None, device: str = "gpu:0", **more: Any) -> Any:
    """The record of an operation on the GPU; a millisecond of rounds."""
    case = case_of(cell(device=device, **more), framework or simulated(), max_time=2.0**-10)
    return recorded(case)


def simulated(cycles: float = SHORT, **more: Any) -> OnSimulatedGpu:
    """The framework on a GPU that takes its time to wait for."""
    return OnSimulatedGpu(gpu=SimulatedGpu(wait_s=WAIT_S), launch_s=LAUNCH_S, cycles=cycles, **more)


@pytest.fixture(autouse=True)
def _no_nvml(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """NVML is not there, unless a test provides it."""
    monkeypatch.setitem(sys.modules, "pynvml", None)
    nvml.gpu.cache_clear()
    yield
    nvml.gpu.cache_clear()


@pytest.mark.parametrize(("cycles", "further_s"), [(SHORT, LAUNCH_S), (LONG, LONG_S)])
def test_times_of_a_call(cycles: float, further_s: float) -> None:
    """Launch, kernel and wait make a round; each is recorded for itself.

    In a sequence of calls each takes as long as its launch, or as its kernel; waits do not count.
    """
    record = facts(simulated(cycles))
    assert record["dispatch_s"] == LAUNCH_S
    assert record["wait_s"] == WAIT_S
    assert (record["device_s"], record["device_clock"]) == (cycles / HZ, "events")
    assert record["slope_reason"] is None
    assert record["completion_s"] == LAUNCH_S + cycles / HZ + WAIT_S
    assert record["throughput_s"] == further_s


@pytest.mark.parametrize(("cycles", "further_s"), [(SHORT, LAUNCH_S), (LONG, LONG_S)])
def test_without_the_device_s_clock_the_slope_has_to_do(cycles: float, further_s: float) -> None:
    """And the record says so: of short kernels it is the time of their launch."""
    record = facts(simulated(cycles, has_events=False))
    assert (record["device_s"], record["device_clock"]) == (further_s, "slope")
    assert record["slope_reason"] == (
        "the framework's adapter gives no access to the clock of the device"
    )


class Records(Listener):
    """CUPTI's records of the simulated GPU, whose launches are slower from then on."""

    def __init__(self, framework: OnSimulatedGpu) -> None:
        self._framework, self._before_s = framework, 0.0

    def begin(self) -> None:
        self._framework.launch_s = 2 * LAUNCH_S
        self._before_s = self._framework.gpu.busy_s

    def end(self) -> list[float]:
        return [self._framework.gpu.busy_s - self._before_s]


def test_kernels_are_timed_by_cupti_beside_events() -> None:
    """After the rounds, since CUPTI slows launches down."""
    framework = simulated()
    framework.cupti = Cupti(framework.gpu.wait, Records(framework))
    record = facts(framework)
    assert (record["device_s"], record["device_clock"]) == (SHORT_S, "events")
    assert (record["kernels_s"], record["kernels_reason"]) == (SHORT_S, None)
    assert record["completion_s"] == LAUNCH_S + SHORT_S + WAIT_S


def test_cupti_times_nothing_in_a_later_launch_of_a_comparison(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(timing, "IS_EXAMINED", True)
    framework = simulated()
    framework.cupti = Mock(spec=Cupti)
    assert facts(framework)["kernels_s"] is None
    assert framework.cupti.mock_calls == []


def test_where_cupti_cannot_be_read_the_record_says_why() -> None:
    framework = simulated()
    framework.cupti = NoClock("there is no way to CUPTI: ImportError: this build has none")
    record = facts(framework)
    assert (record["device_s"], record["kernels_s"]) == (SHORT_S, None)
    assert record["kernels_reason"] == framework.cupti.failure


def test_cold_means_that_the_cache_is_emptied_before_each_call() -> None:
    """In the rounds as by the device's clock, and outside of either time; hot is the default."""
    record = facts(simulated(cold_cycles=LONG), toggles=(("l2", "cold"),))
    assert record["device_s"] == LONG_S
    assert record["completion_s"] == LAUNCH_S + LONG_S + WAIT_S
    assert record["throughput_s"] is None
    assert record["toggles"]["l2"] == "cold"
    record = facts(simulated(cold_cycles=LONG))
    assert (record["device_s"], record["toggles"]["l2"]) == (SHORT_S, "hot")


def test_a_cpu_has_neither_a_devices_clock_nor_a_cache_to_empty() -> None:
    record = facts(device="cpu")
    assert [record.get(key) for key in ("device_s", "device_clock", "throughput_s", "gpu")] == (
        [None] * 4
    )
    assert "l2" not in record["toggles"]


def _known(monkeypatch: pytest.MonkeyPatch, gpu: SimulatedGpu, **card: Any) -> Card:
    fake = gpu.nvml(**card)
    monkeypatch.setitem(sys.modules, "pynvml", fake)
    return fake.cards[0]


def _rising(until_s: float) -> SimulatedGpu:
    """A GPU whose clock is a quarter of its later one until then."""
    return SimulatedGpu(lambda now_s: HZ / 4 if now_s < until_s else HZ, WAIT_S)


def test_cycles_power_and_heat_are_recorded(monkeypatch: pytest.MonkeyPatch) -> None:
    """With which GPU it was; the cycles of a kernel are what it was given."""
    framework = simulated()
    _known(monkeypatch, framework.gpu, reasons=0x04)
    record = facts(framework)
    assert record["device_cycles"] == SHORT
    assert record["sm_clock_hz"] == HZ
    assert record["throttled"] == ["power"]
    assert (record["power_w"], record["temperature_c"]) == (512.5, 61.0)
    assert record["discarded_rounds"] == 0
    assert record["gpu"]["uuid"] == "GPU-simulated"


def test_what_nvml_does_not_tell_is_unknown_and_fails_nothing() -> None:
    record = facts(simulated())
    assert record["device_s"] == SHORT_S
    assert record["device_cycles"] is None
    assert "sm_clock_hz" not in record


@pytest.mark.parametrize("until_s", [0.0, 0.25, 0.75])
def test_the_warm_up_outlasts_the_ramp(monkeypatch: pytest.MonkeyPatch, until_s: float) -> None:
    """Times are those of the full clock, however long it takes to rise."""
    framework = OnSimulatedGpu(gpu=_rising(until_s), launch_s=LAUNCH_S, cycles=LONG)
    _known(monkeypatch, framework.gpu, reasons=0x01)
    record = facts(framework)
    assert record["device_s"] == LONG_S
    assert record["completion_s"] == LAUNCH_S + LONG_S + WAIT_S
    assert record["sm_clock_hz"] == HZ
    assert record["steady"] is True
    assert record["warmup_s"] > 0.2


def test_an_unknown_clock_is_given_its_least_time() -> None:
    """A fifth of a second, which outlasts most ramps."""
    framework = OnSimulatedGpu(gpu=_rising(0.125), launch_s=LAUNCH_S, cycles=LONG)
    record = facts(framework)
    assert record["device_s"] == LONG_S
    assert record["warmup_s"] > 0.2


def test_a_clock_that_never_settles_ends_the_warm_up_and_is_said() -> None:
    gpu = SimulatedGpu(lambda now_s: HZ * (1.0 + now_s))
    result = warm_device(
        lambda: gpu.launch(LONG), Clock(gpu, gpu.wait), Gpu(gpu.nvml(), gpu.card())
    )
    assert result.steady is False
    assert result.seconds >= 2.0


class Uneven(OnSimulatedGpu):
    """Every second call takes twice as long, so that no median is known precisely."""

    def _cost(self) -> None:
        self.cycles = LONG + 2 * LONG - self.cycles
        super()._cost()


class Slowed(OnSimulatedGpu):
    """Every fourth call has the GPU to itself; others take twice as long."""

    def _cost(self) -> None:
        self.calls = getattr(self, "calls", 0) + 1
        self.cycles = LONG if self.calls % 4 == 0 else 2 * LONG
        super()._cost()


def test_rounds_of_a_throttled_clock_are_made_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """None of them counts, neither in the statistics nor in the times of calls."""
    begin_s, end_s = 1.0, 1.125
    gpu = SimulatedGpu(lambda now_s: HZ / 2 if begin_s <= now_s < end_s else HZ, WAIT_S)
    framework = Uneven(gpu=gpu, launch_s=LAUNCH_S, cycles=LONG)
    _known(monkeypatch, gpu, reasons=0x20)
    monkeypatch.setattr(nvml.time, "sleep", gpu.spend)
    case = case_of(cell(device="gpu:0"), framework, precision=0.01, min_rounds=5)
    record = recorded(case)
    ordinary = {LAUNCH_S + cycles / HZ + WAIT_S for cycles in (LONG, 2 * LONG)}
    assert {*case.benchmark.stats.stats.data} == ordinary
    assert record["dispatch_s"] == LAUNCH_S
    assert record["discarded_rounds"] > 0
    assert record["throttled"] == ["heat"]


def test_a_gpu_that_stays_throttled_is_measured_as_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    """After half a second of pauses; the record has its clock, and why it is low."""
    framework = OnSimulatedGpu(gpu=SimulatedGpu(lambda _: HZ / 2), launch_s=LAUNCH_S, cycles=LONG)
    _known(monkeypatch, framework.gpu, reasons=0x20)
    paused: list[float] = []
    monkeypatch.setattr(nvml.time, "sleep", paused.append)
    case = case_of(cell(device="gpu:0"), framework, precision=0.5, min_rounds=5)
    record = recorded(case)
    assert record["completion_s"] == LAUNCH_S + 2 * LONG_S
    assert (record["sm_clock_hz"], record["throttled"]) == (HZ / 2, ["heat"])
    assert sum(paused) == pytest.approx(0.5)
    assert record["discarded_rounds"] > 0


def test_a_clock_that_someone_has_set_is_no_throttling(monkeypatch: pytest.MonkeyPatch) -> None:
    framework = OnSimulatedGpu(gpu=SimulatedGpu(lambda _: HZ / 2), launch_s=LAUNCH_S, cycles=LONG)
    _known(monkeypatch, framework.gpu, reasons=0x02)
    case = case_of(cell(device="gpu:0"), framework, precision=0.5, min_rounds=5)
    record = recorded(case)
    assert (record["discarded_rounds"], record["throttled"]) == (0, [])


class PowerLimited(SimulatedGpu):
    """A GPU that has five eighths of its clock after 1/16 s of work, until it rests."""

    def __init__(self) -> None:
        super().__init__(lambda _: HZ * 5 / 8 if self.is_limited else HZ, WAIT_S)
        self._began_s = 0.0

    @property
    def is_limited(self) -> bool:
        return self.busy_s - self._began_s >= 2.0**-4

    def rest(self, seconds: float) -> None:
        self.spend(seconds)
        self._began_s = self.busy_s


def test_work_at_the_power_limit_is_told_as_burst_and_sustained(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Rounds are those of the clock that the GPU keeps, and are not made again after a pause."""
    gpu = PowerLimited()
    _known(monkeypatch, gpu, reasons=lambda: 4 * gpu.is_limited)
    monkeypatch.setattr(nvml.time, "sleep", gpu.rest)
    framework = OnSimulatedGpu(gpu=gpu, launch_s=LAUNCH_S, cycles=_HEAVY)
    record = recorded(case_of(cell(device="gpu:0"), framework, max_time=0.5))
    around_s = LAUNCH_S + WAIT_S
    assert record["burst_s"] == around_s + _HEAVY_S
    assert record["completion_s"] == pytest.approx(around_s + _HEAVY_S * 8 / 5)
    assert (record["discarded_rounds"], record["throttled"]) == (0, ["power"])
    assert record["steady"]


def test_calls_that_are_longer_than_a_burst_have_none(monkeypatch: pytest.MonkeyPatch) -> None:
    gpu = PowerLimited()
    _known(monkeypatch, gpu, reasons=0x04)
    monkeypatch.setattr(nvml.time, "sleep", gpu.rest)
    framework = OnSimulatedGpu(gpu=gpu, launch_s=LAUNCH_S, cycles=8 * _HEAVY)
    assert "burst_s" not in recorded(case_of(cell(device="gpu:0"), framework, max_time=0.5))


@pytest.mark.parametrize(("device", "statistic"), [("cpu", "min"), ("gpu:0", "median")])
def test_the_median_stands_for_a_launch_on_a_gpu(device: str, statistic: str) -> None:
    """The fastest rounds are those of a clock that it does not keep."""
    assert facts(device=device)["statistic"] == statistic


#: A kernel of 1/64 s, at 512 W.
_HEAVY = 2.0**24
_HEAVY_S = _HEAVY / HZ
_HEAVY_J = 8.0


def _energy_j(
    monkeypatch: pytest.MonkeyPatch, max_time: float = 3.0, toggles: Any = (), **card: Any
) -> float | None:
    framework = simulated(_HEAVY, cold_cycles=_HEAVY)
    _known(monkeypatch, framework.gpu, energy_mj=lambda: int(framework.gpu.busy_s * 512e3), **card)
    gpu_cell = cell(device="gpu:0", toggles=toggles)
    record = recorded(case_of(gpu_cell, framework, max_time=max_time))
    energy_j: float | None = record["energy_j"]
    assert energy_j is None or record["energy_uncertainty"] == pytest.approx(0.1 / 3.0, rel=0.1)
    return energy_j


def test_energy_is_that_of_all_calls(monkeypatch: pytest.MonkeyPatch) -> None:
    """Over their number, those included that pytest-benchmark makes before its rounds."""
    assert _energy_j(monkeypatch) == pytest.approx(_HEAVY_J, rel=1e-6)


@pytest.mark.parametrize(
    "more",
    [{"silent": {"energy"}}, {"max_time": 1.0}, {"toggles": (("l2", "cold"),)}],
    ids=["GPUs before Volta", "the counter may not have moved", "emptying the cache takes energy"],
)
def test_energy_may_be_unknown(monkeypatch: pytest.MonkeyPatch, more: Any) -> None:
    assert _energy_j(monkeypatch, **more) is None


@pytest.mark.parametrize(("slowed", "condition"), [(False, "clean"), (True, "contended")])
def test_others_on_the_gpu_are_recorded(
    monkeypatch: pytest.MonkeyPatch, slowed: bool, condition: str
) -> None:
    """A case is contended if they show in its rounds: others may be idle."""
    framework = (Slowed if slowed else OnSimulatedGpu)(launch_s=LAUNCH_S, cycles=LONG)
    _known(monkeypatch, framework.gpu, pids=[os.getpid(), 1])
    record = facts(framework)
    assert record["others_on_gpu"] == 1
    if (
        record["others_cpus"] is None or record["others_cpus"] <= 0.25
    ):  # as this machine is just now
        assert record["condition"] == condition


_MIB = 2**20


@dataclass
class Counting(FakeFramework):
    """An account of memory, as allocators of GPUs keep one.

    Attributes:
        held_bytes: in use now.
        most_bytes: since it was asked to watch.
        call_bytes: what a call takes while it works.
        leaked_bytes: what it never gives back.
    """

    held_bytes: int = 0
    most_bytes: int = 0
    call_bytes: int = 0
    leaked_bytes: int = 0

    def watch_memory(self, device: str) -> Callable[[], int | None]:
        if device == "cpu":
            return super().watch_memory(device)
        self.most_bytes = self.held_bytes
        return lambda: self.most_bytes

    def _cost(self) -> None:
        super()._cost()
        self.most_bytes = max(self.most_bytes, self.held_bytes + self.call_bytes)
        self.held_bytes += self.leaked_bytes
        self.leaked_bytes = 0


@pytest.fixture(autouse=True)
def _first_of_its_process(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(resources, "FOUND_FIRST", {})


def test_the_peak_is_recorded_with_what_was_held_before() -> None:
    record = facts(Counting(held_bytes=10 * _MIB, call_bytes=3 * _MIB))
    assert record["device_memory_before_bytes"] == 10 * _MIB
    assert record["peak_device_memory_bytes"] == 13 * _MIB
    assert record["device_memory_left_bytes"] == 0


def test_what_a_case_never_gives_back_is_told_of_the_next_ones() -> None:
    """For the first case of a process nothing was left: whatever it finds is its framework's."""
    framework = Counting(held_bytes=10 * _MIB, leaked_bytes=5 * _MIB)
    left = [facts(framework)["device_memory_left_bytes"] for _ in range(2)]
    framework.leaked_bytes = 2 * _MIB
    left += [facts(framework)["device_memory_left_bytes"] for _ in range(2)]
    assert left == [0, 5 * _MIB, 5 * _MIB, 7 * _MIB]
    framework.held_bytes = 0
    assert facts(framework)["device_memory_left_bytes"] == 0


def test_gpus_have_accounts_of_their_own() -> None:
    known: dict[str, int] = {}
    first = resources.DeviceMemory("gpu:0", lambda: 100, known)
    other = resources.DeviceMemory("gpu:1", lambda: 700, known)
    repeated = resources.DeviceMemory("gpu:0", lambda: 400, known)
    assert [account.left_bytes for account in (first, other, repeated)] == [0, 0, 300]


def test_what_a_framework_does_not_tell_is_unknown() -> None:
    record = facts(FakeFramework(copies=True))
    assert record["device_memory_before_bytes"] is None
    assert record["device_memory_left_bytes"] is None


def test_a_cpu_has_no_such_memory() -> None:
    assert (
        not {"device_memory_before_bytes", "peak_device_memory_bytes"}
        & facts(Counting(), "cpu").keys()
    )


_GIBIBYTE = 2**30

_OUT_OF_MEMORY = "CUDA out of memory. Tried to allocate 9.00 GiB"
_BUSY = "CUDA error: CUDA-capable device(s) is/are busy or unavailable"


class Failing(OnSimulatedGpu):
    error: Exception

    def creator(self, device: str, dtype: str) -> Any:
        def place(_: Any) -> NoReturn:
            raise self.error

        return place


def notes(error: Exception, device: str = "gpu:0", **changes: Any) -> list[str]:
    """The notes of the error that a case fails with, which is the framework's own."""
    framework = Failing()
    framework.error = error
    with pytest.raises(type(error)) as caught:
        case_of(cell(operation(**changes), device=device), framework).measure()
    assert caught.value is error
    return getattr(error, "__notes__", [])


@pytest.fixture
def card(monkeypatch: pytest.MonkeyPatch) -> Iterator[Card]:
    """The only GPU that NVML knows."""
    fake = OnSimulatedGpu().gpu.nvml(free_bytes=_GIBIBYTE, total_bytes=140 * _GIBIBYTE)
    monkeypatch.setitem(sys.modules, "pynvml", fake)
    nvml.gpu.cache_clear()
    yield fake.cards[0]
    nvml.gpu.cache_clear()


def test_lack_of_memory_says_what_is_free(card: Card) -> None:
    """Other processes count; operands and results of the case by its declared cost."""
    card.pids = [1, 2]
    (note,) = notes(RuntimeError(_OUT_OF_MEMORY), cost=lambda _: Cost(flops=1.0, elements=2.0**24))
    assert note.startswith("gpu:0: 1.00 GiB of 140.00 GiB are free; ")
    assert "operands and results of the case take 0.06 GiB at least" in note
    assert "2 other processes on it" in note


def test_a_gpu_that_another_process_has_for_itself_is_named(card: Card) -> None:
    card.compute_mode, card.pids = 3, [1]
    (note,) = notes(RuntimeError(_BUSY))
    assert note.endswith(
        "1 other process on it; it is in EXCLUSIVE_PROCESS mode and takes one process at a time: "
        "end the others, or set the mode with nvidia-smi -c DEFAULT"
    )


@pytest.mark.usefixtures("card")
def test_nothing_is_added_on_a_cpu_or_to_errors_of_fwbench() -> None:
    assert notes(RuntimeError(_OUT_OF_MEMORY), "cpu") == []
    assert notes(WrongResult("the result is wrong")) == []


def test_a_gpu_that_nvml_does_not_know_adds_nothing() -> None:
    assert notes(RuntimeError(_OUT_OF_MEMORY)) == []


class Copying(OnSimulatedGpu):
    """A framework on an H200, whose memory NVIDIA's data sheet knows."""

    def devices(self, cpu_model: str) -> tuple[Device, ...]:
        return (Device("cpu", cpu_model), Device("gpu:0", "NVIDIA H200"))


@pytest.mark.parametrize(("share", "is_possible"), [(0.9, True), (1.1, False)])
def test_a_copy_is_no_faster_than_the_memory(
    monkeypatch: pytest.MonkeyPatch, share: float, is_possible: bool
) -> None:
    """Its cache may hold a part of what is copied, and data sheets round.

    The array is declared to be larger than it is, or each call would take so long.
    """
    size, moved_bytes, cache_bytes = 2**10, 2**27, 50 * 2**20
    least_s = (moved_bytes - cache_bytes) / (1.05 * 4.8e12)
    framework = Copying(gpu=SimulatedGpu(), launch_s=0.0, cycles=least_s / share * HZ)
    _known(monkeypatch, framework.gpu)
    copy = operation(
        np.copy,
        reference=np.copy,
        sizes=(size,),
        differentiable=False,
        cost=lambda _: Cost(flops=0.0, elements=moved_bytes / 4),
    )
    case = case_of(cell(copy, device="gpu:0", size=size), framework, max_time=2.0**-10)
    if is_possible:
        assert recorded(case)["limit_bytes_per_s"] == pytest.approx(moved_bytes / least_s)
        return
    with pytest.raises(ImpossibleRate, match="the memory of an NVIDIA H200 and its cache"):
        case.measure()


def test_of_what_a_cache_holds_no_rate_is_impossible() -> None:
    """Nor of models that are not known, nor where the bytes are not."""
    cached = limits.of_memory("NVIDIA H200", 50 * 2**20)
    unknown = limits.of_memory("Fake 9000", 1e9), limits.of_memory("NVIDIA H200", None)
    assert [limit.bytes_per_s for limit in (cached, *unknown)] == [None] * 3
