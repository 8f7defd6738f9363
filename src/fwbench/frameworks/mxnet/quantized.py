"""Networks in int8: MXNet's quantization of graphs, with oneDNN's operators."""

import warnings
from collections.abc import Callable
from functools import partial
from typing import Any

import mxnet as mx
from mxnet.contrib import quantization

from fwbench.frameworks.learner import Job, Placed, Predictor
from fwbench.frameworks.mxnet.training import MXNetLearner, saved_bytes
from fwbench.workloads.objective import Batch


class MXNetInt8(Predictor):
    """A hybridized network whose activations and weights are int8."""

    executions = ("hybridize",)

    def __init__(self, job: Job, context: Any) -> None:
        super().__init__(job)
        self._learner = MXNetLearner(job, context)
        examples = self.calibration_examples()
        with warnings.catch_warnings():  # that types of inputs have to be found out
            warnings.simplefilter("ignore")
            self._net = quantization.quantize_net_v2(
                self._learner.in_use(),
                quantized_dtype="auto",
                calib_mode="naive",
                calib_data=mx.io.NDArrayIter(examples, batch_size=job.batch),
                ctx=context,
            )
        self._net.hybridize(static_alloc=True, static_shape=True)

    def parameters(self) -> int:
        """The parameters of the quantized network."""
        return self._learner.parameters()

    def place(self, batch: Batch) -> Placed:
        """Examples in float32: the network's first operator makes int8 of them."""
        return self._learner.place(batch)

    def inference(self, examples: Any) -> Callable[[], Any]:
        """The quantized network outside ``record``."""
        return partial(self._net, examples)

    def model_bytes(self) -> int:
        """By ``save_parameters``."""
        return saved_bytes(self._net)
