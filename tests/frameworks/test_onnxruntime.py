"""ONNX Runtime: operators as functions, and what is said where a network cannot be exported."""

import importlib.util
import json
from collections.abc import Callable
from concurrent.futures import Future
from concurrent.futures.process import BrokenProcessPool
from dataclasses import replace
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fwbench.errors import ExportError, IsolationError
from fwbench.frameworks.learner import Job
from fwbench.frameworks.onnxruntime import exporting, predictor
from fwbench.frameworks.onnxruntime.exporting import Export, Exported, Refused
from fwbench.frameworks.onnxruntime.kernels import Operators, model_of
from fwbench.frameworks.onnxruntime.predictor import OnnxRuntimePredictor
from fwbench.frameworks.table import gaps_of
from fwbench.workloads import lenet
from fwbench.workloads.models.graph import sequential
from fwbench.workloads.models.layers import Dense, Flatten
from support.verification import installed

needs_onnxruntime = installed("onnxruntime")

op = Operators()


@pytest.fixture(scope="module")
def framework() -> Any:
    """ONNX Runtime itself, in this process; nothing of it is timed."""
    from fwbench.frameworks.onnxruntime.framework import OnnxRuntime

    made = OnnxRuntime()
    made.set_threads(1)
    return made


def run(framework: Any, function: Callable[..., Any], *operands: Any) -> Any:
    arrays = [np.asarray(operand, np.float32) for operand in operands]
    return framework.forward(lambda _: function, arrays, "graph")()


@needs_onnxruntime
def test_functions_become_graphs(framework: Any) -> None:
    """Several nodes, with constants, attributes, inputs left out and several results."""
    (result,) = run(framework, lambda x: op.Mul(op.Sigmoid(x), 2.0), [0.0])
    assert result == 1.0
    clipped = lambda x: op.Clip(x, None, np.float32(1.0))  # noqa: E731 (an implementation)
    assert run(framework, clipped, [-5.0, 5.0])[0].tolist() == [-5.0, 1.0]
    halves = lambda x: op.Split(x, num_outputs=2, results=2)  # noqa: E731 (likewise)
    assert [part.tolist() for part in run(framework, halves, [1, 2])] == [[1.0], [2.0]]


@needs_onnxruntime
def test_an_input_can_be_the_result(framework: Any) -> None:
    """It is computed in every call all the same: a session returns no input."""
    x = np.ones(2, np.float32)
    call = framework.forward(lambda _: lambda x: x, [x], "graph")
    (result,) = call()
    x[...] = 3.0
    assert (result.tolist(), call()[0].tolist()) == ([1.0, 1.0], [3.0, 3.0])


@needs_onnxruntime
def test_an_operator_that_does_not_exist_is_named() -> None:
    with pytest.raises(AttributeError, match="no operator 'Sigmoyd' in opset 21; did you mean Sig"):
        op.Sigmoyd  # noqa: B018 (raises)


@needs_onnxruntime
def test_an_operator_without_values_is_refused() -> None:
    """It would belong to no graph."""
    with pytest.raises(TypeError, match="Add was called without a value of the graph"):
        op.Add(1.0, 2.0)


@needs_onnxruntime
def test_an_operator_that_the_runtime_lacks_is_named(framework: Any) -> None:
    """ONNX has it, ONNX Runtime has no kernel for this dtype."""
    model = model_of(op.Erf, [np.ones(2)])
    with pytest.raises(ExportError, match=r"onnxruntime \S+ refuses the model: .* for Erf\("):
        framework.session(model)


JOB = Job(lenet, "cpu", "from_torch", "float32", 2)


def test_what_is_exported_is_the_same_network() -> None:
    """Sent as a graph, since functions cannot be sent; shapes, weights and batches are the same."""
    job = Export.from_job(JOB, "torch").job
    assert (job.batch, job.training.shape, job.training.classes) == (2, lenet.shape, 10)
    assert job.training.graph.nodes == lenet.graph.nodes
    pairs = zip(job.training.initial(), lenet.initial(), strict=True)
    for these, those in pairs:
        assert all(map(np.array_equal, these, those))


def test_what_an_exporter_raises_is_its_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    """The first line, which names the operator."""

    def fails(_: Job) -> Exported:
        raise RuntimeError("operator aten::nothing is not supported\nat line 1")

    monkeypatch.setattr(exporting, "_EXPORTERS", {"torch": fails})
    refused = exporting.exported(Export.from_job(JOB, "torch"))
    assert refused == Refused("RuntimeError: operator aten::nothing is not supported")


class Answers:
    def __init__(self, answer: Any) -> None:
        self._answer = answer

    def submit(self, *_: Any) -> Future[Any]:
        future: Future[Any] = Future()
        if isinstance(self._answer, Exception):
            future.set_exception(self._answer)
        else:
            future.set_result(self._answer)
        return future


@pytest.mark.parametrize(
    ("answer", "error", "message"),
    [
        (Refused("RuntimeError: no"), ExportError, "torch cannot export lenet: RuntimeError: no"),
        (BrokenProcessPool(), IsolationError, "lenet from torch has ended without an answer"),
    ],
)
def test_a_network_that_cannot_be_exported_fails_its_case(
    answer: Any, error: type[Exception], message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(predictor, "_exporter", cache(lambda _: Answers(answer)))
    with pytest.raises(error, match=message):
        OnnxRuntimePredictor(JOB, lambda _: None)


def test_examples_lie_as_in_the_source(monkeypatch: pytest.MonkeyPatch) -> None:
    """Copies, channels first for PyTorch; vectors, tokens and labels as they are."""
    monkeypatch.setattr(predictor, "_exporter", lambda _: Answers(Exported(b"123", 7)))
    made = {
        execution: OnnxRuntimePredictor(replace(JOB, execution=execution), lambda _: None)
        for execution in exporting.SOURCES
    }
    ((images, labels),) = lenet.check_batches(2, 1)
    images = np.repeat(images, 3, axis=3)
    shapes = {
        name: source_predictor.place((images, labels))[0].shape
        for name, source_predictor in made.items()
    }
    assert shapes == {"from_torch": (2, 3, 28, 28), "from_tensorflow": (2, 28, 28, 3)}
    placed = made["from_tensorflow"].place((images, labels))
    assert not any(map(np.shares_memory, placed, (images, labels)))
    from_torch = made["from_torch"]
    assert (from_torch.parameters(), from_torch.model_bytes(), from_torch.exported_from) == (
        7,
        3,
        "torch",
    )


def test_an_exporter_that_is_not_installed_is_a_gap(monkeypatch: pytest.MonkeyPatch) -> None:
    there = importlib.util.find_spec("json")
    monkeypatch.setattr(
        importlib.util, "find_spec", lambda name: None if name == "tf2onnx" else there
    )
    gaps = {gap.execution: gap.reason for gap in gaps_of("fwbench.frameworks.onnxruntime")}
    assert "from_torch" not in gaps
    assert gaps["from_tensorflow"].startswith(
        "exporting from tensorflow needs tf2onnx in onnxruntime's env"
    )


def test_lambdas_in_layers_cannot_be_sent() -> None:
    network = sequential(Flatten(), Dense(2, initializer=lambda shape, rng: np.ones(shape)))
    job = replace(JOB, training=replace(lenet, network=network))
    with pytest.raises(ExportError, match=r"lenet cannot be sent to .* top of a module"):
        OnnxRuntimePredictor(job, lambda _: None)


@needs_onnxruntime
def test_nodes_are_profiled(tmp_path: Path) -> None:
    """No call but those of the work, however often that is; the answers stay the same."""
    from fwbench.frameworks.onnxruntime.framework import OnnxRuntime

    framework = OnnxRuntime()
    framework.set_threads(1)
    profiler = framework.profiler("cpu")
    given = np.ones((8, 8), np.float32)
    call = framework.forward(lambda _: lambda x: op.Transpose(op.MatMul(x, x)), [given], "graph")
    call()
    for calls in (1, 3):
        work = partial([].extend, (call() for _ in range(calls)))
        operators = profiler.profile(work, tmp_path / "trace")
        assert [(operator.name, operator.operator_class) for operator in operators] == [
            ("MatMul", "matmul"),
            ("Transpose", "data movement"),
        ] * calls
        assert all(operator.time_s >= 0.0 for operator in operators)
    assert json.loads((tmp_path / "trace").read_text())["traceEvents"]
    np.testing.assert_array_equal(call()[0], 8 * given)
