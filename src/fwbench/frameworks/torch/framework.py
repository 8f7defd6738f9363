"""PyTorch: eager, and torch.compile when asked for."""

import gc
import os
import re
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from functools import cached_property, partial
from typing import Any

import torch
from numpy.typing import NDArray

from fwbench.frameworks import probes
from fwbench.frameworks.contract import (
    BoundCall,
    Compilation,
    Framework,
    Saved,
    differentiated,
    differentiates_all,
)
from fwbench.frameworks.gpus import Copies, DeviceClock, NoClock, clock_by
from fwbench.frameworks.learner import Job, Learner, Predictor
from fwbench.frameworks.member import Member, Place
from fwbench.frameworks.models import ModelLearner
from fwbench.frameworks.profiler import Profiler
from fwbench.frameworks.table import capabilities_of, gang_gaps_of, gaps_of, toggle_gaps_of
from fwbench.frameworks.torch import gpus, kernels
from fwbench.frameworks.torch.kernels import OptimiserSteps
from fwbench.frameworks.torch.operations import OPERATIONS
from fwbench.frameworks.variables import variables_of
from fwbench.terms.manifest import Device, Manifest
from fwbench.terms.names import INT8
from fwbench.terms.toggles import is_on, variable
from fwbench.workloads.operation import Implementation
from fwbench.workloads.photos import PhotoJob, PhotoLoader

# Read when Inductor is imported: its profiler knows the kernels of a compiled region by their names
# then, which have the operators that are in them.
if probes.requested() == probes.PROFILE:
    os.environ.setdefault("TORCHINDUCTOR_CPP_ENABLE_KERNEL_PROFILE", "1")


def _index(device: str) -> int:
    return int(device.removeprefix("gpu:"))


#: Models of devices that PyTorch tells nothing of.
_MODELS = {"mps": "Apple GPU"}


def _gpu(number: int) -> Device:
    if not hasattr(gpus.interface(), "get_device_properties"):
        return Device(f"gpu:{number}", _MODELS.get(gpus.kind(), gpus.kind()))
    properties = gpus.interface().get_device_properties(number)
    uuid = getattr(properties, "uuid", "")  # PyTorch 2.4 and later tell it
    return Device(f"gpu:{number}", properties.name, str(uuid))


def _compiled(function: Any, mode: str | None = None) -> Any:
    # Without a reset the first call may find an earlier case's code, or hit the recompile limit.
    torch.compiler.reset()
    compiled = partial(torch.compile, dynamic=False, mode=mode)  # every case has one shape
    if isinstance(function, OptimiserSteps):
        # As in PyTorch's recipe: "Compiling the optimizer with torch.compile". A step breaks its
        # graph by itself, around hooks.
        return function.compiled(compiled)
    # A graph break would time two halves and call them one.
    return compiled(function, fullgraph=True)


_CUDA_GRAPH = "cuda_graph"

_EXECUTIONS: dict[str, Callable[[Any], Any]] = {
    "eager": lambda function: function,
    "compile": _compiled,
    "reduce_overhead": partial(_compiled, mode="reduce-overhead"),
    "max_autotune": partial(_compiled, mode="max-autotune"),
    _CUDA_GRAPH: lambda function: function,  # the whole call is captured
}


def _launched(run: BoundCall, execution: str) -> BoundCall:
    return gpus.captured(run) if execution == _CUDA_GRAPH else run


#: What NumPy does not have.
_NARROW = (torch.bfloat16, torch.float8_e4m3fn)


def _grad_of_some(results: Any, sources: Any, cotangents: Any) -> Any:
    """``torch.autograd.grad``, which refuses results that have no gradient."""
    results, cotangents = differentiated(results, cotangents)
    return torch.autograd.grad(results, sources, cotangents)


#: PyTorch's pull requests 149393 (warnings of deprecation) and 165371 ("Deprecate tensorpipe").
_NO_SERVERS = "PyTorch has no parameter servers: its RPC, which they were built on, is deprecated"


class Torch(Framework):
    """PyTorch on the CPU (synchronous) and on GPUs (asynchronous): see :func:`gpus.kind`."""

    name = "torch"
    version = torch.__version__
    namespace = torch
    capabilities = capabilities_of(
        __package__,
        executions=tuple(_EXECUTIONS),
        strategies={"allreduce": "", "ps_sync": _NO_SERVERS, "ps_async": _NO_SERVERS},
    )
    gaps = gaps_of(__package__)
    toggle_gaps = toggle_gaps_of(__package__, _EXECUTIONS)
    gang_gaps = gang_gaps_of(__package__)
    variables = variables_of("torch", "openmp", "mkl", "openblas", "onednn", "cuda")
    operations = OPERATIONS

    def __init__(self) -> None:
        onednn = os.environ.get(variable("onednn"))
        if onednn:
            torch.backends.mkldnn.set_flags(onednn == "on")
        # A float32 product in TF32 has 10 bits of mantissa: it is not the float32 work of others.
        gpus.set_tf32(allowed=is_on("tf32"))

    def manifest(self, cpu_model: str) -> Manifest:
        """With the gaps of the GPUs that this build of PyTorch is for."""
        made = super().manifest(cpu_model)
        return replace(made, gaps=(*made.gaps, *gpus.gaps()))

    def set_threads(self, threads: int) -> None:
        """Within an operation; between operations there is one at a time."""
        torch.set_num_threads(threads)

    def threads(self) -> int:
        """The threads that compute one operation."""
        return torch.get_num_threads()

    def devices(self, cpu_model: str) -> tuple[Device, ...]:
        """The CPU and every GPU."""
        interface = gpus.interface()
        count = interface.device_count() if interface.is_available() else 0
        return (*super().devices(cpu_model), *map(_gpu, range(count)))

    def scope(self, device: str, dtype: str) -> AbstractContextManager[Any]:
        """The GPU that events, captures and kernels without inputs are for."""
        if device == "cpu" or not hasattr(gpus.interface(), "device"):
            return nullcontext()
        scope: AbstractContextManager[Any] = gpus.interface().device(_index(device))
        return scope

    def creator(self, device: str, dtype: str) -> Callable[[Any], Any]:
        """``torch.tensor``, which copies (``torch.from_numpy`` would not)."""
        return partial(torch.tensor, dtype=getattr(torch, dtype), device=gpus.named(device))

    def place(self, values: NDArray[Any], device: str, dtype: str) -> Any:
        """Channels last in memory where they are in the values."""
        return kernels.like(values, super().place(values, device, dtype))

    def to_numpy(self, array: Any) -> NDArray[Any]:
        """By way of the host, and of float32 for what NumPy lacks."""
        # Conjugates and negatives are views until they are resolved, which NumPy does not know.
        array = array.detach().resolve_conj().resolve_neg().cpu()
        return (array.float() if array.dtype in _NARROW else array).numpy()

    def read_element(self, array: Any) -> NDArray[Any]:
        """The first element of the array on the host; nothing of an empty one."""
        return self.to_numpy(array[(slice(1),) * array.ndim])

    def device_of(self, array: Any) -> str | None:
        """By the tensor's device."""
        if not isinstance(array, torch.Tensor):
            return None
        kind, number = array.device.type, array.device.index
        return f"gpu:{number}" if kind == gpus.kind() else kind

    def write(self, array: Any, source: Any) -> bool:
        """By ``copy_``, past the gradient that the array may require."""
        array.detach().copy_(source)
        return True

    def make_like(self, array: Any, bound: Any) -> None:
        """It requires a gradient if that one does."""
        array.requires_grad_(bound.requires_grad)

    def address(self, array: Any) -> int | None:
        """The address of the first element, on its device."""
        return int(array.data_ptr())

    def waiter(self, device: str) -> Callable[[], Any] | None:
        """The stream that work is enqueued in; the CPU returns when it is done.

        To wait for the whole device (``torch.cuda.synchronize``) takes 2 us more of Python alone.
        """
        if device == "cpu":
            return None
        interface = gpus.interface()
        has_streams = hasattr(interface, "current_stream")
        waits = interface.current_stream(_index(device)) if has_streams else interface
        wait: Callable[[], Any] = waits.synchronize
        return wait

    def copier(self, device: str, *, pinned: bool) -> Copies:
        """``Tensor.to``."""
        return gpus.TorchCopies(device, pinned=pinned)

    def device_clock(self, device: str) -> DeviceClock:
        """CUDA events; others have no kernel that keeps the queue full."""
        if gpus.kind() == "cuda":
            return gpus.CudaEvents()
        return NoClock(f"PyTorch has no kernel that keeps the queue of {gpus.kind()} devices full")

    def kernel_clock(self, device: str) -> DeviceClock | None:
        """CUPTI by Kineto; JAX's times are CUPTI's, and events are longer than kernels."""
        wait = self.waiter(device)
        return None if wait is None else clock_by(wait, gpus.KinetoListener)

    def release(self, device: str) -> None:
        """Free what the case has left, and what the allocator keeps."""
        gc.collect()
        gpus.interface().empty_cache()

    def flusher(self, device: str) -> Callable[[], Any]:
        """Zeroes over twice the size of the cache."""
        if gpus.kind() != "cuda":
            raise NotImplementedError(f"PyTorch does not tell the size of the cache of {device}")
        size_bytes = 2 * torch.cuda.get_device_properties(_index(device)).L2_cache_size
        where = gpus.named(device)
        flush: Callable[[], Any] = torch.empty(size_bytes, dtype=torch.int8, device=where).zero_
        return flush

    def forward(
        self, implementation: Implementation, inputs: Sequence[Any], execution: str
    ) -> BoundCall:
        """Inputs carry no gradient, so nothing is recorded for one."""
        run = partial(_EXECUTIONS[execution](implementation(torch)), *inputs)
        return _launched(run, execution)

    def backward(
        self,
        implementation: Implementation,
        inputs: Sequence[Any],
        variables: Sequence[int],
        cotangent: Any,
        execution: str,
    ) -> BoundCall:
        """``torch.autograd.grad``, which returns gradients instead of adding them up."""
        function = _EXECUTIONS[execution](implementation(torch))
        sources = [inputs[i].requires_grad_() for i in variables]
        grad = torch.autograd.grad if differentiates_all(cotangent) else _grad_of_some

        def run(inputs: Sequence[Any], sources: Sequence[Any], cotangent: Any) -> Any:
            result = function(*inputs)
            return result, grad(result, sources, cotangent)

        return _launched(partial(run, inputs, sources, cotangent), execution)

    def learner(self, job: Job) -> Learner:
        """A model of ``nn.Module`` with ``DataLoader`` and ``torch.optim``."""
        from fwbench.frameworks.torch.training import TorchLearner

        return TorchLearner(job)

    def predictor(self, job: Job) -> Predictor:
        """The learner; for int8 a network that is quantized once."""
        if job.dtype != INT8:
            return super().predictor(job)
        from fwbench.frameworks.torch.training import TorchInt8

        return TorchInt8(job)

    def photo_loader(self, job: PhotoJob) -> PhotoLoader:
        """``DataLoader`` with Pillow."""
        from fwbench.frameworks.torch.training import photo_loader

        return photo_loader(job)

    def model_learner(self, job: Job) -> ModelLearner:
        """An ``nn.Module`` of the user's."""
        from fwbench.frameworks.torch.models import TorchModelLearner

        return TorchModelLearner(job)

    def member(self, place: Place) -> Member:
        """``torch.distributed`` over gloo."""
        from fwbench.frameworks.torch.replicas import TorchMember

        return TorchMember(place)

    def watch_memory(self, device: str) -> Callable[[], int | None]:
        """The bytes that PyTorch's allocator has handed out on a GPU."""
        interface = gpus.interface()
        if device == "cpu" or not hasattr(interface, "reset_peak_memory_stats"):
            return super().watch_memory(device)
        interface.reset_peak_memory_stats(_index(device))
        return partial(interface.max_memory_allocated, _index(device))

    def saved_for_backward(self, run: BoundCall) -> Saved:
        """By ``saved_tensors_hooks``; tensors that share memory count once."""
        saved: dict[int, int] = {}

        def pack(tensor: Any) -> Any:
            owner = tensor if tensor._base is None else tensor._base  # noqa: SLF001 (no other way)
            if not (owner.is_leaf and owner.requires_grad):  # a parameter is there in any case
                storage = tensor.untyped_storage()
                saved[storage.data_ptr()] = storage.nbytes()
            return tensor

        with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
            run()
        return Saved(sum(saved.values()), len(saved))

    def watch_compilation(self) -> Callable[[], Compilation | None]:
        """Its own timers."""
        from fwbench.frameworks.torch.compilation import watch

        return watch()

    def profiler(self, device: str) -> Profiler:
        """``torch.profiler``."""
        from fwbench.frameworks.torch.profiler import TorchProfiler

        return TorchProfiler(device)

    def toggles(self) -> dict[str, Any]:
        """Deterministic algorithms, precisions and the library that computes on the CPU."""
        return {
            **gpus.switches(),
            "channels_last": kernels.CHANNELS_LAST,
            "mkldnn": torch.backends.mkldnn.is_available() and torch.backends.mkldnn.enabled,
            "deterministic": torch.are_deterministic_algorithms_enabled(),
        }

    def build(self) -> dict[str, str]:
        """CUDA, cuDNN and what the CPU side was compiled for."""
        return {
            "cuda": str(torch.version.cuda),
            "cudnn": str(torch.backends.cudnn.version()),
            "cpu_capability": torch.backends.cpu.get_cpu_capability(),
        }

    def onednn_log(self) -> AbstractContextManager[object]:
        """``torch.backends.mkldnn.verbose``."""
        if not torch.backends.mkldnn.is_available():
            return super().onednn_log()
        return torch.backends.mkldnn.verbose(torch.backends.mkldnn.VERBOSE_ON)

    @cached_property
    def libraries(self) -> dict[str, str]:
        """OpenMP, and what is within PyTorch's own library: MKL, oneDNN and its kernels."""
        built = re.findall(r"(MKL-DNN v|Kernel Library Version )([\w.]+)", torch.__config__.show())
        names = {"MKL-DNN v": "onednn version", "Kernel Library Version ": "mkl version"}
        return {
            **super().libraries,
            **{names[words]: version for words, version in built},
            "kernels": torch.backends.cpu.get_cpu_capability(),
        }
