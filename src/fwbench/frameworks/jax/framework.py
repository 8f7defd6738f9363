"""JAX: eager, and jit. Asynchronous on every device, also on the CPU."""

import logging
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, nullcontext, suppress
from functools import cached_property, partial
from importlib import metadata
from pathlib import Path
from typing import Any

# By default JAX takes three quarters of a GPU's memory when it starts, and workers of other
# frameworks run at the same time.
os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray

try:
    from jax import enable_x64
except ImportError:  # JAX 0.7
    from jax.experimental import enable_x64

from fwbench.frameworks import gpus
from fwbench.frameworks.contract import BoundCall, Compilation, Framework
from fwbench.frameworks.gpus import Copies, DeviceClock
from fwbench.frameworks.jax.device import (
    EXECUTIONS,
    JaxCopies,
    MosaicListener,
    Variable,
    donated,
    latest,
    place_of,
    planned,
)
from fwbench.frameworks.jax.kernels import Keyed
from fwbench.frameworks.jax.operations import OPERATIONS
from fwbench.frameworks.learner import Job, Learner
from fwbench.frameworks.member import Member, Place
from fwbench.frameworks.models import ModelLearner
from fwbench.frameworks.profiler import Profiler
from fwbench.frameworks.table import capabilities_of, gaps_of, toggle_gaps_of
from fwbench.frameworks.variables import variables_of
from fwbench.terms.manifest import Device
from fwbench.terms.names import real_dtype
from fwbench.terms.toggles import devices_of_process, is_on
from fwbench.workloads.operation import Implementation

_NO_SERVERS = "jax has no parameter servers: its processes exchange arrays by collectives alone"

#: How packages of cuDNN are named, before the CUDA that they are for.
_CUDNN = "nvidia-cudnn-"

#: How XLA names the threads of its pool for computing on the CPU (xla/pjrt/cpu/cpu_client.cc).
_POOL = "XLAEigen"


class Jax(Framework):
    """JAX on the CPU and on NVIDIA GPUs.

    JAX waits for arrays, not for devices: a call keeps its results, and the clock waits for them. A
    device runs the calls of one thread in their order, so those of earlier calls are done by then.
    """

    name = "jax"
    version = jax.__version__
    namespace = jax
    capabilities = capabilities_of(
        __package__,
        executions=tuple(EXECUTIONS),
        strategies={"allreduce": "", "ps_sync": _NO_SERVERS, "ps_async": _NO_SERVERS},
    )
    conjugates = False
    reads_stack = True
    variables = variables_of("jax", "xla", "cuda")
    operations = OPERATIONS
    gaps = gaps_of(__package__)
    toggle_gaps = toggle_gaps_of(__package__)

    def __init__(self) -> None:
        self._latest: Any = ()
        logging.getLogger("jax").addHandler(_PLUGIN_ERRORS)
        if gpus.are_hidden():  # else the first question for a device starts them all
            jax.config.update("jax_platforms", "cpu")
        if devices_of_process() > 1:
            jax.config.update("jax_num_cpu_devices", devices_of_process())

    def set_threads(self, threads: int) -> None:
        """Limit the threads of XLA's pool, which is created with the first device."""
        os.environ["PJRT_NPROC"] = str(threads)

    def threads(self) -> int | None:
        """The threads in XLA's pool; None without a CPU backend, or where no thread has a name."""
        if not _devices("cpu"):  # asking makes the pool
            return None
        names = []
        for task in Path("/proc/self/task").glob("*/comm"):
            with suppress(OSError):  # a thread of another kind has ended meanwhile
                names.append(task.read_text())
        return sum(_POOL in name for name in names) or None

    def devices(self, cpu_model: str) -> tuple[Device, ...]:
        """The CPU, unless JAX_PLATFORMS leaves it out, and every GPU that JAX sees."""
        gpus = (Device(f"gpu:{i}", gpu.device_kind) for i, gpu in enumerate(_devices("gpu")))
        return (*(super().devices(cpu_model) if _devices("cpu") else ()), *gpus)

    def scope(self, device: str, dtype: str) -> AbstractContextManager[Any]:
        """The device that arrays are made on; 64 bits, which JAX drops by default; precision.

        Nothing is set that holds anyway: a call of 5 us takes 0.2 us more in a scope with a device,
        and 0.4 us more in one with a precision.
        """
        scope = ExitStack()
        chosen = _device(device)
        if chosen != (jax.config.jax_default_device or jax.local_devices()[0]):
            scope.enter_context(jax.default_device(chosen))
        scope.enter_context(precision(device, dtype))
        if real_dtype(dtype) == "float64":
            scope.enter_context(enable_x64(True))
        return scope

    def creator(self, device: str, dtype: str) -> Callable[[Any], Any]:
        """A call of ``jnp.array``, which copies, and which keeps its result for the clock.

        NumPy reads lists, in a twentieth of the time. The device is the scope's: to name it, or the
        dtype, takes up to seven times as long.
        """
        dtype_of_numpy = jnp.dtype(dtype)

        def create(values: Any) -> Any:
            try:
                result = jnp.array(np.asarray(values, dtype_of_numpy))
            except jax.errors.TracerArrayConversionError:  # it is lowered, and computes nothing
                result = jnp.array(values, dtype_of_numpy)
            self._latest = (result,)
            return result

        return create

    def to_numpy(self, array: Any) -> NDArray[Any]:
        """The array's values; those of dtypes that NumPy lacks become float32."""
        array = latest(array)
        narrow = array.dtype in (jnp.bfloat16, jnp.float8_e4m3fn)
        return np.asarray(array.astype("float32") if narrow else array)

    def read_element(self, array: Any) -> NDArray[Any]:
        """The first element of the array on the host; nothing of an empty one."""
        array = latest(array)
        return self.to_numpy(array[(slice(1),) * array.ndim])

    def device_of(self, array: Any) -> str | None:
        """By the array's device, with the kind of its memory where it is not the device's own."""
        array = latest(array)
        return place_of(array) if isinstance(array, jax.Array) else None

    def variable(self, array: Any) -> Variable:
        """A holder, as arrays are immutable."""
        return Variable(array)

    def write(self, array: Any, source: Any) -> bool:
        """Into variables alone."""
        if isinstance(array, Variable):
            array.array = jnp.copy(source)
        return isinstance(array, Variable)

    def address(self, array: Any) -> int | None:
        """The address of the first element, on its device."""
        return int(latest(array).unsafe_buffer_pointer())

    def waiter(self, device: str) -> Callable[[], Any]:
        """Waits for the results of the latest call."""
        return self._wait

    def copier(self, device: str, *, pinned: bool) -> Copies:
        """``jax.device_put``."""
        host = None if pinned else _device("cpu")
        return JaxCopies(device, _device(device), host, self._keep)

    def device_clock(self, device: str) -> DeviceClock | None:
        """CUPTI, which JAX has a way to."""
        return gpus.cupti_clock(self._wait, MosaicListener)

    def watch_memory(self, device: str) -> Callable[[], int | None]:
        """The peak of XLA's allocator on a GPU; one below an earlier one is not known.

        It counts the peak of the process, and cannot be reset.
        """
        if device == "cpu":
            return super().watch_memory(device)
        gpu = _device(device)
        earlier = gpu.memory_stats()

        def peak_bytes() -> int | None:
            now = gpu.memory_stats()
            if now["peak_bytes_in_use"] > earlier["peak_bytes_in_use"]:
                return int(now["peak_bytes_in_use"])
            return int(now["bytes_in_use"]) if now["num_allocs"] == earlier["num_allocs"] else None

        # Other allocators than XLA's own (XLA_PYTHON_CLIENT_ALLOCATOR) keep no account.
        return peak_bytes if earlier else super().watch_memory(device)

    def _keep(self, results: Any) -> None:
        self._latest = results

    def _wait(self) -> None:
        # Kept any longer, they would have the memory that the next call is to find free.
        results, self._latest = self._latest, None
        try:
            results.block_until_ready()
        except AttributeError:  # several results, which takes a fifth of a small operation longer
            jax.block_until_ready(results)

    def forward(
        self, implementation: Implementation, inputs: Sequence[Any], execution: str
    ) -> BoundCall:
        """The inputs are arguments of what is compiled."""
        function: Any = implementation(jax)
        execute = EXECUTIONS[execution]
        if any(isinstance(x, Variable) for x in inputs):
            return self._updating(function, inputs, execute)
        function = function.executed(execute) if isinstance(function, Keyed) else execute(function)

        def call(*inputs: Any) -> Any:
            self._latest = result = function(*inputs)
            return result

        return planned(partial(call, *inputs), function, *inputs)

    def _updating(
        self, function: Any, inputs: Sequence[Any], execute: Callable[..., Any]
    ) -> BoundCall:
        """A step, whose results are the variables of the next one."""
        variables = [x for x in inputs if isinstance(x, Variable)]
        positions = (i for i, x in enumerate(inputs) if isinstance(x, Variable))
        step = execute(function, donate_argnums=donated(*positions))

        def call(*inputs: Any) -> None:
            results = step(*map(latest, inputs))
            self._latest = results if isinstance(results, tuple) else (results,)
            for variable, result in zip(variables, self._latest, strict=True):
                variable.array = result

        # Arrays would be kept, or be gone once they are donated.
        shapes = (jax.ShapeDtypeStruct(x.shape, x.dtype) for x in map(latest, inputs))
        return planned(partial(call, *inputs), step, *shapes)

    def backward(
        self,
        implementation: Implementation,
        inputs: Sequence[Any],
        variables: Sequence[int],
        cotangent: Any,
        execution: str,
    ) -> BoundCall:
        """``jax.vjp``; under jit the forward pass and the gradient are one function."""
        function = implementation(jax)

        def gradients(inputs: list[Any], cotangent: Any) -> Any:
            def of_variables(*values: Any) -> Any:
                placed = dict(zip(variables, values, strict=True))
                return function(*(placed.get(i, x) for i, x in enumerate(inputs)))

            result, pull_back = jax.vjp(of_variables, *(inputs[i] for i in variables))
            results, structure = jax.tree.flatten(result)
            cotangents = cotangent if isinstance(cotangent, tuple) else (cotangent,)
            leaves = map(_cotangent, results, cotangents)
            return result, pull_back(jax.tree.unflatten(structure, leaves))

        differentiated = EXECUTIONS[execution](gradients)

        def call(inputs: Any, cotangent: Any) -> Any:
            result, gradients = differentiated(inputs, cotangent)
            # All of them: the last one need not be what is computed last.
            self._latest = (result, *gradients)
            return result, gradients

        return planned(
            partial(call, list(inputs), cotangent), differentiated, list(inputs), cotangent
        )

    def learner(self, job: Job) -> Learner:
        """Pure functions, whose state goes from step to step."""
        from fwbench.frameworks.jax import training

        devices = [*map(_device, job.devices)]
        if job.model_parallel > 1:
            return training.DividedLearner(job, devices, self._keep)
        if job.data_parallel > 1:
            return training.SplittingLearner(job, devices, self._keep)
        return training.JaxLearner(job, devices[0], self._keep)

    def member(self, place: Place) -> Member:
        """A process of ``jax.distributed``."""
        from fwbench.frameworks.jax.replicas import JaxMember

        return JaxMember(place, self._keep)

    def model_learner(self, job: Job) -> ModelLearner:
        """A function with parameters of the user's."""
        from fwbench.frameworks.jax.models import JaxModelLearner

        return JaxModelLearner(job, _device(job.device), self._keep)

    def watch_compilation(self) -> Callable[[], Compilation | None]:
        """JAX's own events."""
        from fwbench.frameworks.jax.compilation import watch

        return watch()

    def profiler(self, device: str) -> Profiler:
        """``jax.profiler``."""
        from fwbench.frameworks.jax.profiler import JaxProfiler

        return JaxProfiler()

    def _notices(self, missing: Mapping[str, str], operations: Sequence[str]) -> Iterator[str]:
        yield from super()._notices(missing, operations)
        if failure := self.gpu_failure():
            yield f"jax measures the CPU alone: {failure}"

    def gpu_failure(self) -> str:
        """The errors of plugins for GPUs that are installed and do not start, in JAX's words."""
        return "" if _devices("gpu") else "; ".join(_FAILURES)

    def toggles(self) -> dict[str, Any]:
        """The precision of products; whether the CPU may lag behind is among the variables."""
        return {"float32_matmul_precision": _float32_precision() or "default"}

    def build(self) -> dict[str, str]:
        """The compiled half, what it runs on, and the plugins for other devices than the CPU.

        A plugin's platform has CUDA's version in its second line; cuDNN is a package of its own.
        """
        plugins = (point.dist for point in metadata.entry_points(group="jax_plugins"))
        versions = sorted(f"{package.name} {package.version}" for package in plugins if package)
        packages = [*metadata.distributions()]
        cudnn = [p.version for p in packages if (p.name or "").startswith(_CUDNN)]
        return {
            "jaxlib": jax.lib.__version__,
            "platform": ", ".join(jax.devices()[0].client.platform_version.split("\n")),
            **({"plugins": ", ".join(versions)} if versions else {}),
            **({"cudnn": ", ".join(cudnn)} if versions and cudnn else {}),
        }

    @cached_property
    def libraries(self) -> dict[str, str]:
        """OpenMP, and SciPy's BLAS, whose LAPACK it calls."""
        from fwbench.frameworks.libraries import loaded

        return loaded("jaxlib", "scipy")


#: In JAX's error of a backend that it has found and cannot start.
_NOT_STARTED = "Unable to initialize backend"

#: Of such backends, and of plugins that do not even register one, in JAX's words.
_FAILURES: list[str] = []

#: Begins what JAX logs of a plugin that it cannot load or initialize, and goes on without.
_PLUGIN_ERROR = "Jax plugin configuration error: "


class _PluginErrors(logging.Handler):
    """Keeps the errors of plugins, which JAX only logs."""

    def emit(self, record: logging.LogRecord) -> None:
        """Keep JAX's sentence, and the first line of the exception."""
        before, of_plugin, sentence = record.getMessage().partition(_PLUGIN_ERROR)
        if of_plugin and not before:
            _, error, _ = record.exc_info or (None, None, None)
            cause = f": {type(error).__name__}: {error}".partition("\n")[0] if error else ""
            _FAILURES.append(f"{sentence}{cause}")


_PLUGIN_ERRORS = _PluginErrors()


def precision(device: str, dtype: str) -> AbstractContextManager[Any]:
    """The scope of the precision that products of a dtype have on a device.

    JAX's own default for products of float32 is TF32 on GPUs that have it, 10 bits of mantissa: not
    the float32 work of others. It "has no impact on CPU backends" (jax.lax.Precision). Narrower
    dtypes keep the default: ``highest`` keeps XLA from the kernels that are made for them
    (``CanTritonHandleGEMM`` and ``IsFastAccumEnabled`` in xla/service/gpu).
    """
    if device == "cpu" or real_dtype(dtype) != "float32":
        return nullcontext()
    scope: AbstractContextManager[Any] = jax.default_matmul_precision(_float32_precision())
    return scope


def _float32_precision() -> str | None:
    return None if is_on("tf32") else "highest"


def _devices(kind: str) -> Sequence[Any]:
    """The devices of this process; none where this build, machine or JAX_PLATFORMS has none.

    A GPU that cannot be started, for an old driver or because another process has it, would take
    the CPU with it: JAX raises for every backend then.
    """
    try:
        return jax.local_devices(backend=kind)
    except RuntimeError as error:
        platforms = (jax.config.jax_platforms or "cuda,cpu").split(",")
        if len(platforms) == 1 or "cpu" not in platforms or _NOT_STARTED not in str(error):
            return ()
        _FAILURES.append(str(error).partition("\n")[0].partition(" (you may")[0])
        jax.config.update("jax_platforms", "cpu")
        return _devices(kind)


def _cotangent(result: Any, cotangent: Any) -> Any:
    """A cotangent for JAX, which wants one of whole numbers as well, in a dtype of its own."""
    if cotangent is not None:
        return cotangent
    return np.zeros(result.shape, jax.dtypes.float0)


def _device(name: str) -> Any:
    kind, _, number = name.partition(":")
    return jax.local_devices(backend=kind)[int(number or 0)]
