"""LeNet of 2020 and of today."""

from __future__ import annotations

from typing import Any

import pytest
from runs_of_2020 import (
    NAMES,
    PUBLISHED_LENETS,
    SYNTHETIC,
    TRAINS_FASTER,
    UNKNOWN,
    every_device,
    lenet,
    lenets,
    model,
    of_15,
    section,
    statements,
    trained,
)

from support.reports import case, part, run_of


@every_device
def test_published_lenets_are_shown_without_todays(device: str) -> None:
    run = run_of(case("gemm", "torch", device=NAMES[device]))
    shown_lenets = lenets(run, device)
    assert [*shown_lenets] == [
        (" ".join(name), epochs)
        for name, several in PUBLISHED_LENETS[device].items()
        for epochs in several
    ]
    assert trained(run, device) == {}
    assert all(row["2020 (CPU time)"] and row["accuracy"] for row in shown_lenets.values())


def test_todays_lenet_is_beside_the_same_epochs() -> None:
    """All of its epochs, the first one too, in wall-clock time, and the accuracy."""
    run = run_of(
        of_15("mxnet", "hybridize", 2.0, accuracy=0.981),
        lenet("tensorflow", "graph", (1.0, 2.0, 3.0, 4.0), 5.0, accuracy=0.9876),
    )
    assert trained(run) == {
        ("mxnet hybridize", 15): ("30 s", "98.10%"),
        ("tensorflow graph", 5): ("15 s", "98.76%"),
    }
    assert lenets(run)["mxnet hybridize", 15] == {
        "case": "mxnet hybridize",
        "epochs": "15",
        "2020 (CPU time)": "714 s",
        "accuracy": "98.06%",
        "today (wall clock)": "30 s",
        "accuracy today": "98.10%",
    }
    assert len(lenets(run)) == 11


_TWICE = [
    {"repetition": repetition, "epoch": number, "seconds": seconds, "train_loss": 0.5}
    for repetition, seconds in ((1, 2.0), (2, 7.0))
    for number in range(1, 6)
]


@pytest.mark.parametrize(
    ("entry", "expected"),
    [
        # The seconds of the first are beside those of 2020, not of all.
        (lenet("mxnet", "eager", epochs=_TWICE), {("mxnet eager", 5): ("10 s", "98.00%")}),
        (of_15("mxnet", "eager", 2.0, accuracy=None), {("mxnet eager", 15): ("30 s", "")}),
        # `pytest benchmarks/test_training.py -k lenet` trains 3 epochs of 10 of 240 steps.
        (lenet("mxnet", "eager", (0.1, 0.1), 0.1, steps_per_epoch=10), {}),
        *((model(workload, "mxnet")(1.0), {}) for workload in ("mlp", "lenet_step", "my_lenet")),
    ],
    ids=["repetitions", "not tested", "few steps", "mlp", "lenet_step", "my_lenet"],
)
def test_trainings_of_2020(entry: Any, expected: dict[tuple[str, int], tuple[str, str]]) -> None:
    assert trained(run_of(entry)) == expected


def test_a_lenet_of_other_epochs_has_a_row_of_its_own() -> None:
    """Nothing of 2020 is beside it, and it is beside nothing of 2020."""
    run = run_of(lenet("mxnet", "eager", (1.0,) * 6, 2.0))
    assert trained(run) == {("mxnet eager", 7): ("8 s", "98.00%")}
    row = lenets(run)["mxnet eager", 7]
    assert (row["2020 (CPU time)"], row["accuracy"]) == ("", "")
    assert len(lenets(run)) == 12


@pytest.mark.parametrize(
    ("framework", "execution"),
    [("torch", "eager"), ("jax", "jit"), ("tensorflow", "fit"), ("tensorflow", "eager")],
)
def test_a_lenet_of_others_has_a_row(framework: str, execution: str) -> None:
    run = run_of(of_15(framework, execution, 2.0))
    assert trained(run) == {(f"{framework} {execution}", 15): ("30 s", "98.00%")}
    assert lenets(run)[f"{framework} {execution}", 15]["2020 (CPU time)"] == ""


@pytest.mark.parametrize(
    "changes",
    [
        {"toggles_asked": {"workers": "2"}},
        {"toggles_asked": {"onednn": "off"}},
        {"size": 100},
        {"dtype": "bfloat16"},
        {"steps_per_epoch": 10},
        {"steps_per_epoch": 239},
        {"steps_per_epoch": 241},
        {"steps_per_epoch": None},
        {"data": SYNTHETIC},
        {"data": {"name": "mnist"}},
        {"data": None},
    ],
    ids=str,
)
def test_other_trainings_are_no_lenet_of_2020(changes: dict[str, Any]) -> None:
    """With toggles, other batches, precision, steps or data: shown, and not beside 2020."""
    run = run_of(
        of_15("tensorflow", "graph", 2.0, **changes), of_15("mxnet", "eager", 1.0, **changes)
    )
    assert part([run], "training lenet").rows
    assert trained(run) == {}
    assert len(lenets(run)) == 11
    judged_statements = statements(run)[TRAINS_FASTER]
    assert judged_statements["verdict"] == UNKNOWN
    assert judged_statements["today"].startswith("needs LeNet in tensorflow graph and mxnet eager")


def test_a_lenet_without_toggles_is_told_from_one_with() -> None:
    """It is the one beside 2020, whichever was measured last; so is one of whole epochs."""
    usual = of_15("mxnet", "eager", 2.0)
    others = [
        of_15("mxnet", "eager", 9.0, toggles_asked={"workers": "2"}),
        of_15("mxnet", "eager", 9.0, steps_per_epoch=10),
        of_15("mxnet", "eager", 9.0, data=SYNTHETIC),
    ]
    for order in ((usual, *others), (*others, usual)):
        run = run_of(*order)
        assert trained(run) == {("mxnet eager", 15): ("30 s", "98.00%")}


def test_the_median_launch_is_beside_2020() -> None:
    """The epochs that are recorded are those of the first one."""
    launches = [
        {"launch": number, "value_s": second_s, "rounds_s": [second_s] * 4}
        for number, second_s in enumerate((9.0, 2.0, 1.0))
    ]
    entry = lenet("mxnet", "eager", (9.0,) * 4, 10.0)
    entry["extra_info"]["fwbench"]["launches"] = launches
    entry["stats"] = {"data": [9.0, 2.0, 1.0], "min": 1.0}
    run = run_of(entry)
    assert trained(run) == {("mxnet eager", 5): ("18 s", "98.00%")}


def test_times_are_drawn_relative_to_the_graph_of_as_many_epochs() -> None:
    """Clocks differ between then and today, so seconds are not drawn."""
    run = run_of(
        of_15("mxnet", "eager", 3.0),
        of_15("tensorflow", "graph", 2.0),
        lenet("tensorflow", "xla"),  # of 5 epochs, which the graph does not have
    )
    (chart,) = section([run], "2020, LeNet on the CPU").charts
    assert "15 epochs" in chart.title
    assert "mxnet eager, 2020, published: 0.60x; mxnet eager, today: 1.50x" in chart.text
    assert "tensorflow xla, today" not in chart.text
    assert "tensorflow graph" not in chart.text
