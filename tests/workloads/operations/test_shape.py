"""Shapes, orders of elements, and images, against loops over indices and pixels."""

import itertools
from collections.abc import Callable

import numpy as np
import pytest

from fwbench import workloads
from fwbench.workloads import SHAPE
from support.operations import computed

SMALL, IMAGES = 8, "n2h3w4c5"

#: By operation: its size, the shape of the result, and the index of the operand from which an
#: element of the result comes; None for a zero.
ORIGINS: dict[str, tuple[int | str, tuple[int, ...], Callable[..., tuple[int, ...] | None]]] = {
    "transpose": (SMALL, (8, 8), lambda i, j: (j, i)),
    "permute_nhwc_nchw": (IMAGES, (2, 5, 3, 4), lambda n, c, h, w: (n, h, w, c)),
    "pad_constant": (
        IMAGES,
        (2, 5, 8, 5),
        lambda n, h, w, c: (n, h - 1, w - 2, c) if 1 <= h < 4 and 2 <= w < 6 else None,
    ),
    "pad_reflect": (
        IMAGES,
        (2, 5, 8, 5),
        lambda n, h, w, c: (n, [1, 0, 1, 2, 1][h], [2, 1, 0, 1, 2, 3, 2, 1][w], c),
    ),
    "tile": (SMALL, (16, 24), lambda i, j: (i % 8, j % 8)),
    "repeat": (SMALL, (8, 24), lambda i, j: (i, j // 3)),
    "slice": (SMALL, (4, 4), lambda i, j: (i + 2, j + 2)),
    "strided_slice": (SMALL, (4, 3), lambda i, j: (2 * i, 3 * j)),
    "flip": (SMALL, (8, 8), lambda i, j: (i, 7 - j)),
    "roll": (SMALL, (8, 8), lambda i, j: (i, (j + 5) % 8)),
    "broadcast_to": (SMALL, (8, 8), lambda i, j: (0, j)),
    # 20 channels: four blocks of the five that are left.
    "depth_to_space": (
        IMAGES,
        (2, 6, 8, 5),
        lambda n, h, w, c: (n, h // 2, w // 2, (h % 2 * 2 + w % 2) * 5 + c),
    ),
    "tril": (SMALL, (8, 8), lambda i, j: (i, j) if j <= i else None),
    "diag_part": (SMALL, (8,), lambda i: (i, i)),
}


def test_every_operation_of_the_family_is_tested() -> None:
    """By where its elements come from, or, where there are several operands or results, below."""
    assert {operation.name for operation in SHAPE} == {*ORIGINS, "concat", "stack", "split"}


@pytest.mark.parametrize("name", ORIGINS)
def test_elements_come_from_where_they_should(name: str) -> None:
    """Every element of the result is the element of the operand that it is said to be."""
    size, shape, origin = ORIGINS[name]
    (x,), result = computed(name, size)
    assert result.shape == shape
    for index in itertools.product(*map(range, shape)):
        place = origin(*index)
        assert result[index] == (0 if place is None else x[place])


def test_concat_puts_matrices_side_by_side() -> None:
    """Its rows are the first one's, continued by the second one's."""
    (x, y), result = computed("concat", SMALL)
    assert result.tolist() == [[*a, *b] for a, b in zip(x.tolist(), y.tolist(), strict=True)]


def test_stack_has_rows_in_turn() -> None:
    """Each row of the first is followed by the second one's."""
    (x, y), result = computed("stack", SMALL)
    assert result.tolist() == [[a, b] for a, b in zip(x.tolist(), y.tolist(), strict=True)]


def test_split_undoes_concatenation() -> None:
    """There are four results, and side by side they are the operand."""
    (x,), result = computed("split", SMALL)
    assert [part.shape for part in result] == [(8, 8)] * 4
    assert np.concatenate(result, axis=1).tolist() == x.tolist()


@pytest.mark.parametrize("size", [1, 2, 3, 7, 50])
def test_a_middle_half_is_there_at_every_size(size: int) -> None:
    """It has the rounded half of all rows, and ends before they do."""
    begin, end = workloads.slice.parameters(size)
    assert 0 <= begin < end <= size
    assert end - begin == (size + 1) // 2


# Images


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
