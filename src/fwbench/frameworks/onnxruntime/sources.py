"""Where networks are exported from: an execution of ONNX Runtime's for each framework."""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from fwbench.manifest import Gap

#: The version of ONNX's operators: the newest that tf2onnx 1.17 writes; PyTorch's exporter writes
#: up to 20.
EXPORTED_OPSET = 18


class Source(NamedTuple):
    """A framework that networks are exported from.

    Attributes:
        framework: its name.
        packages: what its exporter imports.
        channels_first: whether its images have the channels first.
    """

    framework: str
    packages: tuple[str, ...]
    channels_first: bool


#: By execution.
SOURCES: Mapping[str, Source] = {
    "from_torch": Source("torch", ("torch", "onnx"), channels_first=True),
    "from_tensorflow": Source("tensorflow", ("tensorflow", "tf2onnx"), channels_first=False),
}

#: MXNet 1.9.1 says of its ImportError that onnx has to be installed; it is.
FROM_MXNET = "from_mxnet"
MXNET_GAP = Gap(
    "mxnet 1.9.1 exports to no current onnx: mxnet.onnx imports onnx.mapping, which onnx has "
    "removed (ImportError: Onnx and protobuf need to be installed)",
    execution=FROM_MXNET,
)


def missing() -> Iterator[Gap]:
    """A gap for each source whose exporter is not installed; nothing is imported."""
    for execution, source in SOURCES.items():
        absent = [name for name in source.packages if importlib.util.find_spec(name) is None]
        if absent:
            yield Gap(
                f"exporting from {source.framework} needs {' and '.join(absent)} in onnxruntime's "
                "environment; install it there",
                execution=execution,
            )
