"""Only cases that did the same work in the same way meet in a contest."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from fwbench.records.facts import CaseFacts
from fwbench.records.measurement import Measurement
from fwbench.report.ranking import Contest, contests, kind, split
from support.gangs import gang

_CASE = {
    "workload": "flatten",
    "framework": "numpy",
    "device": "cpu",
    "execution": "eager",
    "direction": "forward",
    "dtype": "float32",
    "size": 8,
}


def timed(framework: str, time_s: float = 1.0, **facts: Any) -> Measurement:
    made = CaseFacts.checked({**_CASE, "framework": framework, **facts})
    return Measurement(made, (time_s,))


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
        "flatten cpu forward float32 8 (view)": ["torch", "numpy"],
        "flatten cpu forward float32 8 (copy)": ["mxnet", "tensorflow"],
    }


def test_a_lone_view_is_not_ranked() -> None:
    """Against the copies that it would beat a hundred times."""
    copies = [timed(name, result_is_view=False) for name in ("mxnet", "tensorflow")]
    assert [*titles(timed("torch", 1e-6, result_is_view=True), *copies)] == [
        "flatten cpu forward float32 8 (copy)"
    ]


def test_what_may_be_a_view_is_neither() -> None:
    cases = [
        timed("torch", result_is_view=True),
        timed("a", result_is_view=None),
        timed("b", result_is_view=None),
    ]
    assert [*titles(*cases)] == ["flatten cpu forward float32 8 (view or copy)"]


def test_what_is_computed_is_no_view() -> None:
    """oneDNN does not say where the result of a convolution lies."""
    unknown = timed("mxnet", result_is_view=None, flops=8.0)
    assert titles(unknown, timed("torch", result_is_view=False, flops=8.0)) == {
        "flatten cpu forward float32 8": ["mxnet", "torch"]
    }


@pytest.mark.parametrize("view", [True, False, None])
def test_without_a_difference_there_is_no_label(view: bool | None) -> None:
    cases = [timed(name, result_is_view=view) for name in ("a", "b")]
    assert [*titles(*cases)] == ["flatten cpu forward float32 8"]


def test_replicas_that_do_not_wait_for_each_other_are_apart() -> None:
    """Their updates are not those of one worker; a single one does the work of those that wait."""
    step = {"direction": "train"}
    servers = gang(strategy="ps_sync")
    waiting = [timed("torch", gang=gang(), **step), timed("mxnet", gang=servers, **step)]
    alone = timed("numpy", **step)
    unequal = gang(strategy="ps_async", equal_work=False)
    others = [timed(name, gang=unequal, **step) for name in ("tf", "mx")]
    assert titles(*waiting, alone, *others) == {
        "flatten cpu train float32 8 (synchronous)": ["torch", "mxnet", "numpy"],
        "flatten cpu train float32 8 (asynchronous)": ["tf", "mx"],
    }


def test_numbers_of_replicas_that_exchange_are_apart() -> None:
    """Four have more to exchange than two."""
    wire = {"network": "100mbit"}
    cases = [timed(name, gang=gang(n, **wire)) for n in (2, 4) for name in ("torch", "numpy")]
    assert titles(*cases) == {
        "flatten cpu forward float32 8 (2 replicas)": ["torch", "numpy"],
        "flatten cpu forward float32 8 (4 replicas)": ["torch", "numpy"],
    }
    trained = [timed(name, direction="train", gang=gang(n)) for n, name in ((2, "a"), (4, "b"))]
    assert [*titles(*trained)] == ["flatten cpu train float32 8"]


def test_exchanges_over_memory_are_not_ranked() -> None:
    """They wait for processors, and not for bytes; training over memory mostly computes."""
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
        "flatten cpu forward float32 8 (23 bits)": ["a", "b", "c"],
        "flatten cpu forward float32 8 (10 bits)": ["d", "e"],
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
    """Whoever learns less in an epoch is faster."""
    lazy = timed("b", 0.5)
    lazy = replace(lazy, facts=CaseFacts.unchecked({**lazy.facts, "unequal": {"to": "a"}}))
    (contest,) = contests([timed("a"), lazy, timed("c")])
    assert [entrant.contestant for entrant in contest.ranked] == ["a eager", "c eager"]


def test_a_split_looks_at_the_same_work_only() -> None:
    cases = [timed("a", size=8, result_is_view=True), timed("a", size=16, result_is_view=False)]
    assert [*split(cases, lambda case: case.facts)] == [""]


@pytest.mark.parametrize(
    ("facts", "name"),
    [
        ({}, "operations, forward"),
        ({"direction": "backward"}, "operations, backward"),
        ({"parameters": 10}, "networks, forward"),
        ({"direction": "train", "checked_steps": 10}, "training steps"),
        ({"direction": "train"}, "loaders"),
        (
            {
                "direction": "train",
                "epochs": [{"repetition": 1, "seconds": 1.0, "train_loss": 1.0}],
            },
            "training loops",
        ),
    ],
)
def test_kinds_of_workloads(facts: dict[str, Any], name: str) -> None:
    assert kind(timed("a", **facts).facts) == name
    assert Contest([timed("a", **facts)], "").kind == (name, "cpu")
