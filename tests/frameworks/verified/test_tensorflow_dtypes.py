"""TensorFlow computes every operation right in the other dtypes: as far as they are no gaps."""

from __future__ import annotations

from pathlib import Path

import pytest

from support.verification import PARTS, assert_verified, installed


@installed("tensorflow")
@pytest.mark.parametrize("part", [name for name in PARTS if name != "float32"])
def test_every_cell_is_verified(part: str, suite_cache: Path) -> None:
    """Forward and backward, in a session for each part of the grid."""
    assert_verified("tensorflow", part, suite_cache)
