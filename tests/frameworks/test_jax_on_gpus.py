"""JAX's adapter as a GPU node sees it, with a JAX that stands in for the real one."""

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NamedTuple

import pytest

from fwbench.terms.manifest import Device
from support.fakes import adapter


class FakeJax:
    """The part of JAX that the adapter needs to start: a configuration, and devices by platform."""

    def __init__(self, devices: Mapping[str, Sequence[str]]) -> None:
        self._devices = devices
        self.config = SimpleNamespace(jax_platforms=None)

    def local_devices(self, backend: str) -> list[SimpleNamespace]:
        """The devices of a platform; as in JAX an error where there are none."""
        if backend not in self._devices:
            raise RuntimeError(f"Unknown backend: {backend!r} requested")
        return [SimpleNamespace(device_kind=model) for model in self._devices[backend]]


def started(monkeypatch: pytest.MonkeyPatch, **devices: list[str]) -> Any:
    """The adapter with a JAX that has these devices, and that JAX."""
    fake, module = FakeJax(devices), adapter("jax.framework")
    monkeypatch.setattr(module, "jax", fake)
    return module.Jax(), fake


_GPU = Device("gpu:0", "NVIDIA H200")


class Allocator:
    """XLA's account of a GPU's memory."""

    def __init__(self) -> None:
        self.statistics = {"bytes_in_use": 0, "peak_bytes_in_use": 0, "num_allocs": 0}

    def take(self, size_bytes: int) -> None:
        known = self.statistics
        known["num_allocs"] += 1
        taken = known["bytes_in_use"] + size_bytes
        known["peak_bytes_in_use"] = max(known["peak_bytes_in_use"], taken)

    def memory_stats(self) -> dict[str, int]:
        return dict(self.statistics)


def test_a_peak_is_known_where_it_is_the_process_s_highest(monkeypatch: pytest.MonkeyPatch) -> None:
    """JAX cannot begin anew: of work that takes less than earlier work did, nothing is known."""
    gpu = Allocator()
    jax, fake = started(monkeypatch, gpu=["NVIDIA H200"])
    monkeypatch.setattr(fake, "local_devices", lambda backend: [gpu])
    gpu.statistics["bytes_in_use"] = 3
    first = jax.watch_memory("gpu:0")
    assert first() == 3, "nothing has been taken yet"
    gpu.take(8)
    assert first() == 11
    second = jax.watch_memory("gpu:0")
    assert second() == 3
    gpu.take(4)
    assert second() is None
    gpu.take(16)
    assert second() == 19
    monkeypatch.setattr(gpu, "memory_stats", lambda: None)
    assert jax.watch_memory("gpu:0")() is None, "another allocator, which keeps no account"


def test_without_a_cpu_backend_there_are_gpus_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """JAX_PLATFORMS=cuda is usual on GPU nodes: JAX then knows no CPU, and no pool of threads."""
    jax, _ = started(monkeypatch, gpu=["NVIDIA H200"])
    assert jax.threads() is None
    assert jax.devices("a CPU") == (_GPU,)


def test_with_both_backends_the_cpu_comes_first(monkeypatch: pytest.MonkeyPatch) -> None:
    jax, _ = started(monkeypatch, cpu=["cpu"], gpu=["NVIDIA H200"])
    assert jax.devices("a CPU") == (Device("cpu", "a CPU"), _GPU)
    jax, _ = started(monkeypatch, cpu=["cpu"])
    assert jax.devices("a CPU") == (Device("cpu", "a CPU"),)


class Span(NamedTuple):
    """An event of ``jax.profiler.ProfileData``."""

    name: str
    start_ns: float
    duration_ns: float
    stats: Sequence[tuple[str, Any]]


def test_instructions_on_a_gpu_have_the_time_of_their_kernels(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """A kernel's own name tells little of what it computes; the trace has it all the same.

    Statistics as in ``PerDeviceCollector::CreateXEvent`` (xla/backends/profiler/gpu).
    """
    module = adapter("jax.profiler")
    spans = [
        Span("nvjet_sm90_tst_128x128", 0.0, 500.0, [("tf_op", "XlaModule:"), ("hlo_op", "dot.4")]),
        Span("loop_add_fusion_2", 600.0, 300.0, [("hlo_op", "add_fusion.2")]),
        Span("MemcpyD2H", 900.0, 100.0, [("memcpy_details", "size:4")]),
    ]
    line = SimpleNamespace(name="Stream #7(Kernel,MemcpyD2H)", events=spans)
    plane = SimpleNamespace(name="/device:GPU:0", lines=[line])
    read = SimpleNamespace(from_file=lambda file: SimpleNamespace(planes=[plane]))

    @contextmanager
    def traced(folder: str, *, profiler_options: Any) -> Iterator[None]:
        assert profiler_options.python_tracer_level == 0
        yield
        Path(folder, "host.xplane.pb").touch()

    monkeypatch.setattr(module, "ProfileData", read)
    monkeypatch.setattr(module, "jax", SimpleNamespace(profiler=SimpleNamespace(trace=traced)))
    monkeypatch.setattr(module.compilation, "seconds", dict)
    trace = tmp_path / "trace.json"
    operators = module.JaxProfiler().profile(lambda: None, trace)
    assert [(each.name, each.operator_class, each.time_s) for each in operators] == [
        ("dot", "matmul", pytest.approx(5e-7)),
        ("add_fusion", "fused", pytest.approx(3e-7)),
    ]
    named = [each["name"] for each in json.loads(trace.read_text())["traceEvents"]]
    assert "nvjet_sm90_tst_128x128" in named
