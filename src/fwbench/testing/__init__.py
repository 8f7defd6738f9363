"""What tests of code around fwbench need: a fake framework, a hand-driven clock.

:class:`FakeFramework` computes with NumPy, asynchronously, on the time of a :class:`HandClock`: its
times are exact, and no test that uses it has to sleep. A framework's author finds the tests of the
contract in :mod:`fwbench.testing.conformance`.
"""

from fwbench.testing.clock import HandClock
from fwbench.testing.fake import Differentiable, FakeFramework, to_bfloat16

__all__ = ["Differentiable", "FakeFramework", "HandClock", "to_bfloat16"]
