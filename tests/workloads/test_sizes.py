"""Shapes are read from their texts, and what no form reads is said with those there are."""

import pytest

from fwbench.errors import UsageError
from fwbench.terms.presets import Form, is_shape, unread
from fwbench.workloads import gemm, grid, mlp
from support.fakes import operation


@pytest.mark.parametrize(
    ("text", "expected"),
    [("8x8", True), ("n8", True), ("8", False), ("quick", False), ("8x08", False), ("8-8", False)],
)
def test_what_may_be_a_shape(text: str, expected: bool) -> None:
    assert is_shape(text) is expected


def test_each_work_has_the_sizes_that_it_can_read() -> None:
    """Numbers, shapes, presets; of training loops the numbers are batch sizes."""
    area = operation(sizes=Form("{m}x{n}").sizes(quick=("2x3", "4x5"), convnet=("9x9",)))
    requested = (8, "6x7", "n8")
    assert [*map(str, grid.requested_sizes(area, requested))] == ["6x7"]
    assert grid.requested_sizes(gemm, requested) == grid.requested_sizes(mlp, requested) == (8,)
    assert [*map(str, grid.requested_sizes(area, "convnet"))] == ["9x9"]
    assert [*map(str, grid.requested_sizes(area, None))] == [
        *map(str, grid.requested_sizes(area, "full"))
    ]
    assert grid.requested_sizes(gemm, "convnet") == ()
    assert dict(grid.lacked_sizes(area, (8, "n8"))) == dict.fromkeys(
        ("8", "n8"), "sizes of double are shapes written {m}x{n}, such as 2x3, 4x5"
    )
    assert [*grid.lacked_sizes(area, requested[1:2])] == [*grid.lacked_sizes(area, None)] == []
    assert dict(grid.lacked_sizes(gemm, "convnet")) == {
        "convnet": "gemm is not in the preset convnet; it has quick, paper, full"
    }


def test_what_something_has_is_not_refused() -> None:
    """A size that one workload has is none of the others' business, nor is a preset."""
    grid.refuse_sizes({"8x8": [gemm]}, {"8x8"})
    grid.refuse_sizes({"convnet": [gemm]}, {"9x9"})
    many = [operation(name=name) for name in ("a", "b", "c", "d", "e")]
    with pytest.raises(UsageError, match="sizes of a, b, c and 2 more are whole numbers, such as"):
        grid.refuse_sizes({"8x8": many}, {"8x9"})


def test_what_cannot_be_read_is_still_a_size() -> None:
    """It stands in the id of a case that is skipped, and has no numbers."""
    assert str(unread("8x8")) == "8x8"
    assert not unread("8x8")
