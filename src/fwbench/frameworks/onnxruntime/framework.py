"""ONNX Runtime on the CPU: graphs of ONNX's operators, and networks that frameworks export."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import onnxruntime as ort

from fwbench.errors import ExportError
from fwbench.frameworks.contract import BoundCall, Compilation, HostFramework
from fwbench.frameworks.learner import Job, Predictor
from fwbench.frameworks.onnxruntime.exporting import EXPORTED_OPSET, SOURCES
from fwbench.frameworks.onnxruntime.kernels import OPSET, Operators, model_of
from fwbench.frameworks.onnxruntime.operations import OPERATIONS
from fwbench.frameworks.table import capabilities_of, gaps_of
from fwbench.workloads.operation import Implementation

if TYPE_CHECKING:  # what profiles alone need
    from fwbench.frameworks.onnxruntime.profiler import OnnxRuntimeProfiler
    from fwbench.frameworks.profiler import Profiler

_PROVIDERS = ["CPUExecutionProvider"]

#: Of operations, each with how far a session may rewrite its graph.
_EXECUTIONS = {"graph": ort.GraphOptimizationLevel.ORT_ENABLE_ALL}

#: The execution that would export from MXNet.
_FROM_MXNET = "from_mxnet"

#: Errors alone: a session warns of unused constants, and of much else.
_ERRORS = 3


class OnnxRuntime(HostFramework):
    """ONNX Runtime on the CPU, which returns when it is done; it has no gradients."""

    name = "onnxruntime"
    version = ort.__version__
    namespace = Operators()
    capabilities = capabilities_of(
        __package__,
        executions=tuple(_EXECUTIONS),
        on_request=(_FROM_MXNET,),
        network_executions=(*SOURCES, _FROM_MXNET),
        int8_executions=tuple(SOURCES),
    )
    gaps = gaps_of(__package__)
    operations = OPERATIONS

    def __init__(self) -> None:
        self._threads: int | None = None
        self._profiler: OnnxRuntimeProfiler | None = None

    def set_threads(self, threads: int) -> None:
        """Within an operator; operators run one after the other."""
        self._threads = threads

    def threads(self) -> int | None:
        """The threads that every session is given."""
        return self._threads

    def forward(
        self, implementation: Implementation, inputs: Sequence[Any], execution: str
    ) -> BoundCall:
        """A session of the model that the implementation makes, with the inputs as they are."""
        level = _EXECUTIONS[execution]
        session = self.session(model_of(implementation(self.namespace), inputs), level)
        names = [given.name for given in session.get_inputs()]
        return partial(session.run, None, dict(zip(names, inputs, strict=True)))

    def predictor(self, job: Job) -> Predictor:
        """A network that another framework exports."""
        from fwbench.frameworks.onnxruntime.predictor import OnnxRuntimePredictor

        return OnnxRuntimePredictor(job, self.session)

    def session(self, model: bytes, level: Any = _EXECUTIONS["graph"]) -> Any:
        """A session that runs a model.

        Raises:
            ExportError: it cannot be run; the message names the operator.
        """
        if self._profiler is not None:
            return self._profiler.session(partial(self._opened, model, level))
        return self._opened(model, level)

    def _opened(self, model: bytes, level: Any, profiles: str = "") -> Any:
        options = ort.SessionOptions()
        options.enable_profiling = bool(profiles)
        options.profile_file_prefix = profiles
        options.intra_op_num_threads = self._threads or 0
        options.inter_op_num_threads = 1
        options.graph_optimization_level = level
        options.log_severity_level = _ERRORS
        try:
            return ort.InferenceSession(model, options, providers=_PROVIDERS)
        except Exception as error:  # its exceptions have no base of their own
            *_, what = str(error).split(" : ")  # behind "[ONNXRuntimeError]", number and kind
            raise ExportError(f"onnxruntime {self.version} refuses the model: {what}") from error

    def watch_compilation(self) -> Callable[[], Compilation | None]:
        """Both steps of opening a session, which is when work is bound: the first call has none."""
        from onnxruntime.capi import onnxruntime_inference_collection as sessions

        from fwbench.frameworks.compilation import watch_functions

        phases = {
            "load": (sessions.InferenceSession, "_create_inference_session"),
            "optimise": (sessions.C.InferenceSession, "initialize_session"),
        }
        return watch_functions(phases, "load")

    def profiler(self, device: str) -> "Profiler":
        """Its own, for the sessions that are opened from now on."""
        from fwbench.frameworks.onnxruntime.profiler import OnnxRuntimeProfiler

        self._profiler = OnnxRuntimeProfiler()
        return self._profiler

    def toggles(self) -> dict[str, Any]:
        """Settings that change speed, without the number of threads."""
        return {"graph_optimization": "all", "providers": ",".join(_PROVIDERS)}

    def build(self) -> dict[str, str]:
        """Build information, and the versions of ONNX's operators."""
        return {
            "build": ort.get_build_info(),
            "opset_of_networks": str(EXPORTED_OPSET),
            "opset_of_operations": str(OPSET),
        }
