"""Launches go where times are least certain, as long as there is time."""

import math

import numpy as np
import pytest

from fwbench.gate.budget import Budget, Fixed, History, Precise, uncertainty
from support.launched_runs import CASE_S, OVERHEAD_S, Clock, history, launch
from support.tables import tabled

CASES = ["a", "b", "c"]


def test_a_fixed_number_of_launches() -> None:
    fixed = Fixed(2)
    made = History()
    for _ in range(2):
        assert fixed.select(CASES, made) == CASES
        launch(made, dict.fromkeys(CASES, 1.0))
    assert not fixed.select(CASES, made)


@tabled
def test_uncertainty_is_half_an_interval(times_s: tuple[float, ...], expected: float) -> None:
    assert uncertainty("a", history(a=[*times_s])) == pytest.approx(expected, abs=5e-4)


def test_a_median_is_known_as_well_as_is_said() -> None:
    """To 3 % in 95 % of cases, though it is looked at after every launch."""
    draw, right = np.random.default_rng(1), 0
    for _ in range(200):
        times_s = [math.exp(0.05 * draw.standard_normal())]
        while uncertainty("a", history(a=times_s)) > 0.03:
            times_s.append(math.exp(0.05 * draw.standard_normal()))
        right += abs(float(np.median(times_s)) - 1) <= 0.03
    assert right >= 182


def test_a_single_launch_is_uncertain() -> None:
    assert uncertainty("a", history(a=[1.0])) == math.inf


def test_the_least_certain_come_first_as_far_as_time_allows() -> None:
    clock = Clock()
    precise = Precise(Budget(100.0, clock), 0.03)
    assert precise.select(CASES, History()) == CASES
    once = history(a=[1.0], b=[1.0], c=[1.0])
    assert precise.select(CASES, once) == CASES
    made = history(a=[1.0, 1.1, 1.0], b=[1.0, 1.0, 1.0], c=[1.0, 2.0, 1.0])
    assert precise.select(CASES, made) == ["c", "a"]
    assert precise.unsettled(CASES, made) == ["a", "c"]
    clock.now_s = 100.0 - CASE_S - OVERHEAD_S
    assert precise.select(CASES, made) == ["c"], "there is no time for both"
    clock.now_s += 0.1
    assert precise.select(CASES, made) == []


def test_the_first_launches_are_measured_whatever_the_budget() -> None:
    clock = Clock()
    precise = Precise(Budget(1.0, clock), 0.03, at_least=2)
    assert precise.select(CASES, History()) == CASES
    clock.now_s = 5.0
    assert precise.select(CASES, history(a=[1.0], b=[1.0], c=[1.0])) == CASES
    twice = history(a=[1.0, 2.0], b=[1.0, 2.0], c=[1.0, 2.0])
    assert precise.select(CASES, twice) == []


def test_a_budget_begins_with_the_first_launch() -> None:
    clock = Clock()
    budget = Budget(100.0, clock)
    clock.now_s = 1_000.0
    assert budget.used_s == 0
    Precise(budget, 0.03).select(CASES, History())
    clock.now_s += 30.0
    assert budget.used_s == 30
    Precise(budget, 0.03).select(CASES, history(a=[1.0], b=[1.0], c=[1.0]))
    assert budget.used_s == 30


def test_what_brings_no_time_is_not_launched_again() -> None:
    """A case that skips itself would be uncertain for ever."""
    made = History()
    launch(made, {"a": 1.0, "b": None})
    assert Precise(Budget(100.0, Clock()), 0.03).select(["a", "b"], made) == ["a"]


def test_pairs_are_launches_of_both_contended_or_not() -> None:
    made = History()
    launch(made, {"a": 1.0, "b": 2.0})
    launch(made, {"a": 1.0})
    launch(made, {"a": 1.0, "b": 3.0}, "a")
    launch(made, {"a": 1.0, "b": 4.0}, "b")
    launch(made, {"a": 2.0, "b": 10.0})
    launch(made, {"a": 1.0, "b": None})
    behind = np.log([2, 3, 4, 5])
    assert made.paired("a", "b") == pytest.approx(behind)
    assert made.paired("b", "a") == pytest.approx(-behind)
    assert made.lost("b") == "failed"
    assert made.lost("a") == ""


def test_no_pair_is_no_difference() -> None:
    made = History()
    launch(made, {"a": 1.0})
    launch(made, {"b": 1.0})
    assert made.paired("a", "b").size == 0


def test_the_time_of_a_case_leaves_contended_launches_out() -> None:
    made = History()
    launch(made, {"a": 1.0, "b": 5.0}, "b")
    launch(made, {"a": 9.0, "b": 7.0}, "a", "b")
    assert (made.time_s("a"), made.time_s("b")) == (1.0, 6.0)
    assert (made.contended("a"), made.contended("b")) == (1, 2)
    assert made.number("a") == 2


def test_a_launch_costs_what_it_cost_before() -> None:
    made = history(a=[1.0], b=[1.0], c=[1.0])
    assert made.cost_s(["a", "b", "c"]) == made.took_s == 3 * CASE_S + OVERHEAD_S
    assert made.cost_s(["b"]) == CASE_S + OVERHEAD_S
