"""Training with the real frameworks: what is refused, and what fails well."""

import contextlib
import gzip
import shutil
import uuid
from collections.abc import Callable, Sequence
from pathlib import Path

import psutil
import pytest

from fwbench.workloads.data import Found
from support.projects import Project, refusals
from support.real_training import MLP, SCHEDULE, if_installed, one_of

#: Could train, if anything ran.
_TRAINER = """
from dataclasses import replace
from pool_framework import Pool

class Trainer(Pool):
    name = "trainer"
    capabilities = replace(Pool.capabilities, training_executions=("eager",))
"""


@pytest.fixture
def idle(project: Project) -> Project:
    """A project with a training loop, and a framework for it."""
    project.install_pool()
    project.install("trainer", "trainer_framework:Trainer", _TRAINER)
    project.write("test_it.py", MLP)
    project.write("part/t10k-labels-idx1-ubyte.gz", "")
    return project


@refusals("trainings")
def test_refused(idle: Project, given: str, said: list[str]) -> None:
    idle.assert_refused(said, *given.split(), fw="trainer")


@pytest.mark.parametrize("argument", ["--fw-size=100000", "--fw-data=part", "--fw-train=epochs=1"])
def test_what_is_left_out_refuses_nothing(idle: Project, argument: str) -> None:
    """A training that cannot be is no problem of a session that runs other cases of its file."""
    both = MLP.replace("import mlp", "import mlp, tanh").replace("(mlp)", "(mlp, tanh)")
    idle.write("test_it.py", both)
    result = idle.run(argument, "-k", "tanh", fw="trainer")
    assert result.ret == pytest.ExitCode.OK, str(result.stdout)
    assert "passed" in result.parseoutcomes()


def _cut_gzip(folder: Path) -> tuple[Path, str]:
    """Cut a compressed file off; returns its path and the expected message."""
    path = folder / "train-labels-idx1-ubyte.gz"
    path.write_bytes(path.read_bytes()[:20_000])
    return path, "ended before the end-of-stream marker"


def _cut_plain(folder: Path) -> tuple[Path, str]:
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
    """No model learns from a file that is cut off: the case fails and names it."""
    fw = one_of("mxnet", "torch", "tensorflow")
    data_set = real("mnist")
    folder = project.path / "cut"
    folder.mkdir()
    for path in data_set.paths:
        shutil.copyfile(path, folder / path.name)
    if len([*folder.glob("*.gz")]) < 4:
        pytest.skip("the real data is not in four compressed files")
    path, output = cut(folder)
    project.write("conftest.py", _NOTES_EPOCHS)
    project.write("test_it.py", MLP)
    result = project.run(
        *("--fw-data=cut", "--fw-device=cpu", "--fw-execution=eager"),
        *("--junitxml=junit.xml", "--benchmark-json=out.json", *SCHEDULE),
        fw=fw,
    )
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    (outcome,) = project.outcomes().values()
    assert outcome.kind == "failure"
    assert [part for part in (str(path), output, "get it again") if part not in outcome.text] == []
    assert not (project.path / "epochs").exists()
    assert not (project.path / "out.json").exists()


#: A linear model whose optimiser divides by the root of the second moment and nothing else: where
#: a pixel was white in the whole first batch, its weight is 0 / 0 after it. The images of the
#: check have no white pixel, so it is the same training as everyone's until then.
_DIVERGING = """
import pytest
from fwbench import Sizes, Training
from fwbench.workloads.models.graph import sequential
from fwbench.workloads.models.layers import Dense, Flatten
from fwbench.workloads.training import Adam, Schedule

def diverging(name, optimizer=Adam(1e-3, epsilon=0.0), **schedule):
    return Training(
        name=name,
        network=sequential(Flatten(), Dense(10, relu=False)),
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
        if_installed("mxnet", "eager", "process"),
        if_installed("mxnet", "eager", "none"),
        if_installed("tensorflow", "fit", "process"),
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
    for name, message in _DIVERGED.items():
        assert [part for part in message if part not in outcomes[name].text] == [], outcomes[
            name
        ].text
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
    left = []
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error, OSError):
            if process.environ().get(_MARK) == mark and process.status() != psutil.STATUS_ZOMBIE:
                left.append(process)
    return left


@pytest.mark.usefixtures("started")
@pytest.mark.parametrize(
    ("framework", "timeout", "message"),
    [
        # PyTorch looks after its processes, every five seconds; MXNet waits for two minutes.
        if_installed("torch", 60, "exited unexpectedly"),
        if_installed("mxnet", 15, "did not finish the case within 15 s (--fw-timeout)"),
    ],
)
def test_loader_worker_that_dies(
    framework: str, timeout: int, message: str, project: Project, monkeypatch: pytest.MonkeyPatch
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
    assert message in died.text
    assert outcomes == {}
