"""The networks that people know, with the real frameworks: losses, answers and gradients."""

import json
import re
from pathlib import Path

import pytest

from fwbench.machine import cpu_features
from fwbench.workloads import CLASSIFICATIONS, FORWARD_BACKWARDS, INFERENCES, MODELS, SAMPLED, lenet
from support.projects import Project, measuring
from support.real_training import all_of, facts_of, if_installed, run_suite, verify_suite

pytestmark = pytest.mark.usefixtures("started")


#: Whose gradients are verified in CI: two plain ones, two with batch normalization, two of texts.
#: The reference of the others takes long, and they have no other layers.
_DIFFERENTIATED = (
    *("alexnet", "googlenet", "googlenet_bn", "resnet50", "transformer_encoder", "gpt_small"),
)

#: Networks with every kind of layer of MXNet's and TensorFlow's, but average pooling.
_EVERY_LAYER = (
    *("alexnet", "googlenet_bn", "resnet50", "transformer_encoder", "gpt_small", "word_lm"),
)

#: Of these the gradients of the ones without batch normalization, which graphs take long to trace:
#: its gradients decide the losses and the updates of steps.
_QUICKLY_TRACED = ("alexnet", "transformer_encoder", "gpt_small")

#: Networks with every kind of layer that TensorFlow exports.
_EXPORTED = ("alexnet", "inception_v3", "transformer_encoder", "gpt_small", "word_lm")


def _verified(
    framework: str, execution: str, keyword: str, cache: Path, *more: str, outcome: str = "passed"
) -> int:
    """The number of cases with an outcome; the others are deselected, and none may fail."""
    requested = (f"--fw={framework}", "--fw-device=cpu", f"--fw-execution={execution}", *more)
    status, output = verify_suite("test_models.py", cache, *requested, "-k", keyword)
    assert status == pytest.ExitCode.OK, output
    (cases,) = re.findall(rf"(\d+) {outcome}, \d+ deselected", output)
    return int(cases)


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
    """At the smallest size: parameters and first losses, answers, and gradients of some.

    In float32, and not in TensorFlow's eager execution, which takes minutes. PyTorch runs all of
    them, the others every kind of layer; ``make verify`` has the rest, every night.
    """
    names = [network_pass.name for network_pass in (*MODELS, *SAMPLED, *INFERENCES)]
    if framework != "torch":
        names = [name for name in names if name.startswith(_EVERY_LAYER)]
    differentiated = _DIFFERENTIATED if framework == "torch" else _QUICKLY_TRACED
    gradients = [f"{name}_forward_backward" for name in differentiated]
    every = ["_step", "_inference", "_features"] if framework == "torch" else names
    keyword = " or ".join([*every, *gradients])
    passed = _verified(framework, ",".join(executions), keyword, suite_cache)
    assert passed == (len(names) + len(gradients)) * len(executions)


@pytest.mark.parametrize(
    ("framework", "execution", "dtypes"),
    [
        if_installed("torch", "eager", "bfloat16,float16"),
        if_installed("mxnet", "hybridize", "bfloat16"),
        if_installed("tensorflow", "graph", "bfloat16,float16", nightly=True),
    ],
)
def test_networks_answer_in_mixed_precision(
    framework: str, execution: str, dtypes: str, suite_cache: Path
) -> None:
    """One of pictures, one of texts, one with batch normalization."""
    keyword = "lenet_inference or gpt_small_inference or googlenet_bn_inference"
    requested = framework, execution, keyword, suite_cache, f"--fw-dtype={dtypes}"
    lacking = framework == "mxnet" and "avx512bw" not in cpu_features()
    cases = _verified(*requested, outcome="skipped" if lacking else "passed")
    assert cases == 4 * len(dtypes.split(","))  # and GoogLeNet's, whose name ends so


def test_steps_in_float16_scale_the_loss(suite_cache: Path, tmp_path: Path) -> None:
    """Where gradients would vanish; the losses are the reference's, and every step updates."""
    stored = tmp_path / "run.json"
    frameworks = all_of("torch", "tensorflow")
    status, output = run_suite(
        "test_training.py",
        suite_cache,
        *(
            "-k",
            "lenet_step and (torch or graph)",
            f"--fw={frameworks}",
            "--fw-device=cpu",
            "--fw-execution=eager,graph",
        ),
        *("--fw-dtype=float16", "--fw-size=8", f"--benchmark-json={stored}"),
        *("--benchmark-max-time=1e-3", "--benchmark-min-rounds=2", "--fw-warmup=0"),
    )
    assert status == pytest.ExitCode.OK, output
    entries = json.loads(stored.read_text(encoding="utf-8"))["benchmarks"]
    records = [facts for facts in map(facts_of, entries) if facts["dtype"] == "float16"]
    executions = {"torch": "eager", "tensorflow": "graph"}
    assert {facts["framework"]: facts["execution"] for facts in records} == {
        name: executions[name] for name in frameworks.split(",")
    }
    for facts in records:
        assert facts["optimizer"]["first_loss_scale"] == 2**10
        assert facts["checked_updates"] == facts["checked_steps"] > 2
        assert facts["max_loss_deviation"] < facts["loss_tolerance"] < 5e-3


@pytest.mark.parametrize("source", ["torch", "tensorflow"])
def test_every_network_is_exported_and_verified(source: str, suite_cache: Path) -> None:
    """At the smallest size, run by ONNX Runtime; from TensorFlow every kind of layer."""
    all_of("onnxruntime", source, least=2)
    names = [network_pass.name for network_pass in INFERENCES]
    if source == "tensorflow":
        names = [name for name in names if name.startswith(_EXPORTED)]
    passed = _verified("onnxruntime", f"from_{source}", " or ".join(names), suite_cache)
    assert passed == len(names)


@pytest.mark.parametrize(
    ("framework", "execution", "keyword", "cases"),
    [
        # Not AlexNet's gradients: PyTorch 2.13 compiles those of a max pool before a dense layer
        # to zeros, in some processes, and the case fails then.
        if_installed("torch", "compile", "gpt_small or alexnet_inference", 4, nightly=True),
        if_installed("tensorflow", "xla", "gpt_small or alexnet", 6, nightly=True),
    ],
)
def test_compilers_compute_the_same(
    framework: str, execution: str, keyword: str, cases: int, suite_cache: Path
) -> None:
    """Steps, answers and gradients of a transformer and of a network with padding and strides.

    They stand for all networks: each takes a compiler up to a minute.
    """
    assert _verified(framework, execution, keyword, suite_cache) == cases


@pytest.mark.nightly
def test_recomputed_texts_are_verified(suite_cache: Path) -> None:
    """Losses and gradients are right where a recomputed segment begins with whole numbers."""
    fw = all_of("torch", "tensorflow")
    keyword = "gpt_small and not inference and not tensorflow-cpu-eager"
    passed = _verified(fw, "eager,graph", keyword, suite_cache, "--fw-toggle=recompute=on")
    assert passed == 2 * len(fw.split(","))


#: The answers and the gradients of a small network, measured.
_LENET = measuring(
    "lenet_inference, lenet_forward_backward, sizes=(8,)",
    "from fwbench.workloads import lenet_forward_backward, lenet_inference",
)


def test_a_network_in_use_is_measured(project: Project) -> None:
    """Timed functions are verified again on other pictures, also where arrays are read-only."""
    fw = all_of("torch", "mxnet", "tensorflow")
    project.write("test_it.py", _LENET)
    result, records = project.measure("--fw-device=cpu", "-k", "not tensorflow-cpu-eager", fw=fw)
    assert result.ret == pytest.ExitCode.OK, str(result.stdout)
    executions = {
        "torch": ["eager"],
        "mxnet": ["eager", "hybridize"],
        "tensorflow": ["graph", "xla"],
    }
    assert {*records} == {
        f"{case.format(f'{name}-cpu-{execution}')}-float32-8"
        for name in fw.split(",")
        for execution in executions[name]
        for case in ("lenet_inference-{}-forward", "lenet_forward_backward-{}-backward")
    }
    for entry in records.values():
        facts = facts_of(entry)
        assert facts["parameters"] == lenet.parameters
        assert 0 < facts["max_relative_error"] < facts["tolerance"]
        assert facts["images_per_s"] == pytest.approx(8 / entry["stats"]["median"])
        assert facts["flops"] > 0


#: Networks of a user's own, with what those that people know do without.
_DECLARED = """
import pytest
from fwbench import Sizes, Training
from fwbench.workloads.models.graph import sequential
from fwbench.workloads.models.layers import (
    Add, BatchNorm, Concat, Conv, Dense, Embedding, Flatten, Relu
)
from fwbench.workloads.training import SGD, Schedule

def declared(name, network, shape=(5, 4, 3)):
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

TRAININGS = [
    declared("vectors", sequential(Flatten(), Dense(6), BatchNorm(), Dense(10, relu=False))),
    declared("twice", sequential(Conv(4, (1, 3)), Flatten(), Flatten(), Dense(10, relu=False))),
    declared("tokens", sequential(Embedding(9, 3), Flatten(), Dense(10, relu=False)), shape=(5,)),
    declared("added", added),
    declared("joined", joined),
]

@pytest.mark.fwbench(*[training.step for training in TRAININGS])
def test_it(case):
    case.measure()
"""


def test_networks_of_a_users_own_are_the_same_everywhere(project: Project) -> None:
    """Vectors that are normalized and joined, sequences and sums that are flattened."""
    fw = all_of("torch", "mxnet", "tensorflow")
    project.write("test_it.py", _DECLARED)
    result = project.run("--benchmark-disable", "--fw-device=cpu", "--fw-execution=eager", fw=fw)
    assert result.parseoutcomes() == {"passed": 5 * len(fw.split(","))}, str(result.stdout)


def test_no_network_is_in_a_session_that_asks_for_none(suite_cache: Path) -> None:
    """Neither in one that names nothing, nor published sizes, nor all families."""
    every = [*MODELS, *INFERENCES, *CLASSIFICATIONS, *FORWARD_BACKWARDS]
    for requested in ("--fw-size=quick", "--fw-size=paper", "--fw-family=all"):
        status, output = verify_suite(
            "", suite_cache, "--fw=numpy", "--collect-only", "-q", requested
        )
        assert status == pytest.ExitCode.OK, output
        assert "gemm-" in output
        assert [work.name for work in every if f"[{work.name}-" in output] == []
