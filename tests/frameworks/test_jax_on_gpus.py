"""JAX's adapter as a GPU node sees it, with a JAX that stands in for the real one."""

from collections.abc import Mapping, Sequence
from types import SimpleNamespace
from typing import Any

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
