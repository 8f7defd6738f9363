"""A fake asynchronous framework with a hand-driven clock.

The clock stands still until it is told to move, and a device works off a queue beside it: whoever
waits for the device moves the clock to the moment when the queue is empty. Times are therefore
exact. All durations that tests use are sums of powers of two, so that floating-point numbers are
exact too.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar
from unittest.mock import Mock

import numpy as np
from numpy.typing import NDArray
from pytest_benchmark.fixture import BenchmarkFixture

from fwbench.cases.case import Case
from fwbench.frameworks.contract import Framework, Run
from fwbench.grid import Cell
from fwbench.manifest import Device, Manifest
from fwbench.measure.clock import Clock
from fwbench.workloads.operation import Implementation, Operation
from fwbench.workloads.workload import Workload


class HandClock:
    """A clock that moves when it is told to, and a device that works off a queue."""

    def __init__(self) -> None:
        self.now_s = 0.0
        self.idle_s = 0.0

    def __call__(self) -> float:
        """Read the clock."""
        return self.now_s

    def spend(self, seconds: float) -> None:
        """Let time pass."""
        self.now_s += seconds

    def enqueue(self, seconds: float) -> None:
        """Give the device work; it begins when what it has already is done."""
        self.idle_s = max(self.now_s, self.idle_s) + seconds

    def wait(self) -> None:
        """Let time pass until the device has nothing left to do."""
        self.now_s = max(self.now_s, self.idle_s)


@dataclass(frozen=True)
class Differentiable:
    """A function with its gradient, which the fake framework cannot derive."""

    value: Callable[..., Any]
    gradient: Callable[..., Sequence[Any]]

    def __call__(self, *inputs: Any) -> Any:
        return self.value(*inputs)


@dataclass
class Fake(Framework):
    """NumPy's arrays, whose work is enqueued and costs what it is told to cost.

    Attributes:
        clock: of the device.
        dispatch_s: until a call returns, be it to compute or to place an array.
        work_s: what a call enqueues.
        first_s: what the first call costs beside, before it returns.
        asynchronous: whether there is something to wait for; otherwise calls wait themselves.
        copies: whether created arrays are copies of their source.
        addressable: whether it can be told where an array lies.
        entered: device and dtype of the scope that is entered.
        called: device and dtype of the scope at every call.
        created_from: the dtypes of the sources of arrays, and of the arrays.
    """

    clock: HandClock = field(default_factory=HandClock)
    dispatch_s: float = 2.0**-10
    work_s: float = 2.0**-4
    first_s: float = 0.0
    asynchronous: bool = True
    copies: bool = True
    addressable: bool = True
    entered: tuple[str, str] | None = None
    called: list[tuple[str, str] | None] = field(default_factory=list)
    created_from: list[tuple[str, str]] = field(default_factory=list)

    name = "fake"
    version = "1.2"
    namespace = np
    executions = ("eager", "graph", "compile")
    on_request = frozenset({"compile"})
    dtypes = ("float32", "float64", "float16", "bfloat16")
    gaps: ClassVar = {("gemm", "float16", "gpu"): "fake has no float16 product on GPUs"}
    variables = ("FAKE_",)
    training_executions = ("eager", "graph", "fit")
    whole_loops = frozenset({"fit"})
    training_dtypes = ("float32", "float64")
    process_toggles = ("onednn",)
    toggle_gaps: ClassVar = {("fit", "sparse", "off"): "fit leaves gradients sparse"}
    operations: ClassVar = {
        "gemm": lambda np: np.matmul,
        "flatten": lambda np: np.ravel,
        "noop": lambda np: lambda x: x,
    }

    def set_threads(self, threads: int) -> None:
        """It has one device, whatever is asked."""

    def threads(self) -> int:
        """As many as tests ask for."""
        return 2

    def devices(self, cpu_model: str) -> tuple[Device, ...]:
        """The CPU and one GPU."""
        return (*super().devices(cpu_model), Device("gpu:0", "Fake 9000"))

    @contextmanager
    def scope(self, device: str, dtype: str) -> Iterator[None]:
        """Remember where work is placed, and in which precision."""
        self.entered = device, dtype
        yield
        self.entered = None

    def creator(self, device: str, dtype: str) -> Callable[[Any], Any]:
        """``np.array``, or ``np.asarray`` where arrays are not copies."""
        make = np.array if self.copies else np.asarray

        def create(source: Any) -> NDArray[Any]:
            self._cost()
            self.created_from.append((str(getattr(source, "dtype", "list")), dtype))
            if dtype == "bfloat16":
                return to_bfloat16(np.array(source, dtype="float32"))
            return make(source, dtype=dtype)

        return create

    def to_numpy(self, array: Any) -> NDArray[Any]:
        """Wait, as every framework does before it hands out values."""
        self.clock.wait()
        return np.asarray(array)

    def address(self, array: Any) -> int | None:
        """Of the data."""
        return int(np.asarray(array).ctypes.data) if self.addressable else None

    def waiter(self, device: str) -> Callable[[], Any] | None:
        """Move the clock to the moment when all work is done."""
        return self.clock.wait if self.asynchronous else None

    def forward(self, implementation: Implementation, inputs: Sequence[Any], execution: str) -> Run:
        """A call that costs what it is told to."""
        function = implementation(np)
        return self._costly(lambda: function(*inputs))

    def backward(
        self,
        implementation: Implementation,
        inputs: Sequence[Any],
        variables: Sequence[int],
        cotangent: Any,
        execution: str,
    ) -> Run:
        """The gradients by the variables, as the function's own gradient says."""
        function = implementation(np)

        def run() -> list[Any]:
            function(*inputs)
            gradients = function.gradient(cotangent, *inputs)
            return [gradients[i] for i in variables]

        return self._costly(run)

    def _costly(self, compute: Run) -> Run:
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


def to_bfloat16(array: NDArray[Any]) -> NDArray[Any]:
    """A float32 array rounded to the numbers that bfloat16 has."""
    bits = array.view(np.uint32)
    return ((bits + np.uint32(0x8000)) & np.uint32(0xFFFF0000)).view(np.float32)


def manifest(**changes: Any) -> Manifest:
    """The fake framework's manifest, with some of it changed."""
    return replace(Fake().manifest("Fake CPU"), **changes)


def operation(
    value: Callable[..., Any] = lambda x: 2.0 * x,
    gradient: Callable[..., Sequence[Any]] = lambda g, x: [2.0 * g],
    **changes: Any,
) -> Operation:
    """An operation that the fake framework computes with ``value``; the right one doubles.

    Args:
        value: what the fake framework computes.
        gradient: ``gradient(cotangent, *inputs)``, what it takes for the gradients.
        changes: the operation's other facts.
    """
    facts: dict[str, Any] = {
        "name": "double",
        "inputs": lambda size, rng: (rng.standard_normal(size),),
        "reference": lambda x: 2.0 * x,
        "sizes": (4,),
        "implementations": {"fake": lambda np: Differentiable(value, gradient)},
    }
    return Operation(**{**facts, **changes})


def cell(of: Workload, **changes: Any) -> Cell:
    """A cell of the fake framework: eager, forward, float32 on the CPU."""
    facts: dict[str, Any] = {
        "workload": of,
        "framework": "fake",
        "device": "cpu",
        "execution": "eager",
        "direction": "forward",
        "dtype": "float32",
        "size": 4,
    }
    return Cell(**{**facts, **changes})


def entry(name: str) -> dict[str, Any]:
    """As much of pytest-benchmark's entry of a case as every entry of a journal has."""
    return {"extra_info": {}, "stats": {"min": 1.0}, "fullname": f"test_fake.py::{name}"}


def fixture(clock: Clock, cell: Cell, **settings: Any) -> BenchmarkFixture:
    """pytest-benchmark's own fixture, as it would make it for a case with this clock."""
    node = Mock(nodeid=f"test_fake.py::test_fake[{cell.id}]")
    node.name = f"test_fake[{cell.id}]"
    node.callspec.id, node.callspec.params = cell.id, cell.params
    defaults: dict[str, Any] = {
        "disable_gc": False,
        "timer": Mock(target=clock),
        "min_rounds": 5,
        "min_time": 2.0**-20,
        "max_time": 1.0,
        "precision": None,
        "confidence": None,
        "warmup": False,
        "warmup_iterations": 0,
        "calibration_precision": 10,
        "disabled": False,
        "cprofile": False,
        "cprofile_loops": None,
        "cprofile_dump": None,
        "group": cell.group,
    }
    # Earlier releases have fewer settings.
    known = inspect.signature(BenchmarkFixture).parameters
    arguments = {name: value for name, value in {**defaults, **settings}.items() if name in known}
    made = BenchmarkFixture(node, add_stats=Mock(), logger=Mock(), warner=Mock(), **arguments)
    # Where it would look how finely the clock can be read, which moves when told to only.
    made._precisions = {clock: 2.0**-30}
    return made


def case_of(
    cell: Cell,
    framework: Fake,
    warmup_s: float = 10.0,
    kind: type[Case] = Case,
    tell: Callable[[Any], Any] = lambda _: None,
    **settings: Any,
) -> Case:
    """The case of a cell, on the fake framework's clock.

    Args:
        cell: which.
        framework: the fake one.
        warmup_s: how long it is warmed up at most.
        kind: what measures such a cell.
        tell: called with every epoch of a training loop.
        settings: of pytest-benchmark's fixture.
    """
    clock = Clock(framework.clock, framework.waiter(cell.device))
    facts = framework.manifest("Fake CPU")
    benchmark = fixture(clock, cell, **settings)
    return kind(cell, framework, facts, clock, benchmark, warmup_s, tell=tell)
