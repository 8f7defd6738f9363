"""The version of fwbench. A module of its own, because the build reads it."""

__version__ = "0.1.0"
