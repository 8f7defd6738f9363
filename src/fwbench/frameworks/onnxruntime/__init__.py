"""ONNX Runtime: networks that other frameworks export."""
