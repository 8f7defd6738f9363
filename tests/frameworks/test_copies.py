"""Copies of adapters between host and GPU, with stand-ins for their frameworks."""

from types import SimpleNamespace
from typing import Any
from unittest.mock import Mock, call

import pytest

from fwbench.frameworks.declared import manifests
from fwbench.frameworks.gpus import PINNED
from fwbench.workloads import COPIES
from support import programs
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
    fake = Mock(float32="float32", accelerator=None)
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


#: Two CPUs that share their memory: one takes the place of a GPU.
_TENSORFLOW = """
import json
import os
os.environ["FWBENCH_MODEL_PARALLEL"] = "2"
import numpy as np
import tensorflow as tf
from fwbench.frameworks.registry import load

framework = load("tensorflow", 1)
copies = framework.copier("cpu:1", pinned=False)
with tf.device("CPU:1"):
    begun = copies.on_host(np.arange(3.0), "float32")
    there = copies.to_device(begun)
    back = copies.to_host(there)

@tf.function
def inner(x):
    with tf.device("CPU:0"):
        return x + 1.0

print(json.dumps({
    "places": [copies.place(x) for x in (begun, there, back)],
    "devices": [framework.device_of(x) for x in (begun, there, back, np.zeros(1))],
    "values": back.numpy().tolist(),
    "inner": framework.device_of(inner(there)),
}))
"""

#: Told of a GPU that is not there: by default TensorFlow computes on the CPU then, in silence.
_WITHOUT_GPU = """
import json
import numpy as np
import tensorflow as tf
from fwbench.frameworks.registry import load

framework = load("tensorflow", 1)
framework._gpus = ["GPU:0"]
found = {}
for soft in (True, False):
    for execution in ("eager", "graph"):
        try:
            framework._place_softly(allowed=True)
            with framework.scope("gpu:0", "float32"):
                array = framework.creator("gpu:0", "float32")(np.ones(3))
                run = framework.forward(lambda tf: tf.nn.relu, [array], execution)
                framework._place_softly(allowed=soft)
                found[f"{execution}, {soft}"] = framework.device_of(run())
        except Exception as error:
            found[f"{execution}, {soft}"] = type(error).__name__
print(json.dumps(found))
"""


def test_tensorflow_tells_where_a_tensor_is() -> None:
    pytest.importorskip("tensorflow")
    found = programs.result("-c", _TENSORFLOW)
    assert found["places"] == ["cpu", "cpu:1", "cpu"]
    assert found["devices"] == ["cpu", "cpu:1", "cpu", None]
    assert found["values"] == [0.0, 1.0, 2.0]
    assert found["inner"] == "cpu", "where a graph has computed, and not where it was called"


def test_tensorflow_s_silent_way_to_the_cpu_is_seen_and_closed() -> None:
    pytest.importorskip("tensorflow")
    found = programs.result("-c", _WITHOUT_GPU)
    assert {found[f"{execution}, True"] for execution in ("eager", "graph")} == {"cpu"}
    for execution in ("eager", "graph"):
        assert found[f"{execution}, False"] == "InvalidArgumentError"


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
