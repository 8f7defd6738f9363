"""Arrays in another layout: there and back again."""

from __future__ import annotations

import numpy as np
import pytest

from fwbench.errors import DeclarationError
from fwbench.frameworks.layout import Layout, axes
from fwbench.frameworks.table import Call, Laid, layout_of, missing_paths

X = np.arange(24.0).reshape(1, 2, 3, 4)
W = np.arange(6.0).reshape(1, 2, 3)


def test_axes_in_another_order() -> None:
    """Operands without an order, and those behind the last one, stay as they are."""
    layout = axes("nhwc->nchw", "", results=["nhwc->nchw"])
    placed = layout.place([X, W, W])
    assert [x.shape for x in placed] == [(1, 4, 2, 3), (1, 2, 3), (1, 2, 3)]
    assert placed[0].flags.c_contiguous
    for there, back in zip([X, W, W], layout.restore(placed), strict=True):
        np.testing.assert_array_equal(there, back)
    (result,) = layout.place_results([X])
    assert result.shape == (1, 4, 2, 3)
    np.testing.assert_array_equal(layout.restore_results([result])[0], X)


def test_an_order_that_is_not_its_own_inverse() -> None:
    """The way back is the inverse, not the same order again."""
    layout = axes("abc->bca")
    (placed,) = layout.place([W])
    assert placed.shape == (2, 3, 1)
    np.testing.assert_array_equal(layout.restore([placed])[0], W)


@pytest.mark.parametrize("text", ["nhwc", "nhwc->nch", "nhwc->nchx", "nnhw->nhwn", "->x"])
def test_what_is_not_an_order_of_axes_is_refused(text: str) -> None:
    with pytest.raises(DeclarationError, match="not an order of axes"):
        axes(text)


def test_an_implementation_with_a_layout() -> None:
    """It is called as before, and a path of it that leads nowhere is still missed."""
    layout = axes("ab->ba")
    laid = Laid("add", layout)
    assert laid(np) is np.add
    assert layout_of(laid) is layout
    assert layout_of(Call("add")) == Layout()
    assert missing_paths({"plus": laid, "minus": Laid("minus", layout)}, np) == {"minus": "minus"}
