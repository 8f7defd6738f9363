"""Cases, cells and records of the fake framework that ships as :mod:`fwbench.testing`."""

import importlib
import inspect
import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any
from unittest.mock import Mock

import numpy as np
import pytest
from numpy.typing import NDArray
from pytest_benchmark.fixture import BenchmarkFixture

from fwbench.cases.case import Case, Probe
from fwbench.frameworks.declared import stubbed
from fwbench.measure.clock import Clock
from fwbench.plugin import host
from fwbench.plugin.host import FixtureBenchmark
from fwbench.terms.manifest import Manifest
from fwbench.testing import Differentiable, FakeFramework
from fwbench.workloads.grid import Cell
from fwbench.workloads.operation import Operation
from fwbench.workloads.workload import Workload


class Immutable(FakeFramework):
    """A framework whose arrays cannot be written, as JAX's."""

    def write(self, array: Any, source: Any) -> bool:
        """Never."""
        return False

    def forward(self, implementation: Any, inputs: Any, execution: str) -> Any:
        """A partial call, which can be given other arrays."""
        function = implementation(np)

        def call(*arrays: Any) -> Any:
            self._cost()
            return function(*arrays)

        return partial(call, *inputs)


def variant(**members: Any) -> type[FakeFramework]:
    """A class of fake framework with other members, such as methods that break a promise."""
    return type("Variant", (FakeFramework,), members)


#: A waiter that returns at once, and none though calls are asynchronous.
NEVER_WAITS = variant(waiter=lambda self, device: lambda: None)
SAYS_IT_IS_DONE = variant(waiter=lambda self, device: None)


def adapter(path: str) -> Any:
    """A module of a framework's adapter, such as ``torch.gpus``, imported without the framework."""
    with stubbed({path.partition(".")[0], "keras"}):
        return importlib.import_module(f"fwbench.frameworks.{path}")


def manifest(**changes: Any) -> Manifest:
    """The fake framework's manifest, with some of it changed."""
    return replace(FakeFramework().manifest("Fake CPU"), **changes)


def operation(
    value: Callable[..., Any] = lambda x: 2.0 * x,
    gradient: Callable[..., Sequence[Any]] = lambda g, x: [2.0 * g],
    **changes: Any,
) -> Operation:
    """An operation that the fake framework computes with ``value``; the right one doubles.

    Args:
        gradient: ``gradient(cotangent, *inputs)``, what it takes for the gradients.
    """
    facts: dict[str, Any] = {
        "name": "double",
        "inputs": lambda size, rng: (rng.standard_normal(size),),
        "reference": lambda x: 2.0 * x,
        "sizes": (4,),
        "implementations": {"fake": lambda np: Differentiable(value, gradient)},
    }
    return Operation(**{**facts, **changes})


def cell(workload: Workload | None = None, /, **changes: Any) -> Cell:
    """A cell of the fake framework: eager, forward, float32 on the CPU.

    Args:
        workload: the workload; default: :func:`operation`.
    """
    facts: dict[str, Any] = {
        "workload": workload or operation(),
        "framework": "fake",
        "device": "cpu",
        "execution": "eager",
        "direction": "forward",
        "dtype": "float32",
        "size": 4,
    }
    return Cell(**{**facts, **changes})


def rounded(values: NDArray[Any], bits: int) -> NDArray[np.float64]:
    """Numbers with ``bits`` bits of mantissa behind the first."""
    mantissa, exponent = np.frexp(np.asarray(values, dtype=np.float64))
    return np.asarray(np.ldexp(np.rint(np.ldexp(mantissa, bits + 1)), exponent - bits - 1))


def entry(name: str) -> dict[str, Any]:
    """The part of pytest-benchmark's entry of a case that every entry of a journal has."""
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
    framework: FakeFramework | None = None,
    warmup_s: float = 10.0,
    kind: type[Case] = Case,
    tell: Callable[[Any], Any] = lambda _: None,
    probe: Probe | None = None,
    precision: float = 0.0,
    **settings: Any,
) -> Case:
    """The case of a cell, on the fake framework's clock.

    Args:
        warmup_s: how long it is warmed up at most.
        tell: called with every epoch of a training loop.
        probe: has the case instead of a measurement.
        precision: of the median, at which rounds end; 0 for never.
    """
    framework = framework or FakeFramework()
    clock = Clock(framework.clock, framework.waiter(cell.device))
    facts = framework.manifest("Fake CPU")
    benchmark = fixture(clock, cell, **settings)
    timing = FixtureBenchmark(benchmark, precision)
    return kind(cell, framework, facts, clock, timing, warmup_s, tell=tell, probe=probe)


def recorded(case: Case) -> dict[str, Any]:
    """Measure a case.

    Returns:
        Its record.
    """
    case.measure()
    facts: dict[str, Any] = case.benchmark.extra_info["fwbench"]
    return facts


def square(direction: str, framework: FakeFramework | None = None, **changes: Any) -> Case:
    """A case of ``x * x``, whose gradient depends on its input and on the cotangent.

    Args:
        changes: of the cell.
    """
    workload = operation(lambda x: x * x, lambda g, x: [2.0 * g * x], reference=np.square)
    return case_of(cell(workload, direction=direction, **changes), framework)


def fails(case: Case, error: Any, message: str = "") -> None:
    """The case fails with one sentence, and nothing is recorded of it.

    Args:
        error: its class, or several.
        message: a regular expression of the message.
    """
    with pytest.raises(error, match=message or None) as caught:
        case.measure()
    assert len(re.findall(r"\.\s|\n", str(caught.value))) <= 1
    assert_not_recorded(case)


def assert_not_recorded(case: Case) -> None:
    """Nothing is recorded, and pytest-benchmark has no complaint of its own."""
    assert case.benchmark.extra_info == {}
    assert host.record(case.benchmark) is None
    case.benchmark._cleanup()
    case.benchmark._logger.warning.assert_not_called()
