"""JAX: the framework, its operations, its training."""
