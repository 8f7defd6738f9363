"""Copies of adapters between host and GPU, by the frameworks themselves without one."""

from fwbench.frameworks.declared import manifests
from fwbench.frameworks.gpus import PINNED
from fwbench.workloads import COPIES
from support import programs
from support.verification import installed

#: PyTorch's own tensors without numbers, which may be on GPUs that are not there. A build for CPUs
#: pins no memory, so that alone is imitated.
_TORCH = """
import json
import torch
from torch._subclasses import FakeTensorMode
from torch.utils._python_dispatch import TorchDispatchMode
from fwbench.frameworks.torch.gpus import TorchCopies

waited, pinned_tensors = [], []

class Recorded(TorchDispatchMode):
    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        if function is torch.ops.aten._to_copy.default:
            waited.append(not kwargs.get("non_blocking", False))
        return function(*args, **(kwargs or {}))

def pin(tensor):
    pinned_tensors.append(tensor)
    return tensor

torch.Tensor.pin_memory = pin
torch.Tensor.is_pinned = lambda tensor: any(tensor is each for each in pinned_tensors)
found = {}
for pinned in (False, True):
    copies = TorchCopies("gpu:1", pinned=pinned)
    begun = copies.on_host([1.0], "float32")
    with FakeTensorMode(allow_non_fake_inputs=True), Recorded():
        there = copies.to_device(begun)
        back = copies.to_host(there)
        places = [copies.place(x) for x in (begun, there, back)]
    found[str(pinned)] = {"places": places, "waited": waited[:], "dtype": str(begun.dtype)}
    waited.clear()
print(json.dumps(found))
"""


@installed("torch")
def test_pytorch_waits_for_copies_of_ordinary_memory_alone() -> None:
    """Without waiting it copies from pinned memory, and into some."""
    found = programs.result("-c", _TORCH)
    assert {each["dtype"] for each in found.values()} == {"torch.float32"}
    assert found["False"]["places"] == ["cpu", "gpu:1", "cpu"]
    assert found["True"]["places"][:2] == [PINNED, "gpu:1"]
    assert found["False"]["waited"] == [True, True]
    assert found["True"]["waited"] == [False, False]


#: A second context of the CPU takes the place of a GPU.
_MXNET = """
import json
from types import SimpleNamespace
from fwbench.frameworks.mxnet.framework import MXNetCopies, mx

found = {}
for pinned in (False, True):
    copies = MXNetCopies(mx.cpu(1), pinned=pinned)
    begun = copies.on_host([1.0, 2.0], "float32")
    there = copies.to_device(begun)
    back = copies.to_host(there)
    found[str(pinned)] = {
        "contexts": [str(x.context) for x in (begun, there, back)],
        "places": [copies.place(x) for x in (begun, back)],
        "values": back.asnumpy().tolist(),
    }
found["gpu"] = copies.place(SimpleNamespace(context=mx.gpu(1)))
print(json.dumps(found))
"""


@installed("mxnet")
def test_mxnet_copies_between_contexts() -> None:
    found = programs.result("-c", _MXNET)
    for pinned, host, place in (("False", "cpu(0)", "cpu"), ("True", "cpu_pinned(0)", PINNED)):
        copied = found[pinned]
        assert copied["contexts"] == [host, "cpu(1)", host]
        assert copied["places"] == [place, place]
        assert copied["values"] == [1.0, 2.0]
    assert found["gpu"] == "gpu:1"


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


@installed("tensorflow")
def test_tensorflow_tells_where_a_tensor_is() -> None:
    found = programs.result("-c", _TENSORFLOW)
    assert found["places"] == ["cpu", "cpu:1", "cpu"]
    assert found["devices"] == ["cpu", "cpu:1", "cpu", None]
    assert found["values"] == [0.0, 1.0, 2.0]
    assert found["inner"] == "cpu", "where a graph has computed, and not where it was called"


@installed("tensorflow")
def test_tensorflow_s_silent_way_to_the_cpu_is_seen_and_closed() -> None:
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
