"""Sorting and searching, against Python's own."""

import bisect
from typing import Any

import numpy as np
import pytest

from fwbench import workloads
from support.operations import computed


def test_sort() -> None:
    (x,), result = computed("sort", "3x8")
    assert result.tolist() == [sorted(row) for row in x.tolist()]


def test_argsort() -> None:
    """The places of a row in the order of its numbers."""
    (x,), result = computed("argsort", "3x8")
    assert result.tolist() == [sorted(range(8), key=row.__getitem__) for row in x.tolist()]


def test_top_k() -> None:
    (x,), (values, places) = computed("top_k", "3x8")
    for row, largest, there in zip(x.tolist(), values.tolist(), places.tolist(), strict=True):
        assert largest == sorted(row, reverse=True)[:5]
        assert [row[place] for place in there] == largest


def test_unique() -> None:
    (x,), result = computed("unique", 9)
    assert {*result.tolist()} == {*x.tolist()}
    assert len(result) == 5
    (compared,) = workloads.unique.compared(result[::-1])
    assert compared.tolist() == sorted({*x.tolist()})


def test_searchsorted() -> None:
    (x, sought), result = computed("searchsorted", "n20k7")
    assert result.tolist() == [bisect.bisect_left(x.tolist(), number) for number in sought]


def _bfloat16(x: Any) -> Any:
    """Numbers whose last 16 bits as float32 are cut off, which bfloat16 does not have."""
    return (x.astype(np.float32).view(np.uint32) & 0xFFFF0000).view(np.float32)


@pytest.mark.parametrize("text", ["2x1", "2x7", "2x1000", "2x4000", "1x4096"])
def test_rows_have_no_ties_in_any_dtype(text: str) -> None:
    """Every number is there in 16 bits, and none is so near another that a step changes places."""
    (x,) = workloads.sort.operands(workloads.sort.form.read(text))
    assert np.array_equal(x.astype(np.float16), x)
    assert np.array_equal(_bfloat16(x), x)
    for row in x:
        assert np.min(np.diff(np.sort(row)), initial=1.0) > 2e-5


def test_longer_rows_have_no_ties_in_float32() -> None:
    """16 bits do not have a million numbers."""
    (x,) = workloads.sort.operands(workloads.sort.form.read("1x1000000"))
    assert len(np.unique(x.astype(np.float32))) == x.size
    assert np.min(np.diff(np.sort(x[0]))) > 2e-5
