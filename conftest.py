"""For every pytest session of this checkout."""

# Scripts that measure fwbench itself: run with Python, never collected.
collect_ignore = ["benchmarks/harness"]
