"""Indexing, against loops over indices."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from fwbench import workloads
from fwbench.workloads.workload import Cost

#: By operation: a small size, its cost forward and backward there, and the result of its operands.
CASES: dict[str, tuple[str, Cost, Cost | None, Callable[..., Any]]] = {
    "gather_rows": ("n5d3k7", Cost(0, 49), Cost(21, 85), lambda x, i: [x[row] for row in i]),
    "embedding": (
        *("n5d3b2t4", Cost(0, 56), Cost(24, 95)),
        lambda w, i: [[w[word] for word in sequence] for sequence in i],
    ),
    "gather_elements": (
        *("n5d3k2", Cost(0, 30), Cost(10, 55)),
        lambda x, i: [[x[n][k] for k in row] for n, row in enumerate(i)],
    ),
    "pick": ("5x3", Cost(0, 15), Cost(0, 35), lambda x, i: [x[n][k] for n, k in enumerate(i)]),
    "gather_nd": (
        *("n5d3k7", Cost(0, 28), Cost(7, 50)),
        lambda x, i: [x[row][column] for row, column in i],
    ),
    # Rows that have the same index are added up; one that none has is zero.
    "scatter_add": (
        *("n5d3k7", Cost(21, 43), Cost(21, 79)),
        lambda x, i: [
            [sum(x[k][column] for k, place in enumerate(i) if place == row) for column in range(3)]
            for row in range(5)
        ],
    ),
    "scatter_nd_update": (
        *("n5d3k2", Cost(0, 38), Cost(0, 74)),
        lambda x, i, rows: [rows[i.index(n)] if n in i else row for n, row in enumerate(x)],
    ),
    "one_hot": (
        *("5x3", Cost(0, 20), None),
        lambda i: [[float(k == place) for k in range(3)] for place in i],
    ),
    "boolean_mask": (
        *("n5d3k2", Cost(0, 17), Cost(0, 38)),
        lambda x, mask: [row for row, chosen in zip(x, mask, strict=True) if chosen],
    ),
    "sequence_mask": (
        *("5x3", Cost(15, 35), Cost(30, 65)),
        lambda x, lengths: [
            [*row[:length], *[0.0] * (3 - length)] for row, length in zip(x, lengths, strict=True)
        ],
    ),
}


def test_every_operation_of_the_family_is_tested() -> None:
    assert {operation.name for operation in workloads.INDEXING} == {*CASES}


@pytest.mark.parametrize("name", CASES)
def test_results_and_costs(name: str) -> None:
    operation = getattr(workloads, name)
    text, forward, backward, expected = CASES[name]
    size = operation.form.read(text)
    operands = operation.operands(size)
    result = operation.reference(*operands, *operation.parameters(size))
    np.testing.assert_allclose(result, expected(*(x.tolist() for x in operands)), rtol=1e-15)
    assert (operation.cost_of("forward", size), operation.cost_of("backward", size)) == (
        forward,
        backward,
    )


def test_operands_have_what_an_implementation_may_get_wrong() -> None:
    """Rows that are picked twice, none that is overwritten twice, lengths of one at least."""

    def operands(name: str) -> Any:
        operation = getattr(workloads, name)
        return operation.operands(operation.form.read(CASES[name][0]))

    for name in ("gather_rows", "scatter_add"):
        assert len({*operands(name)[1].tolist()}) < 7
    assert len({*operands("scatter_nd_update")[1].tolist()}) == 2
    assert sum(operands("boolean_mask")[1]) == 2
    assert min(operands("sequence_mask")[1]) >= 1


@pytest.mark.parametrize("name", CASES)
def test_changed_operands_have_other_indices(name: str) -> None:
    """The call on changed inputs must notice that its indices are others."""
    operation = getattr(workloads, name)
    size = operation.smallest
    operands = operation.operands(size)
    for before, after in zip(operands, operation.changed_operands(size, 1, operands), strict=True):
        assert not np.array_equal(before, after)
