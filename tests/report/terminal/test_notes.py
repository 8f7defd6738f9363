"""Notes beside the tables: means, overhead, early returns, unsteady cases."""

from __future__ import annotations

from typing import Any

import pytest

from fwbench.records.stored import just_measured
from fwbench.report.terminal import notes
from support.terminals import IN_FULL, WIDE, entry, shown

_Record = dict[str, Any]


def means(*records: _Record) -> list[str]:
    """The lines on geometric means."""
    return notes.geometric_means([just_measured(record) for record in records])


# Geometric means


def test_means_are_against_the_fastest_of_each_group() -> None:
    assert means(
        *(entry("a", 1.0, workload="small"), entry("b", 4.0, workload="small")),
        *(entry("a", 90.0, workload="large"), entry("b", 10.0, workload="large")),
        entry("b", 3.0, workload="alone"),
    ) == [
        # a: sqrt(1 x 9); b: sqrt(4 x 1). Who is alone has won nothing.
        (
            "operations, forward: geometric mean of the median times against the fastest, over "
            "2 cases, and over the 2 of largest size:"
        ),
        "  b eager      2.00x     2.00x",
        "  a eager      3.00x     3.00x",
    ]


def test_executions_of_a_framework_are_counted_apart() -> None:
    found = means(entry("a", 2.0), entry("a", 1.0, execution="graph"))
    assert found[1:] == ["  a graph      1.00x     1.00x", "  a eager      2.00x     2.00x"]


def test_contestants_with_toggles_are_counted_apart() -> None:
    slow, fast = (
        entry("a", seconds, toggles={"onednn": value, "blas": "mkl"}, params={"onednn": value})
        for seconds, value in ((2.0, "off"), (1.0, "on"))
    )
    names = [line.split("  ")[1] for line in means(slow, fast)[1:]]
    assert names == ["a eager onednn=on", "a eager onednn=off"]


def test_who_lacks_cases_is_listed_below() -> None:
    records = [entry(name, workload=f"work {i}") for name in "ab" for i in range(4)]
    found = means(*records, entry("c", 0.1, workload="work 0"))
    assert "over 4 cases" in found[0]
    assert found[-1] == "  c eager  not ranked: 1 of 4 cases"
    assert found[1].endswith("1.00x     1.00x")


def test_means_are_shown_in_full() -> None:
    """The table of operations says more; they keep their columns there."""
    records = [entry("a", 1.0), entry("b", 2.0)]
    assert "  b eager      2.00x     2.00x" in shown(*records, view=IN_FULL)
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
    assert lines[1:] == ["", "nothing to compare: a, b share no workload and size"]


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (1234.0, "1234 s"),
        (12.34, "12.3 s"),
        (1.0, "1 s"),
        (0.9999, "1000 ms"),
        (0.25, "250 ms"),
        (0.001, "1 ms"),
        (0.0009999, "1000 us"),
        (1.5e-6, "1.5 us"),
        (9.996e-7, "1000 ns"),
        (2.5e-8, "25 ns"),
        (0.0, "0 s"),
    ],
)
def test_times_are_written_for_people(seconds: float, text: str) -> None:
    measured = just_measured(entry("a", seconds, workload="noop"))
    assert notes.overhead([measured])[0].endswith(f": a eager {text}")


# Dispatch


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


@pytest.mark.parametrize(("dispatch_s", "told"), [(0.5, 0), (0.49, 1), (0.0, 1), (None, 0)])
def test_half_the_time_is_no_news(dispatch_s: float | None, told: int) -> None:
    measured = just_measured(entry("a", 1.0, dispatch_s=dispatch_s))
    assert len(notes.dispatch([measured], in_full=False)) == told


# Warm-up


@pytest.mark.parametrize(
    ("number", "names"),
    [(1, "0-a"), (3, "0-a, 1-a, 2-a"), (5, "0-a, 1-a, 2-a and 2 more")],
)
def test_unsteady_cases_are_counted(number: int, names: str) -> None:
    unsteady = [entry("a", steady=False, workload=str(i)) for i in range(number)]
    records = [entry("a", steady=None), entry("a"), *unsteady]
    for view, more in ((WIDE, []), (IN_FULL, [f"  {names}"])):
        lines = shown(*records, view=view)
        at = next(at for at, line in enumerate(lines) if "not steady" in line)
        assert lines[at].startswith(f"{number} case")
        assert "--fw-warmup" in lines[at]
        assert lines[at + 1 : -2] == more


def test_what_was_not_warmed_up_is_not_called_unsteady() -> None:
    lines = shown(entry("a", steady=None), entry("a", steady=True))
    assert not any("not steady" in line for line in lines)


# Energy


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
