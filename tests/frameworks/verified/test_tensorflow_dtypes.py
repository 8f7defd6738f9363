"""TensorFlow computes every operation right in the other dtypes: as far as they are no gaps."""

import pytest

from support.verification import every_cell

test_every_cell_is_verified = every_cell(
    "tensorflow",
    "other dtypes, eager",
    pytest.param("other dtypes, compiled", marks=pytest.mark.nightly),
)
