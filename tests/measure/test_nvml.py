"""The GPU that NVML tells of is the one that the framework computes on."""

import inspect
import os
import sys
from collections.abc import Iterator

import pynvml
import pytest

from fwbench.measure import nvml
from fwbench.measure.nvml import GpuState, GpuUse
from fwbench.terms.manifest import Device, Manifest
from support.fake_nvml import Card, FakeNvml
from support.fakes import manifest
from support.tables import tabled


@pytest.fixture
def two(monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeNvml]:
    """Two GPUs alike, of which the second is busy."""
    fake = FakeNvml(Card("GPU-a", busy=0, used_bytes=1000), Card("GPU-b", busy=97, used_bytes=2000))
    monkeypatch.setitem(sys.modules, "pynvml", fake)
    for name in ("CUDA_VISIBLE_DEVICES", "CUDA_DEVICE_ORDER"):
        monkeypatch.delenv(name, raising=False)
    nvml.gpu.cache_clear()
    yield fake
    nvml.gpu.cache_clear()


def test_the_stand_in_has_the_functions_of_nvml() -> None:
    """Each has its parameters, and each constant its number: NVIDIA's own module says so."""
    for name, member in inspect.getmembers(FakeNvml):
        if name.startswith("NVML_"):
            assert member == getattr(pynvml, name), name
        elif name.startswith("nvml"):
            _, *given = inspect.signature(member).parameters
            inspect.signature(getattr(pynvml, name)).bind(*given)


def test_a_slice_has_no_energy_of_its_own() -> None:
    """NVML counts that of the whole GPU, which is other slices' too."""
    part = Card("MIG-a", energy_mj=5)
    whole = Card("GPU-a", energy_mj=1500, slices=[part])
    fake = FakeNvml(whole)
    assert nvml.Gpu(fake, whole).energy_j() == 1.5
    assert nvml.Gpu(fake, part).energy_j() is None


def known() -> nvml.Gpu:
    gpu = nvml.gpu("gpu:0")
    assert gpu is not None
    return gpu


def busy(device: str, uuid: str = "") -> float | None:
    gpu = nvml.gpu(device, uuid)
    use = gpu and gpu.use()
    return use.utilization if use else None


@pytest.mark.usefixtures("two")
def test_the_use_of_a_gpu_is_what_nvml_says() -> None:
    gpus = [nvml.gpu(f"gpu:{i}") for i in range(2)]
    uses = [gpu.use() if gpu else None for gpu in gpus]
    assert uses == [GpuUse(0.0, 1000), GpuUse(0.97, 2000)]


@pytest.mark.usefixtures("two")
@tabled
def test_cuda_counts_what_is_visible(
    monkeypatch: pytest.MonkeyPatch, visible: str, expected: tuple[float | None, ...]
) -> None:
    """NVML counts all: without the variable's help another GPU's utilisation is reported."""
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", visible)
    assert (busy("gpu:0"), busy("gpu:1")) == expected


@pytest.mark.usefixtures("two")
@pytest.mark.parametrize("uuid", ["GPU-b", "b"])
def test_a_uuid_is_surest(monkeypatch: pytest.MonkeyPatch, uuid: str) -> None:
    """With any that are visible; PyTorch leaves out the beginning. An absent one is unknown."""
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "0,1")
    assert busy("gpu:0", uuid) == 0.97
    assert busy("gpu:0", "elsewhere") is None


@pytest.mark.parametrize(
    ("order", "expected"), [("PCI_BUS_ID", 0.97), ("FASTEST_FIRST", None), (None, None)]
)
def test_different_gpus_may_be_in_another_order(
    two: FakeNvml, monkeypatch: pytest.MonkeyPatch, order: str | None, expected: float | None
) -> None:
    """CUDA has the fastest first by default; nothing is better than a wrong GPU."""
    two.cards[0].name = "NVIDIA T4"
    if order:
        monkeypatch.setenv("CUDA_DEVICE_ORDER", order)
    assert busy("gpu:1") == expected


def test_a_slice_has_clocks_and_memory_and_no_utilisation(two: FakeNvml) -> None:
    """CUDA sees one of the slices; the clocks are the whole GPU's."""
    part = Card("MIG-a", name="NVIDIA H200 MIG 1g.18gb", whole=two.cards[0])
    two.cards[0].slices = (part,)
    gpu = known()
    assert gpu.use() is None
    assert gpu.sm_clock_hz() == 1980e6
    identity = gpu.identity()
    assert (identity["uuid"], identity["mig"]) == ("MIG-a", "NVIDIA H200 MIG 1g.18gb")
    assert identity["power_limit_w"] == 700.0


@pytest.mark.usefixtures("two")
def test_who_a_gpu_is() -> None:
    assert known().identity() == {
        "uuid": "GPU-a",
        "vbios": "96.00",
        "ecc": True,
        "power_limit_w": 700.0,
        "default_sm_clock_hz": 1980e6,
        "mig": None,
        "pcie_generation": 5,
        "pcie_lanes": 16,
        "numa_node": None,
    }


def test_clock_power_and_heat(two: FakeNvml) -> None:
    """With why the clock is not higher, settings apart; drivers before 535 name that otherwise."""
    gpu = known()
    two.cards[0].clock_mhz, two.cards[0].reasons = 1200, 0x04 | 0x20 | 0x02
    assert gpu.state() == GpuState(1200e6, ("power", "heat"), 512.5, 61.0)
    two.cards[0].silent = {"reasons"}
    assert gpu.reasons() == ("power", "heat")


def test_what_nvml_does_not_tell_is_unknown(two: FakeNvml) -> None:
    gpu = known()
    two.cards[0].silent = {"clock", "reasons", "older reasons", "default"}
    two.cards[0].power_error = 3
    assert gpu.state() == GpuState(None, None, None, 61.0)
    assert gpu.default_sm_clock_hz == 2100e6
    two.cards[0].silent |= {"highest"}
    assert gpu.default_sm_clock_hz is None


@tabled
def test_throttled_is_below_three_quarters_of_the_default(
    clock_hz: float | None,
    default_hz: float | None,
    reasons: tuple[str, ...] | None,
    *,
    throttled: bool,
) -> None:
    """Unless someone has set the clock so, or nothing is known."""
    state = GpuState(clock_hz, reasons, None, None)
    assert nvml.is_throttled(state, default_hz) is throttled


def test_other_processes_are_counted(two: FakeNvml) -> None:
    """Neither this one nor its session's other workers; nothing is known where it is not listed."""
    gpu = known()
    assert gpu.others() is None
    two.cards[0].pids = [os.getpid(), 1]
    assert gpu.others() == 1
    two.cards[0].pids = [os.getpid()]
    assert gpu.others() == 0


@pytest.mark.parametrize(
    ("device", "has_driver", "has_nvml"),
    [("gpu:2", True, True), ("gpu:0", False, True), ("gpu:0", True, False), ("cpu", True, False)],
    ids=["another GPU", "no driver", "no NVML", "CPU"],
)
def test_a_gpu_that_is_not_there_is_unknown(
    two: FakeNvml, monkeypatch: pytest.MonkeyPatch, device: str, has_driver: bool, has_nvml: bool
) -> None:
    """NVML's errors are not passed on, and an import that fails is an answer."""
    two.is_there = has_driver
    if not has_nvml:
        monkeypatch.setitem(sys.modules, "pynvml", None)
    assert nvml.gpu(device) is None


def _seen(*models: str) -> Manifest:
    gpus = (Device(f"gpu:{i}", model) for i, model in enumerate(models))
    return manifest(devices=(Device("cpu", "Fake CPU"), *gpus))


def test_gpus_of_a_framework_that_does_not_tell_have_nvml_s_names(two: FakeNvml) -> None:
    """So that its records meet the ceilings and the cases of others on the same GPU."""
    assert two.cards[0].name == "NVIDIA H200"
    result = nvml.named(_seen("", "NVIDIA H100"))
    assert [device.model for device in result.devices] == ["Fake CPU", "NVIDIA H200", "NVIDIA H100"]


def test_without_a_driver_such_gpus_have_a_name_of_their_own(two: FakeNvml) -> None:
    two.is_there = False
    assert nvml.named(_seen("")).devices[1].model == "NVIDIA GPU"
