"""Layers or batches on two devices of the CPU, with the real frameworks: losses and placement."""

from pathlib import Path

import pytest

from fwbench.cases.verify import placement
from fwbench.errors import WrongTraining
from support.projects import Project, measuring
from support.real_training import if_installed, verify_suite

pytestmark = pytest.mark.usefixtures("started")


@pytest.mark.parametrize(
    ("framework", "executions"),
    [if_installed("mxnet", ["eager", "hybridize"]), if_installed("tensorflow", ["eager", "graph"])],
)
def test_divided_lstms_train_the_same(
    framework: str, executions: list[str], suite_cache: Path
) -> None:
    """Losses are the reference's, and parameters are half on each device; XLA has a gap."""
    status, output = verify_suite(
        "test_models.py",
        suite_cache,
        *(f"--fw={framework}", "-k", "word_lm_step", "--fw-size=b4t16l2u64v500"),
        *("--fw-toggle=model_parallel=2", "-rs"),
    )
    assert status == pytest.ExitCode.OK, output
    assert f" {len(executions)} passed" in output, output
    if framework == "tensorflow":
        assert "XLA compiles a program for one device" in " ".join(output.split())


_SPLIT = ("--fw-size=8", "--fw-toggle=data_parallel=2")


@pytest.mark.parametrize(
    ("framework", "passed", "gap"),
    [
        if_installed("mxnet", 4, "only steps of training split their batch"),
        if_installed("tensorflow", 2, "XLA compiles a program for one device"),
        if_installed("torch", 0, "DataParallel on GPUs is not written"),
    ],
)
def test_equal_parts_of_a_batch_train_the_same(
    framework: str, passed: int, gap: str, suite_cache: Path
) -> None:
    """Losses are the reference's, of images and texts; what is not a step has a gap."""
    status, output = verify_suite(
        "test_training.py",
        suite_cache,
        *(f"--fw={framework}", "-k", "mlp_step or sentiment_lstm_step or mlp_loader", *_SPLIT),
        *("--fw-toggle=sparse=off", "-rs"),
    )
    assert status == pytest.ExitCode.OK, output
    assert not passed or f" {passed} passed" in output, output
    assert gap in " ".join(output.split())


_WITHOUT_A_KVSTORE = measuring(
    'mlp.step, executions=("eager",)',
    "from fwbench.workloads import mlp",
    body="""
        from mxnet import gluon
        trainer = gluon.Trainer
        gluon.Trainer = lambda *arguments, kvstore: trainer(*arguments, kvstore=None)
        case.measure()
    """,
)


@pytest.mark.parametrize("framework", [if_installed("mxnet")])
def test_gradients_that_are_not_added_up_are_wrong(framework: str, project: Project) -> None:
    """Each device would train on its own part of the batch."""
    project.write("test_it.py", _WITHOUT_A_KVSTORE)
    result = project.run(f"--fw={framework}", *_SPLIT, "--fw-threads=1")
    assert result.ret == pytest.ExitCode.TESTS_FAILED, str(result.stdout)
    result.stdout.fnmatch_lines(["*WrongTraining*loss*"])


def test_layers_that_are_elsewhere_are_wrong() -> None:
    placement({"cpu:0": 3, "cpu:1": 5}, {"cpu:1": 5, "cpu:0": 3})
    with pytest.raises(WrongTraining, match=r"8 on cpu:0 are .*, and 3 on cpu:0, 5 on cpu:1 must"):
        placement({"cpu:0": 8}, {"cpu:0": 3, "cpu:1": 5})
