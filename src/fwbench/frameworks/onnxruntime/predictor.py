"""A network in ONNX Runtime, exported from another framework."""

import logging
import pickle
import tempfile
from collections.abc import Callable, Iterator
from concurrent.futures import Executor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray

from fwbench.errors import ExportError, IsolationError
from fwbench.frameworks.learner import Job, Placed, Predictor
from fwbench.frameworks.onnxruntime.exporting import SOURCES, Export, Exported, Refused, exported
from fwbench.processes import process
from fwbench.terms.names import INT8
from fwbench.workloads.objective import Batch

#: From a model, what runs it.
Session = Callable[[bytes], Any]

#: How many dimensions a batch of images has at least; texts have fewer.
_IMAGES = 3


class OnnxRuntimePredictor(Predictor):
    """A network that a process of its own has exported, untimed: frameworks slow each other down.

    Raises:
        ExportError: it cannot be exported, or not be run.
    """

    executions = tuple(SOURCES)

    def __init__(self, job: Job, session: Session) -> None:
        super().__init__(job)
        self._source = SOURCES[job.execution]
        exported = _exported(Export.from_job(job, self._source.framework))
        int8 = job.dtype == INT8
        model = quantized(exported.model, self.calibration_batches()) if int8 else exported.model
        self.exported_from = self._source.framework
        self._model_bytes = len(model)
        self._parameters = exported.parameters
        self._session = session(model)

    def model_bytes(self) -> int:
        """The model that it was exported to."""
        return self._model_bytes

    def parameters(self) -> int:
        """The parameters of the exported network."""
        return self._parameters

    def place(self, batch: Batch) -> Placed:
        """Copies, in the layout of the source."""
        examples, labels = batch
        if self._source.channels_first and examples.ndim >= _IMAGES:
            examples = examples.transpose(0, 3, 1, 2)
        return np.array(examples, order="C"), np.array(labels)

    def inference(self, examples: Any) -> Callable[[], Any]:
        """The session's ``run`` with the array as it is."""
        (given,) = self._session.get_inputs()
        (answer,) = self._session.get_outputs()
        return partial(self._session.run, [answer.name], {given.name: examples})


@cache
def _exporter(framework: str) -> Executor:  # noqa: ARG001 (the key of the cache)
    """The process that exports from a framework, started with its first network."""
    return process.executor()


def _exported(export: Export) -> Exported:
    try:
        pickle.dumps(export)
    except (pickle.PicklingError, AttributeError, TypeError) as error:  # as pickle raises for some
        raise ExportError(
            f"{export.name} cannot be sent to the process that exports it ({error}); define its "
            "layers and initializers at the top of a module"
        ) from None
    try:
        answer: Exported | Refused = _exporter(export.source).submit(exported, export).result()
    except BrokenProcessPool:
        _exporter.cache_clear()
        raise IsolationError(
            f"the process that exports {export.name} from {export.source} has ended without an "
            "answer; its standard error says why"
        ) from None
    if isinstance(answer, Refused):
        raise ExportError(f"{export.source} cannot export {export.name}: {answer.reason}")
    return answer


class _Batches:
    """Batches under the name of the model's input, as a ``CalibrationDataReader`` has them."""

    def __init__(self, name: str, batches: Iterator[NDArray[Any]]) -> None:
        self._left = ({name: batch} for batch in batches)

    def get_next(self) -> Any:
        """The next batch; None after the last."""
        return next(self._left, None)


def quantized(model: bytes, batches: Iterator[NDArray[Any]]) -> bytes:
    """A float32 model in int8, activations and weights: nodes quantize and dequantize."""
    # Here: it takes a moment that other networks need not wait for.
    from onnxruntime.quantization import QuantFormat, QuantType, quantize_static

    (given,) = onnx.load_from_string(model).graph.input
    with tempfile.TemporaryDirectory() as folder, _quiet():
        before, after = Path(folder) / "float.onnx", Path(folder) / "int8.onnx"
        before.write_bytes(model)
        quantize_static(
            before,
            after,
            _Batches(given.name, batches),
            quant_format=QuantFormat.QDQ,
            activation_type=QuantType.QInt8,
            weight_type=QuantType.QInt8,
        )
        return after.read_bytes()


@contextmanager
def _quiet() -> Iterator[None]:
    """Without the advice to preprocess the model, which every session does in any case."""
    logging.disable(logging.WARNING)
    try:
        yield
    finally:
        logging.disable(logging.NOTSET)
