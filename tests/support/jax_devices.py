"""JAX's copies and programs for GPUs, shown without one by JAX itself."""

#: Copies between two clients of the CPU, of which one takes the place of a GPU. JAX keeps what was
#: once read of an array (``_npy_value``), and does not copy it again. Prints for each copy to the
#: host whether it was read before, without and with a new array, and the places of all copies.
COPIES = """
import json
import jax
import ml_dtypes  # noqa: F401 (gives NumPy int4)
import numpy as np
from jax._src.xla_bridge import make_cpu_client
from fwbench.frameworks.jax import device as module

(other,) = make_cpu_client().devices()
kept, read = [], []
copies = module.JaxCopies("gpu:0", other, jax.local_devices(backend="cpu")[0], kept.append)
put = jax.device_put

def device_put(array, place):
    read.append(array._npy_value is not None)
    return put(array, place)

module.jax.device_put = device_put
values = np.asarray(np.arange(1 << 12) % 8, "int4")  # read by a copy on the CPU, too
array = put(values, other)
np.asarray(array)
results = []
for renews in (False, True, True):
    if renews:
        copies.renew(array)
    results.append(copies.to_host(array))
back = copies.to_device(results[-1])
asked = len(kept)
locked = module.JaxCopies("gpu:0", other, None, kept.append)
begun = locked.on_host(np.asarray(values, "float32"), "float32")
there = locked.to_device(begun)
print(json.dumps({
    "read": read[:3], "kept": asked, "equal": bool(np.array_equal(results[-1], values)),
    "places": [copies.place(array), copies.place(results[-1]), copies.place(back)],
    "pinned": [locked.place(x) for x in (begun, there, locked.to_host(there))],
}))
"""

#: A case on the CPU, in a process that has another backend in the place of a GPU's. Prints whether
#: that was to start when JAX had been loaded, and when the case was done.
OPENED = """
import json
import numpy as np
from jax._src import xla_bridge
from fwbench.frameworks.registry import load

opened = []

def start():
    opened.append("other")
    raise RuntimeError("a second pool of threads would be counted")

xla_bridge.register_backend_factory("other", start, priority=500)
jax = load("jax", 1)
loaded = [*opened]
with jax.scope("cpu", "float32"):
    inputs = [jax.place(np.ones((4, 4)), "cpu", "float32")] * 2
    jax.to_numpy(jax.forward(jax.implementation("gemm"), inputs, "jit")())
print(json.dumps({"loaded": loaded, "ended": opened}))
"""

#: Every operation, lowered for CUDA at its smallest size, in the dtypes of the arguments. Prints by
#: dtype the operations by the precision that their products and convolutions ask for, and why the
#: others could not be lowered.
LOWERED = """
import json
import re
import sys
from collections import defaultdict
import jax
from fwbench.cases.inputs import in_dtype
from fwbench.frameworks.jax.framework import precision
from fwbench.frameworks.jax.kernels import Keyed
from fwbench.frameworks.registry import load
from fwbench.frameworks.table import layout_of
from fwbench.terms.toggles import TOGGLES
from fwbench.workloads import OPERATIONS

framework = load("jax", 1)

def lowered(operation, dtype):
    implementation, size = framework.implementation(operation.name), operation.sizes.quick[0]
    drawn = [in_dtype(x, "float32") for x in operation.operands(size)]
    shapes = [
        jax.ShapeDtypeStruct(x.shape, dtype if x.dtype.kind == "f" else x.dtype)
        for x in layout_of(implementation).place(drawn)
    ]
    switches = {name: TOGGLES[name].default for name in operation.switched_by}
    function = implementation(jax, *operation.parameters(size), **switches)
    if isinstance(function, Keyed):
        function = function.executed(lambda step: step)
    return jax.export.export(jax.jit(function), platforms=["cuda"])(*shapes).mlir_module()

asked, failed = defaultdict(dict), defaultdict(dict)
for dtype in sys.argv[1:]:
    for operation in OPERATIONS:
        if operation.name not in framework.operations or operation.creates:
            continue
        with framework.scope("cpu", dtype), precision("gpu:0", dtype):
            try:
                program = lowered(operation, dtype)
            except Exception as error:
                failed[dtype][operation.name] = type(error).__name__
                continue
        for line in program.splitlines():
            if "stablehlo.dot_general" in line or "stablehlo.convolution" in line:
                words = re.findall("HIGHEST|HIGH|DEFAULT", line) or ["DEFAULT"]
                asked[dtype].setdefault(words[0], []).append(operation.name)
print(json.dumps({"asked": asked, "failed": failed}))
"""
