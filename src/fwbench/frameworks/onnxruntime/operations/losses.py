"""ONNX Runtime: softmax."""

from __future__ import annotations

from fwbench.frameworks.table import Call, Table
from fwbench.manifest import Gap

OPERATIONS: Table = {
    "softmax": Call("Softmax", axis=-1),
    "log_softmax": Call("LogSoftmax", axis=-1),
}


GAPS: tuple[Gap, ...] = ()
