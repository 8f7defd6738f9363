"""Cases of the same work meet in contests; means, answers and notes are of contests."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import pytest

from fwbench.records.facts import CaseFacts
from fwbench.records.measurement import Measurement
from fwbench.report import writers
from fwbench.report.ranking import (
    Answer,
    Contest,
    Mean,
    Ranking,
    Unranked,
    answers,
    contests,
    kind,
    notes,
    rankings,
    split,
    winner,
)
from support.gangs import gang
from support.reports import case, part, run_of
from support.terminals import IN_FULL, entry, shown


def timed(
    framework: str, time_s: float = 1.0, workload: str = "gemm", size: int = 8, **facts: Any
) -> Measurement:
    made = entry(framework, time_s, **{"workload": workload, "size": size, **facts})
    return Measurement(CaseFacts.checked(made["extra_info"]["fwbench"]), (time_s,))


def titles(*cases: Measurement) -> dict[str, list[str]]:
    """The contestants of each contest by its title."""
    return {
        contest.title: [entrant.facts.framework for entrant in contest.entrants]
        for contest in contests(cases)
    }


def test_views_and_copies_are_apart() -> None:
    views = [timed(name, result_is_view=True) for name in ("torch", "numpy")]
    copies = [timed(name, result_is_view=False) for name in ("mxnet", "tensorflow")]
    assert titles(*views, *copies) == {
        "gemm cpu forward float32 8 (view)": ["torch", "numpy"],
        "gemm cpu forward float32 8 (copy)": ["mxnet", "tensorflow"],
    }


def test_a_lone_view_is_not_ranked() -> None:
    """It would beat the copies a hundred times."""
    copies = [timed(name, result_is_view=False) for name in ("mxnet", "tensorflow")]
    assert [*titles(timed("torch", 1e-6, result_is_view=True), *copies)] == [
        "gemm cpu forward float32 8 (copy)"
    ]


def test_what_may_be_a_view_is_neither() -> None:
    cases = [
        timed("torch", result_is_view=True),
        timed("a", result_is_view=None),
        timed("b", result_is_view=None),
    ]
    assert [*titles(*cases)] == ["gemm cpu forward float32 8 (view or copy)"]


def test_what_is_computed_is_no_view() -> None:
    """oneDNN does not say where the result of a convolution lies."""
    unknown = timed("mxnet", result_is_view=None, flops=8.0)
    assert titles(unknown, timed("torch", result_is_view=False, flops=8.0)) == {
        "gemm cpu forward float32 8": ["mxnet", "torch"]
    }


@pytest.mark.parametrize("view", [True, False, None])
def test_without_a_difference_there_is_no_label(view: bool | None) -> None:
    cases = [timed(name, result_is_view=view) for name in ("a", "b")]
    assert [*titles(*cases)] == ["gemm cpu forward float32 8"]


def test_replicas_that_do_not_wait_for_each_other_are_apart() -> None:
    """Their updates are not those of one worker; a single one does the work of those that wait."""
    step = {"direction": "train"}
    servers = gang(strategy="ps_sync")
    waiting = [timed("torch", gang=gang(), **step), timed("mxnet", gang=servers, **step)]
    alone = timed("numpy", **step)
    unequal = gang(strategy="ps_async", equal_work=False)
    others = [timed(name, gang=unequal, **step) for name in ("tf", "mx")]
    assert titles(*waiting, alone, *others) == {
        "gemm cpu train float32 8 (synchronous)": ["torch", "mxnet", "numpy"],
        "gemm cpu train float32 8 (asynchronous)": ["tf", "mx"],
    }


def test_numbers_of_replicas_that_exchange_are_apart() -> None:
    """Four have more to exchange than two."""
    wire = {"network": "100mbit"}
    cases = [timed(name, gang=gang(n, **wire)) for n in (2, 4) for name in ("torch", "numpy")]
    assert titles(*cases) == {
        "gemm cpu forward float32 8 (2 replicas)": ["torch", "numpy"],
        "gemm cpu forward float32 8 (4 replicas)": ["torch", "numpy"],
    }
    trained = [timed(name, direction="train", gang=gang(n)) for n, name in ((2, "a"), (4, "b"))]
    assert [*titles(*trained)] == ["gemm cpu train float32 8"]


def test_exchanges_over_memory_are_not_ranked() -> None:
    """They wait for processors rather than for bytes; training over memory mostly computes."""
    for network, direction, ranked in (
        *(("loopback", "forward", 0), ("loopback", "train", 2), ("100mbit", "forward", 2)),
    ):
        of_gang = {"direction": direction, "gang": gang(network=network)}
        (contest,) = contests(timed(name, **of_gang) for name in ("torch", "numpy"))
        assert len(contest.ranked) == ranked


def test_precisions_are_apart() -> None:
    """Products in TF32 against each other, and not against those in float32."""
    full = [timed(name, precision_bits=bits) for name, bits in (("a", 23), ("b", 23))]
    exact = timed("c", precision_bits=None)
    tf32 = [timed(name, precision_bits=bits) for name, bits in (("d", 10), ("e", 10))]
    assert titles(*full, exact, *tf32) == {
        "gemm cpu forward float32 8 (23 bits)": ["a", "b", "c"],
        "gemm cpu forward float32 8 (10 bits)": ["d", "e"],
    }


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ({"size": 8}, {"size": 16}),
        ({"direction": "forward"}, {"direction": "backward"}),
        ({"steps_per_epoch": 10}, {"steps_per_epoch": 30}),
        ({"toggles": {"sparse": "on"}}, {"toggles": {"sparse": "off"}}),
        ({"data": {"digest": "a"}}, {"data": {"digest": "b"}}),
    ],
)
def test_other_work_is_another_contest(first: dict[str, Any], second: dict[str, Any]) -> None:
    assert contests([timed("a", **first), timed("b", **second)]) == []
    assert len(contests([timed("a", **first), timed("b", **first)])) == 1


def test_contended_cases_are_not_ranked() -> None:
    (contest,) = contests([timed("a"), timed("b", condition="contended")])
    assert [entrant.contestant for entrant in contest.entrants] == ["a eager", "b eager"]
    assert [entrant.contestant for entrant in contest.ranked] == ["a eager"]


def test_unequal_trainings_are_not_ranked() -> None:
    """A training that learns less in an epoch is faster."""
    lazy = timed("b", 0.5)
    lazy = replace(lazy, facts=CaseFacts.unchecked({**lazy.facts, "unequal": {"to": "a"}}))
    (contest,) = contests([timed("a"), lazy, timed("c")])
    assert [entrant.contestant for entrant in contest.ranked] == ["a eager", "c eager"]


def test_a_split_looks_at_the_same_work_only() -> None:
    cases = [timed("a", size=8, result_is_view=True), timed("a", size=16, result_is_view=False)]
    assert [*split(cases, lambda case: case.facts)] == [""]


_EPOCH = {"repetition": 1, "seconds": 1.0, "train_loss": 1.0}


@pytest.mark.parametrize(
    ("facts", "name"),
    [
        ({}, "operations, forward"),
        ({"direction": "backward"}, "operations, backward"),
        ({"parameters": 10}, "networks, forward"),
        ({"direction": "train", "checked_steps": 10}, "training steps"),
        ({"direction": "train"}, "loaders"),
        ({"direction": "train", "epochs": [_EPOCH]}, "training loops"),
    ],
)
def test_kinds_of_workloads(facts: dict[str, Any], name: str) -> None:
    assert kind(timed("a", **facts).facts) == name
    assert Contest([timed("a", **facts)], "").kind == (name, "cpu")


def answer(*cases: Measurement) -> Answer:
    (only,) = answers(contests(cases))
    return only


def test_wins_are_counted_by_framework() -> None:
    ranked = answer(*field({"numpy": [1.0, 2.0, 2.0], "torch": [2.0, 1.0, 1.0]}))
    assert ranked.text == "torch for 2 of 3, numpy for 1"
    assert (ranked.kind, ranked.device) == ("operations, forward", "cpu")


@pytest.mark.parametrize(("rival_s", "close"), [(1.04, True), (1.06, False)])
def test_small_differences_are_too_close_to_call(rival_s: float, close: bool) -> None:
    """Below what launches of the same case differ by."""
    ranked = answer(timed("numpy", 1.0), timed("torch", rival_s))
    assert ranked.too_close == close
    assert ranked.text == ("1 too close to call" if close else "numpy for 1 of 1")


def test_executions_of_one_framework_are_no_rivals() -> None:
    cases = [
        timed("tensorflow", 1.0, execution="graph"),
        timed("tensorflow", 1.01, execution="xla"),
        timed("numpy", 2.0),
    ]
    (contest,) = contests(cases)
    fastest = winner(contest)
    assert fastest is not None
    assert fastest.contestant == "tensorflow graph"
    assert answer(*cases).fastest == {"tensorflow": 1}


def test_a_framework_alone_wins_nothing() -> None:
    assert answers(contests([timed("torch", 1.0), timed("torch", 2.0, execution="compile")])) == []


def ranking(*cases: Measurement) -> Ranking:
    (ranked,) = rankings(contests(cases))
    return ranked


def names(contestants: Sequence[Mean | Unranked]) -> list[str]:
    """The frameworks of contestants, each with one execution."""
    return [contestant.name.split()[0] for contestant in contestants]


def field(times_s: Mapping[str, Sequence[float]]) -> list[Measurement]:
    """Works 0, 1, ...: the time of each contestant in each, as far as it has one."""
    return [
        timed(name, time_s, f"work{number}")
        for name, of_one in times_s.items()
        for number, time_s in enumerate(of_one)
    ]


def test_both_means_are_given() -> None:
    """Small sizes show what a call costs, the largest what the arithmetic costs."""
    ranked = ranking(
        *(timed("quick", 1.0, size=1), timed("quick", 3.0, size=100)),
        *(timed("slow", 16.0, size=1), timed("slow", 3.0, size=100)),
    )
    assert (ranked.cases, ranked.largest) == (2, 1)
    assert names(ranked.means) == ["quick", "slow"]
    assert [(mean.all_sizes, mean.largest) for mean in ranked.means] == [(1.0, 1.0), (4.0, 1.0)]


def test_the_largest_size_is_that_of_each_work() -> None:
    """The largest product is missing where it was contended, so none of its sizes counts."""
    ranked = ranking(
        *(timed(name, 1.0, "dot", size) for name in "ab" for size in (1, 10)),
        *(timed(name, 1.0, "gemm", size) for name in "ab" for size in (10, 64)),
        *(timed("a", 1.0, "gemm", 99), timed("b", 1.0, "gemm", 99, condition="contended")),
    )
    assert (ranked.cases, ranked.largest) == (4, 1)


def test_a_single_case_wins_nothing() -> None:
    ranked = ranking(*field({"a": [1.0] * 4, "b": [2.0] * 4, "c": [0.1]}))
    assert names(ranked.means) == ["a", "b"]
    assert ranked.cases == 4
    assert [mean.all_sizes for mean in ranked.means] == pytest.approx([1.0, 2.0])
    assert names(ranked.unranked) == ["c"]
    assert ranked.unranked[0].text == "not ranked: 1 of 4 cases"


def test_three_quarters_of_the_cases_are_enough() -> None:
    ranked = ranking(*field({"a": [1.0, 1.0, 1.0, 9.0], "b": [2.0, 2.0, 2.0, 1.0], "c": [4.0] * 3}))
    assert ranked.cases == 3
    assert [mean.all_sizes for mean in ranked.means] == pytest.approx([1.0, 2.0, 4.0])
    assert ranked.unranked == []


def test_two_are_compared_over_what_they_share() -> None:
    (ranked,) = rankings(contests(field({"a": [1.0] * 9, "b": [2.0]})))
    assert (ranked.cases, names(ranked.means)) == (1, ["a", "b"])


def test_contended_cases_take_no_part() -> None:
    bad = [timed("b", 99.0, f"work{i}", condition="contended") for i in range(3)]
    cases = [*field({"a": [1.0] * 4, "c": [2.0] * 4}), *bad, timed("b", 3.0, "work3")]
    ranked = ranking(*cases)
    assert names(ranked.means) == ["a", "c"]
    assert [unranked.text for unranked in ranked.unranked] == [
        "not ranked: 1 of 4 cases, and 3 contended"
    ]


def test_nothing_is_ranked_where_all_is_contended() -> None:
    ranked = ranking(*(timed(name, 1.0, condition="contended") for name in "ab"))
    assert ranked.means == []
    why = "a eager, b eager do not share a case to be ranked by (2 of 2 cases contended)"
    assert ranked.why_empty == why
    unranked = [note.text for note in ranked.unranked]
    assert unranked == ["not ranked: 0 of 0 cases, and 1 contended"] * 2


def test_contestants_without_a_common_case_are_not_ranked() -> None:
    """Each beats another somewhere: there is no order."""
    pairs = [("a", "b"), ("b", "c"), ("c", "a")]
    ranked = ranking(
        *(timed(name, 1.0, f"work{i}") for i, pair in enumerate(pairs) for name in pair)
    )
    assert ranked.means == []
    assert {*names(ranked.unranked)} == {*"abc"}


def test_views_and_copies_are_ranked_apart() -> None:
    views = [timed(name, 1.0, "flatten", result_is_view=True) for name in "ab"]
    copies = [timed(name, 1.0, "flatten", result_is_view=False) for name in "cd"]
    others = [timed(name, 1.0) for name in "abcd"]
    ranked = rankings(contests([*others, *views, *copies]))
    assert {means_table.title: names(means_table.means) for means_table in ranked} == {
        "operations, forward": [*"abcd"],
        "operations, forward (view)": [*"ab"],
        "operations, forward (copy)": [*"cd"],
    }


def test_devices_are_ranked_apart() -> None:
    cpu = [timed(name, 1.0) for name in "ab"]
    gpu = [timed(name, 1.0, device="gpu:0") for name in "ab"]
    assert [ranked.title for ranked in rankings(contests([*cpu, *gpu]))] == [
        "operations, forward, cpu",
        "operations, forward, gpu:0 (completion time)",
    ]
    assert ranking(*cpu).title == "operations, forward"


_GPU: dict[str, Any] = {"device": "gpu:0", "device_name": "Fake 9000"}


def on_gpu(completion_s: float = 8e-6, **facts: Any) -> CaseFacts:
    """A case on a GPU that was timed by the clock of the device."""
    known = {"device": "gpu:0", "device_clock": "events", "completion_s": completion_s}
    return CaseFacts.unchecked({**known, **facts})


_RANKED = (
    "cases on gpu:0 are ranked by completion time, until the result exists: launch, kernel and wait"
)


@pytest.mark.parametrize(
    ("cases", "message"),
    [
        ([on_gpu(device="cpu", device_s=2e-6)], []),
        ([on_gpu(device_s=2e-6)],
         [f"{_RANKED}; the GPU itself needed 25 % of it (median of 1 case)"]),
        ([on_gpu(device_s=share * 8e-6) for share in (0.125, 0.5, 1.5)],
         [f"{_RANKED}; the GPU itself needed 50 % of it (median of 3 cases, 12 % to 100 %)"]),
        ([on_gpu(device_clock="slope", device_s=2e-6)], [_RANKED]),
        ([on_gpu(device_s=None)], [_RANKED]),
    ],
    ids=["a CPU", "one case", "several", "no clock of its own", "noise was larger"],
)  # fmt: skip
def test_a_gpu_s_time_is_named_with_the_part_that_it_needed(
    cases: list[CaseFacts], message: list[str]
) -> None:
    """Where the part is small, the ranking is one of launches."""
    assert notes(cases) == message


def test_a_terminal_names_the_time_in_tables_means_and_answer() -> None:
    records = [
        entry(name, time_s, device_s=1e-6, device_clock="events", **_GPU)
        for name, time_s in (("torch", 4e-6), ("jax", 8e-6))
    ]
    lines = shown(*records, view=IN_FULL)
    assert lines[1].startswith(f"{_RANKED}; the GPU itself needed 19 % of it (median of 2 cases")
    (table,) = [line for line in lines if line.startswith("operations, forward: median")]
    assert table.endswith("(completion time)")
    assert any(line.startswith("operations, forward (completion time): geom") for line in lines)
    assert lines[-1] == "Fastest here (completion time): torch for 1 of 1"


def test_reports_and_markdown_name_the_time() -> None:
    facts = {**_GPU, "device_s": 1e-6, "device_clock": "events"}
    times_s = {"torch": 4e-6, "jax": 8e-6}
    runs = [
        run_of(*(case("gemm", *times, completion_s=times[1], **facts) for times in times_s.items()))
    ]
    text = writers.markdown(runs)
    assert f"- C{_RANKED[1:]}" in text
    assert "against the fastest: operations, forward (completion time)" in text
    overview_note = "On a GPU these are completion times: launch, kernel and wait."
    assert overview_note in part(runs, "overview").notes
    assert "on the device" in part(runs, "gemm").columns


def test_a_cpu_has_one_time() -> None:
    runs = [run_of(*(case("gemm", name, 1.0) for name in ("torch", "jax")))]
    assert "completion time" not in writers.markdown(runs)
    assert "on the device" not in part(runs, "gemm").columns
