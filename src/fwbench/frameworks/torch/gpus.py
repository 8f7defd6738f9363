"""PyTorch on GPUs: copies from and to the host, the device's own clock, CUDA graphs, precision.

CUDA graphs are captured as PyTorch's page "CUDA semantics" ("CUDA Graphs") has it: what is captured
was called before on another stream, so that libraries have their workspaces; replays compute with
the arrays that were bound, at their places, and write the results of the capture. So inputs are
changed by copying others into them, and a result is that of the latest replay.
"""

import os
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache, partial
from operator import methodcaller
from typing import Any

import torch
from numpy.typing import NDArray
from torch.profiler import ProfilerActivity, profile, supported_activities
from torch.torch_version import TorchVersion

from fwbench.frameworks.contract import BoundCall
from fwbench.frameworks.gpus import PINNED, Copies, DeviceClock, Listener
from fwbench.terms.manifest import Gap


def kind() -> str:
    """PyTorch's word for GPUs: ``cuda``, which are AMD's, too, ``xpu`` (Intel), ``mps`` (Apple).

    A build is for one of them (``torch.accelerator``, PyTorch 2.6 and later).
    """
    accelerator = getattr(torch, "accelerator", None)
    found = accelerator.current_accelerator() if accelerator else None
    return str(found.type) if found else "cuda"


def interface() -> Any:
    """The module of that name, such as ``torch.cuda``; that of Apple's has less than others."""
    return getattr(torch, kind())


def named(device: str) -> str:
    """PyTorch's name of a device: ``cuda:1`` for ``gpu:1``."""
    return device.replace("gpu", kind())


def gaps() -> Sequence[Gap]:
    """Gaps of GPUs that are not CUDA's: fwbench has no other graphs, and no size of their cache."""
    if kind() == "cuda":
        return ()
    no_graphs = f"is for CUDA graphs, and the GPUs of this PyTorch are {kind()}"
    return (
        Gap(f"the execution cuda_graph {no_graphs}", execution="cuda_graph", device="gpu"),
        Gap(
            f"torch.compile's reduce-overhead {no_graphs}",
            execution="reduce_overhead",
            device="gpu",
        ),
        Gap(
            f"PyTorch does not tell the size of the cache of {kind()} devices",
            device="gpu",
            toggle="l2=cold",
        ),
    )


class TorchCopies(Copies):
    """``Tensor.to``; with pinned memory it does not wait, and gives pinned memory, too.

    That is where PyTorch puts what it copies to the CPU without waiting (``_to_copy`` in
    aten/src/ATen/native/TensorConversions.cpp).
    """

    def __init__(self, device: str, *, pinned: bool) -> None:
        self._pinned = pinned
        # In C: a lambda would take a part of the time of short copies.
        self.to_device = methodcaller("to", named(device), non_blocking=pinned)
        self.to_host = methodcaller("to", "cpu", non_blocking=pinned)

    def on_host(self, values: NDArray[Any], dtype: str) -> Any:
        """``torch.tensor``, which pins nothing of NumPy's itself, and ``pin_memory``."""
        tensor = torch.tensor(values, dtype=getattr(torch, dtype))
        return tensor.pin_memory() if self._pinned else tensor

    def place(self, array: Any) -> str:
        """By the tensor's device; of one in the host's memory CUDA knows whether it is pinned."""
        if array.device.type == "cpu":
            return PINNED if array.is_pinned() else "cpu"
        return f"gpu:{array.device.index}"


#: PyTorch's own examples make three; libraries choose their kernels in the first.
_CALLS_BEFORE = 3


def captured(run: BoundCall) -> BoundCall:
    """The replay of a call.

    Args:
        run: enqueues the same work on a GPU each time, and does not wait for any of it.

    Returns:
        ``replay()``, which returns the arrays that each replay writes.
    """
    graph, aside = torch.cuda.CUDAGraph(), _stream_aside(torch.cuda.current_device())
    _call_aside(run, aside)
    with torch.cuda.graph(graph, stream=aside):
        result = run()
    launch = graph.replay

    def replay() -> Any:
        launch()
        return result

    return replay


@cache
def _stream_aside(device: int) -> Any:
    """One for all captures: cuBLAS keeps a workspace of 32 MiB for every stream (H200)."""
    return torch.cuda.Stream(device)


def _call_aside(run: BoundCall, aside: Any) -> None:
    """Call on another stream, ordered behind what was enqueued and before what will be."""
    here = torch.cuda.current_stream()
    aside.wait_stream(here)
    with torch.cuda.stream(aside):
        for _ in range(_CALLS_BEFORE):
            run()
    here.wait_stream(aside)


#: A kernel that spins for a number of cycles takes at least as long as at this clock; faster than
#: any GPU's, so that it never ends early.
_CYCLES_PER_S = 3e9

#: The device is kept busy for this multiple of the expected time of enqueueing; where that was too
#: little, for a larger one.
_SPARES = (2.0, 4.0, 8.0)


class CudaEvents(DeviceClock):
    """Events around each call, in the stream that PyTorch enqueues work in."""

    def times_s(
        self, run: Callable[[], Any], calls: int, enqueue_s: float, before: Callable[[], Any]
    ) -> list[float]:
        """By ``elapsed_time``; none where the device was done with its waiting too early."""
        for spare in _SPARES:
            events = [tuple(_event() for _ in "ab") for _ in range(calls)]
            # PyTorch's own kernel for tests; there is no public one.
            torch.cuda._sleep(int(spare * calls * enqueue_s * _CYCLES_PER_S))  # noqa: SLF001
            began = _event()
            began.record()
            for start, end in events:
                before()
                start.record()
                run()
                end.record()
            was_full = not began.query()
            events[-1][1].synchronize()
            if was_full:
                return [start.elapsed_time(end) / 1e3 for start, end in events]
        self.failure = "the GPU had nothing left to do before the last call was enqueued"
        return []


def _event() -> Any:
    return torch.cuda.Event(enable_timing=True)


#: Kineto's names of what runs on a GPU (``ActivityType.cpp`` in pytorch/kineto).
_KERNEL, _OTHERS = "kernel", ("gpu_memcpy", "gpu_memset")

#: Before this CUDA, a process that captures graphs crashes where CUPTI was detached and comes back:
#: PyTorch's compiler turns that off (``_TorchCompileInductorWrapper`` in torch/__init__.py).
_DETACHES_FROM = "12.6"


class KinetoListener(Listener):
    """CUPTI's records by Kineto, the library of ``torch.profiler``.

    Raises:
        ImportError: this build of PyTorch has no CUPTI. Its profiler would time by events.
        NotImplementedError: this build's CUDA is too old.
    """

    def __init__(self) -> None:
        cuda = torch.version.cuda
        if cuda is None or ProfilerActivity.CUDA not in supported_activities():
            raise ImportError("this build of PyTorch's profiler has no CUPTI")
        if TorchVersion(cuda) < _DETACHES_FROM:
            raise NotImplementedError(
                f"this PyTorch is for CUDA {cuda}, and CUPTI can be detached from graphs since "
                f"CUDA {_DETACHES_FROM}"
            )
        self._profile: Any = None

    def begin(self) -> None:
        """Kineto detaches afterwards only where the environment says so."""
        os.environ.setdefault("TEARDOWN_CUPTI", "1")
        self._profile = profile(activities=[ProfilerActivity.CUDA])
        self._profile.start()

    def end(self) -> Sequence[float]:
        """It detaches in a later call of CUDA (``teardownContext`` in CuptiActivityApi.cpp)."""
        self._profile.stop()
        torch.cuda.synchronize()
        return busy_s(self._profile.events())


def busy_s(events: Iterable[Any]) -> Sequence[float]:
    """The seconds of each kernel among the profiler's events, or of each copy and fill else."""
    ran = [(event.activity_type, event.time_range.elapsed_us() / 1e6) for event in events]
    kernels_s = [seconds for activity, seconds in ran if activity == _KERNEL]
    return kernels_s or [seconds for activity, seconds in ran if activity in _OTHERS]


# The precision of float32 has two interfaces, which must agree. ``allow_tf32`` is the older one;
# ``fp32_precision`` came with PyTorch 2.9. To read one of them is an error where the other was set
# to something else ("CUDA semantics", section on TensorFloat-32), and PyTorch's own compiler reads
# the older one. So both are set, the older one first, as it sets both.

#: What else changes the precision or the algorithm of an operation on a GPU.
_SWITCHES: Mapping[str, Callable[[], Any]] = {
    "float32_matmul_precision": torch.get_float32_matmul_precision,
    "cudnn_benchmark": lambda: torch.backends.cudnn.benchmark,
    "cudnn_deterministic": lambda: torch.backends.cudnn.deterministic,
    "fp16_reduced_precision_reduction": lambda: (
        torch.backends.cuda.matmul.allow_fp16_reduced_precision_reduction
    ),
    "bf16_reduced_precision_reduction": lambda: (
        torch.backends.cuda.matmul.allow_bf16_reduced_precision_reduction
    ),
}


#: Ways to compute attention (``scaled_dot_product_attention``).
_SDP = ("flash_sdp", "mem_efficient_sdp", "math_sdp", "cudnn_sdp")


def _is_enabled(way: str) -> bool:
    return bool(getattr(torch.backends.cuda, f"{way}_enabled")())


#: Such as are recorded only where they are not PyTorch's default, with that: records that were made
#: before would differ in them.
_RARE_SWITCHES: Mapping[str, tuple[Callable[[], Any], Any]] = {
    "fp16_accumulation": (lambda: torch.backends.cuda.matmul.allow_fp16_accumulation, False),
    "preferred_linalg_library": (
        lambda: torch.backends.cuda.preferred_linalg_library().name,
        "Default",
    ),
    **{way: (partial(_is_enabled, way), True) for way in _SDP},
}


def set_tf32(*, allowed: bool) -> None:
    """Compute float32 on GPUs in TF32, or in float32, regardless of the environment."""
    with warnings.catch_warnings(action="ignore"):  # that the older names will go
        torch.backends.cuda.matmul.allow_tf32 = allowed
        torch.backends.cudnn.allow_tf32 = allowed
    for place in _places().values():
        place.fp32_precision = "tf32" if allowed else "ieee"


def switches() -> dict[str, Any]:
    """The precision of float32 on GPUs, and what else changes precision or algorithm there.

    A setting that PyTorch refuses to tell, because its two interfaces were used against each other,
    is ``mixed``.
    """
    precisions = {f"{name}_precision": place.fp32_precision for name, place in _places().items()}
    rare = {name: (_setting(get), usual) for name, (get, usual) in _RARE_SWITCHES.items()}
    changed = {name: value for name, (value, usual) in rare.items() if value not in (usual, None)}
    return {**precisions, **{name: _setting(get) for name, get in _SWITCHES.items()}, **changed}


def _places() -> dict[str, Any]:
    """Settings with a precision each: products, convolutions, recurrent layers; none before 2.9.

    cuDNN computes the latter two in TF32 by default.
    """
    cudnn = torch.backends.cudnn
    places = {
        "cuda_matmul": torch.backends.cuda.matmul,
        "cudnn_conv": getattr(cudnn, "conv", None),
        "cudnn_rnn": getattr(cudnn, "rnn", None),
    }
    return {name: place for name, place in places.items() if hasattr(place, "fp32_precision")}


def _setting(get: Callable[[], Any]) -> Any:
    try:
        return get()
    except AttributeError:  # earlier releases do not have it
        return None
    except RuntimeError:
        return "mixed"
