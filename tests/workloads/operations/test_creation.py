"""New arrays that are not made of host data."""

from fwbench.workloads import arange, zeros_like


def test_zeros_like() -> None:
    (x,) = zeros_like.operands(7)
    assert zeros_like.reference(x).tolist() == [0.0] * 7


def test_arange() -> None:
    """Whole numbers in their order, of four bytes in every dtype."""
    assert arange.reference(*arange.operands(7), *arange.parameters(7)).tolist() == [*range(7)]
    cost = arange.cost_of("forward", 7)
    assert cost is not None
    assert {cost.bytes_moved(itemsize) for itemsize in (2, 4, 8)} == {28}
