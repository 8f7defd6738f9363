"""Tables of times: who stands where, against whom, and what is said of it."""

import math
from typing import Any

import pytest

from fwbench.records.repeatability import of_pairs
from fwbench.records.stored import just_measured
from fwbench.report.ranking import works
from fwbench.report.terminal.layout import drawn
from fwbench.report.terminal.matrix import (
    DETAILS,
    EVERY_SIZE,
    LARGE,
    LARGE_OR_ONE,
    ONE_SIZE,
    SMALL,
    Matrix,
    MatrixCell,
    matrices,
    ratio_text,
)
from support.tables import tabled
from support.terminals import entry, styled, texts

_, _AT_EXTREMES, _BY_FAMILY = DETAILS


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
    found = table(*records)
    assert found.columns == [("torch", "eager")]
    assert [row.name for row in found.rows] == ["gemm decay=off", "gemm decay=on"]


def test_views_and_copies_are_not_ranked_together() -> None:
    views = [
        entry("a", 1.0, result_is_view=True),
        *(
            entry(name, seconds, result_is_view=False)
            for name, seconds in (("b", 5.0), ("c", 10.0))
        ),
    ]
    found = table(*views)
    assert [row.name for row in found.rows] == ["gemm (copy)", "gemm (view)"]
    assert cells(found) == [{"b eager": "5 s", "c eager": "10 s"}, {"a eager": "1 s"}]
    bits = [entry("a", 1.0, precision_bits=10), entry("b", 2.0)]
    assert [row.name for row in table(*bits).rows] == ["gemm (10 bits)", "gemm (23 bits)"]


def test_a_case_that_two_tests_measured_is_two_columns() -> None:
    records = [entry("a", 1.0), entry("a", 3.0), entry("b", 2.0)]
    assert cells(table(*records)) == [{"a eager": "1 s", "a eager #2": "3 s", "b eager": "2 s"}]
    assert cells(table(*records, detail=_BY_FAMILY)) == [
        {"one size each a": "1.00x", "one size each a #2": "3.00x", "one size each b": "2.00x"}
    ]


def test_colours_say_who_wins() -> None:
    """An upper bound below all others does; a row that is not decided has no colour."""
    busy = {"condition": "contended"}
    rivals = entry("b", 2.0), entry("c", 40.0)
    (won,) = table(entry("a", 1.0, **busy), *rivals).rows
    assert [*won.cells.values()] == [
        MatrixCell("1 s", "!", "green"),
        MatrixCell("2 s"),
        MatrixCell("40 s", "", "red"),
    ]
    for others in ([entry("b", 2.0)], [entry("b", 2.0), entry("c", 1.0, **busy)]):
        (undecided,) = table(entry("a", 40.0, **busy), *others).rows
        assert not any(cell.style for cell in undecided.cells.values())


@tabled
def test_colours(times_s: tuple[float, ...], green: tuple[str, ...], red: tuple[str, ...]) -> None:
    records = [entry(name, time_s) for name, time_s in zip("abc", times_s, strict=False)]
    lines = drawn(table(*records), 80)
    assert styled(lines, "green") == [*green]
    assert styled(lines, "red") == [*red]


@pytest.mark.parametrize(
    ("detail", "green"),
    [
        (EVERY_SIZE, ["1 s", "1.2 s", "1 s", "1.2 s"]),
        # The mean of two ratios is known better than each of them.
        (_BY_FAMILY, ["1.00x"]),
    ],
)
def test_what_is_too_close_to_call_is_green(detail: Any, green: list[str]) -> None:
    twice = of_pairs({str(i): [1.0, math.exp(0.05)] for i in range(12)})
    records = [
        entry(name, time_s, workload=workload)
        for workload in ("dot", "gemm")
        for name, time_s in (("a", 1.0), ("b", 1.2))
    ]
    measured = works(just_measured(record, dict.fromkeys("ab", twice)) for record in records)
    (matrix,) = matrices(measured, detail)
    assert styled(drawn(matrix, 80), "green") == green


@pytest.mark.parametrize(
    ("number", "text"),
    [(1.0, "1.00x"), (9.994, "9.99x"), (9.996, "10.0x"), (99.96, "100x"), (12345.6, "12,346x")],
)
def test_ratios_have_three_digits(number: float, text: str) -> None:
    assert ratio_text(number) == text


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(9.94e-6, "9.9 us!"), (9.96e-6, "10 us!"), (99.6e-6, "100 us!"), (0.9996, "1 s!")],
)
def test_upper_bounds_have_two_digits(seconds: float, text: str) -> None:
    records = [entry("a", seconds, condition="contended"), entry("b")]
    (row,) = cells(table(*records, detail=_AT_EXTREMES))
    assert row == {f"{ONE_SIZE} a": text, f"{ONE_SIZE} b": "1 s"}


def test_small_and_large_sizes_are_not_averaged() -> None:
    records = [
        *(entry("a", 1.0, size=1), entry("b", 4.0, size=1), entry("a", 5.0, size=2)),
        *(entry("a", 90.0, size=3), entry("b", 10.0, size=3), entry("b", 5.0, size=2)),
    ]
    found = table(*records, detail=_AT_EXTREMES)
    assert [row.name for row in found.rows] == ["gemm"]
    assert cells(found) == [
        {f"{SMALL} a": "1 s", f"{SMALL} b": "4.00x", f"{LARGE} a": "9.00x", f"{LARGE} b": "10 s"}
    ]
    found = table(*records, detail=_BY_FAMILY)
    assert [row.name for row in found.rows] == ["others (1)"]
    assert cells(found) == [
        {f"{SMALL} a": "1.00x", f"{SMALL} b": "4.00x", f"{LARGE} a": "9.00x", f"{LARGE} b": "1.00x"}
    ]


def test_a_single_size_is_not_called_large() -> None:
    """It stands behind small ones, below a heading that is true of both."""
    records = [
        *(entry(name, size=size) for size in (1, 2) for name in "ab"),
        *(entry(name, workload="relu") for name in "ab"),
    ]
    for detail in (_AT_EXTREMES, _BY_FAMILY):
        found = table(*records, detail=detail)
        assert [*dict.fromkeys(heading for heading, _ in found.columns)] == [SMALL, LARGE_OR_ONE]
    *_, row = table(*records, detail=_AT_EXTREMES).rows
    assert {heading for heading, _ in row.cells} == {LARGE_OR_ONE}


def test_families_are_summed_up_over_operations() -> None:
    records = [
        entry(name, seconds, workload=work, family=family)
        for work, family in (("gemm", "linalg"), ("dot", "linalg"), ("mine", None))
        for name, seconds in (("a", 1.0), ("b", 2.0))
    ]
    found = table(*records, detail=_BY_FAMILY)
    assert [row.name for row in found.rows] == ["others (1)", "linalg (2)"]
    assert cells(found)[1] == {"one size each a": "1.00x", "one size each b": "2.00x"}


def test_a_mean_stands_beside_means_over_the_same() -> None:
    """Who lacks one of the operations has no number, and no time is among ratios."""
    records = [
        *(entry("a", 1.0, workload="v"), entry("a", 2.0, workload="w")),
        *(entry("b", 2.0, workload="v"), entry("b", 1.0, workload="w")),
        entry("c", 1.0, workload="v", condition="drifting", drift=0.5),
        entry("d", 1.0, workload="w"),
    ]
    (row,) = table(*records, detail=_BY_FAMILY).rows
    assert {names[1]: cell for names, cell in row.cells.items()} == {
        "a": MatrixCell("1.41x", "", "green"),
        "b": MatrixCell("1.41x", "", "green"),
        "c": MatrixCell("-", "<"),
        "d": MatrixCell("-", "<"),
    }


def test_means_are_over_undisturbed_operations() -> None:
    busy = {"condition": "contended"}
    records = [
        *(entry(name, t, workload="v", family="f") for name, t in (("a", 1.0), ("b", 2.0))),
        *(entry("a", 9.0, workload="w", family="f"), entry("b", workload="w", family="f", **busy)),
        *(entry("a", 9.0, workload="x", family="g"), entry("b", workload="x", family="g", **busy)),
        *(entry(name, t, workload="y", family="h") for name, t in (("a", 2.0), ("b", 1.0))),
    ]
    found = table(*records, detail=_BY_FAMILY)
    assert [row.name for row in found.rows] == ["f (1 of 2)", "g (0 of 1)", "h (1)"]
    assert cells(found) == [
        {f"{ONE_SIZE} a": "1.00x", f"{ONE_SIZE} b": "2.00x"},
        {f"{ONE_SIZE} a": "-!", f"{ONE_SIZE} b": "-!"},
        {f"{ONE_SIZE} a": "2.00x", f"{ONE_SIZE} b": "1.00x"},
    ]
    assert found.what.endswith("; not in means: 2 contended")
    (disturbed,) = cells(table(*records[4:6], detail=_BY_FAMILY))
    assert disturbed == {f"{ONE_SIZE} a": "9 s", f"{ONE_SIZE} b": "1 s!"}


def test_operations_without_a_rival_are_alone_and_not_contended() -> None:
    records = [
        *(entry(name, workload="v", family="f") for name in "ab"),
        *(entry("a", workload=work, size=size, family="g") for work in "wx" for size in (1, 2)),
        *(entry(name, workload="y", family="h") for name in "ab"),
        *(entry(name, workload="z", family="h") for name in "ab"),
        *(entry(name, workload="u", family="f") for name in "ab"),
    ]
    found = table(*records, detail=_BY_FAMILY)
    assert [row.name for row in found.rows] == ["f (2)", "g (0 of 2)", "h (2)"]
    assert cells(found)[1] == {f"{SMALL} a": "alone", f"{LARGE_OR_ONE} a": "alone"}
    assert found.what.endswith("; not in means: 2 alone")


def test_shapes_of_one_size_have_a_row_each() -> None:
    records = [
        entry(name, time_s, size=81, shape=shape)
        for shape in ("n1h9", "n9h1")
        for name, time_s in (("a", 1.0), ("b", 2.0))
    ]
    found = table(*records, entry("a", workload="relu"), detail=_AT_EXTREMES)
    assert [row.name for row in found.rows] == ["gemm n1h9", "gemm n9h1", "relu"]
    assert cells(found)[1] == {f"{ONE_SIZE} a": "1 s", f"{ONE_SIZE} b": "2.00x"}


def test_tables_are_of_one_kind() -> None:
    records = [entry("a"), entry("a", direction="backward"), entry("a", dtype="float16")]
    found = matrices(works(map(just_measured, records)), EVERY_SIZE)
    assert [each.title for each in found] == [
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
        "                                       mxnet         torch",
        "                                   eager  hybridize  eager",
        "a_long_name_of_an_operation 100      1 s        2 s    3 s",
        "short                       100      1 s        2 s    3 s",
    ]


def test_long_names_of_frameworks_stay_apart() -> None:
    """Also where signs take room after the numbers."""
    doubtful = entry("onnxruntime", condition="drifting", spinning=True)
    matrix = table(entry("numpy"), doubtful)
    headings = [texts(drawn(matrix, width))[-2] for width in range(24, 40)]
    assert {*map(tuple, map(str.split, headings))} <= {("numpy", "onnxruntime"), ("onnxruntime",)}
    assert any("numpy onnxruntime" in heading for heading in headings)


def test_columns_that_do_not_fit_are_wrapped_by_framework() -> None:
    """Names are cut rather, if that leaves a dozen letters of them."""
    assert [line.split()[0] for line in _wide(45)[-2:]] == ["a_long_name_of_an..", "short"]
    lines = _wide(36)
    assert [line.split() for line in lines[-6:]] == [
        ["a_long_name_of_an_ope..", "100", "2", "s"],
        ["short", "100", "2", "s"],
        [],
        ["torch"],
        ["a_long_name_of_an_ope..", "100", "3", "s"],
        ["short", "100", "3", "s"],
    ]


def test_of_settings_values_are_shown_rather_than_parts_of_names() -> None:
    """All would begin alike: ``replic..``."""
    by_replicas = ({"replicas": str(number), "strategy": "ps_sync"} for number in (1, 2))
    records = [entry("torch", toggles=each, params=each) for each in by_replicas]
    headings = [line.split() for line in texts(drawn(table(*records), 30))[-3:-1]]
    assert headings == [["1", "2"], ["ps_sync", "ps_sync"]]


def test_executions_that_begin_alike_are_cut_to_their_ends() -> None:
    """Both would be ``from_t..``; what fits, or is cut to another text, stays."""
    executions = ("from_torch", "from_tensorflow", "reduce_overhead")
    records = [entry("onnxruntime", execution=each) for each in executions]
    headings = texts(drawn(table(*records), 40))[-2].split()
    assert headings == ["..orflow", ".._torch", "reduce.."]


def test_names_are_cut_before_a_table_is_given_up() -> None:
    assert any(line.startswith("a_long.. 100 ") for line in _wide(21))
    assert " ".join(" ".join(_wide(19)).split()).endswith("COLUMNS=80 makes it wider")
