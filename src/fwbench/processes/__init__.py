"""Every process that fwbench starts: programs, pytest sessions, and workers of frameworks."""
