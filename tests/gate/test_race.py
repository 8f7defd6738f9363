"""Races drop clear losers, and record what became of every contestant."""

import math
from collections.abc import Callable, Mapping

import numpy as np
import pytest
from numpy.typing import NDArray

from fwbench.gate.budget import Budget, History, Precise, budget_facts
from fwbench.gate.race import FARTHEST, GroupVerdict, Race, RaceGroup, Standing, race_facts
from fwbench.records.session_facts import SessionFacts, StoredBudget, StoredGroup, StoredUnsettled
from support.launched_runs import CASE_S, OVERHEAD_S, Clock, history, launch

Floats = NDArray[np.float64]
Noise = Callable[[np.random.Generator, int], Floats]

LAUNCHES = 60


def group(*cases: str) -> RaceGroup:
    """A group of contestants who are called as their cases are."""
    return RaceGroup("work", {case: case for case in cases}, 0.03)


def race(*groups: RaceGroup, budget_s: float = 1e9, clock: Clock | None = None) -> Race:
    return Race(lambda _: groups, Budget(budget_s, clock or Clock()))


def run(
    times_s: Mapping[str, float], noise: Noise, seed: int, launches: int = LAUNCHES
) -> tuple[RaceGroup, History]:
    """A race of one group until it is decided, or so many launches have been.

    Args:
        noise: gives the logarithms of factors for the contestants of one launch.
    """
    race_group, history = group(*times_s), History()
    running, draw = race(race_group), np.random.default_rng(seed)
    while history.launches < launches and (cases := running.select([*times_s], history)):
        factors = np.exp(noise(draw, len(cases)))
        launch(history, {c: times_s[c] * f for c, f in zip(cases, factors, strict=True)})
    running.drop_losers(history)
    return race_group, history


def _normal(deviation: float) -> Noise:
    return lambda draw, number: draw.normal(0, deviation, number)


def _heavy(draw: np.random.Generator, number: int) -> Floats:
    return 0.02 * draw.standard_t(1.5, number)


def _outliers(draw: np.random.Generator, number: int) -> Floats:
    """One launch in four takes 10 to 100 % more."""
    slow = draw.random(number) < 0.25
    return draw.normal(0, 0.01, number) + slow * np.log(draw.uniform(1.1, 2.0, number))


def _speeds(draw: np.random.Generator, number: int) -> Floats:
    """Within a launch the machine changes between two speeds, 40 % apart."""
    return draw.normal(0, 0.005, number) + math.log(1.4) * (draw.random(number) < 0.5)


def test_far_losers_are_dropped_after_a_dozen_launches() -> None:
    """Twice as slow is clear; a quarter slower takes more launches, and the leader wins."""
    race_group, history = run({"a": 1.0, "b": 10.0, "c": 1.25, "d": 3.5}, _normal(0.01), 0)
    assert race_group.verdict(history) is GroupVerdict.FASTEST
    assert (history.number("b"), history.number("d")) == (13, 13)
    assert 15 <= history.number("c") <= 20
    assert history.number("a") == history.number("c")
    assert {case: why.leader for case, why in race_group.dropped.items()} == dict.fromkeys(
        "bcd", "a"
    )
    standings = race_group.standings(history)
    assert standings == {"a": Standing.FASTEST, **dict.fromkeys("bcd", Standing.SLOWER)}


def test_contestants_within_the_threshold_tie() -> None:
    """Half a per cent does not matter at 3 %; what is slower by far is not part of the tie."""
    race_group, history = run({"a": 1.0, "b": 1.005, "c": 3.0}, _normal(0.005), 0)
    assert race_group.verdict(history) is GroupVerdict.TIE
    assert {*race_group.racing(history)} == {"a", "b"}
    standings = race_group.standings(history)
    assert standings == {"a": Standing.TIED, "b": Standing.TIED, "c": Standing.SLOWER}
    assert race_group.more_launches(history) is None


def test_a_little_less_than_the_threshold_is_decided_too() -> None:
    """A difference of 2.7 % is certain long before it is known to be less than 3 %, or not."""
    race_group, history = run({"a": 1.0, "b": 1.027}, _normal(0.004), 0)
    assert race_group.verdict(history) is GroupVerdict.FASTEST
    assert history.launches < 20
    assert race_group.dropped == {}, "it is not a clear loser"
    assert race_group.standings(history) == {"a": Standing.FASTEST, "b": Standing.SLOWER}


def test_noise_leaves_a_group_undecided_and_says_what_it_would_take() -> None:
    """A difference of 10 % in noise of 6 % takes some launches more than ten."""
    race_group, history = run({"a": 1.0, "b": 1.1}, _normal(0.06), 1, launches=8)
    assert race_group.verdict(history) is GroupVerdict.UNDECIDED
    assert race_group.open(history) == ["b"]
    assert race_group.standings(history) == {"a": Standing.OPEN, "b": Standing.OPEN}
    more = race_group.more_launches(history)
    assert more is not None
    assert 1 <= more <= 60


def test_nothing_is_foretold_from_one_pair_and_no_end_without_hope() -> None:
    """One pair has no spread; differences at the threshold, in noise, are never decided."""
    race_group, history = run({"a": 1.0, "b": 1.1}, _normal(0.06), 1, launches=1)
    assert race_group.more_launches(history) is None
    race_group, history = run({"a": 1.0, "b": 1.03}, _normal(1.0), 3, launches=20)
    assert race_group.verdict(history) is GroupVerdict.UNDECIDED
    assert race_group.more_launches(history) == math.inf


@pytest.mark.parametrize("noise", [_normal(0.02), _heavy, _outliers, _speeds])
def test_the_fastest_is_hardly_ever_dropped(noise: Noise) -> None:
    """Equal contestants, at any of thirty looks: in 1 % of races at most."""
    wrong = 0
    for seed in range(100):
        race_group, history = run(dict.fromkeys("abc", 1.0), noise, seed, launches=30)
        wrong += race_group.verdict(history) is GroupVerdict.FASTEST or bool(race_group.dropped)
    assert wrong <= 2


def test_contestants_that_matter_are_hardly_ever_called_a_tie() -> None:
    """Two that differ by a little more than the threshold: in 1 % of races at most."""
    wrong = 0
    for seed in range(150):
        race_group, history = run({"a": 1.0, "b": 1.032}, _normal(0.02), seed, launches=30)
        wrong += race_group.verdict(history) is GroupVerdict.TIE
    assert wrong <= 2


def test_falling_behind_takes_eleven_to_fourteen_launches() -> None:
    """More contestants take more; all of the launches must have been far behind."""
    far = math.log(2.5)
    for number, launches in ((2, 11), (3, 12), (4, 13), (8, 14)):
        test = group(*map(str, range(number))).test()
        assert not test.is_slower(np.array([far] * (launches - 1)))
        assert test.is_slower(np.array([far] * launches))
        assert not test.is_slower(np.array([far, 0.1] * (launches // 2)))


def test_contended_launches_count() -> None:
    """Which launch is contended depends on its times: to leave it out would favour the slower."""
    race_group, history = group("a", "b"), History()
    running = race(race_group)
    for number in range(30):
        launch(history, {"a": 1.0, "b": 10.0}, *(["b"] if number < 14 else []))
    running.drop_losers(history)
    assert race_group.verdict(history) is GroupVerdict.FASTEST


@pytest.mark.parametrize(
    ("contended", "verdict"),
    [("a", "fastest"), ("b", "undecided"), ("c", "undecided"), ("abc", "undecided")],
)
def test_who_had_to_share_its_processors_has_not_lost(contended: str, verdict: str) -> None:
    """Alone it may be the faster: two threads that waited for each other took 8 ms, not 0.1."""
    race_group, history = group("a", "b", "c"), History()
    running = race(race_group)
    for number in range(16):
        launch(history, {"a": 1.0, "b": 10.0, "c": 12.0}, *(contended if number % 2 else ""))
    assert running.select(["a", "b", "c"], history) == []  # no more launches would decide it
    (stored,) = race_facts(running, history).groups
    assert stored.verdict == verdict
    standings = {rival.name: rival.standing for rival in stored.contestants}
    disturbed = {rival.name for rival in stored.contestants if rival.disturbed}
    assert {name for name in "bc" if standings[name] == "open"} == disturbed == {*contended} - {"a"}


def _second_speed(draw: np.random.Generator, number: int) -> Floats:
    slow = [0.0, math.log(1.4)] * (number // 2)
    return draw.normal(0, 0.01, number) + slow * (draw.random(number) < 0.45)


def _far_slower_speed(draw: np.random.Generator, number: int) -> Floats:
    slow = [0.0, math.log(4)] * (number // 2)
    return draw.normal(0, 0.01, number) + slow * (draw.random(number) < 0.45)


def _longer_tail(draw: np.random.Generator, number: int) -> Floats:
    tail = [0.0, 0.05] * (number // 2)
    return draw.normal(0, 0.01, number) + tail * (draw.exponential(1, number) - math.log(2))


@pytest.mark.parametrize("noise", [_second_speed, _far_slower_speed, _longer_tail])
def test_equal_medians_of_different_shape_have_no_winner(noise: Noise) -> None:
    """The second contestant's is another; with signs alone 15 to 82 % had a winner."""
    verdicts = [run({"a": 1.0, "b": 1.0}, noise, seed)[0].dropped for seed in range(100)]
    assert sum(map(bool, verdicts)) <= 1


def test_who_fails_is_out_and_whoever_lost_to_it_is_back() -> None:
    """A contestant whose work turned out to be wrong has beaten nobody."""
    race_group, history = group("wrong", "a", "b"), History()
    running = race(race_group)
    for _ in range(12):
        launch(history, {"wrong": 0.1, "a": 1.0, "b": 5.0})
    assert not running.select([], history)
    assert race_group.verdict(history) is GroupVerdict.FASTEST
    launch(history, {"wrong": None})
    running.drop_losers(history)
    standings = {"wrong": Standing.LOST, "a": Standing.FASTEST, "b": Standing.SLOWER}
    assert race_group.standings(history) == standings
    assert race_group.dropped["b"].leader == "a"


def test_a_contestant_that_is_left_alone_has_not_won() -> None:
    race_group, history = group("a", "b"), History()
    launch(history, {"a": 1.0, "b": None})
    running = race(race_group)
    assert not running.select(["a"], history)
    assert race_group.verdict(history) is GroupVerdict.UNDECIDED
    assert race_group.more_launches(history) is None


def test_only_open_groups_are_launched_again() -> None:
    clear, close = group("a", "b"), group("c", "d")
    history, running = History(), race(clear, close)
    assert running.select(["a", "b", "c", "d", "alone"], history) == ["a", "b", "c", "d", "alone"]
    for number in range(11):
        launch(history, {"a": 1.0, "b": 9.0, "c": 1.0, "d": 1.1 + 0.001 * number, "alone": 1.0})
        selected = running.select(["a", "b", "c", "d", "alone"], history)
    assert {*selected} == {"c", "d"}


def test_a_budget_goes_to_the_groups_that_it_can_pay() -> None:
    small, large = group("a", "b"), group("c", "d", "e")
    clock, history = Clock(), History()
    running = race(large, small, budget_s=20.0, clock=clock)
    clock.now_s = 100.0  # of collection
    assert running.select([*"abcde"], history) == [*"abcde"]
    launch(history, dict.fromkeys("abcde", 1.0))
    assert {*running.select([*"abcde"], history)} == {*"abcde"}
    clock.now_s = 114.0
    assert {*running.select([*"abcde"], history)} == {*"ab"}
    clock.now_s = 116.0
    assert running.select([*"abcde"], history) == []
    assert {race_group.verdict(history) for race_group in (large, small)} == {
        GroupVerdict.UNDECIDED
    }


def recorded(**times_s: list[float]) -> StoredBudget:
    """The budget of a session with these launches, as a reader has it."""
    budget = Budget(60.0, Clock())
    facts = SessionFacts(budget=budget_facts(budget, history(**times_s), Precise(budget, 0.03)))
    stored = SessionFacts.checked(dict(facts)).budget
    assert stored is not None
    return stored


def test_uncertain_times_come_first() -> None:
    budget = recorded(a=[1.0, 1.0], b=[1.0, 1.1], c=[1.0, 2.0])
    assert [case.name for case in _unsettled(budget)] == ["c", "b"]
    (single,) = _unsettled(recorded(a=[1.0]))
    assert single.uncertainty is None


def test_launches_far_apart_can_be_recorded() -> None:
    """A factor of 100 between two is less certain than a record can say: as much as it can."""
    (far,) = _unsettled(recorded(a=[1.0, 100.0]))
    assert far.uncertainty == 1e9


@pytest.mark.parametrize(
    ("launches", "more_launches", "more_than"), [(1, None, None), (20, None, FARTHEST)]
)
def test_a_group_without_a_forecast_says_why(
    launches: int, more_launches: int | None, more_than: int | None
) -> None:
    """After one launch nothing is known; times that jump about are not decided in 200 more."""
    group = raced(a=[1.0] * launches, b=([0.5, 2.0] * launches)[:launches])
    assert group.verdict == "undecided"
    assert (group.more_launches, group.more_s) == (more_launches, None)
    assert group.more_than == more_than


def test_a_group_with_a_forecast_says_how_long_it_takes() -> None:
    group = raced(a=[1.0] * 5, b=[1.1] * 5)
    assert group.more_launches is not None
    assert group.more_s == group.more_launches * (2 * CASE_S + OVERHEAD_S)
    assert group.more_than is None


def raced(**times_s: list[float]) -> StoredGroup:
    """The group of a race with these launches, as a reader has it."""
    made = history(**times_s)
    group = RaceGroup("work", {case: case for case in times_s}, 0.03)
    race = Race(lambda _: [group], Budget(60.0, Clock()))
    race.drop_losers(made)
    stored = SessionFacts.checked({"race": dict(race_facts(race, made))}).race
    assert stored is not None
    return stored.groups[0]


def _unsettled(budget: StoredBudget) -> list[StoredUnsettled]:
    assert budget.unsettled is not None
    return budget.unsettled
