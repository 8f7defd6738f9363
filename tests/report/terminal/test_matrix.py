"""Tables of times: who stands where, against whom, and what is said of it."""

from __future__ import annotations

from typing import Any

import pytest

from fwbench.records.stored import just_measured
from fwbench.report.ranking import works
from fwbench.report.terminal.layout import drawn
from fwbench.report.terminal.matrix import (
    DETAILS,
    EVERY_SIZE,
    Matrix,
    MatrixCell,
    matrices,
    ratio_text,
)
from support.terminals import entry, styled, texts

_BY_SIZE, _BY_OPERATION, _BY_FAMILY = DETAILS


def table(*records: dict[str, Any], detail: Any = EVERY_SIZE) -> Matrix:
    (only,) = matrices(works(map(just_measured, records)), detail)
    return only


def cells(matrix: Matrix) -> list[dict[str, str]]:
    """The numbers of each row with their signs, by framework and execution."""
    return [
        {" ".join(names): cell.text + cell.signs for names, cell in row.cells.items()}
        for row in matrix.rows
    ]


def test_rows_are_in_numeric_order() -> None:
    sized = [entry("a", workload="gemm", family="linalg", size=size) for size in (1024, 64, 256)]
    shaped = [
        entry("a", workload="conv", family="convolution", size=size, shape=shape)
        for size, shape in ((900, "n1h9"), (80, "n8h2"))
    ]
    assert [(row.name, row.size) for row in table(*sized, *shaped).rows] == [
        *(("conv", "n8h2"), ("conv", "n1h9"), ("gemm", "64"), ("gemm", "256"), ("gemm", "1024"))
    ]


def test_columns_are_frameworks_and_executions() -> None:
    records = [
        entry("torch"),
        entry("mxnet", execution="hybridize"),
        entry("mxnet"),
        *(
            entry("tensorflow", toggles={"onednn": value}, params={"onednn": value})
            for value in ("on", "off")
        ),
    ]
    assert table(*records).columns == [
        ("mxnet", "eager"),
        ("mxnet", "hybridize"),
        ("tensorflow", "eager", "onednn=off"),
        ("tensorflow", "eager", "onednn=on"),
        ("torch", "eager"),
    ]


def test_a_toggle_that_changes_the_work_is_in_the_row() -> None:
    records = [
        entry("torch", toggles={"decay": value}, params={"decay": value}) for value in ("on", "off")
    ]
    shown_table = table(*records)
    assert shown_table.columns == [("torch", "eager")]
    assert [row.name for row in shown_table.rows] == ["gemm decay=off", "gemm decay=on"]


def test_views_and_copies_are_not_ranked_together() -> None:
    views = [
        entry("a", 1.0, result_is_view=True),
        *(
            entry(name, seconds, result_is_view=False)
            for name, seconds in (("b", 5.0), ("c", 10.0))
        ),
    ]
    shown_table = table(*views)
    assert [row.name for row in shown_table.rows] == ["gemm (copy)", "gemm (view)"]
    assert cells(shown_table) == [{"b eager": "5 s", "c eager": "2.00x"}, {"a eager": "1 s"}]
    bits = [entry("a", 1.0, precision_bits=10), entry("b", 2.0)]
    assert [row.name for row in table(*bits).rows] == ["gemm (10 bits)", "gemm (23 bits)"]


def test_a_case_that_two_tests_measured_is_two_columns() -> None:
    records = [entry("a", 1.0), entry("a", 3.0), entry("b", 2.0)]
    same = {"a eager": "1 s", "a eager #2": "3.00x", "b eager": "2.00x"}
    assert cells(table(*records)) == [same]
    assert cells(table(*records, detail=_BY_OPERATION)) == [{**same, "a eager": "1.00x"}]


def test_contended_cases_are_marked_and_not_ranked() -> None:
    busy = {"condition": "contended"}
    shown_table = table(entry("a", 1.0, **busy), entry("b", 2.0), entry("c", 40.0))
    (row,) = shown_table.rows
    assert [*row.cells.values()] == [
        MatrixCell("0.50x", "!"),
        MatrixCell("2 s", "", "green"),
        MatrixCell("20.0x", "", "red"),
    ]
    assert cells(table(entry("a", 1.0, **busy), entry("b", 2.0, **busy))) == [
        {"a eager": "1 s!", "b eager": "2 s!"}
    ]


@pytest.mark.parametrize(
    ("times_s", "green", "red"),
    [
        ((1.0, 1.04, 2.0), ["1 s", "1.04x"], []),
        ((1.0, 1.06, 10.0), ["1 s"], ["10.0x"]),
        ((1.0,), [], []),
    ],
)
def test_colours(times_s: tuple[float, ...], green: list[str], red: list[str]) -> None:
    records = [entry(name, time_s) for name, time_s in zip("abc", times_s, strict=False)]
    lines = drawn(table(*records), 80)
    assert styled(lines, "green") == green
    assert styled(lines, "red") == red


@pytest.mark.parametrize(
    ("number", "text"),
    [(1.0, "1.00x"), (9.994, "9.99x"), (9.996, "10.0x"), (99.96, "100x"), (12345.6, "12,346x")],
)
def test_ratios_have_three_digits(number: float, text: str) -> None:
    assert ratio_text(number) == text


def test_sizes_are_summed_up_by_geometric_means() -> None:
    records = [
        *(entry("a", 1.0, size=1), entry("b", 4.0, size=1)),
        *(entry("a", 90.0, size=2), entry("b", 10.0, size=2)),
    ]
    assert cells(table(*records, detail=_BY_OPERATION)) == [
        {"a eager": "3.00x", "b eager": "2.00x"}
    ]


def test_families_are_summed_up_over_operations() -> None:
    records = [
        entry(name, seconds, workload=work, family=family)
        for work, family in (("gemm", "linalg"), ("dot", "linalg"), ("mine", None))
        for name, seconds in (("a", 1.0), ("b", 2.0))
    ]
    shown_table = table(*records, detail=_BY_FAMILY)
    assert [row.name for row in shown_table.rows] == ["others (1)", "linalg (2)"]
    assert cells(shown_table)[1] == {"a eager": "1.00x", "b eager": "2.00x"}


def test_who_lacks_some_of_it_is_marked() -> None:
    """A mean over fewer sizes is not the mean that others have."""
    records = [entry(name, size=size) for name in "ab" for size in (1, 2)]
    shown_table = table(*records, entry("c", size=1), detail=_BY_OPERATION)
    assert cells(shown_table) == [{"a eager": "1.00x", "b eager": "1.00x", "c eager": "1.00x<"}]


def test_a_mean_over_some_of_it_is_nobody_s_measure() -> None:
    records = [
        *(entry("a", 1.0, size=1), entry("a", 2.0, size=2)),
        *(entry("b", 2.0, size=1), entry("b", 1.0, size=2)),
        entry("c", 1.0, size=1, condition="drifting", drift=0.5),
    ]
    (row,) = table(*records, detail=_BY_OPERATION).rows
    assert {names[0]: cell for names, cell in row.cells.items()} == {
        "a": MatrixCell("1.41x", "", "green"),
        "b": MatrixCell("1.41x", "", "green"),
        "c": MatrixCell("1.00x", "<"),
    }


def test_contended_cases_are_in_no_mean() -> None:
    busy = {"condition": "contended"}
    records = [
        *(entry("a", 1.0), entry("b", 2.0), entry("c", 0.1, **busy)),
        entry("a", workload="alone"),
    ]
    alone, contested = cells(table(*records, detail=_BY_OPERATION))
    assert alone == {"a eager": "1 s"}
    assert contested == {"a eager": "1.00x", "b eager": "2.00x", "c eager": "100 ms!"}


def test_tables_are_of_one_kind() -> None:
    records = [entry("a"), entry("a", direction="backward"), entry("a", dtype="float16")]
    tables = matrices(works(map(just_measured, records)), EVERY_SIZE)
    assert [matrix.title for matrix in tables] == [
        "operations, forward, float32",
        "operations, backward, float32",
        "operations, forward, float16",
    ]
    assert table(entry("a"), entry("b")).title == "operations, forward"


def _wide(width: int) -> list[str]:
    records = [
        entry(framework, 1.0 + place, execution=execution, workload=name, size=100)
        for name in ("a_long_name_of_an_operation", "short")
        for place, (framework, execution) in enumerate(
            [("mxnet", "eager"), ("mxnet", "hybridize"), ("torch", "eager")]
        )
    ]
    return texts(drawn(table(*records), width))[1:]


def test_executions_stand_under_their_framework() -> None:
    lines = _wide(200)[-4:]
    assert lines == [
        "                                      mxnet        torch",
        "                                 eager  hybridize  eager",
        "a_long_name_of_an_operation 100    1 s      2.00x  3.00x",
        "short                       100    1 s      2.00x  3.00x",
    ]


def test_columns_that_do_not_fit_are_wrapped_by_framework() -> None:
    lines = _wide(52)
    assert [line.split() for line in lines[-6:]] == [
        ["a_long_name_of_an_operation", "100", "1", "s", "2.00x"],
        ["short", "100", "1", "s", "2.00x"],
        [],
        ["torch"],
        ["a_long_name_of_an_operation", "100", "3.00x"],
        ["short", "100", "3.00x"],
    ]


def test_names_are_cut_before_a_table_is_given_up() -> None:
    assert any(line.startswith("a_long.. 100 ") for line in _wide(22))
    assert " ".join(" ".join(_wide(20)).split()).endswith("COLUMNS=80 makes it wider")
