"""Training with the real frameworks: the same work, measured, switched, refused, and failing well.

A framework that is not installed is skipped, and so is what needs real data where there is none;
nothing of a framework is imported into this process.
"""

import contextlib
import fcntl
import functools
import gzip
import importlib.util
import json
import os
import pty
import re
import shutil
import struct
import subprocess
import sys
import termios
import uuid
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import pytest

from fwbench.machine import thread_variables
from fwbench.workloads import data
from fwbench.workloads.data import Found
from support.projects import QUICKLY, Project

_ROOT = Path(__file__).parents[2]

_BESIDE = Path(__file__).parents[3] / "shared" / "data"
#: Where real data is, if anywhere.
_REAL = os.environ.get(data.VARIABLE) or (str(_BESIDE) if _BESIDE.is_dir() else "")

#: Each framework with one of its executions.
_EXECUTIONS = {"tensorflow": "graph", "mxnet": "hybridize", "torch": "eager"}


@functools.cache
def _is_there(framework: str) -> bool:
    return importlib.util.find_spec(framework) is not None


def _frameworks(*names: str, least: int = 1) -> str:
    """Those that are installed, as --fw takes them; skips the test where there are too few."""
    there = [name for name in names if _is_there(name)]
    if len(there) < least:
        pytest.skip(f"not installed: {', '.join({*names} - {*there})}")
    return ",".join(there)


def _one(*names: str) -> str:
    """The first of them that is installed: those that are imported sooner come first."""
    return _frameworks(*names).split(",")[0]


def _installed(framework: str, *values: Any) -> Any:
    mark = pytest.mark.skipif(not _is_there(framework), reason=f"{framework} is not installed")
    return pytest.param(framework, *values, marks=mark, id=framework)


@pytest.fixture(scope="module")
def real() -> Callable[[str], Found]:
    """Finds real data, or skips the test."""

    def find(name: str) -> Found:
        for folder in filter(None, _REAL.split(os.pathsep)):
            found = data.find(name, Path(folder))
            if found.source == "real":
                return found
        pytest.skip(f"no real {name} here: name its folder in {data.VARIABLE}")

    return find


@pytest.fixture(scope="module")
def answers(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A cache folder: what a framework has, it is asked once for all tests of this file."""
    return tmp_path_factory.mktemp("answers")


@pytest.fixture
def project(project: Project, answers: Path, monkeypatch: pytest.MonkeyPatch) -> Project:
    """A project where no data is found that the test does not name."""
    for variable in (data.VARIABLE, "KERAS_HOME", "MXNET_HOME"):
        monkeypatch.delenv(variable, raising=False)
    project.write("pytest.ini", f"[pytest]\ncache_dir = {answers}\n")
    return project


def _facts(entry: Mapping[str, Any]) -> dict[str, Any]:
    facts: dict[str, Any] = entry["extra_info"]["fwbench"]
    return facts


# ------------------------------------------------------------------------------- the same training

#: Trains exactly, through the framework's own loader, and prints the loss of each step; and then
#: those of two steps from the beginning that change nothing.
_LOSSES = """
import json, sys
import numpy as np
from fwbench import workloads
from fwbench.frameworks import load
from fwbench.frameworks.learner import Job
from fwbench.measure.epochs import whole
from fwbench.workloads.data import Split
from fwbench.workloads.training import order

name, execution, path, jobs = sys.argv[1:]
framework, arrays, found = load(name, 1), np.load(path), {}
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
        found[training] = {"losses": losses, "still": still}
print(json.dumps(found))
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
    """On slices of the data that is there."""
    frameworks = _frameworks(*_EXECUTIONS, least=2).split(",")
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
    found = {}
    for name, process in running.items():
        output, errors = process.communicate()
        assert process.returncode == 0, errors
        found[name] = json.loads(output.splitlines()[-1])
    return found


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


def _found(losses: _Losses, training: str) -> list[dict[str, list[float]]]:
    """Of each framework; skips the test where there is no data."""
    found = [by_training[training] for by_training in losses.values() if training in by_training]
    if not found:
        pytest.skip(f"no real {_SLICES[training][0]} here: name its folder in {data.VARIABLE}")
    return found


@pytest.mark.parametrize("training", _SLICES)
def test_the_same_losses_on_real_data(training: str, losses: _Losses) -> None:
    """On real examples, in one order, every framework takes the same steps: no loss differs."""
    curves = [found["losses"] for found in _found(losses, training)]
    _, _, (_, steps) = _SLICES[training]
    assert {len(curve) for curve in curves} == {steps}
    assert np.ptp(curves, axis=0).max() < 1e-3
    assert len({*curves[0]}) == steps, "something was learned"


@pytest.mark.parametrize("training", _SLICES)
def test_back_to_the_beginning_and_no_further(training: str, losses: _Losses) -> None:
    """A reset undoes all learning, and with a learning rate of zero nothing is learned anew."""
    for found in _found(losses, training):
        assert found["still"] == pytest.approx(found["losses"][:1] * 2, abs=1e-5)


def _suite(tmp_path: Path, *arguments: str) -> tuple[int, str]:
    """Verify the suite's training as users do; returns the exit status and the output."""
    done = subprocess.run(
        [
            *(sys.executable, "-m", "pytest", "benchmarks/test_training.py", "-rfEs"),
            *("--benchmark-disable", "-o", f"cache_dir={tmp_path}", *arguments),
        ],
        cwd=_ROOT,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    return done.returncode, done.stdout + done.stderr


#: Steps, loaders and loops; of the LSTM, which takes longer, the executions that differ.
_CHOSEN = "mlp or lenet or (sentiment_lstm and (torch or mxnet or graph or fit))"


@pytest.mark.parametrize(
    ("framework", "passed", "skipped"),
    [
        _installed("torch", 3 * (1 + 1 + 1), 0),
        _installed("mxnet", 3 * (2 + 1 + 2), 0),
        _installed("tensorflow", 2 * (3 + 1 + 4) + (1 + 2), 3),
    ],
)
def test_every_training_is_verified(
    framework: str, passed: int, skipped: int, tmp_path: Path
) -> None:
    """Steps, loaders and loops are right in every execution, also with sparse gradients."""
    status, output = _suite(
        tmp_path, f"--fw={framework}", "--fw-device=cpu", "--fw-toggle=sparse=on", "-k", _CHOSEN
    )
    assert status == pytest.ExitCode.OK, output
    assert f"{passed} passed" in output, output
    assert output.count("fit is a whole loop: it has no step of its own") == 2 * bool(skipped)
    assert (f"{skipped} skipped" in output) == bool(skipped), output


# -------------------------------------------------------------------------------- what is measured

_MLP = """
import pytest
from fwbench.workloads import mlp

@pytest.mark.fwbench(mlp)
def test_it(case):
    case.measure()
"""

#: Two trainings of three epochs, the first of each a warm-up epoch.
_SCHEDULE = ("--fw-steps=5", "--fw-epochs=3", "--fw-warmup-epochs=1", "--fw-repetitions=2")

#: Of the files as they are known everywhere.
_MNIST_DIGEST = "6f845c42ba6f5318"


def test_a_measured_training(project: Project, real: Callable[[str], Found]) -> None:
    """On real data: rounds are epochs, warm-up epochs lie beside them, frameworks learn alike."""
    frameworks = _frameworks("torch", "mxnet")
    found = real("mnist")
    project.write("test_it.py", _MLP)
    result, records = project.measure(
        *_SCHEDULE,
        *(f"--fw-data={found.paths[0].parent}", "--fw-device=cpu", "--fw-execution=eager"),
        fw=frameworks,
    )
    assert result.ret == pytest.ExitCode.OK, str(result.stdout)
    names = frameworks.split(",")
    assert [*records] == [f"mlp-{name}-cpu-eager-train-float32-128" for name in names]
    for entry in records.values():
        assert entry["group"] == "mlp cpu train float32 128"
        _assert_trained(entry)
        facts = _facts(entry)
        origin = ", ".join(path.name for path in found.paths)
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
        curves = [[epoch[loss] for epoch in _facts(entry)["epochs"]] for entry in records.values()]
        assert np.ptp(curves, axis=0).max() < 1e-2
    assert "synthetic" not in str(result.stdout)


def _assert_trained(entry: dict[str, Any]) -> None:
    """What a record says of :data:`_SCHEDULE`."""
    stats, facts = entry["stats"], _facts(entry)
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
    assert [tuple(each.values()) for each in facts["test_accuracy"]] == tested
    assert all(0.4 < accuracy <= 1 for _, _, accuracy in tested)
    assert facts["parameters"] == 109_386
    assert facts["max_loss_deviation"] <= facts["loss_tolerance"]
    assert facts["optimizer"]["name"] == "Adam"


def test_generated_data_is_told(project: Project) -> None:
    """Where there is no real data nobody can miss it: id, group, record and output say so."""
    project.write("test_it.py", _MLP)
    result, records = project.measure(
        *_SCHEDULE,
        *("--fw-device=cpu", "--fw-execution=eager"),
        fw=_one("mxnet", "torch"),
    )
    assert result.ret == pytest.ExitCode.OK, str(result.stdout)
    ((name, entry),) = records.items()
    assert name.endswith("-cpu-eager-train-float32-128-synthetic")
    assert entry["group"] == "mlp cpu train float32 128 synthetic"
    _assert_trained(entry)
    facts = _facts(entry)["data"]
    assert (facts["source"], facts["origin"]) == ("synthetic", "generated")
    assert facts["digest"] != _MNIST_DIGEST
    output = str(result.stdout)
    assert "benchmark 'mlp cpu train float32 128 synthetic': 1 tests" in output
    assert "epoch/s" not in output, "a live line is for terminals"
    assert "\r" not in output + str(result.stderr)


#: In a folder of the user's: a model that fwbench has not.
_OWN = """
import pytest
from fwbench import Sizes, Training
from fwbench.workloads.layers import Conv, Dense, Dropout, Flatten, MaxPool
from fwbench.workloads.training import RMSprop, Schedule

small = Training(
    name="small",
    layers=(Conv(4, 3), MaxPool(4), Dropout(0.1), Flatten(), Dense(10, relu=False)),
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
    fw = _frameworks("torch")
    project.write("mine/test_small.py", _OWN)
    result, records = project.measure("mine", "--fw-device=cpu", "--fw-warmup=0.1", fw=fw)
    assert result.ret == pytest.ExitCode.OK, str(result.stdout)
    assert {*records} == {
        "small-torch-cpu-eager-train-float32-48-synthetic",
        "small_step-torch-cpu-eager-train-float32-48",
        "small_loader-torch-cpu-eager-train-float32-48-synthetic",
    }
    step = _facts(records["small_step-torch-cpu-eager-train-float32-48"])
    loop = _facts(records["small-torch-cpu-eager-train-float32-48-synthetic"])
    for facts in (step, loop):
        assert facts["parameters"] == 4 * (3 * 3 + 1) + 10 * (6 * 6 * 4 + 1)
        assert facts["checked_steps"] == 10
        assert facts["max_loss_deviation"] <= facts["loss_tolerance"]
        assert facts["optimizer"]["name"] == "RMSprop"
    assert [epoch["warmup"] for epoch in loop["epochs"]] == [True, False, False]
    assert loop["epochs"][0]["train_loss"] > loop["epochs"][-1]["train_loss"]


# ----------------------------------------------------------------------------------------- toggles


def test_loader_workers(project: Project) -> None:
    """Processes that load data deliver the batches that were asked for, and are a case each."""
    fw = _frameworks("torch", "mxnet")
    project.write("test_it.py", _MLP.replace("(mlp)", "(mlp.loader)"))
    result, records = project.measure(
        "--fw-toggle=workers=0,2", "--fw-device=cpu", "--fw-timeout=60", fw=fw
    )
    assert result.ret == pytest.ExitCode.OK, str(result.stdout)
    assert {*records} == {
        f"mlp_loader-{name}-cpu-eager-train-float32-128-workers:{workers}-synthetic"
        for name in fw.split(",")
        for workers in (0, 2)
    }
    for name, entry in records.items():
        facts = _facts(entry)
        assert facts["toggles"]["workers"] == entry["params"]["workers"]
        assert f"workers:{facts['toggles']['workers']}" in name
        assert facts["steps_per_epoch"] == 30
        assert entry["group"] == "mlp_loader cpu train float32 128 synthetic"


#: What a worker is started with, seen before it has imported anything.
_AT_START = """
import os, sys
sys.onednn_at_start = os.environ.get("FWBENCH_ONEDNN")
"""

_NOTING = """
import os, sys
import pytest
from fwbench.workloads import sigmoid

@pytest.mark.fwbench(sigmoid, sizes=(64,))
def test_it(case):
    with open("notes", "a") as notes:
        print(case.cell.framework, os.getpid(), sys.onednn_at_start, file=notes)
    case.measure()
"""

#: By framework: what a record says of oneDNN switched on, and off.
_ONEDNN = {
    "tensorflow": ("TF_ENABLE_ONEDNN_OPTS", "1", "0"),
    "mxnet": ("MXNET_MKLDNN_ENABLED", "1", "0"),
    "torch": ("mkldnn", True, False),
}


def test_toggle_of_a_process(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    """oneDNN on and off are two workers of a framework, told before its import; NumPy has none."""
    monkeypatch.setenv("TF_TOKEN_terraform_example", "a secret of Terraform's")
    monkeypatch.setenv("TF_NUM_INTEROP_THREADS", "2")
    names = _frameworks(*_ONEDNN).split(",")
    project.write("packages/sitecustomize.py", _AT_START)
    project.write("test_it.py", _NOTING)
    result, records = project.measure(
        *("--fw-toggle=onednn=on,off", "--fw-device=cpu", "--fw-execution=eager", "-rs"),
        fw=",".join([*names, "numpy"]),
    )
    assert result.ret == pytest.ExitCode.OK, str(result.stdout)
    assert "skipped 2 cases: numpy has no toggle onednn" in str(result.stdout)
    notes = [line.split() for line in project.lines("notes")]
    assert {(name, value) for name, _, value in notes} == {
        (name, value) for name in names for value in ("on", "off")
    }
    assert len({pid for _, pid, _ in notes}) == 2 * len(names)
    for framework in names:
        name, on, off = _ONEDNN[framework]
        for value, expected in (("on", on), ("off", off)):
            toggles = _facts(
                records[f"sigmoid-{framework}-cpu-eager-forward-float32-64-onednn:{value}"]
            )["toggles"]
            assert toggles["onednn"] == value
            assert toggles[name] == expected
            # Terraform's variables begin as TensorFlow's do.
            assert ("TF_NUM_INTEROP_THREADS" in toggles) == (framework == "tensorflow")
            assert "secret" not in str(toggles)


def test_decay(project: Project) -> None:
    """The learning rate falls after ten epochs, and training is the same until then."""
    project.write("test_it.py", _MLP)
    result, records = project.measure(
        *("--fw-toggle=decay=off,on", "--fw-epochs=11", "--fw-warmup-epochs=1", "--fw-steps=2"),
        *("--fw-device=cpu", "--fw-execution=eager"),
        fw=_one("mxnet", "torch"),
    )
    assert result.ret == pytest.ExitCode.OK, str(result.stdout)
    assert [entry["params"]["decay"] for entry in records.values()] == ["off", "on"]
    off, on = (
        [epoch["train_loss"] for epoch in _facts(entry)["epochs"]] for entry in records.values()
    )
    assert on[:10] == pytest.approx(off[:10], abs=1e-6)
    # After a smaller step from the same weights.
    assert 1e-5 < abs(on[10] - off[10]) < 1e-2


# ----------------------------------------------------------------------------------- what is wrong

#: Could train, if anything ran.
_TRAINER = """
from support.pool_framework import Pool

class Trainer(Pool):
    name = "trainer"
    training_executions = ("eager",)
"""

_LEAVES_A_TRACE = """
from pathlib import Path

def test_first():
    Path("ran").touch()
"""

#: Arguments, and what the refusal must say.
_REFUSED = {
    "epochs": (["--fw-epochs=0"], ["--fw-epochs", "'0'", "positive whole number"]),
    "warm-up epochs": (
        ["--fw-warmup-epochs=3", "--fw-epochs=3"],
        ["mlp", "3 are for warm-up, which leaves none to measure", "--fw-warmup-epochs"],
    ),
    "warm-up epochs of the preset": (
        ["--fw-warmup-epochs=4"],
        ["of 4 epochs 4 are for warm-up, which leaves none to measure", "--fw-epochs"],
    ),
    "steps": (["--fw-steps=0"], ["--fw-steps", "'0'", "positive whole number"]),
    "repetitions": (["--fw-repetitions=x"], ["--fw-repetitions", "'x'", "positive whole number"]),
    "batch": (
        ["--fw-size=100000"],
        ["batch of 100000", "12000 training examples of mnist (synthetic)", "smaller --fw-size"],
    ),
    "workers": (["--fw-toggle=workers=-1"], ["workers", "'-1'", "whole number from 0"]),
    "toggle": (["--fw-toggle=worker=1"], ["'worker'", "sparse", "Did you mean 'workers'?"]),
    "value": (["--fw-toggle=decay=onn"], ["'onn'", "off, on", "Did you mean 'on'?"]),
    "no value": (["--fw-toggle=decay"], ["'decay' has no value", "decay=off|on"]),
    "data": (["--fw-data=nowhere"], ["--fw-data", "'nowhere' is no folder"]),
    "toggle of a process": (
        ["--fw-toggle=onednn=on", "--fw-isolation=none"],
        ["onednn", "leave out --fw-isolation=none"],
    ),
    "part of the data": (
        ["--fw-data=part"],
        ["only a part of a data set", "t10k-labels-idx1-ubyte.gz is there", "train-images"],
    ),
}


@pytest.fixture
def idle(project: Project) -> Project:
    """A project with a training loop, a framework for it, and a test that leaves a trace."""
    project.install_pool()
    project.install("trainer", "trainer_framework:Trainer", _TRAINER)
    project.write("test_first.py", _LEAVES_A_TRACE)
    project.write("test_it.py", _MLP)
    project.write("part/t10k-labels-idx1-ubyte.gz", "")
    return project


@pytest.mark.parametrize(("arguments", "fragments"), _REFUSED.values(), ids=_REFUSED)
def test_refused(idle: Project, arguments: list[str], fragments: list[str]) -> None:
    """What cannot be meant is refused before anything runs, and the message says what would do."""
    result = idle.run(*arguments, fw="trainer")
    output = str(result.stderr) + str(result.stdout)
    assert [part for part in fragments if part not in output] == [], output
    assert "Traceback" not in output
    assert "INTERNALERROR" not in output
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    assert not (idle.path / "ran").exists()
    assert not (idle.path / ".fwbench").exists()


@pytest.mark.parametrize("argument", ["--fw-size=100000", "--fw-data=part", "--fw-epochs=1"])
def test_what_is_left_out_refuses_nothing(idle: Project, argument: str) -> None:
    """A training that cannot be is no problem of a session that runs other cases of its file."""
    both = _MLP.replace("import mlp", "import mlp, tanh").replace("(mlp)", "(mlp, tanh)")
    idle.write("test_it.py", both)
    result = idle.run(argument, "-k", "tanh", fw="trainer")
    assert result.ret == pytest.ExitCode.OK, str(result.stdout)
    assert "passed" in result.parseoutcomes()


def _cut_gzip(folder: Path) -> tuple[Path, str]:
    """Of a compressed file the beginning; returns its path and what must be said of it."""
    path = folder / "train-labels-idx1-ubyte.gz"
    path.write_bytes(path.read_bytes()[:20_000])
    return path, "ended before the end-of-stream marker"


def _cut_plain(folder: Path) -> tuple[Path, str]:
    """Of a file that is not compressed the beginning."""
    compressed = folder / "t10k-images-idx3-ubyte.gz"
    path = compressed.with_suffix("")
    path.write_bytes(gzip.decompress(compressed.read_bytes())[:-1])
    compressed.unlink()
    return path, "should have 7,840,016 bytes, uncompressed, and has 7,840,015: it is cut off"


#: Notes every epoch that anybody trains.
_NOTES_EPOCHS = """
def pytest_fwbench_epoch(epoch):
    with open("epochs", "a") as notes:
        print(epoch["epoch"], file=notes)
"""


@pytest.mark.parametrize("cut", [_cut_gzip, _cut_plain], ids=["compressed", "not compressed"])
def test_truncated_data(
    cut: Callable[[Path], tuple[Path, str]], project: Project, real: Callable[[str], Found]
) -> None:
    """Of a file that is cut off nothing is learned: the case fails, names it and what is wrong."""
    fw = _one("mxnet", "torch", "tensorflow")
    found = real("mnist")
    folder = project.path / "cut"
    folder.mkdir()
    for path in found.paths:
        shutil.copyfile(path, folder / path.name)
    if len([*folder.glob("*.gz")]) < 4:
        pytest.skip("the real data is not in four compressed files")
    path, said = cut(folder)
    project.write("conftest.py", _NOTES_EPOCHS)
    project.write("test_it.py", _MLP)
    result = project.run(
        *("--fw-data=cut", "--fw-device=cpu", "--fw-execution=eager"),
        *("--junitxml=junit.xml", "--benchmark-json=out.json", *_SCHEDULE),
        fw=fw,
    )
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    (outcome,) = project.outcomes().values()
    assert outcome.kind == "failure"
    assert [part for part in (str(path), said, "get it again") if part not in outcome.text] == []
    assert not (project.path / "epochs").exists()
    assert not (project.path / "out.json").exists()


#: A linear model whose optimiser divides by the root of the second moment and nothing else: where
#: a pixel was white in the whole first batch, its weight is 0 / 0 after it. The images of the
#: check have no white pixel, so it is the same training as everyone's until then.
_DIVERGING = """
import pytest
from fwbench import Sizes, Training
from fwbench.workloads.layers import Dense, Flatten
from fwbench.workloads.training import Adam, Schedule

def diverging(name, optimizer=Adam(1e-3, epsilon=0.0), **schedule):
    return Training(
        name=name,
        layers=(Flatten(), Dense(10, relu=False)),
        dataset="mnist",
        shape=(28, 28, 1),
        classes=10,
        optimizer=optimizer,
        batches=Sizes(quick=(2,)),
        schedules={"quick": Schedule(**schedule)},
    )

TRAININGS = [
    diverging("in_warmup", epochs=2, steps=3),
    diverging("in_a_round", epochs=3, warmup_epochs=0, steps=2),
    diverging("in_the_last_round", epochs=1, warmup_epochs=0, steps=4),
    diverging("in_the_last_step", epochs=1, warmup_epochs=0, steps=1),
    diverging("at_once", optimizer=Adam(1e30), epochs=2, steps=3),
    diverging("not_at_all", optimizer=Adam(1e-3), epochs=2, steps=3),
]

@pytest.mark.fwbench(*TRAININGS)
def test_it(case):
    case.measure()
"""

#: What the failure of each must say.
_DIVERGED = {
    "in_warmup": ["the loss became nan at step 2 of 3 in epoch 1", "Diverged"],
    "in_a_round": ["the loss became nan at step 2 of 2 in epoch 1", "Diverged"],
    "in_the_last_round": ["the loss became nan at step 2 of 4 in epoch 1", "Diverged"],
    # No loss of a step tells, that of the validation does.
    "in_the_last_step": ["the validation loss is nan after epoch 1", "Diverged"],
    # Refused before it is trained.
    "at_once": ["this is not the same training: at step 2", "WrongTraining"],
}


@pytest.mark.parametrize(
    ("framework", "execution", "isolation"),
    [
        _installed("mxnet", "eager", "process"),
        _installed("mxnet", "eager", "none"),
        _installed("tensorflow", "fit", "process"),
    ],
)
def test_divergence(framework: str, execution: str, isolation: str, project: Project) -> None:
    """Training on NaNs is no measurement: the case fails with step and epoch and leaves no time."""
    project.write("test_it.py", _DIVERGING)
    project.run(
        *("--fw-device=cpu", f"--fw-execution={execution}", f"--fw-isolation={isolation}"),
        *("--junitxml=junit.xml", "--benchmark-json=out.json"),
        fw=framework,
    )
    outcomes = {
        name.partition("[")[2].partition("-")[0]: outcome
        for name, outcome in project.outcomes().items()
    }
    assert {name for name, outcome in outcomes.items() if outcome.kind == "failure"} == {*_DIVERGED}
    for name, said in _DIVERGED.items():
        assert [part for part in said if part not in outcomes[name].text] == [], outcomes[name].text
    assert outcomes["not_at_all"].kind == "passed"
    assert [name.partition("-")[0] for name in project.records("out.json")] == ["not_at_all"]


#: Every process that a loader starts kills itself when it is asked for an example.
_DEADLY = """
import os, signal
import pytest
from fwbench.workloads import mlp

MAIN = os.getpid()

def deadly(dataset):
    get = dataset.__getitem__

    def __getitem__(self, index):
        if os.getpid() != MAIN:
            os.kill(os.getpid(), signal.SIGKILL)
        return get(self, index)

    dataset.__getitem__ = __getitem__

@pytest.mark.fwbench(mlp)
def test_deadly(case):
    if case.cell.framework == "torch":
        from torch.utils.data import TensorDataset
        deadly(TensorDataset)
    else:
        from mxnet.gluon.data import ArrayDataset
        deadly(ArrayDataset)
    case.measure()

@pytest.mark.fwbench(mlp.step)
def test_well(case):
    case.measure()
"""

#: The variable by which a process that a session left behind is recognised.
_MARK = "FWBENCH_TEST_SESSION"


def _left_behind(mark: str) -> Sequence[psutil.Process]:
    found = []
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error, OSError):
            if process.environ().get(_MARK) == mark and process.status() != psutil.STATUS_ZOMBIE:
                found.append(process)
    return found


@pytest.mark.parametrize(
    ("framework", "timeout", "said"),
    [
        # PyTorch looks after its processes, every five seconds; MXNet waits for two minutes.
        _installed("torch", 60, "exited unexpectedly"),
        _installed("mxnet", 8, "did not finish the case within 8 s (--fw-timeout)"),
    ],
)
def test_loader_worker_that_dies(
    framework: str, timeout: int, said: str, project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A process that loads data and dies fails its case; the session goes on and leaves nothing."""
    mark = uuid.uuid4().hex
    monkeypatch.setenv(_MARK, mark)
    project.write("test_it.py", _DEADLY)
    result = project.run(
        *("--fw-toggle=workers=1", f"--fw-timeout={timeout}", "--junitxml=junit.xml"),
        *("--fw-device=cpu", "--fw-execution=eager"),
        fw=framework,
    )
    assert _left_behind(mark) == []
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    outcomes = project.outcomes()
    case = f"{framework}-cpu-eager-train-float32-128"
    assert outcomes.pop(f"test_well[mlp_step-{case}]").kind == "passed"
    died = outcomes.pop(f"test_deadly[mlp-{case}-workers:1-synthetic]")
    assert died.kind == "failure"
    assert said in died.text
    assert outcomes == {}


# ------------------------------------------------------------------------------------ a live line

#: Epochs that take longer than the live line's interval, a tenth of a second.
_LONGER = ("--fw-epochs=3", "--fw-steps=93")


def _on_a_terminal(project: Project, *arguments: str) -> str:
    """What pytest prints on a terminal."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("4H", 50, 160, 0, 0))
    process = subprocess.Popen(
        [sys.executable, "-m", "pytest", *QUICKLY, *arguments],
        cwd=project.path,
        env={**os.environ, "TERM": "xterm"},
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
    )
    os.close(theirs)
    output = b""
    with contextlib.suppress(OSError):  # the terminal's end
        while read := os.read(ours, 2**16):
            output += read
    os.close(ours)
    assert process.wait() == pytest.ExitCode.OK, output.decode()
    return output.decode()


def test_live_line(project: Project) -> None:
    """A terminal shows epochs, loss and rate while they are trained."""
    project.write("test_it.py", _MLP)
    output = _on_a_terminal(
        project,
        *(f"--fw={_one('mxnet', 'torch', 'tensorflow')}", "--fw-device=cpu"),
        *("--fw-execution=eager", *_LONGER),
    )
    shown = r"mlp-\S+-synthetic:.*? [1-3]/3 \[.*?, loss \d\.\d{4}, [\d.,k]+ images/s\]"
    assert re.search(shown, output), output
