"""A framework that computes with NumPy, and a clock that only a test advances."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from fwbench.frameworks.contract import BoundCall, Framework, differentiated
from fwbench.terms.manifest import Capabilities, Device, Gap
from fwbench.workloads.operation import Implementation

#: Step of the derivative along the imaginary axis, which has no cancellation to fear.
_IMAGINARY = 1e-30


class HandClock:
    """A clock that moves only when a test moves it, and a device that works off a queue.

    Waiting for the device moves the clock to the moment when the queue is empty, so times are
    exact. Durations that are sums of powers of two stay exact as floating-point numbers, too.

    Attributes:
        now_s: the time that the clock shows.
        idle_s: when the device will have done all the work in its queue.
    """

    def __init__(self) -> None:
        self.now_s = 0.0
        self.idle_s = 0.0

    def __call__(self) -> float:
        """The time in seconds, as ``time.perf_counter`` does."""
        return self.now_s

    def spend(self, seconds: float) -> None:
        """Let time pass while the caller is busy."""
        self.now_s += seconds

    def enqueue(self, seconds: float) -> None:
        """Add work to the device's queue; it starts when the work before it is done."""
        self.idle_s = max(self.now_s, self.idle_s) + seconds

    def wait(self) -> None:
        """Let time pass until the device's queue is empty."""
        self.now_s = max(self.now_s, self.idle_s)


@dataclass(frozen=True)
class Differentiable:
    """A function with its gradient, instead of the one that the fake framework derives.

    Attributes:
        gradient: ``gradient(cotangent, *inputs)`` returns the gradient of every input.
    """

    value: Callable[..., Any]
    gradient: Callable[..., Sequence[Any]]

    def __call__(self, *inputs: Any) -> Any:
        """The result."""
        return self.value(*inputs)


@dataclass
class FakeFramework(Framework):
    """NumPy arrays behind a queue: every call takes the time that a test has set.

    It has a CPU and a GPU and keeps every promise of
    :class:`~fwbench.frameworks.contract.Framework`; a subclass can break one of them.

    Attributes:
        dispatch_s: seconds until a call returns, whether it computes or creates an array.
        work_s: seconds of work that a call enqueues.
        first_s: additional seconds until the first call returns.
        asynchronous: whether calls return before their work is done.
        copies: whether created arrays are copies of their source.
        addressable: whether :meth:`address` knows where an array is.
        thread_count: the threads that it claims to compute with.
        entered: device and dtype of the scope that is entered.
        called: device and dtype of the scope at every call.
        created_from: of every created array, the dtype of its source and its own.
        placed_bytes: by device, the size of all arrays created there.
    """

    clock: HandClock = field(default_factory=HandClock)
    dispatch_s: float = 2.0**-10
    work_s: float = 2.0**-4
    first_s: float = 0.0
    asynchronous: bool = True
    copies: bool = True
    addressable: bool = True
    thread_count: int = 2
    entered: tuple[str, str] | None = None
    called: list[tuple[str, str] | None] = field(default_factory=list)
    created_from: list[tuple[str, str]] = field(default_factory=list)
    placed_bytes: dict[str, int] = field(default_factory=dict)

    name = "fake"
    version = "1.2"
    namespace = np
    capabilities = Capabilities(
        executions=("eager", "graph", "compile"),
        on_request=("compile",),
        dtypes=("float32", "float64", "float16", "bfloat16"),
        training_executions=("eager", "graph", "fit"),
        whole_loops=("fit",),
        training_dtypes=("float32", "float64"),
        process_toggles=("onednn",),
        gpu_memory=True,
    )
    gaps = (Gap("fake has no float16 product on GPUs", "gemm", dtype="float16", device="gpu"),)
    variables = ("FAKE_MODE",)
    toggle_gaps: ClassVar = {("fit", "sparse", "off"): "fit leaves gradients sparse"}
    operations: ClassVar = {
        "gemm": lambda np: np.matmul,
        "flatten": lambda np: np.ravel,
        "noop": lambda np: lambda x: x,
    }

    def set_threads(self, threads: int) -> None:
        """Remember the number, which changes no time."""
        self.thread_count = threads

    def threads(self) -> int:
        """The number that :attr:`thread_count` holds."""
        return self.thread_count

    def devices(self, cpu_model: str) -> tuple[Device, ...]:
        """The CPU and one GPU."""
        return (*super().devices(cpu_model), Device("gpu:0", "Fake 9000"))

    @contextmanager
    def scope(self, device: str, dtype: str) -> Iterator[None]:
        """A context that sets :attr:`entered`."""
        self._check_device(device)
        self.entered = device, dtype
        yield
        self.entered = None

    def creator(self, device: str, dtype: str) -> Callable[[Any], Any]:
        """``np.array``, or ``np.asarray`` if arrays are not to be copies."""
        self._check_device(device)
        make = np.array if self.copies else np.asarray

        def create(source: Any) -> NDArray[Any]:
            self._cost()
            self.created_from.append((str(getattr(source, "dtype", "list")), dtype))
            if dtype == "bfloat16":
                array = to_bfloat16(np.array(source, dtype="float32"))
            else:
                array = make(source, dtype=dtype)
            self.placed_bytes[device] = self.placed_bytes.get(device, 0) + array.nbytes
            return array

        return create

    def to_numpy(self, array: Any) -> NDArray[Any]:
        """The array, after all work is done."""
        self.clock.wait()
        return np.asarray(array)

    def address(self, array: Any) -> int | None:
        """The address of the first element, or None if not :attr:`addressable`."""
        return int(np.asarray(array).ctypes.data) if self.addressable else None

    def waiter(self, device: str) -> Callable[[], Any] | None:
        """The clock's ``wait``, or None if calls return when their work is done."""
        return self.clock.wait if self.asynchronous else None

    def forward(
        self, implementation: Implementation, inputs: Sequence[Any], execution: str
    ) -> BoundCall:
        """A call of the function that takes the time that is set."""
        self._check_execution(execution)
        function = implementation(np)
        return self._costly(lambda: self._rounded(function(*inputs)))

    def backward(
        self,
        implementation: Implementation,
        inputs: Sequence[Any],
        variables: Sequence[int],
        cotangent: Any,
        execution: str,
    ) -> BoundCall:
        """A call of the function and its gradient, which returns the results of both.

        The gradient is that of a :class:`Differentiable`; of other functions it is derived
        numerically, exact to the last digits, element by element: inputs should be small.
        """
        self._check_execution(execution)
        function = implementation(np)
        gradient = getattr(function, "gradient", None)

        def run() -> tuple[Any, list[Any]]:
            result = self._rounded(function(*inputs))
            if gradient is not None:
                gradients = gradient(cotangent, *inputs)
                return result, [gradients[i] for i in variables]
            derived = (_derived(function, cotangent, inputs, i) for i in variables)
            return result, [self._rounded(gradient) for gradient in derived]

        return self._costly(run)

    def watch_memory(self, device: str) -> Callable[[], int | None]:
        """Count the bytes created on a GPU since; None for none, and for the CPU."""
        if device == "cpu":
            return super().watch_memory(device)
        before = self.placed_bytes.get(device, 0)
        return lambda: self.placed_bytes.get(device, 0) - before or None

    def _costly(self, compute: BoundCall) -> BoundCall:
        first = [self.first_s]

        def run() -> Any:
            self.called.append(self.entered)
            self.clock.spend(first.pop() if first else 0.0)
            self._cost()
            return compute()

        return run

    def _cost(self) -> None:
        self.clock.spend(self.dispatch_s)
        self.clock.enqueue(self.work_s)
        if not self.asynchronous:
            self.clock.wait()

    def _rounded(self, result: Any) -> Any:
        """The result in bfloat16 where that is the dtype of the scope: NumPy does not have it."""
        if isinstance(result, tuple):
            return tuple(map(self._rounded, result))
        narrow = self.entered is not None and self.entered[1] == "bfloat16"
        return to_bfloat16(np.asarray(result)) if narrow else result

    def _check_device(self, device: str) -> None:
        devices = [there.name for there in self.devices("")]
        if device not in devices:
            raise ValueError(f"{self.name} has no device {device!r}; it has {', '.join(devices)}")

    def _check_execution(self, execution: str) -> None:
        known = self.capabilities.executions
        if execution not in known:
            raise ValueError(
                f"{self.name} has no execution {execution!r}; it has {', '.join(known)}"
            )


def to_bfloat16(array: NDArray[Any]) -> NDArray[Any]:
    """A float32 array rounded to the numbers that bfloat16 can represent."""
    bits = np.asarray(array, dtype=np.float32).view(np.uint32)
    return ((bits + np.uint32(0x8000)) & np.uint32(0xFFFF0000)).view(np.float32)


def _derived(
    function: Callable[..., Any], cotangent: Any, inputs: Sequence[Any], position: int
) -> NDArray[Any]:
    """The gradient by one input: a step along the imaginary axis for each of its elements."""
    here = np.asarray(inputs[position])
    moved = here.astype(np.complex128)
    gradient = np.empty(here.shape, dtype=here.dtype)
    for place in np.ndindex(here.shape):
        moved[place] += _IMAGINARY * 1j
        result = function(*inputs[:position], moved, *inputs[position + 1 :])
        moved[place] = here[place]
        several = isinstance(result, tuple)
        results, cotangents = differentiated(result, cotangent)
        slopes = zip(cotangents, results, strict=True) if several else [(cotangents, results)]
        gradient[place] = sum(np.sum(np.asarray(g) * np.imag(y)) for g, y in slopes) / _IMAGINARY
    return gradient
