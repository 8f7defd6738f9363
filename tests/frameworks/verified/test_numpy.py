"""NumPy computes every operation right, in every cell that is not a gap."""

from __future__ import annotations

from pathlib import Path

import pytest

from support.verification import assert_verified, installed, parts_of


@installed("numpy")
@pytest.mark.parametrize("part", parts_of("numpy"))
def test_every_cell_is_verified(part: str, suite_cache: Path) -> None:
    """Forward and backward, in a session for each part of the grid."""
    assert_verified("numpy", part, suite_cache)
