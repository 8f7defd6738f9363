"""TensorFlow computes every operation right in float32, in every cell that is not a gap.

The other dtypes are in a file of their own: two processes share the tests of this framework, which
takes longest.
"""

from support.verification import every_cell

test_every_cell_is_verified = every_cell("tensorflow", "float32")
