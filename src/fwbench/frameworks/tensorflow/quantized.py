"""Networks in LiteRT, TensorFlow's runtime for devices: in float32, and in int8."""

import tempfile
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import tensorflow as tf
from ai_edge_litert.interpreter import Interpreter

from fwbench.frameworks.learner import Job, Placed, Predictor
from fwbench.frameworks.tensorflow.training import TensorFlowLearner
from fwbench.terms.names import DEFAULT_DTYPE, INT8
from fwbench.workloads.objective import Batch


class LiteRTPredictor(Predictor):
    """A Keras network that was converted to LiteRT's format."""

    executions = ("litert",)

    def __init__(self, job: Job, threads: int) -> None:
        super().__init__(job)
        self._learner = TensorFlowLearner(replace(job, execution="graph", dtype=DEFAULT_DTYPE))
        self._model = self._converted()
        self._interpreter = Interpreter(model_content=self._model, num_threads=threads)
        self._interpreter.allocate_tensors()
        (given,) = self._interpreter.get_input_details()
        (answer,) = self._interpreter.get_output_details()
        self._input, self._output = given["index"], answer["index"]

    def _converted(self) -> bytes:
        """LiteRT's file of the network, by way of a SavedModel for one size of batches."""
        shape = (self.job.batch, *self.job.training.shape)
        with tempfile.TemporaryDirectory() as folder:
            self._learner.in_use().export(
                folder,
                format="tf_saved_model",
                verbose=False,
                input_signature=[tf.TensorSpec(shape, DEFAULT_DTYPE)],
            )
            converter = tf.lite.TFLiteConverter.from_saved_model(folder)
            if self.job.dtype == INT8:
                converter.optimizations = [tf.lite.Optimize.DEFAULT]
                converter.representative_dataset = self._representative
                converter.target_spec.supported_ops = [tf.lite.OpsSet.TFLITE_BUILTINS_INT8]
            model: bytes = converter.convert()
            return model

    def _representative(self) -> Iterator[list[Any]]:
        """The inputs of each call of the calibration."""
        return ([batch] for batch in self.calibration_batches())

    def parameters(self) -> int:
        """The parameters of the converted network."""
        return self._learner.parameters()

    def place(self, batch: Batch) -> Placed:
        """Copies: interpreters take NumPy's arrays."""
        examples, labels = batch
        return np.array(examples), np.array(labels)

    def inference(self, examples: Any) -> Callable[[], Any]:
        """The interpreter's three calls: set the input, invoke, get a copy of the answer."""
        return partial(self._answer, examples)

    def _answer(self, examples: Any) -> Any:
        interpreter = self._interpreter
        interpreter.set_tensor(self._input, examples)
        interpreter.invoke()
        return interpreter.get_tensor(self._output)

    def model_bytes(self) -> int:
        """LiteRT's file."""
        return len(self._model)
