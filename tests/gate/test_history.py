"""What launches have brought: times, pairs, and what further launches would take."""

from __future__ import annotations

import math

import pytest

from fwbench.gate.history import History
from support.launches import CASE_S, OVERHEAD_S, history, launch


def test_pairs_are_launches_in_which_both_ran_undisturbed() -> None:
    """A launch of one alone, a failure and a contended launch make no pair."""
    made = History()
    launch(made, {"a": 1.0, "b": 2.0})
    launch(made, {"a": 1.0})
    launch(made, {"a": 1.0, "b": 3.0}, "a")
    launch(made, {"a": 1.0, "b": 4.0}, "b")
    launch(made, {"a": 2.0, "b": 10.0})
    launch(made, {"a": 1.0, "b": None})
    assert made.paired("a", "b") == pytest.approx([math.log(2), math.log(5)])
    assert made.paired("b", "a") == pytest.approx([-math.log(2), -math.log(5)])
    assert made.lost("b") == "failed"
    assert made.lost("a") == ""


def test_no_pair_is_no_difference() -> None:
    """Two cases that never ran in one launch say nothing of each other."""
    made = History()
    launch(made, {"a": 1.0})
    launch(made, {"b": 1.0})
    assert made.paired("a", "b").size == 0


def test_the_time_of_a_case_leaves_contended_launches_out() -> None:
    """Unless there are no others."""
    made = History()
    launch(made, {"a": 1.0, "b": 5.0}, "b")
    launch(made, {"a": 9.0, "b": 7.0}, "a", "b")
    assert (made.time_s("a"), made.time_s("b")) == (1.0, 6.0)
    assert (made.contended("a"), made.contended("b")) == (1, 2)
    assert made.number("a") == 2


def test_a_launch_costs_what_it_cost_before() -> None:
    """Its cases, and what comes on top."""
    made = history(a=[1.0], b=[1.0], c=[1.0])
    assert made.cost_s(["a", "b", "c"]) == made.took_s == 3 * CASE_S + OVERHEAD_S
    assert made.cost_s(["b"]) == CASE_S + OVERHEAD_S
