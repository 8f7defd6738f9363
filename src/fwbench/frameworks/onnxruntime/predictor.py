"""A network in ONNX Runtime, exported from another framework."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from concurrent.futures import Executor
from concurrent.futures.process import BrokenProcessPool
from functools import cache, partial
from typing import Any

import numpy as np

from fwbench.errors import ExportError, IsolationError
from fwbench.frameworks.learner import Job, Placed, Predictor
from fwbench.frameworks.onnxruntime.exporting import SOURCES, Export, Exported, Refused, exported
from fwbench.processes import child
from fwbench.terms.names import INT8
from fwbench.workloads.objective import Batch

#: From a model, what runs it.
Session = Callable[[bytes], Any]

#: How many dimensions a batch of images has at least; texts have fewer.
_IMAGES = 3


class OnnxRuntimePredictor(Predictor):
    """A network that a process of its own has exported, untimed: frameworks slow each other down.

    Args:
        job: which network; the execution says from where it is exported.

    Raises:
        ExportError: it cannot be exported, or not be run.
    """

    executions = tuple(SOURCES)

    def __init__(self, job: Job, session: Session) -> None:
        super().__init__(job)
        self._source = SOURCES[job.execution]
        exported = _exported(Export.of(job, self._source.framework))
        model = self._in_int8(exported.model) if job.dtype == INT8 else exported.model
        self.exported_from = self._source.framework
        self._model_bytes = len(model)
        self._parameters = exported.parameters
        self._session = session(model)

    def _in_int8(self, model: bytes) -> bytes:
        # Here: its imports take a moment that other networks need not wait for.
        from fwbench.frameworks.onnxruntime.quantizing import quantized

        return quantized(model, self.calibration_batches())

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
    return child.executor()


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
