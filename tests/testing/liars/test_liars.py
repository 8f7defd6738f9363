"""Every liar that fwbench says it catches ends as a failed case with one sentence and no number."""

from __future__ import annotations

import subprocess
import sys
import time
from unittest.mock import Mock

import pytest
from _pytest.mark import ParameterSet
from pytest_benchmark import timers

from fwbench.cases import training
from fwbench.errors import FrameworkBroken, SkippedWork, UnfinishedWork, WrongGradient
from fwbench.frameworks import registry
from fwbench.measure.clock import Clock
from fwbench.plugin import host
from fwbench.workloads import gemm, mlp
from fwbench_extras.cheats import LIARS, Honest, Liar
from support.liars import case_of, images

_LIES = [(liar, direction) for liar in LIARS for direction in liar.directions]
_CAUGHT = [lie for lie in _LIES if lie[0].caught_by is not None]
_MISSED = [lie for lie in _LIES if lie[0].caught_by is None]


#: What is found by the time that something takes.
_TIMED = (SkippedWork, UnfinishedWork)


def _named(lies: list[tuple[type[Liar], str]]) -> pytest.MarkDecorator:
    return pytest.mark.parametrize(("liar", "direction"), [_parameter(*lie) for lie in lies])


def _parameter(liar: type[Liar], direction: str) -> ParameterSet:
    marks = [pytest.mark.serial] if liar.caught_by in _TIMED else []
    return pytest.param(liar, direction, id=f"{liar.name}-{direction}", marks=marks)


@pytest.fixture(autouse=True)
def restored(monkeypatch: pytest.MonkeyPatch) -> None:
    """A few images to train on, and a clock that a liar can replace."""
    monkeypatch.setattr(training, "read", Mock(return_value=images()))
    monkeypatch.setattr(time, "perf_counter", time.perf_counter)


@_named(_CAUGHT)
def test_a_liar_ends_as_a_failed_case(liar: type[Liar], direction: str) -> None:
    """With the error that it names, or backward with the gradient's; nothing is recorded."""
    case = case_of(liar, direction)
    assert liar.caught_by is not None
    kinds = (liar.caught_by, *([WrongGradient] if direction == "backward" else []))
    with pytest.raises(kinds) as caught:
        case.measure()
    assert "\n" not in str(caught.value)
    assert case.benchmark.extra_info == {}
    assert host.record(case.benchmark) is None


@_named(_MISSED)
def test_a_liar_that_cannot_be_caught_says_why(liar: type[Liar], direction: str) -> None:
    """It gets a number: whoever finds a way to catch it changes what it says of itself."""
    case = case_of(liar, direction)
    case.measure()
    assert host.record(case.benchmark) is not None
    assert case.benchmark.extra_info["fwbench"]["framework"] == liar.name
    assert len(liar.why.split()) > 10


class _Honest(Liar):
    """Lies about nothing."""


class _HonestStep(_Honest):
    workload = mlp.step
    size = 8


class _HonestLoop(_HonestStep):
    workload = mlp


class _HonestLoader(_HonestStep):
    workload = mlp.loader


@_named(
    [
        (_Honest, "forward"),
        (_Honest, "backward"),
        *((liar, "train") for liar in (_HonestStep, _HonestLoop, _HonestLoader)),
    ]
)
def test_the_framework_that_liars_are_made_from_is_honest(liar: type[Liar], direction: str) -> None:
    """So it is the lie that is caught."""
    case = case_of(liar, direction)
    case.measure()
    assert host.record(case.benchmark) is not None


# Those that lie before any work is bound


@pytest.mark.parametrize("liar", [liar for liar in LIARS if not liar.directions])
def test_threads_are_asked_for_and_checked(
    liar: type[Liar], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A framework that says that it has more threads is refused; one that hides them is not."""
    point = Mock(load=lambda: liar, value="liars:Liar", module="liars")
    point.name = liar.name
    monkeypatch.setattr(registry, "_claims", lambda: {liar.name: [point]})
    told = Honest().threads() or 1
    try:
        if liar.caught_by is None:
            assert registry.load.__wrapped__(liar.name, told).threads() == told
        else:
            with pytest.raises(FrameworkBroken, match=f"computes with {told + 1} threads"):
                registry.load.__wrapped__(liar.name, told)
    finally:
        Honest().set_threads(told)


def test_the_clock_is_the_one_that_was_imported(monkeypatch: pytest.MonkeyPatch) -> None:
    """A worker has imported fwbench and pytest-benchmark before it imports a framework."""
    read = time.perf_counter
    monkeypatch.setattr(time, "perf_counter", lambda: 0.0)
    assert Clock().read is read
    assert timers.default_timer is read
    assert {*_imported_by("fwbench.plugin.worker")} >= {"fwbench.measure.clock", timers.__name__}


def _imported_by(module: str) -> list[str]:
    """What is imported once a module is."""
    program = f"import sys, {module}; print(*sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    return done.stdout.split()


def test_there_is_a_museum() -> None:
    """Each liar says what it fakes and what it stands for, under a name of its own."""
    assert len(LIARS) >= 25
    assert len({liar.name for liar in LIARS}) == len(LIARS)
    for liar in LIARS:
        assert liar.__doc__ != Liar.__doc__
        assert liar.mistake
        assert liar.why
    assert gemm in {liar.workload for liar in LIARS}
