"""For tests of code around fwbench: a fake framework and a clock that is advanced by hand.

:class:`FakeFramework` computes with NumPy, asynchronously, on the time of a :class:`HandClock`: its
times are exact, and no test that uses it has to sleep. A framework's author finds the tests of the
contract in :mod:`fwbench.testing.conformance`.
"""

from fwbench.testing.fake import Differentiable, FakeFramework, HandClock, to_bfloat16

__all__ = ["Differentiable", "FakeFramework", "HandClock", "to_bfloat16"]
