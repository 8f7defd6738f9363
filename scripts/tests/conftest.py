"""Fixtures and hooks of these tests: those of all."""

pytest_plugins = ["support.fixtures"]
