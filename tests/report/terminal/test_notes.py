"""Notes beside the tables: means, overhead, early returns, unsteady and probed cases, replicas."""

from typing import Any

import pytest

from fwbench.records.session_facts import StoredRace
from fwbench.records.stored import just_measured
from fwbench.report.terminal import notes
from fwbench.report.terminal.screen import Outcome, screen
from support.gangs import gang
from support.histories import OPEN, RACE, TIED, contestant, group
from support.tables import tabled
from support.terminals import IN_FULL, WIDE, entry, shown, texts

_Record = dict[str, Any]


def means(*records: _Record) -> list[str]:
    return notes.geometric_means([just_measured(record) for record in records])


def test_means_are_against_the_fastest_of_each_group() -> None:
    assert means(
        *(entry("a", 1.0, workload="small"), entry("b", 4.0, workload="small")),
        *(entry("a", 90.0, workload="large"), entry("b", 10.0, workload="large")),
        entry("b", 3.0, workload="alone"),
    ) == [
        # a: sqrt(1 x 9); b: sqrt(4 x 1). Who is alone has won nothing.
        (
            "operations, forward: geometric mean of the median times against the fastest, over "
            "2 of 2 cases of largest size:"
        ),
        "  b eager      2.00x",
        "  a eager      3.00x",
    ]


def test_who_lacks_cases_is_listed_below() -> None:
    sized = [(f"work {i}", size) for i in range(2) for size in (1, 9)]
    records = [entry(name, workload=work, size=size) for name in "ab" for work, size in sized]
    found = means(*records, entry("c", 0.1, workload="work 0", size=1))
    over = "over 2 of 2 cases of smallest size, and over 2 of 2 cases of largest size:"
    assert found[0].endswith(over)
    assert found[1:] == [
        *("  a eager      1.00x     1.00x", "  b eager      1.00x     1.00x"),
        "  c eager  not ranked: 1 of 4 cases",
    ]


def test_means_are_shown_in_full() -> None:
    """The table of operations says more; they keep their columns there."""
    records = [entry("a", 1.0), entry("b", 2.0)]
    assert "  b eager      2.00x" in shown(*records, view=IN_FULL)
    assert not any("geometric mean" in line for line in shown(*records))


# noop


def test_noop_is_no_contestant() -> None:
    noop = {"workload": "noop"}
    records = [
        *(entry("a"), entry("b"), entry("a", 3e-6, **noop), entry("a", 2e-6, **noop)),
        entry("b", 5e-7, **noop),
    ]
    said = "noop, the time to do nothing (not subtracted): a eager 2 us, b eager 500 ns"
    assert [line for line in shown(*records, view=IN_FULL) if "noop" in line] == [said]
    assert not any("noop" in line for line in shown(*records))


def test_noop_alone_has_no_table() -> None:
    lines = shown(entry("a", workload="noop"), entry("b", workload="noop"))
    why = "noop does no work, so it is not ranked; -v shows its times"
    assert [lines[1], *lines[4:]] == ["", why]


@tabled
def test_times_are_written_for_people(seconds: float, text: str) -> None:
    measured = just_measured(entry("a", seconds, workload="noop"))
    assert notes.overhead([measured])[0].endswith(f": a eager {text}")


def test_the_largest_difference_of_dispatch_and_completion_is_told() -> None:
    records = [
        entry("lazy", 20e-3, dispatch_s=1e-3, workload="gemm"),
        entry("lazy", 18e-3, dispatch_s=90e-6, workload="dot"),
        entry("lazy", 3e-3, dispatch_s=2e-3, workload="relu"),
        entry("prompt", 5e-3),
    ]
    first = "lazy: 2 cases returned in less than half the time that the work took"
    (line,) = (line for line in shown(*records) if "returned" in line)
    (full,) = (line for line in shown(*records, view=IN_FULL) if "returned" in line)
    assert line == first
    assert full == f"{first}, most of all dot eager 8: after 90 us of 18 ms (200x)"


@pytest.mark.parametrize(("dispatch_s", "lines"), [(0.5, 0), (0.49, 1), (0.0, 1), (None, 0)])
def test_half_the_time_is_no_news(dispatch_s: float | None, lines: int) -> None:
    measured = just_measured(entry("a", 1.0, dispatch_s=dispatch_s))
    assert len(notes.dispatch([measured], in_full=False)) == lines


@pytest.mark.parametrize(
    ("number", "names"), [(1, "0-a"), (3, "0-a, 1-a, 2-a"), (5, "0-a, 1-a, 2-a and 2 more")]
)
def test_unsteady_cases_are_counted(number: int, names: str) -> None:
    unsteady = [entry("a", steady=False, workload=str(i)) for i in range(number)]
    records = [entry("a", steady=None), entry("a"), *unsteady]
    for view, more in ((WIDE, []), (IN_FULL, [f"  {names}"])):
        lines = shown(*records, view=view)
        at = next(at for at, line in enumerate(lines) if "not steady" in line)
        assert lines[at].startswith(f"{number} case")
        assert "--fw-warmup" in lines[at]
        assert lines[at + 1 : -3] == more


def test_what_was_not_warmed_up_is_not_called_unsteady() -> None:
    lines = shown(entry("a", steady=None), entry("a", steady=True))
    assert not any("not steady" in line for line in lines)


def _energies(*records: _Record, in_full: bool = False) -> list[str]:
    return notes.energy([just_measured(record) for record in records], in_full=in_full)


def test_energy_is_told_by_work_and_contestant() -> None:
    assert _energies(
        entry("a", energy_j=8.125, device="gpu:0"),
        entry("b", energy_j=2.0, device="gpu:0"),
        entry("c", energy_j=None, device="gpu:0"),
        entry("a", workload="dot"),
    ) == ["energy of a call, gemm gpu:0 forward float32 8: b eager 2 J, a eager 8.12 J"]
    assert _energies(entry("a"), entry("b", energy_j=None)) == []


def test_energy_of_training_is_of_an_epoch() -> None:
    """A round is an epoch there."""
    facts = {"workload": "mlp", "direction": "train", "epoch_s": 1.0, "energy_j": 1500.0}
    (line,) = _energies(entry("a", **facts))
    assert line.startswith("energy of an epoch, mlp cpu train float32 8: a eager 1.5e+03 J")


def test_works_that_took_most_energy_are_shown() -> None:
    records = [entry("a", workload=f"work{i}", energy_j=float(i)) for i in range(1, 6)]
    found = _energies(*records)
    assert [line.partition(" cpu")[0] for line in found[:3]] == [
        f"energy of a call, work{i}" for i in (5, 4, 3)
    ]
    assert found[3:] == ["energy of 2 other works: -v"]
    assert len(_energies(*records, in_full=True)) == 5
    assert "energy of a call, work5 cpu forward float32 8: a eager 5 J" in shown(*records)


_PROFILE = {
    "call_s": 1.5,
    "shares": {"convolution": 0.6, "matmul": 0.38, "pooling": 0.01, "loss": 0.01},
    "trace": "trace.json",
}


def test_each_case_has_a_line_in_full() -> None:
    lines = shown(
        entry("torch", profile=_PROFILE),
        entry("numpy", profile={"gap": "numpy has no profiler"}),
        entry("mxnet", profile={**_PROFILE, "shares": {"matmul": 1.0}, "shares_within": 0.014}),
        view=IN_FULL,
        traces="/traces",
    )
    start = lines.index("where the time goes, by the frameworks' own profilers:")
    assert lines[start + 1 : start + 5] == [
        "  gemm-torch: convolution 60%, matmul 38%, rest 2% (profiler: +50%)",
        "  gemm-numpy: numpy has no profiler",
        "  gemm-mxnet: matmul 100% within 1 point (profiler: +50%)",
        "traces for https://ui.perfetto.dev: /traces",
    ]


def test_all_cases_have_one_line_otherwise() -> None:
    found = {"profile": {"gap": "numpy has no profiler"}}
    lines = shown(entry("numpy", **found))
    assert "1 case profiled, 1 without a result: -v shows where the time goes" in lines
    assert not [line for line in lines if "perfetto" in line]
    lines = shown(entry("torch", profile=_PROFILE), entry("numpy", **found), traces="/traces")
    assert "2 cases profiled, 1 without a result: -v shows where the time goes" in lines
    assert "traces for https://ui.perfetto.dev: /traces" in lines


def test_memory_has_a_line_in_full() -> None:
    forward = {"before_bytes": 2**30, "peak_bytes": 2**30 + 40 * 2**20, "planned_bytes": 7 * 2**20}
    step = {"before_bytes": 2**30, "peak_bytes": 2**30 + 90 * 2**20, "saved_bytes": 60 * 2**20}
    records = (
        entry("torch", direction="train", memory=step, forward_memory=forward),
        entry("numpy", memory={"gap": "it died"}),
        entry("mxnet", memory={"before_bytes": None, "peak_bytes": None}),
    )
    lines = shown(*records, view=IN_FULL)
    start = lines.index("peak memory above what was held before, each in a process of its own:")
    assert lines[start + 1 : start + 4] == [
        "  gemm-torch: forward 40 MiB (7 MiB planned), train 90 MiB (60 MiB kept for the gradient)",
        "  gemm-numpy: forward it died",
        "  gemm-mxnet: forward unknown",
    ]
    assert "memory of 3 cases measured: -v shows it, and reports do" in shown(*records)


def test_without_probes_nothing_is_said() -> None:
    assert not [
        line
        for line in shown(entry("torch"), traces="/traces")
        if "profile" in line or "memory" in line
    ]


def _replicated(replicas: int, step_s: float, **of_gang: Any) -> dict[str, Any]:
    own = {} if replicas == 1 else {"gang": gang(replicas, step_s, bus_bytes_per_s=None, **of_gang)}
    return entry(
        "torch",
        step_s,
        workload="lenet_step",
        direction="train",
        size=48,
        threads=1,
        images_per_s=48 / step_s,
        toggles={"replicas": str(replicas)},
        params={"replicas": str(replicas)},
        **own,
    )


def _table(*records: dict[str, Any]) -> list[str]:
    lines = shown(*records)
    begin = next(n for n, line in enumerate(lines) if line.startswith("replicas: "))
    return lines[begin : lines.index("", begin)]


def test_what_each_number_of_replicas_took_and_gained() -> None:
    assert _table(_replicated(1, 1.0), _replicated(2, 0.625, skew=0.25)) == [
        "replicas: lenet_step cpu train float32 48",
        "             replicas  a step  a second  efficiency  MB sent  skew",
        "torch eager         1     1 s        48",
        "torch eager         2  625 ms      76.8         80%        8   25%",
    ]


def test_more_threads_than_processors_are_named() -> None:
    row = _table(_replicated(1, 1.0), _replicated(2, 0.625, oversubscribed=True))[-1]
    assert row.endswith("more threads than CPUs")
    assert "80%" not in row


def test_exchanges_say_in_their_row_how_many_replicas_there_are() -> None:
    exchanges = [
        entry(
            "numpy",
            1e-3 * replicas,
            workload="all_reduce",
            gang=gang(replicas, network="100mbit"),
            toggles={"replicas": str(replicas), "strategy": "allreduce"},
            params={"replicas": str(replicas), "strategy": "allreduce"},
        )
        for replicas in (2, 4)
    ]
    lines = shown(*exchanges)
    begin = next(n for n, line in enumerate(lines) if line.startswith("operations"))
    assert [line.split() for line in lines[begin + 1 : lines.index("", begin)]] == [
        *(["numpy"], ["eager"], ["strategy=allreduce"]),
        ["all_reduce", "(2", "replicas)", "8", "2", "ms"],
        ["all_reduce", "(4", "replicas)", "8", "4", "ms"],
    ]


def test_sessions_without_replicas_have_no_table() -> None:
    for records in ([entry("torch")], [_replicated(1, 1.0)]):
        assert not [line for line in shown(*records) if line.startswith("replicas")]


# Next


def test_the_next_steps_follow_from_what_was_seen() -> None:
    """Two of them: an idle machine, a race, a report, one's own code."""
    lone = [entry("torch"), entry("numpy", 2.0)]
    close = [entry("torch", workload="dot"), entry("numpy", workload="dot")]
    busy = [entry("torch", size=9, condition="contended"), entry("numpy", size=9)]
    for records, first, second in (
        ([*busy, *close], "stop what else", '-k "[dot-" --fw-race'),
        ([*busy, *lone], "stop what else", "fwbench recover -o run.json; fwbench report run.json"),
        ([*close, *lone], '-k "[dot-" --fw-race', "fwbench report run.json -o run.html"),
        (lone, "fwbench recover", "docs/own-operation.md"),
        ([entry("numpy"), entry("numpy")], "fwbench recover", "docs/own-operation.md"),
        # Above it is that there is nothing to compare.
        ([entry("numpy"), entry("numpy", execution="graph")], "fwbench recover", "own-operation"),
    ):
        steps = notes.next_steps([just_measured(record) for record in records], "")
        assert len(steps) == 2
        assert first in steps[0]
        assert second in steps[1]
        assert max(map(len, steps)) <= 80
    (report, _) = notes.next_steps([just_measured(record) for record in lone], "mine.json")
    assert report == "Next: charts: fwbench report mine.json -o run.html"
    cases = [just_measured(record) for record in lone]
    (lost, _) = notes.next_steps(cases, "", has_journal=False)
    assert lost == "Next: charts: measure with --benchmark-json run.json: no record is kept"


def test_a_race_has_answered() -> None:
    """It knows more than the medians, which say that all rows are disturbed."""
    busy = [entry(name, condition="contended") for name in ("torch", "numpy")]
    lines = texts(screen(Outcome(busy, race=RACE), WIDE))
    assert "Fastest here, by the race above: torch eager for 1 of 3; 1 tie; 1 undecided" in lines
    assert not any("cannot be told" in line or "stop what else" in line for line in lines)
    assert "Next: what the race left undecided: give it more time (--fw-budget)" in lines


def test_more_time_decides_no_race_beside_busy_processes() -> None:
    rivals = [contestant(name, "open", 1e-6, disturbed=True) for name in ("torch", "numpy")]
    contended = StoredRace(level=0.01, groups=[group("gemm", "undecided", *rivals)])
    close = [just_measured(entry(name)) for name in ("torch", "numpy")]
    assert not any("--fw-budget" in line for line in notes.next_steps(close, "", contended))


def test_a_race_that_decided_nothing_is_no_answer() -> None:
    close = [just_measured(entry(name)) for name in ("torch", "numpy")]
    (tie,) = notes.answer(close, StoredRace(level=0.01, groups=[TIED]))
    assert tie == "Fastest here, by the race above: 0 of 1; 1 tie"
    undecided = StoredRace(level=0.01, groups=[OPEN])
    assert notes.answer(close, undecided) == notes.answer(close)
    assert "--fw-race" not in notes.next_steps(close, "", undecided)[0]


def test_small_and_large_sizes_have_answers_of_their_own() -> None:
    """Means are over the rows of all, and there is none over small and large sizes."""
    times_s = {"torch": {1: 4.0, 100: 50.0}, "numpy": {1: 1.0, 100: 100.0}}
    records = [
        entry(framework, seconds * place, workload=work, size=size)
        for place, work in enumerate(("dot", "gemm", "add"), 1)
        for framework, sizes in times_s.items()
        for size, seconds in sizes.items()
        if not (framework == "torch" and work == "add")
    ]
    assert notes.answer([just_measured(record) for record in records]) == [
        "Fastest here:",
        "  small sizes: numpy for 2 of 2",
        "    means of 2 rows: numpy 1.00x, torch 4.00x",
        "  large sizes: torch for 2 of 2",
        "    means of 2 rows: torch 1.00x, numpy 2.00x",
    ]
    assert notes.answer([just_measured(record) for record in records[:4]]) == [
        "Fastest here: numpy for 1 of 2, torch for 1"
    ]
    lone = [
        entry(name, 1.0 + place, workload="relu") for place, name in enumerate(("numpy", "torch"))
    ]
    divided = notes.answer([just_measured(record) for record in [*records, *lone]])
    assert "  large or only sizes: torch for 2 of 3, numpy for 1" in divided


def test_a_profile_does_not_cost_less_than_nothing() -> None:
    faster = entry("torch", profile={**_PROFILE, "call_s": 0.9})
    (line,) = (line for line in shown(faster, view=IN_FULL) if line.startswith("  gemm-torch"))
    assert line.endswith("(profiler: cost too small to measure)")
