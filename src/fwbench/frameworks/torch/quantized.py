"""Networks in int8: PyTorch's static quantization of traced graphs (``torch.ao.quantization``).

PyTorch has announced its removal in favour of torchao, whose int8 kernels need ``torch.compile``.
Until then this is what computes in int8 as it is called.
"""

import warnings
from collections.abc import Callable
from functools import partial
from typing import Any

import torch
from torch.ao.quantization import get_default_qconfig_mapping
from torch.ao.quantization.quantize_fx import convert_fx, prepare_fx

from fwbench.frameworks.learner import Job, Placed, Predictor
from fwbench.frameworks.torch.training import TorchLearner, saved_bytes
from fwbench.workloads.objective import Batch

#: Kernels of x86 (oneDNN and FBGEMM), and of ARM.
_ENGINES = ("x86", "qnnpack")


class TorchInt8(Predictor):
    """A network whose activations and weights are int8."""

    def __init__(self, job: Job) -> None:
        super().__init__(job)
        self._learner = TorchLearner(job)
        examples = self.calibration_examples()
        engine = next(
            name for name in _ENGINES if name in torch.backends.quantized.supported_engines
        )
        torch.backends.quantized.engine = engine
        with warnings.catch_warnings():  # of its removal
            warnings.simplefilter("ignore")
            configuration = get_default_qconfig_mapping(engine)
            prepared = prepare_fx(self._learner.in_use(), configuration, (examples[:1],))
            with torch.inference_mode():
                prepared(examples)
            self._module = convert_fx(prepared)

    def parameters(self) -> int:
        """The parameters of the quantized network."""
        return self._learner.parameters()

    def place(self, batch: Batch) -> Placed:
        """Examples in float32: the network's first operator makes int8 of them."""
        return self._learner.place(batch)

    def inference(self, examples: Any) -> Callable[[], Any]:
        """The quantized module in ``inference_mode``."""
        return partial(self._answer, examples)

    @torch.inference_mode()  # type: ignore[untyped-decorator]
    def _answer(self, examples: Any) -> Any:
        return self._module(examples)

    def model_bytes(self) -> int:
        """By ``torch.save``."""
        return saved_bytes(self._module)
