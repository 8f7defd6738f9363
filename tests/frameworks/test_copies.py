"""Copies of adapters between host and GPU, with stand-ins for their frameworks."""

from collections.abc import Iterator
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any
from unittest.mock import Mock, call

import numpy as np
import pytest

from fwbench.frameworks.declared import manifests
from fwbench.frameworks.gpus import PINNED
from fwbench.workloads import COPIES
from support.fakes import adapter


def _module(path: str, monkeypatch: pytest.MonkeyPatch, **names: Any) -> Any:
    """The module with a framework's copies, with these in place of the framework."""
    module = adapter(path)
    for name, value in names.items():
        monkeypatch.setattr(module, name, value)
    return module


@pytest.mark.parametrize("pinned", [False, True])
def test_pytorch_waits_for_copies_of_ordinary_memory_alone(
    monkeypatch: pytest.MonkeyPatch, pinned: bool
) -> None:
    """Without waiting it copies from pinned memory, and into some."""
    fake = Mock(float32="float32")
    copies = _module("torch.gpus", monkeypatch, torch=fake).TorchCopies("gpu:1", pinned=pinned)
    made = copies.on_host([1.0], "float32")
    assert fake.tensor.call_args == call([1.0], dtype="float32")
    assert made is (fake.tensor().pin_memory() if pinned else fake.tensor())
    array = Mock()
    copies.to_device(array)
    copies.to_host(array)
    assert array.to.call_args_list == [
        call("cuda:1", non_blocking=pinned),
        call("cpu", non_blocking=pinned),
    ]


def test_pytorch_tells_where_a_tensor_lies(monkeypatch: pytest.MonkeyPatch) -> None:
    """On a GPU, or in either memory of the host."""
    copies = _module("torch.gpus", monkeypatch).TorchCopies("gpu:1", pinned=True)
    cuda, cpu = SimpleNamespace(type="cuda", index=1), SimpleNamespace(type="cpu", index=None)
    assert copies.place(Mock(device=cuda)) == "gpu:1"
    assert copies.place(Mock(device=cpu, is_pinned=lambda: False)) == "cpu"
    assert copies.place(Mock(device=cpu, is_pinned=lambda: True)) == PINNED


@pytest.mark.parametrize("pinned", [False, True])
def test_mxnet_copies_between_contexts(monkeypatch: pytest.MonkeyPatch, pinned: bool) -> None:
    fake = Mock(
        cpu=lambda: SimpleNamespace(device_type="cpu", device_id=0),
        cpu_pinned=lambda: SimpleNamespace(device_type="cpu_pinned", device_id=0),
    )
    gpu = SimpleNamespace(device_type="gpu", device_id=1)
    copies = _module("mxnet.framework", monkeypatch, mx=fake).MXNetCopies(gpu, pinned=pinned)
    copies.on_host([1.0], "float32")
    host = fake.nd.array.call_args.kwargs["ctx"]
    array = Mock()
    copies.to_device(array)
    copies.to_host(array)
    assert array.copyto.call_args_list == [call(gpu), call(host)]
    assert copies.place(Mock(context=host)) == (PINNED if pinned else "cpu")
    assert copies.place(Mock(context=gpu)) == "gpu:1"


def test_tensorflow_copies_to_the_device_of_an_operation(monkeypatch: pytest.MonkeyPatch) -> None:
    """And begins on the host, whatever the scope of the case is."""
    entered: list[str] = []

    @contextmanager
    def device(name: str) -> Iterator[None]:
        entered.append(name)
        yield
        entered.pop()

    fake = Mock(
        device=device,
        identity=lambda array: (array, *entered),
        constant=lambda *_, **__: [*entered],
    )
    copies = _module("tensorflow.framework", monkeypatch, tf=fake).TensorFlowCopies("gpu:1")
    with device("GPU:1"):
        assert copies.on_host(np.zeros(1), "float32")[-1] == "CPU:0"
        assert copies.to_device("array")[-1] == "GPU:1"
        assert copies.to_host("array")[-1] == "CPU:0"
    where = "/job:localhost/replica:0/task:0/device:"
    assert copies.place(Mock(backing_device=f"{where}GPU:1")) == "gpu:1"
    assert copies.place(Mock(backing_device=f"{where}CPU:0")) == "cpu"


def test_jax_tells_the_clock_of_every_copy(monkeypatch: pytest.MonkeyPatch) -> None:
    """It waits for arrays, and a copy is one."""
    copies, module, gpu, kept = _jax_copies(monkeypatch, "CPU")
    assert copies.to_device("array") == ("array", (gpu, "device"))
    assert copies.to_host("array") == ("array", "CPU")
    assert kept == [(("array", (gpu, "device")),), (("array", "CPU"),)]
    copies.on_host([1.0], "float32")
    assert module.jnp.array.call_args == call([1.0], dtype="float32", device="CPU")
    places = [copies.place(_lying(*at)) for at in ((gpu, "device"), ("CPU", "any"), ("TPU", "x"))]
    assert places == ["gpu:1", "cpu", "TPU, x"]


def test_jax_has_pinned_memory_as_a_kind_of_the_gpu_s(monkeypatch: pytest.MonkeyPatch) -> None:
    """Either way the kind is named: otherwise an array would stay where it lies."""
    copies, module, gpu, _ = _jax_copies(monkeypatch, None)
    pinned = (gpu, "pinned_host")
    copies.on_host([1.0], "float32")
    assert module.jnp.array.call_args == call([1.0], dtype="float32", device=pinned)
    assert copies.to_device("array") == ("array", (gpu, "device"))
    assert copies.to_host("array") == ("array", pinned)
    assert copies.place(_lying(*pinned)) == PINNED
    assert copies.place(_lying(gpu, "device")) == "gpu:1"


def _jax_copies(monkeypatch: pytest.MonkeyPatch, cpu: Any) -> tuple[Any, Any, Any, list[Any]]:
    """The copies of a JAX that says where it was told to put what, their module, GPU and clock."""
    fake = Mock(device_put=lambda array, place: (array, place))
    module = _module("jax.device", monkeypatch, jax=fake, jnp=Mock())
    sharding = Mock(side_effect=lambda device, memory_kind: (device, memory_kind))
    monkeypatch.setattr(module, "SingleDeviceSharding", sharding)
    gpu, kept = Mock(default_memory=lambda: SimpleNamespace(kind="device")), list[Any]()
    return module.JaxCopies("gpu:1", gpu, cpu, kept.append), module, gpu, kept


def _lying(device: Any, kind: str) -> Any:
    """An array of JAX's on a device, in memory of a kind."""
    return Mock(devices=lambda: {device}, sharding=SimpleNamespace(memory_kind=kind))


def test_frameworks_with_gpus_copy() -> None:
    """The others say why they do not; pinned memory is a gap where there is none."""
    declared = manifests()
    names = {copy.name for copy in COPIES}
    written = {
        name
        for name, framework_manifest in declared.items()
        if {*framework_manifest.operations} >= names
    }
    assert written == {"jax", "mxnet", "tensorflow", "torch"}
    for name in ("numpy", "onnxruntime"):
        assert names <= {gap.workload for gap in declared[name].gaps if gap.whole}
    pinned = {name for name in written if not declared[name].toggle_gap("eager", "pinned", "on")}
    assert pinned == {"jax", "mxnet", "torch"}
