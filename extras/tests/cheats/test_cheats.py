"""Every cheat that fwbench catches ends as a failed case, with one sentence and no number."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from dataclasses import replace
from functools import partial
from typing import Any
from unittest.mock import Mock

import numpy as np
import pytest
from _pytest.mark import ParameterSet
from pytest_benchmark import timers

from fwbench.cases import training
from fwbench.errors import FrameworkBroken, SkippedWork, UnfinishedWork, WrongGradient, WrongResult
from fwbench.frameworks import registry
from fwbench.measure.clock import Clock
from fwbench.plugin import host
from fwbench.workloads import PHOTOS, gemm, mlp
from fwbench.workloads.photos import CROP, changed, jpeg
from fwbench_extras.cheats import CHEATS, Cheat, Honest, register
from fwbench_extras.cheats.honest import HonestPhotos
from support.cheats import case_of, images
from support.fakes import fails, recorded
from support.projects import Project

_CASES = [(cheat, direction) for cheat in CHEATS for direction in cheat.directions]
#: Caught by the parent of a worker, and so in sessions alone.
_SEEN_OUTSIDE = [cheat for cheat in CHEATS if cheat.name in ("hidden_threads", "half_elsewhere")]
_CAUGHT = [
    case for case in _CASES if case[0].caught_by is not None and case[0] not in _SEEN_OUTSIDE
]
_MISSED = [case for case in _CASES if case[0].caught_by is None]


#: Errors that follow from the time that something takes.
_TIMED = (SkippedWork, UnfinishedWork)


def _named(cases: list[tuple[Cheat, str]]) -> pytest.MarkDecorator:
    return pytest.mark.parametrize(("cheat", "direction"), [_parameter(*case) for case in cases])


def _parameter(cheat: Cheat, direction: str) -> ParameterSet:
    marks = [pytest.mark.serial] if cheat.caught_by in _TIMED else []
    return pytest.param(cheat, direction, id=f"{cheat.name}-{direction}", marks=marks)


@pytest.fixture(autouse=True)
def restored(monkeypatch: pytest.MonkeyPatch) -> None:
    """A few images to train on, and a clock that a cheat can replace."""
    monkeypatch.setattr(training, "read", Mock(return_value=images()))
    monkeypatch.setattr(time, "perf_counter", time.perf_counter)


@_named(_CAUGHT)
def test_a_cheat_ends_as_a_failed_case(cheat: Cheat, direction: str) -> None:
    """With the error of its row, or backward with the gradient's; nothing is recorded."""
    assert cheat.caught_by is not None
    kinds = (cheat.caught_by, *([WrongGradient] if direction == "backward" else []))
    fails(case_of(cheat, direction), kinds)


@_named(_MISSED)
def test_a_cheat_that_cannot_be_caught_says_why(cheat: Cheat, direction: str) -> None:
    """It gets a number: a change that catches it changes its row, too."""
    case = case_of(cheat, direction)
    case.measure()
    assert host.record(case.benchmark) is not None
    assert case.benchmark.extra_info["fwbench"]["framework"] == cheat.name
    assert len(cheat.why.split()) > 10


_honest = partial(Cheat, fakes="Nothing.", mistake="none", why="it does all of the work")
_honest_training = partial(_honest, size=8, directions=("train",))


@_named(
    [
        (_honest(name="honest_operation"), "forward"),
        (_honest(name="honest_operation"), "backward"),
        (_honest_training(name="honest_step", workload=mlp.step), "train"),
        (_honest_training(name="honest_loop", workload=mlp), "train"),
        (_honest_training(name="honest_loader", workload=mlp.loader), "train"),
        *(
            (_honest_training(name=work.name, workload=replace(work, photos=64)), "train")
            for work in PHOTOS
        ),
    ]
)
def test_without_a_change_the_framework_is_honest(cheat: Cheat, direction: str) -> None:
    case = case_of(cheat, direction)
    case.measure()
    assert host.record(case.benchmark) is not None


def _unmirrored(loads: Any, pixels: Any) -> Any:
    """A crop at random, of one direction."""
    top, left = (int(loads.rng.integers(side - CROP + 1)) for side in pixels.shape[:2])
    return pixels[top : top + CROP, left : left + CROP]


#: Mistakes of loaders of photos: whether they augment, members of the class, and the message.
_MISTAKES: dict[str, tuple[bool, dict[str, Any], str]] = {
    "no mirrors": (True, {"cut": _unmirrored}, "deviation of 0.00"),
    "one place": (True, {"cut": lambda loads, pixels: pixels[:CROP, :CROP]}, "deviation of 0.00"),
    "not shuffled": (True, {"order": lambda loads: np.arange(64)}, "not shuffled"),
    "upside down": (True, {"cut": lambda loads, x: _unmirrored(loads, x)[::-1]}, "differs from"),
    "too large": (True, {"cut": lambda loads, pixels: pixels[:256, :256]}, "256"),
    "another order": (False, {"order": lambda loads: np.arange(64)[::-1]}, "order of their files"),
    "other labels": (
        False,
        {"image": lambda loads, label: loads.decode((label + 1) % 64)},
        "differs from Pillow's by [12][0-9]",
    ),
    "no such label": (
        True,
        {"batches": lambda loads: ((x, y - 64) for x, y in HonestPhotos.batches(loads))},
        "which no photos have",
    ),
    "a row too high": (
        False,
        {"image": lambda loads, label: np.roll(loads.decode(label), 1, axis=0)},
        "differs from Pillow's by [3-9]",
    ),
    "as bytes": (False, {"normalized": lambda loads, image: image}, "images of uint8"),
    "not normalized": (
        False,
        {"normalized": lambda loads, image: image.astype(np.float32)},
        "normalization is wrong",
    ),
}


@pytest.mark.parametrize("name", _MISTAKES)
def test_photos_are_looked_at(name: str) -> None:
    """Each of them, before anything is timed."""
    augmented, members, message = _MISTAKES[name]
    wrong: Any = type("Wrong", (HonestPhotos,), members)
    work = replace(PHOTOS[augmented], photos=64)
    cheat = _honest_training(name="wrong", workload=work, loads=wrong)
    fails(case_of(cheat, "train"), WrongResult, message)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("decoded_once", "over changed files is wrong, so photos are kept decoded.* differs from"),
        ("half_of_the_photos", "a pass has 16 photos, 8 of them different: load each of 16 once"),
        ("half_the_resolution", "differs from Pillow's"),
        ("same_crops", "two passes crop 100% of them alike"),
    ],
)
def test_a_cheat_with_photos_is_told_what_is_wrong(name: str, message: str) -> None:
    (cheat,) = (cheat for cheat in CHEATS if cheat.name == name)
    fails(case_of(cheat, "train"), WrongResult, message)


def test_a_pass_over_photos_is_recorded() -> None:
    """In whole batches, with its rate, the bytes of the files and the decoder."""
    work = replace(PHOTOS[0], photos=20)
    facts = recorded(case_of(_honest_training(name="honest", workload=work), "train"))
    assert facts["steps_per_epoch"] == 2
    assert facts["loaded_bytes"] == sum(len(jpeg(number)) for number in range(16))
    assert facts["decoder"] == "Pillow"
    assert facts["max_relative_error"] < 1e-6 < facts["tolerance"]
    assert len({jpeg(0), *(changed(jpeg(0), seed) for seed in range(9))}) == 10
    assert facts["images_per_s"] == pytest.approx(16 / facts["completion_s"], rel=0.5)


@pytest.mark.parametrize("cheat", [cheat for cheat in CHEATS if not cheat.directions])
def test_threads_are_set_and_checked(cheat: Cheat, monkeypatch: pytest.MonkeyPatch) -> None:
    """A framework that says that it has more threads is refused."""
    point = Mock(load=lambda: cheat.framework, value="cheats:cheat", module="cheats")
    point.name = cheat.name
    monkeypatch.setattr(registry, "_claims", lambda: {cheat.name: [point]})
    threads = Honest().threads() or 1
    try:
        with pytest.raises(FrameworkBroken, match=f"computes with {threads + 1} threads"):
            registry.load.__wrapped__(cheat.name, threads)
    finally:
        Honest().set_threads(threads)


_PRODUCT = """
import pytest
from fwbench.workloads import gemm

@pytest.mark.fwbench(gemm, sizes=(1024,))
def test_it(case):
    case.measure()
"""


@pytest.mark.serial
@pytest.mark.usefixtures("started")
@pytest.mark.skipif((os.cpu_count() or 1) < 2, reason="there is no processor to gain")
@pytest.mark.parametrize("cheat", _SEEN_OUTSIDE, ids=lambda cheat: cheat.name)
def test_extra_processors_are_seen_from_outside(project: Project, cheat: Cheat) -> None:
    """In a real session, where other processes leave a processor free."""
    register(project.packages)
    project.write("test_it.py", _PRODUCT)
    options = ("--fw-threads=1", "--benchmark-max-time=1", "--benchmark-json=run.json")
    result = project.run(*options, fw=cheat.name)
    if not result.parseoutcomes().get("failed"):
        (record,) = project.entries("run.json")
        others_cpus = record["extra_info"]["fwbench"]["others_cpus"]
        assert others_cpus > 0.5 * ((os.cpu_count() or 1) - 1)
        pytest.skip(f"other processes kept {others_cpus:.1f} processors busy")
    assert ", and 1 thread can take no more than" in str(result.stdout)


def test_the_clock_is_the_one_that_was_imported(monkeypatch: pytest.MonkeyPatch) -> None:
    """A worker has imported fwbench and pytest-benchmark before it imports a framework."""
    read = time.perf_counter
    monkeypatch.setattr(time, "perf_counter", lambda: 0.0)
    assert Clock().read is read
    assert timers.default_timer is read
    assert {*_imported_by("fwbench.plugin.worker")} >= {"fwbench.measure.clock", timers.__name__}


def _imported_by(module: str) -> list[str]:
    program = f"import sys, {module}; print(*sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    return done.stdout.split()


def test_rows_are_complete() -> None:
    """Each tells what it fakes and what it stands for, under a name that no other has."""
    assert len(CHEATS) >= 65
    assert len({cheat.name for cheat in CHEATS}) == len(CHEATS)
    assert all(cheat.fakes and cheat.mistake and cheat.why for cheat in CHEATS)
    assert gemm in {cheat.workload for cheat in CHEATS}
