"""Launches have an order of their own and are merged into one record."""

from typing import Any

import pytest

from fwbench.records import launches
from fwbench.records.facts import Launch
from fwbench.records.launches import LaunchPlan
from fwbench.records.stored import just_measured, record_of
from support.tables import tabled

_CASES = [f"case-{i}" for i in range(20)]


def test_an_order_has_every_case_once() -> None:
    for launch in range(5):
        assert sorted(LaunchPlan(5, 1).order(launch, _CASES)) == sorted(_CASES)


def test_an_order_is_repeatable() -> None:
    first = [LaunchPlan(3, 7).order(launch, _CASES) for launch in range(3)]
    repeated = [LaunchPlan(3, 7).order(launch, _CASES) for launch in (2, 1, 0)]
    assert first == repeated[::-1]


def test_orders_differ() -> None:
    orders = [LaunchPlan(5, seed).order(launch, _CASES) for seed in range(4) for launch in range(5)]
    assert len({*map(tuple, orders)}) == len(orders)
    assert _CASES not in orders


def test_an_order_is_that_of_a_part() -> None:
    """Sessions that take turns have what both have in one order."""
    whole, part = (LaunchPlan(1, 1).order(0, cases) for cases in (_CASES, _CASES[::3]))
    assert part == [case for case in whole if case in part]


def test_an_order_leaves_its_cases_alone() -> None:
    given = list(_CASES)
    LaunchPlan(1, 1).order(0, given)
    assert given == _CASES


def _entry(launch: int, rounds_s: list[float], **facts: Any) -> dict[str, Any]:
    """The entry of a case in a launch."""
    launch_facts = {
        "statistic": "min",
        "framework": "fake",
        "dispatch_s": 1.0,
        "completion_s": 2.0,
        "first_call_in_process_s": 3.0,
        "warmup_s": 0.5,
        "warmup_calls": 4,
        "steady": True,
        "cpu_s": 1.5,
        "wall_s": 1.0,
        "preempted": 0.0,
        "others_cpus": 0.0,
        "load": 0.1,
        **facts,
    }
    entry = {
        "name": "test_it[a]",
        "fullname": "test_it.py::test_it[a]",
        "group": "a group",
        "param": "a",
        "params": {"size": 4},
        "options": {"min_rounds": 1},
        "extra_info": {"fwbench": launch_facts, "of the test": 5},
        "stats": {"data": rounds_s, "iterations": 8 + launch, "min": min(rounds_s)},
    }
    return launches.mark(entry, launch)


def test_a_mark_says_which_launch() -> None:
    entry: dict[str, Any] = {"extra_info": {"fwbench": {}}}
    assert launches.mark(entry, 2) is entry
    launches.mark_fresh(entry)  # of a loop, which has no first call
    assert entry == {"extra_info": {"fwbench": {"launch": 2}}}


def _merged(*entries: dict[str, Any]) -> dict[str, Any]:
    facts: dict[str, Any] = launches.merge(entries)["extra_info"]["fwbench"]
    return facts


@pytest.mark.parametrize(
    ("statistic", "values"), [("min", [1.0, 2.0, 4.0]), ("median", [2.0, 3.0, 8.0])]
)
def test_one_value_stands_for_a_launch(statistic: str, values: list[float]) -> None:
    """The smallest round of an operation, the median epoch of a training loop."""
    rounds_s = [[4.0, 1.0, 2.0], [3.0, 2.0, 5.0], [8.0, 9.0, 4.0]]
    entries = [_entry(i, rounds, statistic=statistic) for i, rounds in enumerate(rounds_s)]
    merged = launches.merge(entries)
    stored = merged["extra_info"]["fwbench"]["launches"]
    assert merged["stats"]["data"] == values
    assert [launch["value_s"] for launch in stored] == values
    assert [launch["rounds_s"] for launch in stored] == rounds_s
    assert [launch["iterations"] for launch in stored] == [8, 9, 10]
    assert [launch["launch"] for launch in stored] == [0, 1, 2]


@pytest.mark.parametrize("left_out", [(), ("rounds_s",), ("min_s", "median_s")])
def test_the_median_is_that_of_the_terminal(left_out: tuple[str, ...]) -> None:
    """The value of a launch is its smallest round, which reports are not about."""
    rounds_s = [[1.0, 2.0, 4.0], [2.0, 3.0, 5.0], [4.0, 8.0, 9.0]]
    case = {"workload": "gemm", "device": "cpu", "execution": "eager", "size": 4}
    case |= {"direction": "forward", "dtype": "float32"}
    entries = [_entry(n, r, completion_s=r[1], **case) for n, r in enumerate(rounds_s)]
    merged = launches.merge(entries)
    for launch in merged["extra_info"]["fwbench"]["launches"]:
        for name in left_out:
            launch.pop(name)
    assert record_of(merged, "here").values_s == [2.0, 3.0, 8.0]
    assert record_of(merged, "here").median_s == just_measured(merged).median_s == 3.0


def test_a_merged_entry_is_otherwise_the_first() -> None:
    entries = [_entry(0, [1.0]), _entry(1, [2.0], framework="of the second")]
    merged = launches.merge(entries)
    for name in ("name", "fullname", "group", "param", "params", "options"):
        assert merged[name] == entries[0][name]
    assert merged["extra_info"]["of the test"] == 5
    assert merged["extra_info"]["fwbench"]["framework"] == "fake"
    assert merged["stats"]["iterations"] == 8
    assert "launch" not in merged["extra_info"]["fwbench"]
    assert entries[0]["extra_info"]["fwbench"]["launch"] == 0, "the launch's own entry is as it was"
    assert entries[0]["stats"]["data"] == [1.0]


@pytest.mark.parametrize(
    "name", ["dispatch_s", "completion_s", "first_call_in_process_s", "compile_s", "preempted"]
)
def test_medians_stand_for_all_launches(name: str) -> None:
    values = [0.25, 0.0, 0.125]
    merged = _merged(*(_entry(i, [1.0], **{name: value}) for i, value in enumerate(values)))
    assert merged[name] == 0.125
    assert [launch[name] for launch in merged["launches"]] == values


@tabled
def test_one_launch_that_was_not_precise_or_steady_is_enough(
    name: str, values: tuple[object, ...], merged: object
) -> None:
    result = _merged(*(_entry(i, [1.0], **{name: value}) for i, value in enumerate(values)))
    assert result[name] == merged


def test_what_no_launch_has_is_not_made_up() -> None:
    merged = _merged(_entry(0, [1.0]), _entry(1, [1.0]))
    for facts in (merged, *merged["launches"]):
        assert not {"compile_s", "stopped", "condition"} & facts.keys()


def test_the_middle_launch_gives_the_condition() -> None:
    result = ["clean", "contended", "clean"]
    entries = [_entry(i, [1.0], condition=c, spinning=c != "clean") for i, c in enumerate(result)]
    merged = _merged(*entries)
    assert (merged["condition"], merged["spinning"]) == ("clean", False)
    assert [launch["condition"] for launch in merged["launches"]] == result
    merged = _merged(*entries[:2])
    assert (merged["condition"], merged["spinning"]) == ("contended", True)


def test_a_launch_that_does_not_know_is_left_out_of_a_median() -> None:
    """In a tenth of a second the system does not tell what others did."""
    entries = [_entry(i, [1.0], others_cpus=cpus) for i, cpus in enumerate([None, 1.0, 2.0])]
    assert _merged(*entries)["others_cpus"] == 1.5
    assert _merged(_entry(0, [1.0], others_cpus=None))["others_cpus"] is None


@tabled
def test_contended_if_preempted_and_not_alone(
    preempted: float, others_cpus: float | None, rounds_s: tuple[float, ...], contended: bool
) -> None:
    """Where it is not known what others did, rounds that take longer show it."""
    launch = _entry(1, [*rounds_s], preempted=preempted, others_cpus=others_cpus)
    merged = _merged(_entry(0, [1.0]), launch, _entry(2, [1.0]))
    assert launches.is_contended(Launch.unchecked(merged["launches"][1])) is contended
    assert merged["contended"] is contended


def test_launches_of_a_journal_are_merged() -> None:
    plain = {"fullname": "test_it.py::test_plain", "extra_info": {}, "stats": {"data": [3.0]}}
    single = _entry(0, [5.0])
    single["fullname"] = "test_it.py::test_single"
    del single["extra_info"]["fwbench"]["launch"]
    other = {**_entry(1, [4.0]), "fullname": "test_it.py::test_it[b]"}
    gathered = launches.gather(
        [plain, other, _entry(0, [1.0, 2.0]), single, _entry(1, [2.0, 3.0]), _entry(2, [4.0])]
    )
    assert [entry["fullname"].partition("::")[2] for entry in gathered] == [
        "test_plain",
        "test_it[b]",
        "test_it[a]",
        "test_single",
    ]
    assert gathered[0] is plain
    assert gathered[3] is single
    assert gathered[1]["stats"]["data"] == [4.0]
    assert gathered[2]["stats"]["data"] == [1.0, 2.0, 4.0]
