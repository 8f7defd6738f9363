"""A trace of TensorFlow on a GPU, as its profiler writes it, and what fwbench reads out of it.

``python -m support.tensorflow_trace DEVICE FOLDER`` prints the operators by name, each with its
class and nanoseconds. The trace is of TensorFlow's own classes, without a GPU. Names of planes,
lines and statistics, texts that refer to other names, and what is on which plane are those of
``PerDeviceCollector`` in xla/backends/profiler/gpu/cupti_collector.cc and of
xla/tsl/profiler/utils/xplane_schema.cc; operators are annotated ``name:type`` (``AnnotatedTraceMe``
in kernel_and_device.cc), and instructions of XLA's by ``#hlo_op=...#``.
"""

import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest.mock import patch

import tensorflow as tf
from tensorflow.tsl.profiler.protobuf import xplane_pb2

from fwbench.frameworks.tensorflow.profiler import TensorFlowProfiler

_HOST_THREAD, _STREAM, _OTHER_STREAM, _DERIVED = 4711, 7, 13, 4294967200


class _Plane:
    """A plane of a trace, whose names have numbers."""

    def __init__(self, space: Any, name: str) -> None:
        self._plane = space.planes.add(name=name)

    def line(self, number: int, name: str) -> Any:
        return self._plane.lines.add(id=number, name=name, timestamp_ns=1_000)

    def event(self, line: Any, name: str, start_ns: int, end_ns: int, **known: Any) -> None:
        event = line.events.add(
            metadata_id=self._number(self._plane.event_metadata, name),
            offset_ps=start_ns * 1_000,
            duration_ps=(end_ns - start_ns) * 1_000,
        )
        for key, value in known.items():
            statistic = event.stats.add(metadata_id=self._number(self._plane.stat_metadata, key))
            if isinstance(value, str):
                statistic.ref_value = self._number(self._plane.stat_metadata, value)
            else:
                statistic.uint64_value = value

    def _number(self, names: Any, name: str) -> int:
        for number, known in names.items():
            if known.name == name:
                return int(number)
        number = len(names) + 1
        names[number].id, names[number].name = number, name
        return number


def _space() -> Any:
    space = xplane_pb2.XSpace()
    host = _Plane(space, "/host:CPU")
    thread = host.line(_HOST_THREAD, "python")
    host.event(thread, "EagerLocalExecute: MatMul", 0, 4_000)
    host.event(thread, "net/Conv2D:Conv2D", 4_000, 5_000)
    host.event(thread, "cuLaunchKernel", 5_000, 6_000, correlation_id=1)
    host.event(thread, "fwbench: optimiser", 10_000, 20_000)
    host.event(thread, "EagerLocalExecute: AssignSubVariableOp", 11_000, 13_000)
    host.event(thread, "cuLaunchKernel", 12_000, 12_500, correlation_id=2)
    gpu = _Plane(space, "/device:GPU:0")
    stream = gpu.line(_STREAM, f"Stream #{_STREAM}(Kernel)")
    gpu.event(stream, "ampere_sgemm_128x64_nn", 2_000, 7_000, tf_op="MatMul:MatMul")
    gpu.event(
        *(stream, "cudnn::implicit_convolve_sgemm", 7_000, 10_000),
        tf_op="net/Conv2D:Conv2D",
        correlation_id=1,
        kernel_details="regs:32",
    )
    gpu.event(
        *(stream, "EigenMetaKernel", 30_000, 30_500),
        tf_op="AssignSubVariableOp:AssignSubVariableOp",
        correlation_id=2,
    )
    gpu.event(
        *(stream, "loop_add_fusion_3", 31_000, 31_700),
        tf_op="XlaModule:",
        hlo_op="add_fusion.3",
        hlo_module="cluster",
        program_id=5,
    )
    gpu.event(stream, "void unannotated<float>()", 32_000, 32_100)
    copies = gpu.line(_OTHER_STREAM, f"Stream #{_OTHER_STREAM}(MemcpyH2D,Memset)")
    gpu.event(copies, "MemcpyH2D", 6_000, 8_000, memcpy_details="kind_src:pageable size:4")
    gpu.event(copies, "Memset 3", 8_000, 8_200, memset_details="kind:device")
    # Made of the kernels' annotations by TensorBoard (derived_timeline.cc).
    derived = gpu.line(_DERIVED, "Framework Ops")
    gpu.event(derived, "net/Conv2D:Conv2D", 7_000, 10_000)
    second = _Plane(space, "/device:GPU:1")
    elsewhere = second.line(_STREAM, f"Stream #{_STREAM}(Kernel)")
    second.event(elsewhere, "another process's", 0, 9_000, tf_op="Relu:Relu")
    return space


@contextmanager
def _written(folder: str) -> Iterator[None]:
    """Stands for ``tf.profiler.experimental.Profile``, and writes that trace."""
    yield
    Path(folder, "host.xplane.pb").write_bytes(_space().SerializeToString())


def main(device: str, folder: str) -> None:
    """Have the profiler read the trace, and print the operators."""
    trace = Path(folder, "trace.json")
    with patch.object(tf.profiler.experimental, "Profile", _written):
        operators = TensorFlowProfiler(device).profile(lambda: None, trace)
    named = [e["name"] for e in json.loads(trace.read_text())["traceEvents"] if e["ph"] == "X"]
    found = {each.name: [each.operator_class, round(each.time_s * 1e9)] for each in operators}
    assert len(found) == len(operators)
    print(json.dumps({"operators": found, "named": named}))


if __name__ == "__main__":
    main(*sys.argv[1:])
