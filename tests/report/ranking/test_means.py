"""Means are of the same cases for all that are ranked."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from fwbench.records.facts import CaseFacts
from fwbench.records.measurement import Measurement
from fwbench.report.ranking import Ranking, contests, rankings


def timed(
    name: str, time_s: float, workload: str = "gemm", size: int = 8, **facts: Any
) -> Measurement:
    made = CaseFacts(
        workload=workload,
        framework=name,
        device=facts.pop("device", "cpu"),
        execution="eager",
        direction="forward",
        dtype="float32",
        size=size,
        **facts,
    )
    return Measurement(made, (time_s,))


def ranking(*cases: Measurement) -> Ranking:
    (found,) = rankings(contests(cases))
    return found


def field(times_s: Mapping[str, Sequence[float]]) -> list[Measurement]:
    """Works 0, 1, ...: the time of each contestant in each, as far as it has one."""
    return [
        timed(name, time_s, f"work{number}")
        for name, of_one in times_s.items()
        for number, time_s in enumerate(of_one)
    ]


def test_both_means_are_given() -> None:
    """Small sizes show what a call costs, the largest what the arithmetic costs."""
    found = ranking(
        *(timed("quick", 1.0, size=1), timed("quick", 3.0, size=100)),
        *(timed("slow", 16.0, size=1), timed("slow", 3.0, size=100)),
    )
    assert (found.cases, found.largest) == (2, 1)
    assert [(mean.name.split()[0], mean.all_sizes, mean.largest) for mean in found.means] == [
        ("quick", 1.0, 1.0),
        ("slow", 4.0, 1.0),
    ]


def test_the_largest_size_is_that_of_each_work() -> None:
    """Ten is large for one work and small for another; a size that is not shared is no substitute.

    The largest product is lacking where it was contended, so none of its sizes counts.
    """
    found = ranking(
        *(timed(name, 1.0, "dot", size) for name in "ab" for size in (1, 10)),
        *(timed(name, 1.0, "gemm", size) for name in "ab" for size in (10, 64)),
        *(timed("a", 1.0, "gemm", 99), timed("b", 1.0, "gemm", 99, condition="contended")),
    )
    assert (found.cases, found.largest) == (4, 1)


def test_a_single_case_wins_nothing() -> None:
    found = ranking(*field({"a": [1.0] * 4, "b": [2.0] * 4, "c": [0.1]}))
    assert [mean.name.split()[0] for mean in found.means] == ["a", "b"]
    assert found.cases == 4
    assert [mean.all_sizes for mean in found.means] == pytest.approx([1.0, 2.0])
    assert [(each.name.split()[0], each.text) for each in found.unranked] == [
        ("c", "not ranked: 1 of 4 cases")
    ]


def test_three_quarters_of_the_cases_are_enough() -> None:
    found = ranking(*field({"a": [1.0, 1.0, 1.0, 9.0], "b": [2.0, 2.0, 2.0, 1.0], "c": [4.0] * 3}))
    assert found.cases == 3
    assert [mean.all_sizes for mean in found.means] == pytest.approx([1.0, 2.0, 4.0])
    assert found.unranked == []


def test_two_are_compared_over_what_they_share() -> None:
    (found,) = rankings(contests(field({"a": [1.0] * 9, "b": [2.0]})))
    assert (found.cases, [mean.name.split()[0] for mean in found.means]) == (1, ["a", "b"])


def test_contended_cases_take_no_part() -> None:
    bad = [timed("b", 99.0, f"work{i}", condition="contended") for i in range(3)]
    cases = [*field({"a": [1.0] * 4, "c": [2.0] * 4}), *bad, timed("b", 3.0, "work3")]
    found = ranking(*cases)
    assert [mean.name.split()[0] for mean in found.means] == ["a", "c"]
    assert [each.text for each in found.unranked] == ["not ranked: 1 of 4 cases, and 3 contended"]


def test_nothing_is_ranked_where_all_is_contended() -> None:
    found = ranking(*(timed(name, 1.0, condition="contended") for name in "ab"))
    assert found.means == []
    assert (
        found.why_empty
        == "a eager, b eager do not share a case to be ranked by (2 of 2 cases contended)"
    )
    assert [each.text for each in found.unranked] == [
        "not ranked: 0 of 0 cases, and 1 contended"
    ] * 2


def test_contestants_without_a_common_case_are_not_ranked() -> None:
    """Each beats another somewhere: there is no order."""
    pairs = [("a", "b"), ("b", "c"), ("c", "a")]
    found = ranking(
        *(timed(name, 1.0, f"work{i}") for i, pair in enumerate(pairs) for name in pair)
    )
    assert found.means == []
    assert {each.name.split()[0] for each in found.unranked} == {*"abc"}


def test_views_and_copies_are_ranked_apart() -> None:
    views = [timed(name, 1.0, "flatten", result_is_view=True) for name in "ab"]
    copies = [timed(name, 1.0, "flatten", result_is_view=False) for name in "cd"]
    others = [timed(name, 1.0) for name in "abcd"]
    found = rankings(contests([*others, *views, *copies]))
    assert {each.title: [mean.name.split()[0] for mean in each.means] for each in found} == {
        "operations, forward": [*"abcd"],
        "operations, forward (view)": [*"ab"],
        "operations, forward (copy)": [*"cd"],
    }


def test_devices_are_ranked_apart() -> None:
    cpu = [timed(name, 1.0) for name in "ab"]
    gpu = [timed(name, 1.0, device="gpu:0") for name in "ab"]
    assert [found.title for found in rankings(contests([*cpu, *gpu]))] == [
        "operations, forward, cpu",
        "operations, forward, gpu:0 (completion time)",
    ]
    assert ranking(*cpu).title == "operations, forward"
