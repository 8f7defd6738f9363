"""Cases of the same work meet in contests; means, answers and notes are of contests."""

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
    Coverage,
    Decision,
    Mean,
    Ranking,
    Unranked,
    answers,
    contests,
    differences,
    extremes,
    kind,
    notes,
    rankings,
    split,
    works,
)
from support.gangs import gang
from support.reports import case, part, run_of
from support.tables import tabled
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


def test_models_are_compared_where_only_one_framework_counts_flops() -> None:
    """PyTorch counts those of a model of one's own, and TensorFlow does not."""
    network = {"parameters": 8, "result_is_view": None}
    assert titles(timed("torch", flops=8.0, **network), timed("tensorflow", **network)) == {
        "gemm cpu forward float32 8": ["torch", "tensorflow"]
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


@tabled
def test_other_work_is_another_contest(first: dict[str, Any], second: dict[str, Any]) -> None:
    assert contests([timed("a", **first), timed("b", **second)]) == []
    assert len(contests([timed("a", **first), timed("b", **first)])) == 1


_BUSY = {"condition": "contended"}


def row(**times_s: str) -> Contest:
    """A contest of cases in seconds, those with a ``!`` contended; ``a2`` is another execution."""
    (contest,) = works(
        timed(name[0], float(text.rstrip("!")), execution=name, **(_BUSY if "!" in text else {}))
        for name, text in times_s.items()
    )
    return contest


@tabled
def test_who_wins_a_contest(times_s: dict[str, str], decision: str, fastest: str) -> None:
    contest = row(**times_s)
    found = contest.fastest
    assert contest.decision is Decision[decision]
    assert (found and found.facts.execution) == (fastest or None)
    ratios = {case.facts.execution: contest.ratio(case) for case in contest.entrants}
    assert {name for name, ratio in ratios.items() if ratio is not None} == {
        name for name, text in times_s.items() if fastest and ("!" not in text or name == fastest)
    }
    assert ratios.get(fastest, 1.0) == 1.0


def test_executions_that_are_as_fast_win_less_easily() -> None:
    """The fastest of three twins is ahead of a fourth by chance; slow ones cannot have led."""
    assert row(a1="1", b="1.066").decision is Decision.WON
    twins = row(a1="1", a2="1", a3="1", b="1.066")
    assert twins.decision is Decision.CLOSE
    assert twins.is_close(twins.entrants[-1])
    assert row(a1="1", a2="1", a3="1", b="1.08").decision is Decision.WON
    assert row(a1="1", a2="1.5", a3="2", b="1.066").decision is Decision.WON


def test_a_slow_clean_case_is_not_the_fastest() -> None:
    """On a busy machine: what escaped contention is slow, and what did not is proven faster."""
    relu = row(xla="159", torch="1.3!", numpy="6.03!")
    assert relu.ratio(relu.entrants[0]) is None
    assert differences([relu]) == []
    assert differences([row(torch="1", numpy="1")]) == []
    (difference,) = differences([row(xla="159", torch="1.3!", numpy="6.03")])
    assert (difference.fastest.facts.framework, difference.slowest.facts.framework) == ("t", "x")


def test_unequal_trainings_are_not_ranked() -> None:
    """A training that learns less in an epoch is faster."""
    lazy = timed("b", 0.5)
    lazy = replace(lazy, facts=CaseFacts.unchecked({**lazy.facts, "unequal": {"to": "a"}}))
    (contest,) = contests([timed("a"), lazy, timed("c")])
    assert [entrant.contestant for entrant in contest.ranked] == ["a eager", "c eager"]


def test_a_split_looks_at_the_same_work_only() -> None:
    cases = [timed("a", size=8, result_is_view=True), timed("a", size=16, result_is_view=False)]
    assert [*split(cases, lambda case: case.facts)] == [""]


@tabled
def test_kinds_of_workloads(facts: dict[str, Any], name: str) -> None:
    assert kind(timed("a", **facts).facts) == name
    assert Contest([timed("a", **facts)], "").kind == (name, "cpu")


def answer(*cases: Measurement) -> Answer:
    (only,) = answers(contests(cases))
    return only


def test_wins_are_counted_by_framework() -> None:
    found = answer(*field({"numpy": [1.0, 2.0, 2.0], "torch": [2.0, 1.0, 1.0]}))
    assert found.text == "torch for 2 of 3, numpy for 1"
    assert (found.kind, found.device) == ("operations, forward", "cpu")


@tabled
def test_half_of_the_rows_make_an_answer(disturbed: int, text: str) -> None:
    busy = [timed("b", 9.0, f"work{i}", **_BUSY) for i in range(6, 6 + disturbed)]
    cases = [*field({"a": [1.0] * (6 + disturbed), "b": [2.0] * 6}), *busy]
    found = answer(*cases)
    assert found.text == text
    assert found.is_known is not text.startswith("cannot")


def test_a_framework_alone_wins_nothing() -> None:
    assert answers(contests([timed("torch", 1.0), timed("torch", 2.0, execution="compile")])) == []


def ranking(*cases: Measurement) -> Ranking:
    (found,) = rankings(contests(cases))
    return found


def names(contestants: Sequence[Mean | Unranked]) -> list[str]:
    """The frameworks of contestants, each with one execution."""
    return [each.name.split()[0] for each in contestants]


def field(times_s: Mapping[str, Sequence[float]]) -> list[Measurement]:
    """Works 0, 1, ...: the time of each contestant in each, as far as it has one."""
    return [
        timed(name, time_s, f"work{number}")
        for name, of_one in times_s.items()
        for number, time_s in enumerate(of_one)
    ]


def test_small_and_large_sizes_have_means_of_their_own() -> None:
    """Small sizes show what a call costs, the largest what the arithmetic costs."""
    sizes = {"quick": (1.0, 5.0, 3.0), "slow": (16.0, 1.0, 3.0)}
    found = ranking(
        *(timed(name, t, size=10**n) for name, of in sizes.items() for n, t in enumerate(of)),
        *(timed("quick", 12.0, "dot"), timed("slow", 3.0, "dot")),
    )
    assert (found.smallest, found.largest) == (Coverage(1, 1), Coverage(2, 2))
    assert names(found.means) == ["slow", "quick"]
    assert [mean.smallest for mean in found.means] == pytest.approx([16.0, 1.0])
    assert [mean.largest for mean in found.means] == pytest.approx([1.0, 2.0])


def test_of_three_sizes_two_are_said_to_count() -> None:
    """The table has three rows of them, and so has the answer."""
    cases = [timed(name, size=size, **_BUSY) for name in "ab" for size in (1, 10, 100)]
    assert ranking(*cases).why_empty == (
        "a eager, b eager share 2 cases of the smallest and largest sizes, 0 of them undisturbed"
    )


def test_the_largest_size_is_that_of_each_work() -> None:
    """The largest product was contended, so no other size of it counts as large."""
    made = contests(
        [
            *(timed(name, 1.0, "dot", size) for name in "ab" for size in (1, 10)),
            *(timed(name, 1.0, "gemm", size) for name in "ab" for size in (10, 64)),
            *(timed("a", 1.0, "gemm", 99), timed("b", 1.0, "gemm", 99, **_BUSY)),
        ]
    )
    small, large = extremes(made)
    assert [[(c.facts.workload, c.size) for c in part] for part in (small, large)] == [
        [("dot", 1), ("gemm", 10)],
        [("dot", 10), ("gemm", 99)],
    ]
    (found,) = rankings(made)
    assert (found.smallest, found.largest) == (Coverage(2, 2), Coverage(1, 2))


def test_a_single_case_wins_nothing() -> None:
    found = ranking(*field({"a": [1.0] * 4, "b": [2.0] * 4, "c": [0.1]}))
    assert names(found.means) == ["a", "b"]
    assert found.largest == Coverage(4, 4)
    assert [mean.largest for mean in found.means] == pytest.approx([1.0, 2.0])
    assert names(found.unranked) == ["c"]
    assert found.unranked[0].text == "not ranked: 1 of 4 cases"


def test_three_quarters_of_the_cases_are_enough() -> None:
    found = ranking(*field({"a": [1.0, 1.0, 1.0, 9.0], "b": [2.0, 2.0, 2.0, 1.0], "c": [4.0] * 3}))
    assert found.largest == Coverage(3, 3)
    assert [mean.largest for mean in found.means] == pytest.approx([1.0, 2.0, 4.0])
    assert found.unranked == []


def test_two_are_compared_over_what_they_share() -> None:
    (found,) = rankings(contests(field({"a": [1.0] * 9, "b": [2.0]})))
    assert (found.largest, names(found.means)) == (Coverage(1, 1), ["a", "b"])


@pytest.mark.parametrize(("contended", "known"), [(0, 4), (2, 2), (3, 1), (4, 0)])
def test_means_need_half_of_the_shared_cases(contended: int, known: int) -> None:
    """The same for all: who was disturbed most would be left out otherwise, though not slower."""
    bad = [timed("b", 0.1, f"work{i}", **_BUSY) for i in range(contended)]
    good = [timed("b", 3.0, f"work{i}") for i in range(contended, 4)]
    found = ranking(*field({"a": [1.0] * 4, "c": [2.0] * 4}), *bad, *good)
    assert found.largest == Coverage(known, 4)
    assert names(found.means) == (["a", "c", "b"] if known >= 2 else [])
    if known < 2:
        assert found.why_empty == (
            f"a eager, c eager, b eager share 4 cases, {known} of them undisturbed"
        )
        assert [each.text for each in found.unranked] == ["not ranked: 4 of 4 cases"] * 3


def test_contestants_without_a_common_case_are_not_ranked() -> None:
    """Each beats another somewhere: there is no order."""
    pairs = [("a", "b"), ("b", "c"), ("c", "a")]
    found = ranking(
        *(timed(name, 1.0, f"work{i}") for i, pair in enumerate(pairs) for name in pair)
    )
    assert found.means == []
    assert {*names(found.unranked)} == {*"abc"}


def test_views_and_copies_are_ranked_apart() -> None:
    views = [timed(name, 1.0, "flatten", result_is_view=True) for name in "ab"]
    copies = [timed(name, 1.0, "flatten", result_is_view=False) for name in "cd"]
    others = [timed(name, 1.0) for name in "abcd"]
    found = rankings(contests([*others, *views, *copies]))
    assert {each.title: names(each.means) for each in found} == {
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


_GPU: dict[str, Any] = {"device": "gpu:0", "device_name": "Fake 9000"}


def on_gpu(completion_s: float = 8e-6, **facts: Any) -> CaseFacts:
    """A case on a GPU that was timed by the clock of the device."""
    known = {"device": "gpu:0", "device_clock": "events", "completion_s": completion_s}
    return CaseFacts.unchecked({**known, **facts})


_RANKED = (
    "cases on gpu:0 are ranked by completion time, until the result exists: launch, kernel and wait"
)


_NEEDED = f"{_RANKED}; the GPU itself needed"


@pytest.mark.parametrize(
    ("cases", "said"),
    [
        ([on_gpu(device="cpu", device_s=2e-6)], []),
        ([on_gpu(device_s=2e-6)],
         [f"{_NEEDED} 25 % of it (median of 1 case, by events)"]),
        ([on_gpu(device_s=share * 8e-6) for share in (0.125, 0.5, 1.5)],
         [f"{_NEEDED} 50 % of it (median of 3 cases, 12 % to 100 %, by events)"]),
        ([on_gpu(device_s=2e-6), on_gpu(device_clock="cupti", device_s=1e-6)],
         [(f"{_NEEDED} 12 % of it (median of 1 case, by cupti); the GPU itself needed 25 % of it "
           "(median of 1 case, by events)")]),
        ([on_gpu(device_clock="slope", device_s=2e-6)], [_RANKED]),
        ([on_gpu(device_s=None)], [_RANKED]),
    ],
    ids=["a CPU", "one case", "several", "two clocks", "no clock of its own", "noise was larger"],
)  # fmt: skip
def test_a_gpu_s_time_is_named_with_the_part_that_it_needed(
    cases: list[CaseFacts], said: list[str]
) -> None:
    """Where the part is small, the ranking is one of launches."""
    assert notes(cases) == said


def test_wider_numbers_are_named_with_the_bytes_that_they_move() -> None:
    """PyTorch's ``one_hot`` is of int64: its time is that of twice the bytes."""

    moved = {"one_hot": (200.0, 100.0), "argsort": (150.0, 100.0), "top_k": (110.0, 100.0)}
    cases = [
        timed(framework, workload=workload, bytes=bytes_moved)
        for workload, both in moved.items()
        for framework, bytes_moved in zip(("torch", "mxnet"), both, strict=True)
    ]
    (note,) = notes([case.facts for case in cases])
    assert note == (
        "torch moves more bytes than others, since its numbers are wider: argsort (1.5x), "
        "one_hot (2x)"
    )


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
    runs = [run_of(*(case("gemm", *of, completion_s=of[1], **facts) for of in times_s.items()))]
    text = writers.markdown(runs)
    assert f"- C{_RANKED[1:]}" in text
    assert "against the fastest: operations, forward (completion time)" in text
    overview_note = "On a GPU these are completion times: launch, kernel and wait."
    assert overview_note in part(runs, "overview").notes
    assert "on the device, by events" in part(runs, "gemm").columns


def test_times_of_different_clocks_of_a_gpu_are_in_different_columns() -> None:
    """Events include pauses that CUPTI leaves out: below 20 us they rank clocks."""
    clocks = {"torch": "events", "jax": "cupti"}
    runs = [
        run_of(
            *(
                case("gemm", name, 4e-6, completion_s=4e-6, device_s=1e-6, device_clock=clock)
                for name, clock in clocks.items()
            )
        )
    ]
    columns = part(runs, "gemm").columns
    by_clock = [column for column in columns if column.startswith("on the device")]
    assert by_clock == ["on the device, by events", "on the device, by CUPTI"]
    assert "each further call" not in columns


def test_frameworks_that_cupti_timed_are_in_one_column() -> None:
    """PyTorch is in that of its events as well."""
    clocks: dict[str, Any] = {
        "torch": {"device_clock": "events", "device_s": 4e-6, "kernels_s": 1e-6},
        "jax": {"device_clock": "cupti", "device_s": 2e-6, "kernels_s": 2e-6},
        "mxnet": {"device_clock": "cupti", "device_s": 3e-6},  # recorded before there was another
    }
    cases = [
        case("gemm", name, time_s, completion_s=time_s, **facts)
        for time_s, (name, facts) in zip((8e-6, 9e-6, 10e-6), clocks.items(), strict=True)
    ]
    section = part([run_of(*cases)], "gemm")
    texts = {}
    for clock in ("events", "CUPTI"):
        column = section.columns.index(f"on the device, by {clock}")
        texts[clock] = [row.cells[column].text for row in section.rows]
    assert texts == {"events": ["4 us", "", ""], "CUPTI": ["1 us", "2 us", "3 us"]}


def test_a_report_says_why_cupti_did_not_time_kernels() -> None:
    why = {"device_clock": "events", "device_s": 1e-6, "kernels_reason": "it is not there"}
    section = part([run_of(case("gemm", "torch", 4e-6, completion_s=4e-6, **why))], "gemm")
    (note,) = section.notes
    assert note == (
        "CUPTI did not time torch: it is not there. Its times by events do not compare with "
        "others' by CUPTI."
    )


def test_a_report_says_why_the_gpu_s_own_clock_did_not_time_calls() -> None:
    slope = {"device_clock": "slope", "slope_reason": "CUPTI has no record of a call"}
    clocks = {"torch": {"device_clock": "events"}, "jax": slope, "tensorflow": slope}
    cases = [
        case("gemm", name, 4e-6, completion_s=4e-6, device_s=1e-6, **facts)
        for name, facts in clocks.items()
    ]
    section = part([run_of(*cases)], "gemm")
    assert "each further call" in section.columns
    (note,) = section.notes
    assert note == (
        "The GPU's own clock did not time jax, tensorflow: CUPTI has no record of a call. The time "
        "of each further call may be that of its launch."
    )


def test_a_cpu_has_one_time() -> None:
    runs = [run_of(*(case("gemm", name, 1.0) for name in ("torch", "jax")))]
    assert "completion time" not in writers.markdown(runs)
    assert not [name for name in part(runs, "gemm").columns if name.startswith("on the device")]
