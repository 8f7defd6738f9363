"""Trained networks: what int8 needs, who cheats, and the accuracy by the call that is timed."""

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from fwbench.cases.case import Case
from fwbench.cases.networks import ClassificationCase
from fwbench.errors import DeclarationError, WrongResult
from fwbench.frameworks.learner import Job
from fwbench.measure.limits import int8_features
from fwbench.terms.presets import Sizes
from fwbench.workloads import lenet, lenet_classification, lenet_inference
from fwbench.workloads.data import DataSet, Split, generated
from fwbench.workloads.models import reference
from fwbench.workloads.models.graph import sequential
from fwbench.workloads.models.layer import Arrays
from fwbench.workloads.models.layers import Dense, Flatten
from fwbench.workloads.models.passes import Classification
from fwbench.workloads.objective import Classifier
from support.fake_learner import FakeLearner, Trainer
from support.fakes import case_of, cell, fails, manifest, recorded
from support.grids import gap_of
from support.tables import tabled

_SIDE, _CLASSES, _TESTED, _BATCH = 8, 4, 206, 8

#: A network of one layer, trained on small pictures.
PICTURES = replace(
    lenet,
    name="pictures",
    network=sequential(Flatten(), Dense(_CLASSES, relu=False)),
    shape=(_SIDE, _SIDE, 1),
    classes=_CLASSES,
)
_RNG = np.random.default_rng(7)
KERNEL = _RNG.standard_normal((_SIDE**2, _CLASSES))
WEIGHTS: list[Arrays] = [[], [KERNEL, np.zeros(_CLASSES)]]
TEST_X = _RNG.integers(0, 256, (_TESTED, _SIDE, _SIDE, 1), dtype=np.uint8)

#: From examples in float64 to logits.
Answer = Callable[[NDArray[Any]], NDArray[Any]]


class Trained(Classification):
    def weights(self) -> list[Arrays]:
        return WEIGHTS


def exact(examples: NDArray[Any]) -> NDArray[Any]:
    return reference.inference(PICTURES.graph, WEIGHTS, examples)


def with_bits(bits: int) -> Answer:
    """Answers by weights that are rounded to ``bits`` bits, with one scale."""
    scale = np.abs(KERNEL).max() / (2 ** (bits - 1) - 1)
    rounded: list[Arrays] = [[], [np.round(KERNEL / scale) * scale, WEIGHTS[1][1]]]
    return lambda examples: reference.inference(PICTURES.graph, rounded, examples)


def checked_alone(examples: NDArray[Any]) -> NDArray[Any]:
    """In 8 bits for the two batches of the check, and with other classes for all others."""
    logits = with_bits(8)(examples)
    checked = TEST_X[: 2 * _BATCH].astype(np.float32) / np.float32(255)
    return logits if (checked == examples[0]).all((1, 2, 3)).any() else logits[:, ::-1]


class Answering(FakeLearner):
    """Answers by a function, in a millisecond."""

    answer: Answer
    bytes_: int | None

    def inference(self, examples: Any) -> Callable[[], Any]:
        return partial(self._answered, examples)

    def _answered(self, examples: NDArray[Any]) -> Any:
        self.by.clock.spend(1e-3)
        return self.answer(examples.astype(np.float64)).astype(np.float32)

    def model_bytes(self) -> int | None:
        return self.bytes_


def data(wrong: int = 0) -> DataSet:
    """Pictures, the first ``wrong`` of which have the label of another class."""
    labels = exact(TEST_X / 255.0).argmax(1).astype(np.int32)
    labels[:wrong] = (labels[:wrong] + 1) % _CLASSES
    test = Split(TEST_X, labels)
    return DataSet("mnist", "real", "made", test, test, test, True, "d" * 16)


def classification(
    monkeypatch: pytest.MonkeyPatch,
    dtype: str,
    wrong: int = 0,
    answer: Answer = exact,
    model_bytes: int | None = None,
) -> Case:
    data_set = data(wrong)
    monkeypatch.setattr(ClassificationCase, "data", lambda self: data_set)
    workload = Trained("pictures", PICTURES, Sizes(quick=(_BATCH,)))
    members = {"answer": staticmethod(answer), "bytes_": model_bytes}
    framework = Trainer(asynchronous=False, kind=type("Learner", (Answering,), members))
    return case_of(cell(workload, size=_BATCH, dtype=dtype), framework, kind=ClassificationCase)


def test_the_accuracy_is_that_of_the_test_set(monkeypatch: pytest.MonkeyPatch) -> None:
    facts = recorded(classification(monkeypatch, "float32", wrong=6, model_bytes=1_200))
    assert (facts["accuracy"], facts["agreement"], facts["tested_examples"]) == (194 / 200, 1, 200)
    assert facts["data"]["name"] == "mnist"
    assert (facts["model_bytes"], facts["precision_bits"]) == (1_200, 23)
    assert "int8_features" not in facts
    assert facts["max_relative_error"] < facts["tolerance"] == 2e-5


def test_int8_is_verified_by_bounds_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    """With the CPU's features and the size of the file; it has no mantissa."""
    more = {"answer": with_bits(8), "model_bytes": 400}
    facts = recorded(classification(monkeypatch, "int8", wrong=6, **more))
    assert 0.96 < facts["accuracy"] < 0.98
    assert 0.985 <= facts["agreement"] <= 1
    assert facts["model_bytes"] == 400
    assert "int8_features" in facts
    assert "precision_bits" not in facts
    assert 1e-3 < facts["max_relative_error"] < facts["tolerance"] == 0.3


@pytest.mark.parametrize(
    ("by", "message"),
    [
        ({"answer": exact}, "asked for in int8 and computed in floating point: the relative"),
        ({"answer": lambda x: np.ones((len(x), 4))}, "the result is wrong: largest relative"),
        ({"answer": with_bits(2)}, "the result is wrong: largest relative error"),
        (
            {"answer": checked_alone},
            r"in int8 classifies \d+\.\d\d% of 200 pictures as its float64",
        ),
        (
            {"answer": with_bits(8), "model_bytes": 1_100},
            "its file of 1,100 bytes has wider weights: its parameters take 1,040 bytes in float32",
        ),
    ],
    ids=["float inside", "constant", "2 bits", "other classes later", "weights of float32"],
)
def test_cheats_fail(monkeypatch: pytest.MonkeyPatch, by: dict[str, Any], message: str) -> None:
    """Float under the name of int8 is too right, too few bits too wrong, wide weights too large."""
    fails(classification(monkeypatch, "int8", **by), WrongResult, message)


def test_weights_fit_the_network() -> None:
    weights = lenet_classification.weights()
    shapes = [[array.shape for array in arrays] for arrays in weights]
    assert shapes == [[weight.shape for weight in node.weights] for node in lenet.graph.nodes]
    trained = replace(lenet_inference.at(8), weights=weights)
    assert all(map(np.array_equal, trained.initial()[0], weights[0]))
    assert not np.array_equal(weights[0][0], lenet.initial()[0][0])


def _classifier(tested: int) -> Classifier:
    examples = np.arange(tested, dtype=np.float32).reshape(-1, 1, 1, 1)
    return Classifier(
        name="net",
        network=PICTURES.network,
        shape=PICTURES.shape,
        classes=_CLASSES,
        optimizer=PICTURES.optimizer,
        test=(examples, np.arange(tested)),
        calibration=examples,
    )


def test_batches_of_the_check_are_test_pictures() -> None:
    batches = _classifier(5).check_batches(2, 3)
    assert [labels.tolist() for _, labels in batches] == [[0, 1], [2, 3], [4, 0]]
    assert batches[2][0].ravel().tolist() == [4.0, 0.0]


def _learner(training: Any) -> FakeLearner:
    return FakeLearner(Job(training, "cpu", "eager", "int8", 2), Trainer())


def test_int8_is_calibrated_with_whole_batches() -> None:
    batches = _learner(_classifier(5)).calibration_batches()
    assert [batch.ravel().tolist() for batch in batches] == [[0.0, 1.0], [2.0, 3.0]]
    with pytest.raises(DeclarationError, match="lenet was asked for in int8 without examples"):
        _learner(lenet).calibration_examples()


def test_networks_without_examples_have_a_gap_in_int8() -> None:
    framework = manifest(network_executions=("eager",), int8_executions=("eager",))
    assert gap_of(lenet_inference, framework, "cpu", "eager", "forward", "int8") == (
        "int8 has to be calibrated with examples, and lenet_inference has drawn weights and no "
        "examples: measure lenet_classification"
    )


@tabled
def test_trained_networks_answer_in_int8_where_a_framework_does(
    device: str, execution: str, dtype: str, gap: str | None
) -> None:
    """An execution that only int8 has answers in float32, too, to compare it with."""
    framework = manifest(network_executions=("eager",), int8_executions=("quantized",))
    assert lenet_classification.executions(framework) == ("eager", "quantized")
    where = (device, execution, "forward", dtype)
    assert gap_of(lenet_classification, framework, *where) == gap


def test_a_framework_without_int8_has_a_gap() -> None:
    without = manifest(network_executions=("eager",))
    cpu = ("cpu", "eager", "forward", "int8")
    assert gap_of(lenet_classification, without, *cpu) == "fake runs no networks in int8"
    assert gap_of(lenet_classification, manifest(), *cpu) == "fake runs no networks"


def test_generated_pictures_are_a_gap() -> None:
    """A network knows nothing of them, and says where to name real ones."""
    framework = manifest(network_executions=("eager",))
    results = {
        source: replace(generated("mnist"), source=source) for source in ("real", "synthetic")
    }
    assert gap_of(lenet_classification, framework, data=results["real"]) is None
    assert gap_of(lenet_classification, framework, data=results["synthetic"], timed=False) is None
    assert gap_of(lenet_classification, framework, data=results["synthetic"]) == (
        "the weights of lenet_classification were trained on mnist, which was not found: name its "
        "folder by --fw-data or in FWBENCH_DATA"
    )


@tabled
def test_what_the_cpu_has_for_int8(tmp_path: Path, line: str, features: str | None) -> None:
    (tmp_path / "cpuinfo").write_text(f"{line}\n", encoding="utf-8")
    assert int8_features(tmp_path) == features
