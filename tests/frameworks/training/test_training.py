"""Training with the real frameworks: the same work, measured.

A framework that is not installed is skipped, and so is what needs real data where there is none;
nothing of a framework is imported into this process.
"""

import contextlib
import json
import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import pytest

from fwbench.machine import thread_variables
from fwbench.workloads import data
from fwbench.workloads.data import Found
from support.projects import Project, measuring
from support.real_training import (
    MLP,
    SCHEDULE,
    all_of,
    facts_of,
    if_installed,
    one_of,
    verify_suite,
)

pytestmark = pytest.mark.usefixtures("started")

#: Each framework with one of its executions.
_EXECUTIONS = {"tensorflow": "graph", "mxnet": "hybridize", "torch": "eager"}


#: Trains exactly, through the framework's own loader, and prints the loss of each step; and then
#: those of two steps from the beginning that change nothing.
_LOSSES = """
import json, sys
import numpy as np
from fwbench import workloads
from fwbench.cases.epochs import whole
from fwbench.frameworks.learner import Job
from fwbench.frameworks.registry import load
from fwbench.workloads.data import Split
from fwbench.workloads.training import order

name, execution, path, jobs = sys.argv[1:]
framework, arrays, results = load(name, 1), np.load(path), {}
for training, (batch, steps) in json.loads(jobs).items():
    x, y = arrays[f"{training}_x"], arrays[f"{training}_y"]
    with framework.scope("cpu", "float32"):
        job = Job(getattr(workloads, training), "cpu", execution, "float32", batch)
        learner = framework.learner(job)
        learner.reset(exact=True)
        loader = learner.loader(whole(Split(x, y)), steps)
        loader.set_order(order(y.size, 0, 0)[: steps * batch])
        losses = learner.losses(learner.epoch(loader)).tolist()
        learner.reset(exact=True)
        learner.set_learning_rate(0.0)
        batch = next(iter(loader))
        still = learner.losses([learner.step(*batch), learner.step(*batch)]).tolist()
        results[training] = {"losses": losses, "still": still}
print(json.dumps(results))
"""


#: By training: its data set, which of its examples, and how they are trained on.
_SLICES = {
    "lenet": ("mnist", slice(8_000), (200, 20)),
    # Every fiftieth review, since one half of the reviews are good and come last.
    "sentiment_lstm": ("imdb", slice(None, None, 50), (8, 5)),
}


#: By framework and training, what :data:`_LOSSES` prints.
_Losses = dict[str, dict[str, dict[str, list[float]]]]


@pytest.fixture(scope="module")
def losses(real: Callable[[str], Found], tmp_path_factory: pytest.TempPathFactory) -> _Losses:
    frameworks = all_of(*_EXECUTIONS, least=2).split(",")
    arrays, jobs = {}, {}
    for training, (name, examples, job) in _SLICES.items():
        with contextlib.suppress(pytest.skip.Exception):
            train = data.load(real(name)).train
            arrays[f"{training}_x"], arrays[f"{training}_y"] = train.x[examples], train.y[examples]
            jobs[training] = job
    path = tmp_path_factory.mktemp("slices") / "slices.npz"
    np.savez(path, **arrays)
    # Nothing is timed, so they need not take turns.
    running = {name: _training(name, path, jobs) for name in frameworks}
    losses_by_training = {}
    for name, process in running.items():
        output, errors = process.communicate()
        assert process.returncode == 0, errors
        losses_by_training[name] = json.loads(output.splitlines()[-1])
    return losses_by_training


def _training(
    framework: str, path: Path, jobs: dict[str, tuple[int, int]]
) -> "subprocess.Popen[str]":
    arguments = (framework, _EXECUTIONS[framework], str(path), json.dumps(jobs))
    return subprocess.Popen(
        [sys.executable, "-c", _LOSSES, *arguments],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, **thread_variables(1)},
    )


def _curves(losses: _Losses, training: str) -> list[dict[str, list[float]]]:
    """The records of each framework; skips the test where there is no data."""
    curves = [by_training[training] for by_training in losses.values() if training in by_training]
    if not curves:
        pytest.skip(f"no real {_SLICES[training][0]} here: name its folder in {data.VARIABLE}")
    return curves


@pytest.mark.parametrize("training", _SLICES)
def test_the_same_losses_on_real_data(training: str, losses: _Losses) -> None:
    """On real examples, in one order, every framework takes the same steps: no loss differs."""
    curves = [matching["losses"] for matching in _curves(losses, training)]
    _, _, (_, steps) = _SLICES[training]
    assert {len(curve) for curve in curves} == {steps}
    assert np.ptp(curves, axis=0).max() < 1e-3
    assert len({*curves[0]}) == steps, "something was learned"


@pytest.mark.parametrize("training", _SLICES)
def test_back_to_the_beginning_and_no_further(training: str, losses: _Losses) -> None:
    """A reset undoes all learning, and with a learning rate of zero nothing is learned anew."""
    for curves in _curves(losses, training):
        assert curves["still"] == pytest.approx(curves["losses"][:1] * 2, abs=1e-5)


#: Steps, loaders and loops; of recurrent networks, which take longer, the executions that differ;
#: and checkpoints of a network with dropout, and of one with sparse gradients.
_CHOSEN = (
    "not (save or restore) and (mlp or lenet or (sentiment and (torch or mxnet or graph or fit)) "
    "or (word_lm and (torch or mxnet or graph))) or cifar_cnn_save or sentiment_lstm_restore"
)


@pytest.mark.parametrize(
    ("framework", "passed", "skipped"),
    [
        if_installed("torch", 4 * (1 + 1 + 1) + (1 + 1) + 2, 0),
        if_installed("mxnet", 4 * (2 + 1 + 2) + (1 + 2) + 2, 0),
        if_installed("tensorflow", 2 * (3 + 1 + 4) + 2 * (1 + 2) + 1 + 2, 4),
    ],
)
def test_every_training_is_verified(
    framework: str, passed: int, skipped: int, suite_cache: Path
) -> None:
    """Steps, loaders and loops are right in every execution, also with sparse gradients."""
    status, output = verify_suite(
        "test_training.py",
        suite_cache,
        "benchmarks/test_files.py",
        f"--fw={framework}",
        "--fw-device=cpu",
        "--fw-toggle=sparse=on",
        "-k",
        _CHOSEN,
    )
    assert status == pytest.ExitCode.OK, output
    assert f"{passed} passed" in output, output
    assert output.count("fit is a whole loop: it has no step of its own") == bool(skipped)
    assert (f"{skipped} skipped" in output) == bool(skipped), output


_PHOTOS = measuring(
    "*(replace(work, photos=64) for work in PHOTOS), sizes=(16,)",
    "from dataclasses import replace",
    "from fwbench.workloads import PHOTOS",
)


@pytest.mark.parametrize("framework", [if_installed(name) for name in _EXECUTIONS])
def test_photos_are_loaded(framework: str, project: Project) -> None:
    """In the process itself and by workers; every photo is compared before and after the timing."""
    project.write("test_it.py", _PHOTOS)
    requested = ("--fw-toggle=workers=0,2", "--fw-device=cpu", "--fw-timeout=60")
    records = project.facts(*requested, fw=framework)
    assert len(records) == 2 * 2
    for facts in records.values():
        assert facts["steps_per_epoch"] == 4
        assert facts["images_per_s"] > 0
        assert facts["max_relative_error"] <= facts["tolerance"]


#: Of the files as they are known everywhere.
_MNIST_DIGEST = "6f845c42ba6f5318"


def test_a_measured_training(project: Project, real: Callable[[str], Found]) -> None:
    """On real data: rounds are epochs, warm-up epochs lie beside them, frameworks learn alike."""
    frameworks = all_of("torch", "mxnet")
    data_set = real("mnist")
    project.write("test_it.py", MLP)
    result, records = project.measure(
        *SCHEDULE,
        *(f"--fw-data={data_set.paths[0].parent}", "--fw-device=cpu", "--fw-execution=eager"),
        fw=frameworks,
    )
    assert result.ret == pytest.ExitCode.OK, str(result.stdout)
    names = frameworks.split(",")
    assert [*records] == [f"mlp-{name}-cpu-eager-train-float32-128" for name in names]
    for entry in records.values():
        assert entry["group"] == "mlp cpu train float32 128"
        _assert_trained(entry)
        facts = facts_of(entry)
        origin = ", ".join(path.name for path in data_set.paths)
        assert facts["data"] == {
            "name": "mnist",
            "source": "real",
            "origin": origin,
            "digest": _MNIST_DIGEST,
            "train": 48_000,
            "validation": 12_000,
            "test": 10_000,
        }
        # The training set alone, as float32.
        least = 48_000 * 28 * 28 * 4
        assert least < facts["peak_host_memory_bytes"] < psutil.virtual_memory().total
    for loss in ("train_loss", "validation_loss"):
        curves = [
            [epoch[loss] for epoch in facts_of(entry)["epochs"]] for entry in records.values()
        ]
        assert np.ptp(curves, axis=0).max() < 1e-2
    assert "synthetic" not in str(result.stdout)


def _assert_trained(entry: dict[str, Any]) -> None:
    stats, facts = entry["stats"], facts_of(entry)
    epochs = facts["epochs"]
    assert (stats["rounds"], stats["iterations"]) == (4, 1)
    assert [(epoch["repetition"], epoch["epoch"]) for epoch in epochs] == [
        (repetition, epoch) for repetition in (1, 2) for epoch in (1, 2, 3)
    ]
    assert [epoch["warmup"] for epoch in epochs] == [True, False, False] * 2
    assert [e["seconds"] for e in epochs if not e["warmup"]] == stats["data"]
    assert (facts["warmup_epochs"], facts["repetitions"], facts["steps_per_epoch"]) == (1, 2, 5)
    assert facts["warmup_calls"] == 2 * 5
    for epoch in epochs:
        assert epoch["seconds"] > 0
        assert epoch["validation_loss"] > 0
        assert epoch["cpu_utilization"] > 0
        assert epoch["gpu"] is None
        assert (epoch["test_accuracy"] is None) == (epoch["epoch"] < 3)
    for first in (0, 3):
        trained = [epoch["train_loss"] for epoch in epochs[first : first + 3]]
        assert trained == sorted(trained, reverse=True), "what was learned stays within a training"
    assert epochs[3]["train_loss"] > epochs[2]["train_loss"], "a repetition begins anew"
    assert facts["images_per_s"] == pytest.approx(5 * 128 / np.median(stats["data"]))
    assert facts["step_s"] == pytest.approx(np.median(stats["data"]) / 5)
    tested = [(e["repetition"], e["epoch"], e["test_accuracy"]) for e in epochs if e["epoch"] == 3]
    assert [tuple(accuracy.values()) for accuracy in facts["test_accuracy"]] == tested
    assert all(0.4 < accuracy <= 1 for _, _, accuracy in tested)
    assert facts["parameters"] == 109_386
    assert facts["max_loss_deviation"] <= facts["loss_tolerance"]
    assert facts["optimizer"]["name"] == "Adam"


def test_generated_data_is_told(project: Project) -> None:
    """Where there is no real data nobody can miss it: id, group, record and output say so."""
    project.write("test_it.py", MLP)
    result, records = project.measure(
        *SCHEDULE, *("--fw-device=cpu", "--fw-execution=eager"), fw=one_of("mxnet", "torch")
    )
    assert result.ret == pytest.ExitCode.OK, str(result.stdout)
    ((name, entry),) = records.items()
    assert name.endswith("-cpu-eager-train-float32-128-synthetic")
    assert entry["group"] == "mlp cpu train float32 128 synthetic"
    _assert_trained(entry)
    facts = facts_of(entry)["data"]
    assert (facts["source"], facts["origin"]) == ("synthetic", "generated")
    assert facts["digest"] != _MNIST_DIGEST
    output = str(result.stdout)
    assert "mlp cpu float32 128: mnist (synthetic)" in output
    live = re.search(r"epoch \d+ of \d+, loss", output)
    assert live is None, "a live line is for terminals"
    assert "\r" not in output + str(result.stderr)


#: In a folder of the user's: a model that fwbench has not.
_OWN = """
import pytest
from fwbench import Sizes, Training
from fwbench.workloads.models.graph import sequential
from fwbench.workloads.models.layers import Conv, Dense, Dropout, Flatten, MaxPool
from fwbench.workloads.training import RMSprop, Schedule

small = Training(
    name="small",
    network=sequential(Conv(4, 3), MaxPool(4), Dropout(0.1), Flatten(), Dense(10, relu=False)),
    dataset="mnist",
    shape=(28, 28, 1),
    classes=10,
    optimizer=RMSprop(1e-3),
    batches=Sizes(quick=(48,)),
    schedules={"quick": Schedule(epochs=3, steps=40)},
)

@pytest.mark.fwbench(small, small.step, small.loader)
def test_small(case):
    case.measure()
"""


def test_training_from_another_folder(project: Project) -> None:
    """A few lines in any folder are a training loop, its step and its loader, and checked so."""
    fw = all_of("torch")
    project.write("mine/test_small.py", _OWN)
    records = project.facts("mine", "--fw-device=cpu", "--fw-warmup=0.1", fw=fw)
    assert {*records} == {
        "small-torch-cpu-eager-train-float32-48-synthetic",
        "small_step-torch-cpu-eager-train-float32-48",
        "small_loader-torch-cpu-eager-train-float32-48-synthetic",
    }
    step = records["small_step-torch-cpu-eager-train-float32-48"]
    loop = records["small-torch-cpu-eager-train-float32-48-synthetic"]
    for facts in (step, loop):
        assert facts["parameters"] == 4 * (3 * 3 + 1) + 10 * (6 * 6 * 4 + 1)
        assert facts["checked_steps"] == 10
        assert facts["max_loss_deviation"] <= facts["loss_tolerance"]
        assert facts["optimizer"]["name"] == "RMSprop"
    assert [epoch["warmup"] for epoch in loop["epochs"]] == [True, False, False]
    assert loop["epochs"][0]["train_loss"] > loop["epochs"][-1]["train_loss"]
