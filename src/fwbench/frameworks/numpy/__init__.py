"""NumPy: the framework, its operations, its training."""
