"""NumPy computes every operation right, in every cell that is not a gap."""

from support.verification import every_cell

test_every_cell_is_verified = every_cell("numpy")
