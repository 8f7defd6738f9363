"""Calls of adapters to their frameworks on a GPU, with stand-ins for these frameworks."""

import ctypes
import os
from collections.abc import Iterator
from contextlib import contextmanager
from enum import Enum
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from fwbench.errors import ProbeError
from fwbench.terms.manifest import Device
from support import programs
from support.fakes import adapter, manifest
from support.stand_ins import refused
from support.tables import tabled
from support.verification import installed


class FakeCuda:
    """``torch.cuda``, or ``torch.xpu``, with two GPUs, of which only streams can be waited for."""

    def __init__(self) -> None:
        self.waited: list[int] = []
        self.current = 0

    def is_available(self) -> bool:
        return True

    def device_count(self) -> int:
        return 2

    def get_device_properties(self, number: int) -> SimpleNamespace:
        return SimpleNamespace(name="NVIDIA H200", uuid=f"uuid-{number}")

    @contextmanager
    def device(self, number: int) -> Iterator[None]:
        before, self.current = self.current, number
        yield
        self.current = before

    def current_stream(self, number: int) -> SimpleNamespace:
        return SimpleNamespace(synchronize=lambda: self.waited.append(number))


@installed("torch")
@pytest.mark.parametrize("module", ["torch.cuda", "torch.xpu"])
def test_the_stand_in_has_what_pytorch_has(module: str) -> None:
    assert refused(FakeCuda, module) == {}


@pytest.fixture
def cuda() -> FakeCuda:
    return FakeCuda()


def _of_build(monkeypatch: pytest.MonkeyPatch, kind: str, interface: Any) -> Any:
    """The adapter with a PyTorch that is built for GPUs of that kind, and for no other."""
    module = adapter("torch.framework")
    accelerator = SimpleNamespace(current_accelerator=lambda: SimpleNamespace(type=kind))
    fake = SimpleNamespace(**{kind: interface}, accelerator=accelerator, tensor=dict, float32="f32")
    monkeypatch.setattr(module, "torch", fake)
    monkeypatch.setattr(module.gpus, "torch", fake)
    return object.__new__(module.Torch)


@pytest.fixture(params=["cuda", "xpu"])
def torch(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch, cuda: FakeCuda) -> Any:
    return _of_build(monkeypatch, request.param, cuda)


def test_pytorch_waits_for_the_stream_of_the_case(torch: Any, cuda: FakeCuda) -> None:
    """And not for the whole device, which takes longer than many a kernel."""
    wait = torch.waiter("gpu:1")
    assert cuda.waited == []
    wait()
    assert cuda.waited == [1]
    assert torch.waiter("cpu") is None


def test_events_and_captures_of_pytorch_are_of_the_gpu_of_the_case(
    torch: Any, cuda: FakeCuda
) -> None:
    """They are made on the current one, which is the first unless it is said."""
    with torch.scope("gpu:1", "float32"):
        assert cuda.current == 1
    with torch.scope("cpu", "float32"):
        assert cuda.current == 0


def test_pytorch_tells_the_uuid_of_a_gpu(torch: Any) -> None:
    assert torch.devices("a CPU") == (
        Device("cpu", "a CPU"),
        Device("gpu:0", "NVIDIA H200", "uuid-0"),
        Device("gpu:1", "NVIDIA H200", "uuid-1"),
    )


def test_apple_s_gpu_is_a_device_of_pytorch(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its interface has no streams, no properties and no account of memory."""
    waited: list[str] = []
    mps = SimpleNamespace(
        is_available=lambda: True, device_count=lambda: 1, synchronize=lambda: waited.append("mps")
    )
    torch = _of_build(monkeypatch, "mps", mps)
    assert torch.devices("a CPU")[1:] == (Device("gpu:0", "Apple GPU"),)
    torch.waiter("gpu:0")()
    assert waited == ["mps"]
    with torch.scope("gpu:0", "float32"):
        assert torch.creator("gpu:0", "float32")() == {"dtype": "f32", "device": "mps:0"}
    assert torch.watch_memory("gpu:0")() is None
    clock = torch.device_clock("gpu:0")
    assert clock.failure == "PyTorch has no kernel that keeps the queue of mps devices full"
    assert clock.times_s(lambda: None, 1, 1.0, lambda: None) == []


@installed("torch")
def test_a_device_of_pytorch_s_own_is_measured() -> None:
    """Real tensors, of a backend in Python: the adapter knows it by ``torch.accelerator`` alone.

    A product is placed, computed, verified and copied there; what lies elsewhere is refused.
    """
    places = [str(Path(__file__).parents[1]), os.environ.get("PYTHONPATH", "")]
    found = programs.result(
        *("-m", "support.torch_device"),
        variables={"PYTHONPATH": os.pathsep.join(filter(None, places))},
    )
    assert (found["kind"], found["named"], found["waited"]) == ("npy", "npy:0", 1)
    assert found["devices"] == [["cpu", "a CPU"], ["gpu:0", "npy"]]
    assert found["gap"].endswith("and the GPUs of this PyTorch are npy")
    assert found["work"] == ["gpu:0"]
    assert found["astray"].startswith("the result is on cpu instead of gpu:0")
    assert (found["places"], found["copied"]) == (["cpu", "gpu:0", "cpu"], [1.0, 1.0, 1.0])
    assert found["clocks"] == [
        "PyTorch has no kernel that keeps the queue of npy devices full",
        "there is no way to CUPTI: ImportError: this build of PyTorch's profiler has no CUPTI",
    ]


def test_mxnet_records_the_libraries_of_its_build() -> None:
    """Functions as :mod:`ctypes` calls those of a library; its build for CPUs has none."""

    @ctypes.CFUNCTYPE(ctypes.c_int, ctypes.POINTER(ctypes.c_int))
    def cuda_runtime_get_version(number: Any) -> int:
        number[0] = 11020
        return 0

    @ctypes.CFUNCTYPE(ctypes.c_size_t)
    def cudnn_get_version() -> int:
        return 8101

    versions = adapter("mxnet.framework")._nvidia_versions
    linked = {"cudaRuntimeGetVersion": cuda_runtime_get_version}
    assert versions(SimpleNamespace(**linked)) == {"cuda": "11.2"}
    linked["cudnnGetVersion"] = cudnn_get_version
    assert versions(SimpleNamespace(**linked)) == {"cuda": "11.2", "cudnn": "8.1.1"}
    assert versions(ctypes.CDLL(None)) == {}


@tabled
def test_on_other_gpus_than_cuda_s_work_that_needs_cuda_is_a_gap(
    monkeypatch: pytest.MonkeyPatch, execution: str, toggles: tuple[str, ...], reason: str | None
) -> None:
    module, other = adapter("torch.framework"), manifest()
    monkeypatch.setattr(module.Framework, "manifest", lambda *_: other)
    for kind in ("cuda", "xpu", "mps"):
        described = _of_build(monkeypatch, kind, SimpleNamespace()).manifest("a CPU")
        gaps = {
            device: described.gap("relu", execution, "forward", "float32", device, 0, toggles)
            for device in ("cpu", "gpu:0")
        }
        here = reason and reason.format(kind=kind)
        assert gaps == {"cpu": None, "gpu:0": None if kind == "cuda" else here}


def test_pytorch_s_profiler_is_a_gap_of_gpus_that_it_records_nothing_of(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    module = adapter("torch.profiler")
    activity = Enum("activity", ["CPU", "CUDA", "XPU"])
    monkeypatch.setattr(module, "ProfilerActivity", activity)
    monkeypatch.setattr(module, "supported_activities", lambda: {activity.CPU, activity.XPU})
    for kind, seen in (("xpu", True), ("mps", False), ("cuda", False)):
        monkeypatch.setattr(module.gpus, "kind", partial(str, kind))
        module.TorchProfiler("cpu")
        if seen:
            assert module.TorchProfiler("gpu:0")._activities == [activity.CPU, activity.XPU]
            continue
        with pytest.raises(ProbeError, match=f"PyTorch's profiler records nothing of {kind}"):
            module.TorchProfiler("gpu:0")


def test_tensorflow_waits_for_the_gpu_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    module = adapter("tensorflow.framework")
    entered: list[str] = []
    waited: list[str] = []

    @contextmanager
    def device(name: str) -> Iterator[None]:
        entered.append(name)
        yield
        entered.pop()

    fake = SimpleNamespace(
        device=device, raw_ops=SimpleNamespace(SyncDevice=lambda: waited.append(*entered))
    )
    monkeypatch.setattr(module, "tf", fake)
    tensorflow = object.__new__(module.TensorFlow)
    tensorflow.waiter("gpu:1")()
    assert waited == ["gpu:1"]
    assert tensorflow.waiter("cpu") is None


@pytest.mark.parametrize("long_enough", [1, 3, 4])
def test_pytorch_s_events_stand_around_each_call_of_a_full_queue(
    monkeypatch: pytest.MonkeyPatch, long_enough: int
) -> None:
    """The device is busy until all is enqueued, or there is no figure, after three tries.

    What comes before a call is outside its events.
    """
    module = adapter("torch.gpus")
    done: list[str] = []
    sleeps = 0

    class Event:
        def __init__(self, *, enable_timing: bool) -> None:
            assert enable_timing

        def record(self) -> None:
            done.append("event")

        def query(self) -> bool:
            return sleeps < long_enough

        def synchronize(self) -> None:
            done.append("wait")

        def elapsed_time(self, end: "Event") -> float:
            return 0.25

    def sleep(cycles: int) -> None:
        nonlocal sleeps
        sleeps += 1
        assert cycles >= sleeps * 2 * 1e-3 * 2e9, "too short for two calls of 1 ms at 2 GHz"
        done.append("sleep")

    monkeypatch.setattr(
        module, "torch", SimpleNamespace(cuda=SimpleNamespace(Event=Event, _sleep=sleep))
    )
    clock = module.CudaEvents()
    times_s = clock.times_s(lambda: done.append("call"), 2, 1e-3, lambda: done.append("flush"))
    in_turn = ["sleep", "event", *["flush", "event", "call", "event"] * 2, "wait"]
    assert done == in_turn * min(long_enough, 3)
    assert times_s == ([0.25e-3, 0.25e-3] if long_enough <= 3 else [])
    emptied = "the GPU had nothing left to do before the last call was enqueued"
    assert clock.failure == ("" if long_enough <= 3 else emptied)
