"""Activations are what the papers that propose them say, at operands that have a gradient."""

from __future__ import annotations

import numpy as np
import pytest

from fwbench.workloads import gelu, gelu_tanh, hard_sigmoid


def test_the_tanh_form_of_gelu_is_another_function() -> None:
    """It is off by up to 5e-4, far more than float32 allows: neither passes for the other."""
    x = np.linspace(-4, 4, 1001)
    assert 4e-4 < np.max(np.abs(gelu_tanh.reference(x) - gelu.reference(x))) < 5e-4


@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.float16])
def test_every_piece_of_hard_sigmoid_has_operands_and_no_kink_has(dtype: type) -> None:
    """A third lies below -3, a third above 3, and rounding puts none on either."""
    x = hard_sigmoid.operands(10_000)[0].astype(dtype)
    assert np.min(np.abs(np.abs(x) - 3)) > 0.09
    for piece in (x < -3, np.abs(x) < 3, x > 3):
        assert 0.3 < np.mean(piece) < 0.37
