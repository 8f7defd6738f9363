"""The networks that people know, with the real frameworks: the same first losses everywhere."""

from pathlib import Path

import pytest

from fwbench.workloads import MODELS
from support.projects import Project
from support.real_training import all_of, if_installed, verify_suite

pytestmark = pytest.mark.usefixtures("started")


@pytest.mark.parametrize(
    ("framework", "executions"),
    [
        if_installed("torch", ["eager"]),
        if_installed("mxnet", ["eager", "hybridize"]),
        if_installed("tensorflow", ["graph"]),
    ],
)
def test_every_network_is_verified(
    framework: str, executions: list[str], suite_cache: Path
) -> None:
    """Parameters and first losses at the smallest size, and that every update is made.

    Not in TensorFlow's eager execution and XLA, which take minutes: they have the same layers.
    """
    asked = (f"--fw={framework}", "--fw-device=cpu", f"--fw-execution={','.join(executions)}")
    status, output = verify_suite("test_models.py", suite_cache, *asked, "-k", "_step")
    assert status == pytest.ExitCode.OK, output
    assert f"{len(MODELS) * len(executions)} passed" in output, output


#: Networks of a user's own, with what those that people know do without.
_OWN = """
import pytest
from fwbench import Sizes, Training
from fwbench.workloads.models.graph import sequential
from fwbench.workloads.models.layers import (
    Add, BatchNorm, Concat, Conv, Dense, Embedding, Flatten, Relu
)
from fwbench.workloads.training import SGD, Schedule

def own(name, network, shape=(5, 4, 3)):
    return Training(
        name=name,
        network=network,
        dataset="mnist",
        shape=shape,
        classes=10,
        optimizer=SGD(0.1),
        batches=Sizes(quick=(8,)),
        schedules={"quick": Schedule(epochs=2)},
    )

def added(x):
    image = Conv(4, 3, stride=2, padding=1)(x)
    return Dense(10, relu=False)(Add()(Flatten()(image), Flatten()(Relu()(image))))

def joined(x):
    vector = Dense(6)(Flatten()(x))
    return Dense(10, relu=False)(Concat()(BatchNorm()(vector), vector))

OWN = [
    own("vectors", sequential(Flatten(), Dense(6), BatchNorm(), Dense(10, relu=False))),
    own("twice", sequential(Conv(4, (1, 3)), Flatten(), Flatten(), Dense(10, relu=False))),
    own("tokens", sequential(Embedding(9, 3), Flatten(), Dense(10, relu=False)), shape=(5,)),
    own("added", added),
    own("joined", joined),
]

@pytest.mark.fwbench(*[training.step for training in OWN])
def test_it(case):
    case.measure()
"""


def test_networks_of_a_users_own_are_the_same_everywhere(project: Project) -> None:
    """Vectors that are normalized and joined, sequences and sums that are flattened."""
    fw = all_of("torch", "mxnet", "tensorflow")
    project.write("test_it.py", _OWN)
    result = project.run("--benchmark-disable", "--fw-device=cpu", "--fw-execution=eager", fw=fw)
    assert result.parseoutcomes() == {"passed": 5 * len(fw.split(","))}, str(result.stdout)


def test_no_network_is_in_a_session_that_asks_for_none(suite_cache: Path) -> None:
    """Neither in one that names nothing, nor published sizes, nor all families."""
    for asked in ("--fw-size=quick", "--fw-size=paper", "--fw-family=all"):
        status, output = verify_suite("", suite_cache, "--fw=numpy", "--collect-only", "-q", asked)
        assert status == pytest.ExitCode.OK, output
        assert "gemm-" in output
        assert [step.name for step in MODELS if f"[{step.name}-" in output] == []
