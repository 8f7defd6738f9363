"""Apache MXNet: the framework, its operations, its training."""
