"""Images, against loops over pixels."""

from __future__ import annotations

import itertools

import pytest

from support.operations import computed


def test_resize_nearest() -> None:
    (x,), result = computed("resize_nearest", "n2h3w4c5")
    assert result.shape == (2, 6, 8, 5)
    for n, h, w, c in itertools.product(range(2), range(6), range(8), range(5)):
        assert result[n, h, w, c] == x[n, h // 2, w // 2, c]


def test_resize_bilinear() -> None:
    """Centres are at halves: Keys' triangle of width 1, with the edges continued."""
    (x,), result = computed("resize_bilinear", "n2h3w4c5")
    assert result.shape == (2, 6, 8, 5)
    for n, h, w, c in itertools.product(range(2), range(6), range(8), range(5)):
        expected = 0.0
        for i, j in itertools.product(range(-1, 4), range(-1, 5)):
            vertical = max(0.0, 1 - abs((h + 0.5) / 2 - (i + 0.5)))
            horizontal = max(0.0, 1 - abs((w + 0.5) / 2 - (j + 0.5)))
            pixel = x[n, min(max(i, 0), 2), min(max(j, 0), 3), c]
            expected += vertical * horizontal * pixel
        assert result[n, h, w, c] == pytest.approx(expected, rel=1e-12, abs=1e-14)


def test_im2col() -> None:
    (x,), result = computed("im2col", "n2h3w4c5")
    assert result.shape == (2, 1, 2, 45)
    for n, w, i, j, c in itertools.product(range(2), range(2), range(3), range(3), range(5)):
        assert result[n, 0, w, (3 * i + j) * 5 + c] == x[n, i, w + j, c]
