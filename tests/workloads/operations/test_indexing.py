"""Indexing, against loops over indices."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from fwbench import workloads
from fwbench.workloads.workload import Cost

#: By operation: a small size, and its cost forward and backward there.
CASES = {
    "gather_rows": ("n5d3k7", Cost(0, 49), Cost(21, 85)),
    "embedding": ("n5d3b2t4", Cost(0, 56), Cost(24, 95)),
    "gather_elements": ("n5d3k2", Cost(0, 30), Cost(10, 55)),
    "pick": ("5x3", Cost(0, 15), Cost(0, 35)),
    "gather_nd": ("n5d3k7", Cost(0, 28), Cost(7, 50)),
    "scatter_add": ("n5d3k7", Cost(21, 43), Cost(21, 79)),
    "scatter_nd_update": ("n5d3k2", Cost(0, 38), Cost(0, 74)),
    "one_hot": ("5x3", Cost(0, 20), None),
    "boolean_mask": ("n5d3k2", Cost(0, 17), Cost(0, 38)),
    "sequence_mask": ("5x3", Cost(15, 35), Cost(30, 65)),
}


def _computed(name: str) -> tuple[Any, ...]:
    """The operands of an operation as lists, and what its reference makes of them."""
    of = getattr(workloads, name)
    assert of.form is not None
    size = of.form.read(CASES[name][0])
    operands = of.operands(size)
    found = of.reference(*operands, *of.parameters(size))
    return (*(operand.tolist() for operand in operands), found.tolist())


def test_every_operation_of_the_family_is_tested() -> None:
    """None is left out of the costs, and of the tests below."""
    assert {of.name for of in workloads.INDEXING} == {*CASES}
    assert {f"test_{name}" for name in CASES} <= {*globals()}


@pytest.mark.parametrize("name", CASES)
def test_costs(name: str) -> None:
    of = getattr(workloads, name)
    text, *costs = CASES[name]
    size = of.form.read(text)
    assert [of.cost_of(direction, size) for direction in ("forward", "backward")] == costs


def test_gather_rows() -> None:
    """One row for each index, some of them several times."""
    x, i, found = _computed("gather_rows")
    assert found == [x[row] for row in i]
    assert len({*i}) < len(i)


def test_embedding() -> None:
    """One row for each index of a batch of sequences."""
    w, i, found = _computed("embedding")
    assert found == [[w[word] for word in sequence] for sequence in i]


def test_gather_elements() -> None:
    x, i, found = _computed("gather_elements")
    assert found == [[x[n][k] for k in row] for n, row in enumerate(i)]


def test_pick() -> None:
    x, i, found = _computed("pick")
    assert found == [x[n][k] for n, k in enumerate(i)]


def test_gather_nd() -> None:
    x, i, found = _computed("gather_nd")
    assert found == [x[row][column] for row, column in i]


def test_scatter_add() -> None:
    """Rows that have the same index are summed up; one that none has is zero."""
    x, i, found = _computed("scatter_add")
    for row, sums in enumerate(found):
        terms = [x[k] for k, place in enumerate(i) if place == row]
        expected = [sum(column) for column in zip(*terms, strict=True)] or [0.0] * 3
        np.testing.assert_allclose(sums, expected, rtol=1e-15)


def test_scatter_nd_update() -> None:
    x, i, rows, found = _computed("scatter_nd_update")
    others = dict(zip(i, rows, strict=True))
    assert len(others) == len(rows)
    assert found == [others.get(n, row) for n, row in enumerate(x)]


def test_one_hot() -> None:
    """A one in the place of the index, and zeros elsewhere."""
    i, found = _computed("one_hot")
    assert found == [[float(k == place) for k in range(3)] for place in i]


def test_boolean_mask() -> None:
    """The rows where the mask is true, which are so many, whatever is drawn."""
    x, mask, found = _computed("boolean_mask")
    assert found == [row for row, kept in zip(x, mask, strict=True) if kept]
    assert len(found) == 2


def test_sequence_mask() -> None:
    x, lengths, found = _computed("sequence_mask")
    for sequence, length, masked in zip(x, lengths, found, strict=True):
        assert masked == [*sequence[:length], *[0.0] * (3 - length)]
        assert length >= 1


@pytest.mark.parametrize("name", CASES)
def test_changed_operands_have_other_indices(name: str) -> None:
    """The call on changed inputs must notice that its indices are others."""
    of = getattr(workloads, name)
    size = of.smallest
    for before, after in zip(of.operands(size), of.changed_operands(size), strict=True):
        assert not np.array_equal(before, after)
