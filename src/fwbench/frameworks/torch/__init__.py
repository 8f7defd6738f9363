"""PyTorch: the framework, its operations, its training."""
