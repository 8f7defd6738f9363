"""ONNX Runtime computes every operation right that is written for it: forward, in ONNX's graphs."""

from support.verification import every_cell

test_every_cell_is_verified = every_cell("onnxruntime")
