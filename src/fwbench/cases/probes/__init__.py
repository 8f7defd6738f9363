"""Probes: what a process of its own finds out about a case, a module a probe."""
