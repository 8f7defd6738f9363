"""TensorFlow: the framework, its operations, its training."""
