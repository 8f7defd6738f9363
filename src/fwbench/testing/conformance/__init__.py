"""Tests of the promises that a framework's adapter makes, for the adapter's author to run.

::

    pytest --pyargs fwbench.testing.conformance --fw mine

They load the one framework that is named into pytest's own process, with one thread unless
``--fw-threads`` says otherwise; ``--fw-device``, ``--fw-execution`` and ``--fw-dtype`` narrow them
down as they do for benchmarks. What the framework declares as a gap is skipped, with its reason.
"""
