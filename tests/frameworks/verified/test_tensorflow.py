"""TensorFlow computes every operation right in float32, in every cell that is not a gap.

The other dtypes are in a file of their own: two processes share the tests of this framework, which
takes longest.
"""

from __future__ import annotations

from pathlib import Path

from support.verification import assert_verified, installed


@installed("tensorflow")
def test_every_cell_is_verified(suite_cache: Path) -> None:
    """Forward and backward, in every execution."""
    assert_verified("tensorflow", "float32", suite_cache)
