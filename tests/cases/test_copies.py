"""Copies between host and GPU: of the memory that was asked for, made in every call."""

import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest

from fwbench.cases.case import Case
from fwbench.errors import ImpossibleRate, VerificationError, WrongResult
from fwbench.frameworks.gpus import PINNED, Copies
from fwbench.measure import limits, nvml
from fwbench.testing import FakeFramework
from fwbench.workloads import COPIES, copy_to_device, copy_to_host
from fwbench.workloads.operation import Operation
from support.fake_nvml import Card, FakeNvml
from support.fakes import case_of, cell, fails, manifest, recorded
from support.grids import gap_of


class Placed(np.ndarray[Any, Any]):
    """An array that says where it lies."""

    place = "cpu"


def _placed(values: Any, place: str) -> Any:
    array = np.array(values).view(Placed)
    array.place = place
    return array


class FakeCopies(Copies):
    def __init__(self, device: str, host: str, copy: Callable[[Any, str], Any]) -> None:
        self._host = host
        self.to_device = lambda array: copy(array, device)
        self.to_host = lambda array: copy(array, host)

    def on_host(self, values: Any, dtype: str) -> Any:
        return _placed(np.asarray(values, dtype), self._host)

    def place(self, array: Any) -> str:
        actual: str = array.place
        return actual


@dataclass
class Copying(FakeFramework):
    """The fake framework with copies.

    Attributes:
        copy: makes one, of an array to a place.
        pins: whether it gives pinned memory to who asks for it.
    """

    copy: Callable[[Any, str], Any] = _placed
    pins: bool = True
    hosts: list[str] = field(default_factory=list)

    def creator(self, device: str, dtype: str) -> Callable[[Any], Any]:
        create = super().creator(device, dtype)
        return lambda values: _placed(create(values), device)

    def copier(self, device: str, *, pinned: bool) -> Copies:
        self.hosts.append(PINNED if pinned and self.pins else "cpu")

        def timed(array: Any, place: str) -> Any:
            self._cost()
            return self.copy(array, place)

        return FakeCopies(device, self.hosts[-1], timed)

    def write(self, array: Any, source: Any) -> bool:
        array[...] = source
        return True


def _case(operation: Operation, framework: FakeFramework, **changes: Any) -> Case:
    return case_of(cell(operation, device="gpu:0", **changes), framework)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("toggles", [(), (("pinned", "off"),), (("pinned", "on"),)])
@pytest.mark.parametrize("operation", COPIES, ids=lambda operation: str(operation.name))
def test_a_copy_is_timed_and_recorded(operation: Operation, toggles: Any, dtype: str) -> None:
    """Every element crosses the bus once; the memory of the host is what was asked for."""
    framework = Copying()
    record = recorded(_case(operation, framework, dtype=dtype, toggles=toggles))
    pinned = dict(toggles).get("pinned", "off")
    assert record["completion_s"] == framework.dispatch_s + framework.work_s
    assert record["bytes"] == 4 * np.dtype(dtype).itemsize
    assert (record["max_relative_error"], record["tolerance"]) == (0.0, 0.0)
    assert record["result_is_view"] is False
    assert record["toggles"]["pinned"] == pinned
    assert framework.hosts == [PINNED if pinned == "on" else "cpu"]


def _kept() -> Callable[[Any, str], Any]:
    """The copy of the first call, in every call."""
    first: list[Any] = []

    def copy(array: Any, place: str) -> Any:
        first[:] = first or [_placed(array, place)]
        return first[0]

    return copy


def _changed(
    change: Callable[[Any], Any], *, moved: bool = True
) -> Callable[[], Callable[[Any, str], Any]]:
    return lambda: lambda array, place: _placed(change(array), place if moved else array.place)


@pytest.mark.parametrize(
    ("copy", "message"),
    [
        (_changed(lambda array: array, moved=False), "the copy is in the memory of"),
        (_changed(lambda array: 0.5 * array), "the array that was copied"),
        (_changed(lambda array: array.astype("float16").astype("float32")), "is wrong"),
        (_changed(lambda array: array[:2]), "has the shape"),
        (_kept, "a call on changed inputs is wrong"),
    ],
    ids=["nothing copied", "other values", "rounded", "a part", "copied once"],
)
@pytest.mark.parametrize("operation", COPIES, ids=lambda operation: str(operation.name))
def test_what_is_no_copy_is_refused(
    operation: Operation, copy: Callable[[], Callable[[Any, str], Any]], message: str
) -> None:
    fails(_case(operation, Copying(copy=copy())), VerificationError, message)


@pytest.mark.parametrize(
    ("of", "what"), [(copy_to_device, "what is copied"), (copy_to_host, "the copy")]
)
def test_memory_that_is_not_pinned_is_refused(of: Operation, what: str) -> None:
    case = _case(of, Copying(pins=False), toggles=(("pinned", "on"),))
    fails(case, WrongResult, f"{what} is in the memory of cpu instead of cpu, pin")


@pytest.mark.parametrize("operation", COPIES, ids=lambda operation: str(operation.name))
def test_on_a_cpu_there_is_nothing_to_copy(operation: Operation) -> None:
    arguments = ("eager", "forward", "float32")
    written = manifest(operations=(operation.name,))
    assert gap_of(operation, written, "gpu:0", *arguments) is None
    message = f"{operation.name} copies between the host and a GPU, and the device is cpu"
    assert gap_of(operation, written, "cpu", *arguments) == message
    message = f"fwbench has no fake implementation of {operation.name}"
    assert gap_of(operation, manifest(), "gpu:0", *arguments) == message
    assert {*Copying().manifest("a CPU").operations} >= {copy.name for copy in COPIES}


class _Keeping(FakeCopies):
    """Keeps what was once copied of an array to the host, as JAX does, until it is renewed."""

    def __init__(self, framework: Copying, device: str) -> None:
        def to_host(array: Any, place: str) -> Any:
            if id(array) not in self._known:
                framework._cost()
                self._known[id(array)] = _placed(array, place)
            return self._known[id(array)]

        super().__init__(device, "cpu", to_host)
        self._known: dict[int, Any] = {}
        self.renew = lambda array: self._known.pop(id(array), None)


def test_what_is_kept_of_a_copy_is_made_anew_for_each_round() -> None:
    """Outside the time of the round."""

    class Keeping(Copying):
        def copier(self, device: str, *, pinned: bool) -> Copies:
            return _Keeping(self, device)

        def write(self, array: Any, source: Any) -> bool:
            return False  # JAX's arrays are immutable

    framework = Keeping()
    record = recorded(_case(copy_to_host, framework))
    assert record["completion_s"] == framework.dispatch_s + framework.work_s


def test_more_than_the_link_carries_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever was copied, it was not over the bus."""
    monkeypatch.setitem(limits._LANE_BYTES_PER_S, 1, 1.0)
    monkeypatch.setitem(sys.modules, "pynvml", FakeNvml(Card("GPU-a", link_generation=1)))
    nvml.gpu.cache_clear()
    fails(_case(copy_to_host, Copying()), ImpossibleRate, r"\(16 lanes of PCI Express 1\)")
    nvml.gpu.cache_clear()
