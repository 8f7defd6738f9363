"""Operations and networks that ONNX Runtime does not offer."""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator

from fwbench.frameworks.onnxruntime.exporting import SOURCES
from fwbench.terms.manifest import Gap
from fwbench.workloads import COPIES

#: The execution that would export from MXNet.
FROM_MXNET = "from_mxnet"


def missing_exporters() -> Iterator[Gap]:
    """A gap for each source whose exporter is not installed; nothing is imported."""
    for execution, source in SOURCES.items():
        absent = [name for name in source.packages if importlib.util.find_spec(name) is None]
        if absent:
            yield Gap(
                f"exporting from {source.framework} needs {' and '.join(absent)} in onnxruntime's "
                "environment; install it there",
                execution=execution,
            )


GAPS: tuple[Gap, ...] = (
    *(
        Gap("onnxruntime takes NumPy's arrays as they are, and creates none", name)
        for name in ("from_numpy", "from_list")
    ),
    *(Gap("onnxruntime is on the CPU alone here", copy.name) for copy in COPIES),
    Gap("onnxruntime offers no gradients", direction="backward"),
    # MXNet 1.9.1 says of its ImportError that onnx has to be installed; it is.
    Gap(
        "mxnet 1.9.1 exports to no current onnx: mxnet.onnx imports onnx.mapping, which onnx has "
        "removed (ImportError: Onnx and protobuf need to be installed)",
        execution=FROM_MXNET,
    ),
    *missing_exporters(),
)
