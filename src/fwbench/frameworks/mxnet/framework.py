"""Apache MXNet: eager (nd), and hybridize (a HybridBlock, static_alloc and static_shape)."""

import ctypes
import os
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from operator import methodcaller
from typing import Any

import numpy as np
import threadpoolctl
from numpy.typing import NDArray

from fwbench.errors import FrameworkBroken, FrameworkMissing
from fwbench.frameworks import probes
from fwbench.frameworks.contract import (
    BoundCall,
    Compilation,
    Framework,
    differentiated,
    differentiates_all,
)
from fwbench.frameworks.gpus import PINNED, Copies
from fwbench.frameworks.learner import Job, Learner, Predictor
from fwbench.frameworks.member import WORKER, Participant, Place, RoleCopies
from fwbench.frameworks.models import ModelLearner
from fwbench.frameworks.mxnet import openmp
from fwbench.frameworks.mxnet.operations import OPERATIONS
from fwbench.frameworks.probes import with_plan
from fwbench.frameworks.profiler import Profiler
from fwbench.frameworks.table import capabilities_of, gang_gaps_of, gaps_of, toggle_gaps_of
from fwbench.frameworks.variables import variables_of
from fwbench.terms.manifest import Device
from fwbench.terms.names import INT8
from fwbench.terms.toggles import variable
from fwbench.workloads.operation import Implementation
from fwbench.workloads.photos import PhotoJob, PhotoLoader

# MXNet 1.9.1 reads np.bool, which NumPy 1.24 took away and NumPy 2 gave another meaning.
if "bool" not in vars(np):
    np.bool = np.bool_  # type: ignore[attr-defined,unused-ignore]

# Read at import.
if variable("onednn") in os.environ:
    os.environ["MXNET_MKLDNN_ENABLED"] = str(int(os.environ[variable("onednn")] == "on"))

# cuDNN's convolutions are in TF32 by default, and MXNet does not change that; its libraries read
# this when they are loaded.
os.environ["NVIDIA_TF32_OVERRIDE"] = "0"

# Read at import: the profiler knows the operators of a bulk by one name, made of all of theirs.
if probes.requested() == probes.PROFILE:
    os.environ["MXNET_EXEC_BULK_EXEC_TRAIN"] = "0"
    os.environ["MXNET_EXEC_BULK_EXEC_INFERENCE"] = "0"

try:
    import mxnet as mx
except ModuleNotFoundError as error:
    if error.name == "mxnet" and sys.version_info >= (3, 13):
        raise FrameworkMissing(
            "MXNet 1.9.1 needs NumPy 1, which has no wheels for Python "
            f"{sys.version_info.major}.{sys.version_info.minor}",
            "use Python 3.11 or 3.12",
        ) from None
    if error.name == "distutils":
        raise FrameworkBroken(
            "MXNet imports distutils, which Python 3.12 took away",
            "install setuptools, which brings it back",
        ) from None
    raise

# With SciPy installed, every array that is made asks for a namespace that SciPy has deprecated, and
# warns: that would be in the times of creation. fwbench makes none of SciPy's sparse matrices.
mx.nd.utils.spsp = None


class _Block(mx.gluon.HybridBlock):  # type: ignore[misc]
    """An implementation as a block, so that MXNet compiles it into one cached operator."""

    def __init__(self, implementation: Implementation) -> None:
        super().__init__()
        self._implementation = implementation

    def hybrid_forward(self, F: Any, *inputs: Any) -> Any:
        """Called once with symbols; ``F`` is ``mx.sym`` then."""
        return self._implementation(F)(*inputs)


def _hybridized(implementation: Implementation) -> Any:
    block = _Block(implementation)
    block.hybridize(static_alloc=True, static_shape=True)
    return block


_EXECUTIONS: dict[str, Callable[[Implementation], Any]] = {
    "eager": lambda implementation: implementation(mx.nd),
    "hybridize": _hybridized,
}


class MXNet(Framework):
    """MXNet on the CPU and on NVIDIA GPUs: calls return when the work is enqueued, on both."""

    name = "mxnet"
    version = mx.__version__
    namespace = mx.nd
    capabilities = capabilities_of(__package__, executions=tuple(_EXECUTIONS))
    variables = variables_of("mxnet", "openmp", "openblas", "mkl", "onednn", "cuda")
    gaps = gaps_of(__package__)
    toggle_gaps = toggle_gaps_of(__package__, _EXECUTIONS)
    gang_gaps = gang_gaps_of(__package__)
    operations = OPERATIONS
    # Those of its engine, which has three of them once it was forked. CUDA cannot be forked.
    forks = 3 if sys.platform == "linux" and not mx.runtime.Features().is_enabled("CUDA") else None
    # Seen of 25 million numbers were 8.8, 3.8 and none.
    null_step_copies = RoleCopies(worker=9.0, servers=4.0, coordinator=0.0)

    def set_threads(self, threads: int) -> None:
        """OMP_NUM_THREADS has said so at import."""

    def threads(self) -> int | None:
        """The fewest threads of MXNet's OpenMP and of its BLAS."""
        pools = threadpoolctl.threadpool_info()
        folder = mx.__path__[0]
        used = [p for p in pools if p["user_api"] == "openmp" or p["filepath"].startswith(folder)]
        return min((p["num_threads"] for p in used), default=None)

    def devices(self, cpu_model: str) -> tuple[Device, ...]:
        """The CPU and every GPU; MXNet does not give their names."""
        gpus = (Device(f"gpu:{i}", "") for i in range(mx.context.num_gpus()))
        return (*super().devices(cpu_model), *gpus)

    def scope(self, device: str, dtype: str) -> Any:
        """The context in which operators without inputs run."""
        return _context(device)

    def creator(self, device: str, dtype: str) -> Callable[[Any], Any]:
        """``mx.nd.array`` with context and dtype; it copies."""
        return partial(mx.nd.array, ctx=_context(device), dtype=dtype)

    def place(self, values: NDArray[Any], device: str, dtype: str) -> Any:
        """By ``mx.nd.array``."""
        return openmp.copied(mx.nd.array, values, ctx=_context(device), dtype=dtype)

    def to_numpy(self, array: Any) -> NDArray[Any]:
        """The array's values by ``asnumpy``, once all work is done.

        ``asnumpy`` waits for what writes the array; but a transposed convolution, which only reads
        its kernel, swaps the kernel's axes in place while it computes.
        """
        mx.nd.waitall()
        values: NDArray[Any] = openmp.copied(array.asnumpy)
        return values

    def read_element(self, array: Any) -> NDArray[Any]:
        """The first element of the array on the host."""
        return self.to_numpy(array[(0,) * array.ndim])

    def device_of(self, array: Any) -> str | None:
        """By the array's context; page-locked and shared memory is the host's."""
        if not hasattr(array, "context"):
            return None
        kind, number = array.context.device_type, array.context.device_id
        return f"gpu:{number}" if kind == "gpu" else "cpu"

    def copy_in_layout(self, array: Any) -> Any:
        """A leaky ReLU without a leak, which keeps oneDNN's layout; a copy would undo it."""
        if array.dtype != np.float32:
            return None
        return mx.nd.LeakyReLU(array, act_type="leaky", slope=1.0)

    def write(self, array: Any, source: Any) -> bool:
        """By an operator; a scalar by way of a vector that shares its memory.

        A slice would not do: kernels of a convolution in one or three dimensions, which oneDNN has
        laid out for itself, cannot be copied into.
        """
        if array.shape == ():
            array, source = array.reshape((1,)), source.reshape((1,))
        mx.nd.identity(source, out=array)
        return True

    def make_like(self, array: Any, bound: Any) -> None:
        """It has room for a gradient if that one does."""
        if bound.grad is not None:
            array.attach_grad(grad_req="write")

    def copier(self, device: str, *, pinned: bool) -> Copies:
        """``NDArray.copyto``."""
        return MXNetCopies(_context(device), pinned=pinned)

    def address(self, array: Any) -> int | None:
        """The address of an array on the CPU, through DLPack, which has no booleans here.

        Not of one that oneDNN has laid out for itself, as it does with kernels and results of
        convolutions.
        """
        if array.context.device_type != "cpu" or array.dtype == np.bool_:
            return None
        try:
            return int(np.from_dlpack(_Exported(array)).ctypes.data)
        except mx.MXNetError:
            return None

    def waiter(self, device: str) -> Callable[[], Any] | None:
        """``mx.nd.waitall``; errors of the work appear there."""
        wait: Callable[[], Any] = mx.nd.waitall
        return wait

    def forward(
        self, implementation: Implementation, inputs: Sequence[Any], execution: str
    ) -> BoundCall:
        """The operator, or the block, with its inputs."""
        function = _EXECUTIONS[execution](implementation)
        return _planned(partial(function, *inputs), function, inputs)

    def backward(
        self,
        implementation: Implementation,
        inputs: Sequence[Any],
        variables: Sequence[int],
        cotangent: Any,
        execution: str,
    ) -> BoundCall:
        """``autograd.record`` and ``backward``; gradients are written, not added up."""
        function = _EXECUTIONS[execution](implementation)
        sources = [inputs[i] for i in variables]
        for source in sources:
            source.attach_grad(grad_req="write")
        several = isinstance(cotangent, tuple)
        cotangents = [_at_least_1d(x) for x in (cotangent if several else (cotangent,))]
        record = mx.autograd.record
        differentiate = mx.autograd.backward if differentiates_all(cotangent) else _backward_of_some

        def run(inputs: Sequence[Any], sources: Sequence[Any], cotangents: Sequence[Any]) -> Any:
            with record():
                result = function(*inputs)
            differentiate(result, cotangents)
            return result, [source.grad for source in sources]

        return _planned(partial(run, inputs, sources, cotangents), function, inputs, variables)

    def learner(self, job: Job) -> Learner:
        """A Gluon network with its trainer."""
        from fwbench.frameworks.mxnet import training

        contexts = [*map(_context, job.devices)]
        if job.model_parallel > 1:
            return training.DividedLearner(job, contexts)
        if job.data_parallel > 1:
            return training.SplittingLearner(job, contexts)
        return training.MXNetLearner(job, *contexts)

    def predictor(self, job: Job) -> Predictor:
        """The learner; for int8 a network that is quantized once."""
        if job.dtype != INT8:
            return super().predictor(job)
        from fwbench.frameworks.mxnet.training import MXNetInt8

        return MXNetInt8(job, _context(job.device))

    def photo_loader(self, job: PhotoJob) -> PhotoLoader:
        """``ImageRecordIter``."""
        from fwbench.frameworks.mxnet.training import photo_loader

        return photo_loader(job)

    def model_learner(self, job: Job) -> ModelLearner:
        """A Gluon block of the user's."""
        from fwbench.frameworks.mxnet.models import MXNetModelLearner

        return MXNetModelLearner(job, _context(job.device))

    def member(self, place: Place) -> Participant:
        """A worker, a server or the scheduler of a distributed KVStore."""
        from fwbench.frameworks.mxnet.replicas import MXNetMember, MXNetServing

        return MXNetMember(place, _context) if place.role == WORKER else MXNetServing(place)

    def watch_compilation(self) -> Callable[[], Compilation | None]:
        """Steps of a block until its first call is enqueued; the run is none of them."""
        from fwbench.frameworks.compilation import watch_functions

        block = mx.gluon.HybridBlock
        phases = {
            "trace": (block, "_get_graph"),
            "infer shapes": (block, "_deferred_infer_shape"),
            "bind": (block, "_build_cache"),
            "plan memory and enqueue": (block, "_call_cached_op"),
        }
        return watch_functions(phases, "bind")

    def profiler(self, device: str) -> Profiler:
        """``mx.profiler``."""
        from fwbench.frameworks.mxnet.profiler import MXNetProfiler

        return MXNetProfiler()

    def build(self) -> dict[str, str]:
        """The features it was compiled with, and NVIDIA's libraries that it was linked with."""
        features = mx.runtime.Features()
        enabled = " ".join(name for name in features if features.is_enabled(name))
        return {"features": enabled, **_nvidia_versions(mx.base._LIB)}  # noqa: SLF001


def _nvidia_versions(library: Any) -> dict[str, str]:
    """Versions of CUDA's runtime and of cuDNN, which need no GPU to tell them.

    A library that is not linked, or hides its functions, has none.

    Args:
        library: MXNet's, as :mod:`ctypes` has loaded it.
    """
    versions = {}
    with suppress(AttributeError):
        cuda = ctypes.c_int()
        if library.cudaRuntimeGetVersion(ctypes.byref(cuda)) == 0:  # 11020 is 11.2
            versions["cuda"] = f"{cuda.value // 1000}.{cuda.value % 1000 // 10}"
    with suppress(AttributeError):
        # 8201 is 8.2.1; cuDNN 9, which counts otherwise, came after the last release of MXNet.
        cudnn = str(library.cudnnGetVersion())
        versions["cudnn"] = f"{cudnn[0]}.{int(cudnn[1])}.{int(cudnn[2:])}"
    return versions


def _planned(
    run: BoundCall, function: Any, inputs: Sequence[Any], variables: Sequence[int] = ()
) -> BoundCall:
    """Bound work with what is planned for it, if it is a graph."""
    if not isinstance(function, _Block):
        return run

    def plan() -> int | None:
        from fwbench.frameworks.mxnet import planning

        return planning.of_operation(function, inputs, variables)

    return with_plan(run, plan)


def _backward_of_some(results: Any, cotangents: Any) -> None:
    """``mx.autograd.backward``, which takes no cotangent for 1, of results that have none, too."""
    mx.autograd.backward(*differentiated(results, tuple(cotangents)))


def _at_least_1d(array: Any) -> Any:
    """MXNet's scalars are vectors of one element; None stays None."""
    return array.reshape((1,)) if array is not None and array.shape == () else array


def _context(device: str) -> Any:
    kind, _, number = device.partition(":")
    return mx.Context(kind, int(number or 0))


class _Exported:
    """An NDArray for NumPy's DLPack reader, whose protocol is younger than MXNet."""

    def __init__(self, array: Any) -> None:
        self._array = array

    def __dlpack__(self, **_: Any) -> Any:
        return self._array.to_dlpack_for_read()

    def __dlpack_device__(self) -> tuple[int, int]:
        return 1, 0  # kDLCPU


#: MXNet's names of contexts.
_PLACES = {"cpu": "cpu", "cpu_pinned": PINNED}


class MXNetCopies(Copies):
    """``NDArray.copyto``, which makes a new array in a context."""

    def __init__(self, gpu: Any, *, pinned: bool) -> None:
        self._host = mx.cpu_pinned() if pinned else mx.cpu()
        # In C: a lambda would take a part of the time of short copies.
        self.to_device = methodcaller("copyto", gpu)
        self.to_host = methodcaller("copyto", self._host)

    def on_host(self, values: NDArray[Any], dtype: str) -> Any:
        """``mx.nd.array`` in the context of the CPU, or of pinned memory."""
        return mx.nd.array(values, ctx=self._host, dtype=dtype)

    def place(self, array: Any) -> str:
        """By the array's context."""
        context = array.context
        return _PLACES.get(context.device_type) or f"{context.device_type}:{context.device_id}"
