"""pytest-benchmark's tables compare what may be compared, and mark what is in doubt."""

from typing import Any

import pytest

from fwbench.plugin.summary import Group, Tables, are_requested
from support.tables import tabled

_CASE = {
    "workload": "flatten",
    "device": "cpu",
    "execution": "eager",
    "direction": "forward",
    "dtype": "float32",
    "size": 8,
}


def row(framework: str, **facts: Any) -> dict[str, Any]:
    """A row of a case, as pytest-benchmark shows it."""
    case_facts = {**_CASE, "framework": framework, **facts}
    name = f"test_it[{framework}]"
    return {
        "name": name,
        "fullname": f"test_it.py::{name}",
        "path": None,
        "extra_info": {"fwbench": case_facts},
    }


def grouped(*groups: Group, shown: bool = True) -> list[Group]:
    """The groups that the hook returns for these."""
    rows = [row for _, of_group in groups for row in of_group]
    hook: Any = Tables(shown=shown).pytest_benchmark_group_stats(rows)
    next(hook)
    with pytest.raises(StopIteration) as stop:
        hook.send([*groups])
    result: list[Group] = stop.value.value
    return result


def named(groups: list[Group]) -> dict[str | None, list[str]]:
    return {name: [table_row["name"] for table_row in rows] for name, rows in groups}


def test_views_and_copies_have_tables_of_their_own() -> None:
    rows = [row("torch", result_is_view=True), row("mxnet", result_is_view=False)]
    assert named(grouped(("flatten", rows))) == {
        "flatten (view)": ["test_it[torch]"],
        "flatten (copy)": ["test_it[mxnet]"],
    }


@pytest.mark.parametrize("name", ["flatten", None])
def test_a_group_that_does_not_mix_is_left_alone(name: str | None) -> None:
    rows = [row("torch", result_is_view=False), row("mxnet", result_is_view=False)]
    assert grouped((name, rows)) == [(name, rows)]


def test_rows_in_doubt_are_marked() -> None:
    rows = [row("torch", condition="contended"), row("numpy", condition="clean")]
    ((_, (contended, clean)),) = grouped(("gemm", rows))
    assert contended["name"] == "test_it[torch] (contended)"
    assert contended["fullname"] == "test_it.py::test_it[torch] (contended)"
    assert clean["name"] == "test_it[numpy]"


def test_rows_of_an_earlier_run_are_not_marked() -> None:
    """pytest-benchmark gives them the facts of this run's case."""
    earlier = {**row("torch", condition="contended"), "path": "0001_run.json"}
    assert named(grouped(("gemm", [earlier]))) == {"gemm": ["test_it[torch]"]}


def test_cases_have_tables_where_these_are_asked_for() -> None:
    """Other benchmarks have theirs always, in the group that they share with cases, too."""
    mixed = ("mine", [row("torch"), plain()])
    groups = (("gemm", [row("torch"), row("numpy")]), mixed, (None, [plain()]))
    assert named(grouped(*groups, shown=False)) == {"mine": ["test_plain"], None: ["test_plain"]}
    assert len(grouped(*groups)) == 3


def plain() -> dict[str, Any]:
    """A row of a benchmark that is none of fwbench's."""
    return {"name": "test_plain", "fullname": "test_plain", "path": None, "extra_info": {}}


def test_other_benchmarks_are_left_alone() -> None:
    rows = [plain(), row("torch", result_is_view=True), row("mxnet", result_is_view=False)]
    assert grouped(("mine", rows)) == [("mine", rows)]


@tabled
def test_tables_are_asked_for_by_what_is_about_them(
    pytester: pytest.Pytester, arguments: tuple[str, ...], shown: bool
) -> None:
    """A comparison, a histogram or a choice of columns would be lost otherwise."""
    assert are_requested(pytester.parseconfig(*arguments)) is shown
