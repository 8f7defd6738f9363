"""Times of kernels by CUPTI: with stand-ins for the ways to it, and with cupti-python itself."""

import ctypes.util
import inspect
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from fwbench.frameworks import gpus
from fwbench.measure.clock import Clock
from fwbench.measure.device_time import device_time
from fwbench.testing import HandClock
from fwbench.workers.environments import Environments
from support import programs
from support.fakes import adapter
from support.verification import installed


class FakeCupti(ModuleType):
    """``cupti-python`` of a GPU that has a record for each kernel, copy and fill.

    Args:
        fails: the name of a function that raises, as where another tool listens.
    """

    ActivityKind = SimpleNamespace(CONCURRENT_KERNEL=10, MEMCPY=1, MEMSET=2, RUNTIME=5)

    def __init__(self, fails: str = "") -> None:
        super().__init__("cupti.cupti")
        self._fails = fails
        self.kinds: set[int] = set()
        self.ran: list[tuple[int, int, int]] = []

    def _may(self, name: str) -> None:
        if name == self._fails:
            raise RuntimeError("CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED")

    def activity_register_callbacks(self, requested: Any, completed: Any) -> None:
        """Buffers have a size, and no limit of records."""
        assert requested() == (8 * 2**20, 0)
        self._completed = completed

    def activity_enable(self, kind: int) -> None:
        self._may("activity_enable")
        self.kinds.add(kind)

    def activity_disable(self, kind: int) -> None:
        self.kinds.remove(kind)

    def activity_flush_all(self, flag: int) -> None:
        self._may("activity_flush_all")
        assert flag == 1
        self._completed([SimpleNamespace(start=a, end=b, kind=kind) for a, b, kind in self.ran])
        self.ran.clear()

    def finalize(self) -> None:
        assert not self.kinds

    def runs(self, *spans_ns: tuple[int, int], kind: int = 10) -> None:
        """Work on the GPU, which is recorded where a callback is registered."""
        if self.kinds == {1, 2, 10}:
            self.ran += [(*span_ns, kind) for span_ns in spans_ns]


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Callable[..., Any]:
    """A way to install a fake CUPTI, and the clock by it."""

    def install(fake: ModuleType | None, *others: Any) -> Any:
        monkeypatch.setitem(sys.modules, "cupti", ModuleType("cupti"))
        monkeypatch.setitem(sys.modules, "cupti.cupti", fake)
        return gpus.cupti_clock(lambda: None, *others)

    return install


def test_cupti_adds_up_what_a_call_ran(clock: Callable[..., Any]) -> None:
    """Neither the pauses between kernels nor earlier calls count."""
    fake = FakeCupti()
    times_s = clock(fake).times_s(
        lambda: fake.runs((1_000, 3_000), (9_000, 9_500)), 3, 1.0, lambda: fake.runs((0, 500))
    )
    assert times_s == pytest.approx([2.5e-6] * 3)
    assert not fake.kinds


@pytest.mark.parametrize(("kernels", "counted_s"), [([(5_000, 7_000)], 2e-6), ([], 7e-6)])
def test_copies_and_fills_count_where_a_call_has_no_kernel(
    clock: Callable[..., Any], kernels: list[tuple[int, int]], counted_s: float
) -> None:
    """JAX's way to CUPTI records kernels alone; with copies the clock would mean another time."""
    fake = FakeCupti()

    def call() -> None:
        fake.runs((0, 3_000), kind=FakeCupti.ActivityKind.MEMCPY)
        fake.runs((3_000, 7_000), kind=FakeCupti.ActivityKind.MEMSET)
        fake.runs(*kernels)

    assert clock(fake).times_s(call, 1, 1.0, lambda: None) == pytest.approx([counted_s])


@pytest.mark.parametrize("fails", ["activity_enable", "activity_flush_all"])
def test_where_cupti_tells_nothing_the_slope_has_to_do(
    clock: Callable[..., Any], fails: str
) -> None:
    """Another tool may listen, or permission be missing; that fails no case."""
    fake = FakeCupti(fails)
    requested = clock(fake)
    assert requested.times_s(lambda: fake.runs((0, 1)), 3, 1.0, lambda: None) == []
    gpu = HandClock()

    def call() -> None:
        gpu.spend(0.5)
        fake.runs((0, 1))

    result = device_time(call, Clock(gpu, lambda: None), requested)
    assert (result.device_s, result.device_clock, result.throughput_s) == (0.5, "slope", 0.5)
    assert result.slope_reason == (
        "CUPTI cannot be read: RuntimeError: CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED"
    )


def test_of_work_without_a_kernel_cupti_has_no_record(clock: Callable[..., Any]) -> None:
    requested = clock(FakeCupti())
    assert requested.times_s(lambda: None, 3, 1.0, lambda: None) == []
    assert requested.failure == "CUPTI has no record of a call"


def test_work_that_fails_while_cupti_listens_fails(clock: Callable[..., Any]) -> None:
    fake = FakeCupti()
    requested = clock(fake)

    def fail() -> None:
        raise ValueError("lack of memory")

    with pytest.raises(ValueError, match="lack of memory"):
        requested.times_s(fail, 3, 1.0, lambda: None)
    assert not fake.kinds, "it would slow the next case down"


def test_frameworks_have_cupti_where_it_is_installed(clock: Callable[..., Any]) -> None:
    """Their own way to it, else; and without either the reason that there is none."""
    missing = "ModuleNotFoundError: import of cupti.cupti halted; None in sys.modules"
    assert clock(None).failure == f"there is no way to CUPTI: {missing}"

    class Own(gpus.Listener):
        def begin(self) -> None:
            """Nothing is to be done."""

        def end(self) -> list[float]:
            return [1.0, 2.0]

    assert clock(None, Own).times_s(lambda: None, 1, 1.0, lambda: None) == [3.0]
    assert clock(None, Own).name == "cupti"

    def absent() -> gpus.Listener:
        raise ImportError("this build has none")

    none = clock(None, absent)
    assert none.failure == (
        f"there is no way to CUPTI: {missing}; ImportError: this build has none"
    )
    assert none.times_s(lambda: None, 1, 1.0, lambda: None) == []
    assert clock(FakeCupti(), absent).name == "cupti"


_WITHOUT_A_DRIVER = """
import json
import sys
from cupti import cupti
from fwbench.frameworks import gpus

calls = []
clock = gpus.cupti_clock(lambda: None)
times_s = clock.times_s(lambda: calls.append(1), 3, 1.0, lambda: None)
try:
    gpus.CuptiPython().begin()
except Exception as error:
    why = f"{type(error).__name__}: {error}"
print(json.dumps({
    "times_s": times_s,
    "calls": len(calls),
    "why": why,
    "kinds": {kind.name: kind.value for kind in cupti.ActivityKind},
    "functions": [name for name in dir(cupti) if callable(getattr(cupti, name))],
}))
"""


@pytest.mark.nightly
@pytest.mark.skipif(ctypes.util.find_library("cuda") is not None, reason="there is a driver")
def test_cupti_python_without_a_driver(tmp_path: Path) -> None:
    """It can be imported, and raises when it is called; a call is made once, and by the slope.

    All that the stand-in has is the real one's. It needs the network.
    """
    (tmp_path / "pytest.ini").write_text("", encoding="utf-8")
    package = "cupti-python==13.0.1"
    programs.output("-m", "fwbench", "env", "add", "cupti", package, cwd=tmp_path)
    interpreter = Environments(tmp_path).all()["cupti"].interpreter
    found = programs.result("-c", _WITHOUT_A_DRIVER, interpreter=interpreter)
    assert (found["times_s"], found["calls"]) == ([], 1)
    assert found["why"].startswith("NotSupportedError: CUDA driver is not found")
    assert vars(FakeCupti.ActivityKind).items() <= found["kinds"].items()
    used = {name for name, _ in inspect.getmembers(FakeCupti, inspect.isfunction) if name[0] != "_"}
    assert used - {"runs"} <= {*found["functions"]}


#: PyTorch's own events of a GPU, with the fields that ``_parse_kineto_results`` in
#: torch/autograd/profiler.py gives them, and Kineto's names of activities (``ActivityType.cpp``).
#: Then Kineto itself, which records operators of the CPU: they take the place of kernels.
_KINETO = """
import json
import os
import torch
from torch.autograd import DeviceType
from torch.autograd.profiler_util import FunctionEvent
from torch.profiler import ProfilerActivity
from fwbench.frameworks.gpus import clock_by
from fwbench.frameworks.torch import gpus
from fwbench.frameworks.torch.framework import Torch

def event(activity, start_us, end_us, device=DeviceType.CUDA):
    return FunctionEvent(
        id=1, name=activity, thread=0, start_us=start_us, end_us=end_us, use_device="cuda",
        device_type=device, activity_type=activity,
    )

runtime = event("cuda_runtime", 0, 100, DeviceType.CPU)
moved = [event("gpu_memset", 0, 5), event("gpu_memcpy", 5, 15), event("gpu_user_annotation", 0, 99)]
overlapping = [event("kernel", 10, 14), event("kernel", 12, 20)]

GPU = ProfilerActivity.CUDA

def why(cuda, *supported):
    torch.version.cuda, gpus.supported_activities = cuda, lambda: {*supported}
    return Torch().kernel_clock("gpu:0").failure

torch.cuda.current_stream = lambda _: torch.Stream  # which nobody waits for
found = {
    "kernels": gpus.busy_s([runtime, *moved, *overlapping]),
    "moved": gpus.busy_s([runtime, *moved]),
    "why": [why(*of) for of in ((None,), ("13.0",), ("11.8", GPU), ("13.0", GPU))],
}

waited = []
torch.cuda.synchronize = lambda: waited.append("GPU")
gpus.ProfilerActivity = type("Activity", (), {"CUDA": ProfilerActivity.CPU})
gpus.supported_activities = lambda: {ProfilerActivity.CPU}
x = torch.ones(1000)
clock = clock_by(lambda: None, gpus.KinetoListener)
found["operators"] = clock.times_s(lambda: torch.relu(x), 2, 0.0, lambda: torch.exp(x))
found["failure"] = clock.failure
gpus._KERNEL = "cpu_op"
found["as kernels"] = clock.times_s(lambda: torch.relu(x), 2, 0.0, lambda: torch.exp(x))
print(json.dumps({**found, "waited": waited, "detaches": os.environ["TEARDOWN_CUPTI"]}))
"""


@installed("torch")
def test_pytorch_s_own_way_to_cupti() -> None:
    """Kineto's events, as JAX's records: kernels that overlap count twice, copies not at all."""
    found = programs.result("-c", _KINETO)
    assert found["kernels"] == pytest.approx([4e-6, 8e-6])
    assert found["moved"] == pytest.approx([5e-6, 10e-6])
    none = "there is no way to CUPTI: "
    without = f"{none}ImportError: this build of PyTorch's profiler has no CUPTI"
    too_old = (
        f"{none}NotImplementedError: this PyTorch is for CUDA 11.8, and CUPTI can be detached from "
        "graphs since CUDA 12.6"
    )
    assert found["why"] == [without, without, too_old, ""]
    assert (found["operators"], found["failure"]) == ([], "CUPTI has no record of a call")
    assert len(found["as kernels"]) == 2
    assert all(0 < seconds < 0.1 for seconds in found["as kernels"])
    assert (found["waited"], found["detaches"]) == (["GPU"] * 3, "1")


def test_jax_s_own_way_to_cupti(monkeypatch: pytest.MonkeyPatch) -> None:
    """Names and milliseconds; it detaches."""
    module = adapter("jax.device")
    begun: list[bool] = []

    def timings(finalize: bool) -> list[tuple[str, float]]:
        begun.append(finalize)
        return [("gemm", 0.5), ("fusion", 0.25)]

    extension = SimpleNamespace(_cupti_init=lambda: begun.append(False), _cupti_get_timings=timings)
    library = SimpleNamespace(_mosaic_gpu_ext=extension)
    monkeypatch.setitem(sys.modules, "jax._src.lib.mosaic_gpu", library)
    for package in ("jax", "jax._src", "jax._src.lib"):
        monkeypatch.setitem(sys.modules, package, ModuleType(package))
    listener = module.MosaicListener()
    listener.begin()
    assert [*listener.end()] == [5e-4, 2.5e-4]
    assert begun == [False, True]
