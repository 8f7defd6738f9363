"""TensorFlow: eager, graph (tf.function), xla (tf.function with jit_compile)."""

import os
import re
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from functools import partial
from operator import methodcaller
from typing import Any

from fwbench.frameworks import probes
from fwbench.terms.names import real_dtype
from fwbench.terms.toggles import devices_of_process, is_on, variable

# Read at import.
if variable("onednn") in os.environ:
    os.environ["TF_ENABLE_ONEDNN_OPTS"] = str(int(os.environ[variable("onednn")] == "on"))
if probes.requested() == probes.PROFILE:  # a few lines: TensorFlow keeps what oneDNN has created
    os.environ.setdefault("ONEDNN_VERBOSE", "profile_create")
# Its log of CPU features and missing CUDA libraries, not its warnings; read at import.
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "1")

import numpy as np
import tensorflow as tf
from numpy.typing import NDArray

from fwbench.frameworks.contract import BoundCall, Compilation, Framework, differentiated
from fwbench.frameworks.gpus import Copies, are_hidden
from fwbench.frameworks.learner import Job, Learner, Predictor
from fwbench.frameworks.member import Participant, Place, RoleCopies
from fwbench.frameworks.models import ModelLearner
from fwbench.frameworks.profiler import Profiler
from fwbench.frameworks.table import capabilities_of, gaps_of, toggle_gaps_of
from fwbench.frameworks.tensorflow.operations import OPERATIONS
from fwbench.frameworks.variables import variables_of
from fwbench.terms.manifest import Device
from fwbench.workloads.operation import Implementation
from fwbench.workloads.photos import PhotoJob, PhotoLoader


def _traced(function: Any, **options: Any) -> Any:
    """A graph of the function, wrapped as in a script.

    ``tf.function`` binds the arguments of every call to the signature, which takes 50 us more for
    TensorFlow's own functions with their defaults, and 150 us more for partial ones.
    """

    def plain(*inputs: Any) -> Any:
        return function(*inputs)

    return tf.function(plain, **options)


_EXECUTIONS: dict[str, Callable[[Any], Any]] = {
    "eager": lambda function: function,
    "graph": _traced,
    "xla": partial(_traced, jit_compile=True),
}


#: In the errors of operations that no kernel of their device computes.
_NO_KERNEL = re.compile(r"Supported device types \[CPU\]|No OpKernel was registered[^;\n]*")


class TensorFlow(Framework):
    """TensorFlow on the CPU (synchronous) and on NVIDIA GPUs (asynchronous)."""

    name = "tensorflow"
    version = tf.__version__
    namespace = tf
    capabilities = capabilities_of(__package__, executions=tuple(_EXECUTIONS))
    reads_stack = True
    variables = variables_of("tensorflow", "xla", "openmp", "onednn", "cuda")
    operations = OPERATIONS
    # Seen of 25 million numbers were 11.2, 7.5 and 11.4: what is sent is a part of a graph, too.
    null_step_copies = RoleCopies(worker=11.5, servers=8.0, coordinator=12.0)
    gaps = gaps_of(__package__)
    toggle_gaps = toggle_gaps_of(__package__)

    def __init__(self) -> None:
        # A float32 product in TF32 has 10 bits of mantissa: it is not the float32 work of others.
        # Cases in other dtypes: :meth:`scope`.
        tf.config.experimental.enable_tensor_float_32_execution(is_on("tf32"))
        self._device = "cpu"
        if are_hidden():  # else the first operation starts them all
            tf.config.set_visible_devices([], "GPU")
        self._gpus = tf.config.get_visible_devices("GPU")
        if sys.platform == "linux" and not tf.config.list_physical_devices("GPU"):
            self.forks = 0
        for gpu in self._gpus:
            # Otherwise the process takes the whole memory of a device that others use too.
            tf.config.experimental.set_memory_growth(gpu, True)
        if devices_of_process() > 1:
            (cpu,) = tf.config.list_physical_devices("CPU")
            logical = [tf.config.LogicalDeviceConfiguration() for _ in range(devices_of_process())]
            tf.config.set_logical_device_configuration(cpu, logical)

    def set_threads(self, threads: int) -> None:
        """Within an operation and between operations; only before the first operation."""
        tf.config.threading.set_intra_op_parallelism_threads(threads)
        tf.config.threading.set_inter_op_parallelism_threads(threads)

    def threads(self) -> int:
        """The threads that compute one operation."""
        return int(tf.config.threading.get_intra_op_parallelism_threads())

    def devices(self, cpu_model: str) -> tuple[Device, ...]:
        """The CPU and every GPU."""
        details = tf.config.experimental.get_device_details
        return (
            *super().devices(cpu_model),
            *(
                Device(f"gpu:{i}", details(gpu).get("device_name", ""))
                for i, gpu in enumerate(self._gpus)
            ),
        )

    def _place_softly(self, *, allowed: bool) -> None:
        """Let TensorFlow compute on the CPU, in silence, what has no kernel on a GPU; or do not.

        Loaders of trainings belong there: ``tf.data`` has no kernels on GPUs.
        """
        if self._gpus:
            tf.config.set_soft_device_placement(allowed)

    def _on_device(self, function: Any, execution: str) -> Any:
        """The function with the device of the scope within it, where it is traced.

        A graph does without the device that it is traced on: TensorFlow would compute on the CPU
        what has no kernel on a GPU, whatever is set.
        """
        if execution == "eager" or not self._gpus:
            return function
        device = self._device

        def placed(*inputs: Any) -> Any:
            with tf.device(device):
                return function(*inputs)

        return placed

    @contextmanager
    def scope(self, device: str, dtype: str) -> Iterator[None]:
        """``tf.device``, where there is a choice: it costs every eager call 0.3 us.

        And TF32 in other dtypes than float32: that it is off is a wish for more precision than they
        have, which keeps XLA from the kernels that are made for them.
        """
        tf32 = tf.config.experimental
        before = tf32.tensor_float_32_execution_enabled()
        tf32.enable_tensor_float_32_execution(before or real_dtype(dtype) != "float32")
        self._device = device
        try:
            with tf.device(device) if self._gpus else nullcontext():
                yield
        finally:
            tf32.enable_tensor_float_32_execution(before)

    def creator(self, device: str, dtype: str) -> Callable[[Any], Any]:
        """``tf.constant``; the device is the scope's."""
        return partial(tf.constant, dtype=dtype)

    def to_numpy(self, array: Any) -> NDArray[Any]:
        """By way of float32 for bfloat16; LiteRT's results are NumPy's arrays already."""
        return np.asarray(tf.cast(array, tf.float32) if tf.bfloat16 == array.dtype else array)

    def read_element(self, array: Any) -> NDArray[Any]:
        """The first element of the array on the host; nothing of an empty one."""
        return self.to_numpy(array[(slice(1),) * len(array.shape)])

    def device_of(self, array: Any) -> str | None:
        """By the memory that the tensor is in.

        Its ``device`` is that of the call, and of a graph's results says nothing. Whole numbers of
        32 bits are kept on the host for kernels on a GPU: of these it is all that is known.
        """
        if not isinstance(array, tf.Tensor | tf.Variable):
            return None
        is_kept = array.dtype == tf.int32 or not hasattr(array, "backing_device")
        return _named(array.device if is_kept else array.backing_device)

    def lacks(self, error: Exception) -> str | None:
        """A kernel, in TensorFlow's words: it is not to compute elsewhere in silence."""
        found = _NO_KERNEL.search(str(error)) if isinstance(error, tf.errors.OpError) else None
        return found and f"tensorflow has no kernel for it there ({found[0]})"

    def write(self, array: Any, source: Any) -> bool:
        """By ``assign``, which variables alone have."""
        if not isinstance(array, tf.Variable):
            return False
        array.assign(source)
        return True

    def variable(self, array: Any) -> Any:
        """A ``tf.Variable``: a graph takes it as it takes an array, and changes it in place."""
        return tf.Variable(array)

    def address(self, array: Any) -> int | None:
        """The buffer's address, by the buffer protocol; GPU tensors and variables have none."""
        if isinstance(array, tf.Variable) or "GPU" in array.device or array.dtype == tf.bfloat16:
            return None
        return int(np.asarray(memoryview(array)).ctypes.data)

    def waiter(self, device: str) -> Callable[[], Any] | None:
        """Every stream of the GPU; the CPU executes synchronously, in graphs too.

        ``tf.test.experimental.sync_devices`` runs the same operation on each device, on the CPU
        among them, which takes 37 us and more.
        """
        if device == "cpu":
            return None

        def wait() -> None:
            with tf.device(device):
                tf.raw_ops.SyncDevice()

        return wait

    def copier(self, device: str, *, pinned: bool) -> Copies:
        """A tensor's own copy on the other device."""
        return TensorFlowCopies(device)

    def forward(
        self, implementation: Implementation, inputs: Sequence[Any], execution: str
    ) -> BoundCall:
        """The function, or the graph of it, with its inputs as arguments."""
        self._place_softly(allowed=False)
        function = self._on_device(implementation(tf), execution)
        return partial(_EXECUTIONS[execution](function), *inputs)

    def backward(
        self,
        implementation: Implementation,
        inputs: Sequence[Any],
        variables: Sequence[int],
        cotangent: Any,
        execution: str,
    ) -> BoundCall:
        """A ``GradientTape`` around the function, all of it inside the graph where there is one.

        The graph returns the result, too: it would leave out unused results. The gradients
        of what is indexed are dense, as the other frameworks' are.
        """
        self._place_softly(allowed=False)
        function = implementation(tf)

        def step(inputs: Sequence[Any], cotangent: Any) -> Any:
            sources = [inputs[i] for i in variables]
            with tf.GradientTape(watch_accessed_variables=False) as tape:
                tape.watch(sources)
                result = function(*inputs)
            target, given = differentiated(result, cotangent)
            return result, [*map(_dense, tape.gradient(target, sources, given))]

        placed = self._on_device(step, execution)
        return partial(_EXECUTIONS[execution](placed), tuple(inputs), cotangent)

    def learner(self, job: Job) -> Learner:
        """Keras layers, and a step of one's own or ``fit``."""
        self._place_softly(allowed=True)
        from fwbench.frameworks.tensorflow.training import KerasFit, TensorFlowLearner

        if job.model_parallel > 1:
            from fwbench.frameworks.tensorflow.training import DividedLearner

            return DividedLearner(job)
        if job.data_parallel > 1:
            from fwbench.frameworks.tensorflow.replicas import SplittingLearner

            return SplittingLearner(job)
        return (KerasFit if job.execution == "fit" else TensorFlowLearner)(job)

    def predictor(self, job: Job) -> Predictor:
        """The learner; of LiteRT an interpreter."""
        self._place_softly(allowed=True)
        if job.execution not in self.capabilities.int8_executions:
            return super().predictor(job)
        from fwbench.frameworks.tensorflow.training import LiteRTPredictor

        return LiteRTPredictor(job, self.threads())

    def photo_loader(self, job: PhotoJob) -> PhotoLoader:
        """``tf.data``."""
        self._place_softly(allowed=True)
        from fwbench.frameworks.tensorflow.training import photo_loader

        return photo_loader(job)

    def model_learner(self, job: Job) -> ModelLearner:
        """A Keras model of the user's."""
        self._place_softly(allowed=True)
        from fwbench.frameworks.tensorflow.models import TensorFlowModelLearner

        return TensorFlowModelLearner(job)

    def member(self, place: Place) -> Participant:
        """A worker of MultiWorkerMirroredStrategy, or a task of ParameterServerStrategy."""
        from fwbench.frameworks.tensorflow.replicas import MirroredMember, participant

        return (participant if place.servers else MirroredMember)(place)

    def watch_memory(self, device: str) -> Callable[[], int | None]:
        """The bytes that TensorFlow's allocator has handed out on a GPU."""
        if device == "cpu":
            return super().watch_memory(device)
        memory, name = tf.config.experimental, device.upper()
        memory.reset_memory_stats(name)
        return lambda: int(memory.get_memory_info(name)["peak"])

    def watch_compilation(self) -> Callable[[], Compilation | None]:
        """Traces, and what calls take besides: Grappler and XLA tell Python no times."""
        from tensorflow.python.eager.polymorphic_function.polymorphic_function import Function
        from tensorflow.python.framework import func_graph

        from fwbench.frameworks.compilation import watch_functions

        phases = {
            "trace": (func_graph, "func_graph_from_py_func"),
            "optimise, compile and run": (Function, "__call__"),
        }
        return watch_functions(phases, "trace")

    def profiler(self, device: str) -> Profiler:
        """``tf.profiler``."""
        from fwbench.frameworks.tensorflow.profiler import TensorFlowProfiler

        return TensorFlowProfiler(device)

    def toggles(self) -> dict[str, Any]:
        """TF32, and whether oneDNN computes on the CPU."""
        tf32 = tf.config.experimental.tensor_float_32_execution_enabled()
        return {"float32_in_tf32": tf32, **self.defaults()}

    def defaults(self) -> dict[str, str]:
        """Where its variable says nothing, oneDNN is on if the CPU has AVX-512 VNNI or the like."""
        try:
            from tensorflow.python.util import _pywrap_util_port as port
        except ImportError:  # no part of its interface
            return {}
        return {"onednn": "on" if port.IsMklEnabled() else "off"}

    def build(self) -> dict[str, str]:
        """CUDA, cuDNN and the compiler."""
        return {name: str(value) for name, value in tf.sysconfig.get_build_info().items()}


def _dense(gradient: Any) -> Any:
    """TensorFlow has the rows of a gradient and their indices where an operation picked rows."""
    return tf.convert_to_tensor(gradient) if isinstance(gradient, tf.IndexedSlices) else gradient


_HOST = "CPU:0"


class TensorFlowCopies(Copies):
    """A tensor's own copy, as ``Tensor.cpu`` and ``Tensor.gpu`` make it.

    An operation on the other device, such as ``tf.identity``, copies its input once and keeps the
    copy with the tensor (``mirror`` in tensorflow/core/common_runtime/eager/execute.cc).
    """

    def __init__(self, device: str) -> None:
        self.to_device = methodcaller("_copy", device_name=device.upper())
        self.to_host = methodcaller("_copy", device_name=_HOST)

    def on_host(self, values: NDArray[Any], dtype: str) -> Any:
        """``tf.constant`` on the CPU; the device of the case is the scope's."""
        with tf.device(_HOST):
            return tf.constant(values, dtype=dtype)

    def place(self, array: Any) -> str:
        """By the device whose memory the tensor has."""
        return _named(array.backing_device)


def _named(device: str) -> str:
    """TensorFlow's name of a device, ``/job:localhost/replica:0/task:0/device:GPU:1``, in short."""
    name = ":".join(device.rsplit(":", 2)[-2:]).lower()
    return "cpu" if name == "cpu:0" else name
