"""A failure on a GPU costs one case, and says what was asked of the GPU and what was free."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Any, NoReturn

import pytest

from fwbench.errors import WrongResult
from fwbench.measure import nvml
from fwbench.workloads import Cost
from support.fake_nvml import Card, OnSimulatedGpu
from support.fakes import case_of, cell, operation

_GIBIBYTE = 2**30

_OUT_OF_MEMORY = "CUDA out of memory. Tried to allocate 9.00 GiB"
_BUSY = "CUDA error: CUDA-capable device(s) is/are busy or unavailable"


class Failing(OnSimulatedGpu):
    """A framework that fails as it is told when it places an input."""

    error: Exception

    def creator(self, device: str, dtype: str) -> Any:
        def place(_: Any) -> NoReturn:
            raise self.error

        return place


def failed(error: Exception, device: str = "gpu:0", **changes: Any) -> Exception:
    """What a case fails with."""
    framework = Failing()
    framework.error = error
    with pytest.raises(type(error)) as caught:
        case_of(cell(operation(**changes), device=device), framework).measure()
    return caught.value


def notes(error: Exception) -> list[str]:
    """What was added to an error."""
    return list(getattr(error, "__notes__", ()))


@pytest.fixture
def card(monkeypatch: pytest.MonkeyPatch) -> Iterator[Card]:
    """The only GPU that NVML knows."""
    fake = OnSimulatedGpu().gpu.nvml(free_bytes=_GIBIBYTE, total_bytes=140 * _GIBIBYTE)
    monkeypatch.setitem(sys.modules, "pynvml", fake)
    nvml.gpu.cache_clear()
    yield fake.cards[0]
    nvml.gpu.cache_clear()


def test_lack_of_memory_says_what_is_free(card: Card) -> None:
    """Beside what the framework asked for, and what the case needs; who else is there counts."""
    card.pids = [1, 2]
    error = failed(RuntimeError(_OUT_OF_MEMORY))
    assert str(error) == _OUT_OF_MEMORY
    (note,) = notes(error)
    assert note.startswith("gpu:0: 1.00 GiB of 140.00 GiB are free; ")
    assert "2 other processes on it" in note


@pytest.mark.usefixtures("card")
def test_what_the_case_takes_is_said_where_it_is_declared() -> None:
    """By the cost of its operation."""
    (note,) = notes(failed(MemoryError(), cost=lambda _: Cost(flops=1.0, elements=2.0**24)))
    assert "operands and results of the case take 0.06 GiB at least" in note


def test_a_gpu_that_another_process_has_for_itself_is_named(card: Card) -> None:
    """With what to do about it."""
    card.compute_mode, card.pids = 3, [1]
    (note,) = notes(failed(RuntimeError(_BUSY)))
    assert note.endswith(
        "1 other process on it; it is in EXCLUSIVE_PROCESS mode and takes one process at a time: "
        "end the others, or set the mode with nvidia-smi -c DEFAULT"
    )


@pytest.mark.usefixtures("card")
def test_nothing_is_added_on_a_cpu_or_to_what_fwbench_found_wrong() -> None:
    """Neither has to do with the GPU."""
    assert notes(failed(RuntimeError(_OUT_OF_MEMORY), "cpu")) == []
    assert notes(failed(WrongResult("the result is wrong"))) == []


def test_a_gpu_that_nvml_does_not_know_adds_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """The error is the framework's own."""
    monkeypatch.setitem(sys.modules, "pynvml", None)
    nvml.gpu.cache_clear()
    error = failed(RuntimeError(_OUT_OF_MEMORY))
    nvml.gpu.cache_clear()
    assert (str(error), notes(error)) == (_OUT_OF_MEMORY, [])
