"""The operations, a module a family."""
