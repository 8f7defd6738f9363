"""TensorFlow computes every operation right in the other dtypes: as far as they are no gaps."""

from __future__ import annotations

from pathlib import Path

import pytest

from support.verification import assert_verified, installed


@installed("tensorflow")
@pytest.mark.parametrize(
    "part",
    ["other dtypes, eager", pytest.param("other dtypes, compiled", marks=pytest.mark.nightly)],
)
def test_every_cell_is_verified(part: str, suite_cache: Path) -> None:
    """Forward and backward, in a session for each part of the grid."""
    assert_verified("tensorflow", part, suite_cache)
