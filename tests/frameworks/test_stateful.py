"""The state of optimisers and of recurrent layers in frameworks."""

from __future__ import annotations

import numpy as np

from fwbench.frameworks.layout import reset_first
from fwbench.testing import FakeFramework


def test_reset_first_exchanges_two_of_three_gates() -> None:
    """The columns of the new state stay, and twice is none."""
    array = np.arange(12).reshape(2, 6)
    np.testing.assert_array_equal(reset_first(array), [[2, 3, 0, 1, 4, 5], [8, 9, 6, 7, 10, 11]])
    np.testing.assert_array_equal(reset_first(reset_first(array)), array)


def test_an_array_is_its_own_variable() -> None:
    """Unless a framework says otherwise, its arrays can be overwritten."""
    array = np.zeros(3)
    assert FakeFramework().variable(array) is array
