"""Networks in int8: ONNX Runtime's static quantization, with nodes that quantize and dequantize."""

from __future__ import annotations

import logging
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import onnx
from numpy.typing import NDArray
from onnxruntime.quantization import CalibrationDataReader, QuantFormat, QuantType, quantize_static


class _Batches(CalibrationDataReader):  # type: ignore[misc]
    """Batches under the name of the model's input."""

    def __init__(self, name: str, batches: Iterator[NDArray[Any]]) -> None:
        self._left = ({name: batch} for batch in batches)

    def get_next(self) -> Any:
        """The next batch; None after the last."""
        return next(self._left, None)


def quantized(model: bytes, batches: Iterator[NDArray[Any]]) -> bytes:
    """A model whose activations and weights are int8.

    Args:
        model: in float32.
        batches: of examples to calibrate it with, as it takes them.
    """
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
