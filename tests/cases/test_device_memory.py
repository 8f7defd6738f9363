"""The memory of a GPU that an operation takes, and what earlier cases have left of it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest

from fwbench.measure import resources
from fwbench.testing import FakeFramework
from support.fakes import case_of, cell, operation

_MIB = 2**20


@dataclass
class Counting(FakeFramework):
    """An account of memory, as allocators of GPUs keep one.

    Attributes:
        held_bytes: in use now.
        most_bytes: since it was asked to watch.
        call_bytes: what a call takes while it works.
        leaked_bytes: what it never gives back.
    """

    held_bytes: int = 0
    most_bytes: int = 0
    call_bytes: int = 0
    leaked_bytes: int = 0

    def watch_memory(self, device: str) -> Callable[[], int | None]:
        """The most since now."""
        if device == "cpu":
            return super().watch_memory(device)
        self.most_bytes = self.held_bytes
        return lambda: self.most_bytes

    def _cost(self) -> None:
        super()._cost()
        self.most_bytes = max(self.most_bytes, self.held_bytes + self.call_bytes)
        self.held_bytes += self.leaked_bytes
        self.leaked_bytes = 0


@pytest.fixture(autouse=True)
def _first_of_its_process(monkeypatch: pytest.MonkeyPatch) -> None:
    """No case has found anything yet."""
    monkeypatch.setattr(resources, "FOUND_FIRST", {})


def _facts(framework: FakeFramework, device: str = "gpu:0") -> dict[str, Any]:
    case = case_of(cell(operation(), device=device), framework)
    case.measure()
    found: dict[str, Any] = case.benchmark.extra_info["fwbench"]
    return found


def test_the_peak_is_recorded_with_what_was_held_before() -> None:
    """What a call takes is the difference; what was before is not its own."""
    found = _facts(Counting(held_bytes=10 * _MIB, call_bytes=3 * _MIB))
    assert found["device_memory_before_bytes"] == 10 * _MIB
    assert found["peak_device_memory_bytes"] == 13 * _MIB
    assert found["device_memory_left_bytes"] == 0


def test_what_a_case_never_gives_back_is_told_of_the_next_ones() -> None:
    """For the first case of a process nothing was left: whatever it finds is its framework's."""
    framework = Counting(held_bytes=10 * _MIB, leaked_bytes=5 * _MIB)
    left = [_facts(framework)["device_memory_left_bytes"] for _ in range(2)]
    framework.leaked_bytes = 2 * _MIB
    left += [_facts(framework)["device_memory_left_bytes"] for _ in range(2)]
    assert left == [0, 5 * _MIB, 5 * _MIB, 7 * _MIB]
    framework.held_bytes = 0
    assert _facts(framework)["device_memory_left_bytes"] == 0


def test_gpus_have_accounts_of_their_own() -> None:
    """What one of them holds says nothing of another."""
    known: dict[str, int] = {}
    first = resources.DeviceMemory("gpu:0", lambda: 100, known)
    other = resources.DeviceMemory("gpu:1", lambda: 700, known)
    again = resources.DeviceMemory("gpu:0", lambda: 400, known)
    assert [one.left_bytes for one in (first, other, again)] == [0, 0, 300]


def test_what_a_framework_does_not_tell_is_unknown() -> None:
    """It is no leak, and no failure."""
    found = _facts(FakeFramework(copies=True))
    assert found["device_memory_before_bytes"] is None
    assert found["device_memory_left_bytes"] is None


def test_a_cpu_has_no_such_memory() -> None:
    """Its own is that of the process."""
    assert (
        not {"device_memory_before_bytes", "peak_device_memory_bytes"}
        & _facts(Counting(), "cpu").keys()
    )
