"""Medians are judged by how far they are apart between processes: by launches, or revisits."""

import math
from collections import ChainMap
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.stats import t

from fwbench.records.facts import CaseFacts
from fwbench.records.measurement import Measurement, blur, ratio, uncertainty
from fwbench.records.repeatability import (
    ASSUMED,
    DECIDED,
    INTERVAL,
    Repeatability,
    Revisits,
    known,
    of_earlier,
    of_pairs,
    stated,
)
from fwbench.records.session_facts import StoredRevisits
from fwbench.records.stored import just_measured
from fwbench.records.upstream import Statistics
from fwbench.report.ranking import Decision, works
from support.tables import tabled
from support.terminals import entry

Floats = NDArray[np.float64]

_SESSIONS = 2_000
_TORCH = {"framework": "torch"}


def revisits(
    sd: float | Floats,
    draw: np.random.Generator,
    number: int = 12,
    frameworks: Sequence[str] = "a",
    of: Callable[..., Any] = of_pairs,
) -> Revisits:
    """The record of a session whose medians have this spread, of as many cases in all."""
    logs = np.reshape(sd, (-1, 1)) * draw.standard_normal((number, 2))
    pairs = [{str(i): [*map(float, pair)]} for i, pair in enumerate(np.exp(logs))]
    parts = {name: pairs[place :: len(frameworks)] for place, name in enumerate(frameworks)}
    return {name: of(dict(ChainMap(*part))) for name, part in parts.items()}


def measured(name: str, time_s: float, session: Revisits | None = None) -> Measurement:
    facts = CaseFacts.checked(entry(name, time_s)["extra_info"]["fwbench"])
    return Measurement(facts, (time_s,), revisits=session or {})


def measured_twice(session: Revisits, name: str, ratio: float = 1.0) -> Measurement:
    """A case of a session that an earlier one has measured, too: the first of its framework.

    Args:
        ratio: of its times to those that are known of it.
    """
    nodeid, (time_s, *_) = next(iter(session[name].pairs.items()))
    return replace(measured(name, ratio * time_s, session), nodeid=nodeid)


def factor(pairs: Iterable[Sequence[Repeatability]], quantile: float) -> float:
    """The factor that the ratio of medians of such repeatability may be off by."""
    single = {"has_launches": False, "facts": CaseFacts(), "median_s": 1.0}
    cases: Any = [
        [SimpleNamespace(repeatability=each, revisits={}, **single) for each in pair]
        for pair in pairs
    ]
    return blur(cases, quantile)


def by_revisits(sd: float, ratios: Sequence[float]) -> Iterator[list[Measurement]]:
    """Cases with these true times, in sessions that have revisited twelve."""
    draw, frameworks = np.random.default_rng(7), "abc"[: len(ratios)]
    for _ in range(_SESSIONS):
        session = revisits(sd, draw, frameworks=frameworks)
        times_s = np.array(ratios) * np.exp(sd * draw.standard_normal(len(ratios)))
        yield [measured(*rival, session) for rival in zip(frameworks, times_s, strict=True)]


def by_earlier(sd: float, ratios: Sequence[float]) -> Iterator[list[Measurement]]:
    """The same among the hundred that a session and the one before it have measured."""
    draw, frameworks = np.random.default_rng(7), "abc"[: len(ratios)]
    for _ in range(_SESSIONS):
        session = revisits(sd, draw, 100, frameworks, of_earlier)
        yield [measured_twice(session, *rival) for rival in zip(frameworks, ratios, strict=True)]


def winners(sessions: Iterable[Sequence[Measurement]]) -> list[str]:
    """The winner of the contest of each session; empty where it is too close to call."""
    names = []
    for rivals in sessions:
        (contest,) = works(rivals)
        assert contest.decision in (Decision.WON, Decision.CLOSE)
        won = contest.decision is Decision.WON
        names.append(contest.rivals[0].fastest.facts.framework if won else "")
    return names


@pytest.mark.parametrize("sd", [0.02, 0.08, 0.3])
@pytest.mark.parametrize("contestants", [2, 3])
def test_twins_have_no_winner(sd: float, contestants: int) -> None:
    """But in 5 % of contests; the constant 5 % named one in 67 % where medians spread by 8 %."""
    for known_by in (by_revisits, by_earlier):
        assert winners(known_by(sd, [1.0] * contestants)).count("") / _SESSIONS >= 0.94


@pytest.mark.parametrize("unlike", [0.4, 0.8])
def test_cases_that_repeat_unlike_have_no_winner(unlike: float) -> None:
    """Where some repeat much worse than others, 12 degrees of freedom named one in 7 and 9 %."""
    draw = np.random.default_rng(6)
    won = held = 0
    for _ in range(_SESSIONS):
        deviations = 0.05 * np.exp(unlike * draw.standard_normal(13))
        session = revisits(deviations[1:], draw)
        times_s = np.exp(deviations[0] * draw.standard_normal(2))
        pair = [measured("a", time_s, session) for time_s in times_s]
        difference = abs(math.log(times_s[0] / times_s[1]))
        won += difference > math.log(blur([(pair[0], pair[1])]))
        held += difference <= math.log(blur([(pair[0], pair[1])], INTERVAL))
    assert won / _SESSIONS <= 0.05
    assert held / _SESSIONS >= 0.9


@pytest.mark.parametrize("number", [3, 12, 100])
@pytest.mark.parametrize("unlike", [0.0, 0.4, 0.8])
def test_medians_of_a_case_itself_count(number: int, unlike: float) -> None:
    """Cases that repeat well can be told apart where others do not, and no twins are."""
    draw = np.random.default_rng(8)
    held = won = seen = unseen = 0
    for _ in range(_SESSIONS // 2):
        deviations = 0.08 * np.exp(unlike * draw.standard_normal(number))
        sessions = [revisits(deviations, draw, number, of=of_earlier) for _ in range(2)]
        first, second = (measured_twice(session, "a") for session in sessions)
        difference = abs(math.log(first.median_s / second.median_s))
        held += difference <= math.log(blur([(first, second)], INTERVAL))
        won += difference > math.log(blur([(first, second)]))
        seen += blur([(first, second)]) < 1.5
        unseen += blur([(replace(first, nodeid=""), replace(second, nodeid=""))]) < 1.5
    assert held / (_SESSIONS // 2) >= 0.9
    assert won / (_SESSIONS // 2) <= 0.05
    assert seen > 10 * unseen


@pytest.mark.parametrize(
    ("known_by", "sd", "share"),
    [
        *[(by_revisits, 0.021, 0.96), (by_revisits, 0.027, 0.75), (by_revisits, 0.05, 0.1)],
        *[(by_earlier, 0.021, 0.99), (by_earlier, 0.027, 0.99), (by_earlier, 0.05, 0.88)],
    ],
)
def test_a_quarter_is_seen(known_by: Callable[..., Any], sd: float, share: float) -> None:
    """The first two are a quiet machine's with one thread and with two.

    The many cases of an earlier session show more than twelve.
    """
    names = winners(known_by(sd, (1.0, 1.25)))
    assert names.count("a") / _SESSIONS >= share
    assert names.count("b") <= _SESSIONS / 1000


@pytest.mark.parametrize("number", [3, 12])
def test_intervals_hold(number: int) -> None:
    """They are of two sessions' ratios, and of the mean ratio of four independent works."""
    draw = np.random.default_rng(8)
    held = [0, 0]
    for _ in range(_SESSIONS):
        session = revisits(0.08, draw, number)
        pairs = [[measured("a", x, session) for x in np.exp(0.08 * draw.standard_normal(2))]
                 for _ in range(4)]  # fmt: skip
        for at, some in enumerate((pairs[:1], pairs)):
            mean = np.mean([math.log(a.median_s / b.median_s) for a, b in some])
            held[at] += abs(mean) <= math.log(blur([(a, b) for a, b in some], INTERVAL))
    assert min(held) / _SESSIONS >= 0.88


@pytest.mark.parametrize("number", [6, 200])
def test_two_speeds_within_a_process_have_no_winner(number: int) -> None:
    """A case that takes 14 or 58 us by stretches repeats worse than its framework does.

    In one of 32 all six stretches have one speed, and nothing shows the other one.
    """
    draw = np.random.default_rng(10)
    quiet = revisits(0.03, draw)
    won = []
    for _ in range(_SESSIONS):
        twins = []
        for _ in range(2):
            stretches_s = draw.choice((14e-6, 58e-6), 6) * np.exp(0.02 * draw.standard_normal(6))
            rounds_s = np.repeat(stretches_s, math.ceil(number / 6))
            low, middle, high = map(float, np.quantile(rounds_s, (0.25, 0.5, 0.75)))
            stats = Statistics(q1=low, q3=high, rounds=rounds_s.size)
            twins.append(replace(measured("a", middle, quiet), stats=stats))
        times_s = [twin.median_s for twin in twins]
        won.append(max(times_s) / min(times_s) > blur([(twins[0], twins[1])]))
    assert np.mean(won) <= 0.1
    one, other = (
        replace(measured("a", time_s, quiet), stats=Statistics(q1=time_s, q3=time_s, rounds=number))
        for time_s in (14e-6, 58e-6)
    )
    assert blur([(one, other)]) < 58 / 14


def test_rounds_count_where_two_medians_may_agree_by_chance() -> None:
    """Elsewhere the medians show what rounds scatter by."""
    session = {"a": of_earlier({name: [1.0, 1.01] for name in "abc"})}
    once, twice = (replace(measured("a", 1.0, session), nodeid=name) for name in "xb")
    for q3, counts in ((1.4, False), (4.0, True)):
        stats = Statistics(q1=1.0, q3=q3, rounds=50)
        assert replace(once, stats=stats).repeatability.sd > once.repeatability.sd
        assert (replace(twice, stats=stats).repeatability.sd > twice.repeatability.sd) is counts


def test_medians_that_have_changed_alike_leave_their_ratio_known() -> None:
    """In one session: in another the same case may have changed again."""
    pairs = {"x": [1.0, 1.3], "y": [1.0, 1.3], "z": [1.3, 1.0]}
    session = {"a": of_earlier({str(i): [1.0, 1.01] for i in range(50)} | pairs)}
    longer, too, shorter = (replace(measured("a", 1.0, session), nodeid=name) for name in "xyz")
    elsewhere = replace(too, revisits={**session})
    assert blur([(longer, too)]) < 1.1
    assert 1.5 < blur([(longer, elsewhere)]) < blur([(longer, shorter)])
    assert blur([(longer, longer)]) == blur([(longer, elsewhere)])


def test_a_ratio_is_judged_by_the_mean_of_both_sessions() -> None:
    """The one that is shown is this session's, whose times stand beside it."""
    pairs = {"x": [1.0, 1.0], "y": [1.5, 1.1]}
    session = {"a": of_earlier({str(i): [1.0, 1.01] for i in range(50)} | pairs)}
    base, case = (
        replace(measured("a", time_s, session), nodeid=name) for name, (time_s, _) in pairs.items()
    )
    between = ratio(base, case)
    low, high = between.interval(INTERVAL)
    assert between.value == 1.5 < high
    assert low * high == pytest.approx(1.5 * 1.1)
    # As far above 1 as an interval would begin if it ended there.
    assert blur([(base, case)]) == pytest.approx(1.5 / between.interval(DECIDED)[0])
    elsewhere = replace(case, revisits={**session})
    assert math.prod(ratio(base, elsewhere).interval(INTERVAL)) == pytest.approx(1.5**2)


def test_intervals_of_ratios_hold_by_an_earlier_session() -> None:
    held = [
        low <= 1.25 <= high
        for base, case in by_earlier(0.05, (1.0, 1.25))
        for low, high in [ratio(base, case).interval(INTERVAL)]
    ]
    assert 0.89 <= np.mean(held) <= 0.99


@pytest.mark.parametrize("medians_s", [[], [1.0], [0.0, 1.0], [math.nan, 1.0], [1.0, math.inf]])
def test_a_record_without_two_medians_has_no_change(medians_s: list[float]) -> None:
    """Whatever has been written into a file."""
    session = {"a": StoredRevisits(cases=9, sd=0.05, pairs={"x": medians_s}, earlier=True)}
    assert known((), session, "a", "x") == known((), session, "a", "")


def test_ratios_of_medians_of_any_size_are_finite() -> None:
    pairs = {"x": [1e-308, 1e308], "y": [1e308, 1e-308]}
    session = {"a": StoredRevisits(cases=9, sd=0.05, pairs=pairs)}
    both = [replace(measured("a", 1.0, session), nodeid=name) for name in "xy"]
    assert math.isfinite(blur([(both[0], both[1])]))


def test_intervals_of_launches_hold() -> None:
    """The median of five launches scatters by less than half of what launches do."""
    draw = np.random.default_rng(9)
    logs = 0.1 * draw.standard_normal((_SESSIONS, 2, 5))
    held = [
        abs(math.log(np.median(np.exp(first)) / np.median(np.exp(second))))
        <= math.log(factor([[known(np.exp(x), {}, "a") for x in (first, second)]], INTERVAL))
        for first, second in logs
    ]
    assert 0.88 <= np.mean(held) <= 0.97


def test_launches_count_before_revisits_and_these_before_an_assumption() -> None:
    session = {"torch": StoredRevisits(cases=12, sd=0.05, pairs={})}
    launched = [{"launch": n, "value_s": s} for n, s in enumerate((1.0, 1.1, 1.21))]
    facts = CaseFacts.unchecked({**_TORCH, "statistic": "min", "launches": launched})
    three = Measurement(facts, (), revisits=session).repeatability
    sd = math.log(1.1) * math.sqrt(math.pi / 6)
    assert (three.sd, three[1:]) == (pytest.approx(sd), (2, "by launches", None))
    two = CaseFacts.unchecked({**facts, "launches": launched[:2]})
    assert Measurement(two, (), revisits=session).repeatability == Repeatability(
        0.05, 1.75, "12 cases revisited"
    )
    few = {"torch": StoredRevisits(cases=2, sd=0.05, pairs={})}
    for nothing in ({}, few):
        assert Measurement(two, (), revisits=nothing).repeatability is ASSUMED


def test_a_framework_is_judged_by_its_own_cases() -> None:
    """And by those of others as if they were two: a few of its own may agree by chance."""
    steady, restless = (StoredRevisits(cases=6, sd=sd, pairs={}) for sd in (0.01, 0.4))
    session = {"numpy": steady, "mxnet": restless}
    for framework, own, other in (("numpy", 0.01, 0.4), ("mxnet@1.8", 0.4, 0.01)):
        variance = (6 * own**2 + 2 * other**2) / 8
        expected = pytest.approx(variance**0.5), 1.75, "12 cases revisited", None
        assert known((), session, framework) == expected
    # Of several others the one in the middle, or right below it.
    assert known((), session, "jax").sd == pytest.approx(0.01)
    assert known((), {"numpy": steady}, "numpy").sd == pytest.approx(0.01)


def test_the_factor_is_that_of_students_t() -> None:
    """With the fewer degrees of freedom of both."""
    a, b = Repeatability(0.03, 12, "a"), Repeatability(0.04, 4, "b")
    assert factor([(a, b)], DECIDED) == pytest.approx(math.exp(0.05 * t.ppf(0.975, 4)))
    assert factor([(a, b)] * 4, INTERVAL) == pytest.approx(math.exp(0.025 * t.ppf(0.95, 4)))
    assert factor([(ASSUMED, ASSUMED)], INTERVAL) == pytest.approx(1.05)


@tabled
def test_it_is_said(every: tuple[tuple[Any, ...], ...], text: str) -> None:
    """Frameworks of which nothing is known are assumed to repeat."""
    known_of = [(name, Repeatability(*of) if of else ASSUMED) for name, *of in every]
    assert stated(known_of, {}) == text


@pytest.mark.parametrize(
    ("pairs", "missed", "why"),
    [
        (0, {"contended": 12}, "; 12 had to share processors (measure again on an idle machine)"),
        (2, {"late": 1}, "; for 1 there was no time (select cases that take less)"),
        (2, {}, ""),
    ],
)
def test_too_few_revisited_cases_have_a_reason(
    pairs: int, missed: dict[str, int], why: str
) -> None:
    """To revisit twelve is not advised where that was just done."""
    revisits = {"numpy": of_pairs({f"{n}": [1.0, 1.1] for n in range(pairs)}, **missed)}
    assert known((), revisits, "numpy") == ASSUMED
    said = f"to within 5 %: {pairs} cases revisited, and at least 3 are needed{why}"
    assert stated([("numpy", ASSUMED)], revisits) == f"medians are assumed to repeat {said}"


def test_frameworks_whose_revisits_failed_show_nothing() -> None:
    """Not that medians repeat exactly."""
    shown = {"numpy": of_pairs({f"{n}": [1.0, 1.2] for n in range(4)})}
    tried = {**shown, "torch": of_pairs({}, contended=4)}
    for framework in ("numpy", "torch"):
        assert known((), tried, framework) == known((), shown, framework)


def test_cases_that_are_far_apart_widen_no_other_interval() -> None:
    """In an earlier session a tenth may be, as some of MXNet's are."""
    draw = np.random.default_rng(1)
    seconds = np.exp(np.where(np.arange(100) % 20, 0.02, 1.0) * draw.standard_normal(100))
    pairs = {str(i): [1.0, float(second)] for i, second in enumerate(seconds)}
    session = {"a": of_earlier(pairs)}
    each = {nodeid: known((), session, "a", nodeid) for nodeid in pairs}
    assert {one.source for one in each.values()} == {"by 100 cases of an earlier session"}
    widths = {nodeid: factor([(one, one)], INTERVAL) for nodeid, one in each.items()}
    held = [max(pairs[nodeid][1], 1 / pairs[nodeid][1]) <= widths[nodeid] for nodeid in pairs]
    assert np.mean(held) >= 0.9
    assert np.median([*widths.values()]) < 1.1
    far = [widths[nodeid] for nodeid, (first, second) in pairs.items() if second > 2 * first]
    assert far
    assert min(far) > 2.0
    # Where there is one, or two, the interval holds them.
    for few in (["1"], ["1", "2"]):
        known_by = {"a": of_earlier({n: pairs[n] for n in few}), "b": session["a"]}
        for nodeid in few:
            one = known((), known_by, "a", nodeid)
            assert pairs[nodeid][1] <= factor([(one, one)], INTERVAL)


def test_a_session_knows_the_medians_of_its_cases() -> None:
    """So the terminal names the winner that a report of it names."""
    session = {"torch": of_earlier({f"test_it.py::{n}": [1.0, 1.1] for n in "abc"})}
    case = just_measured({**entry("torch", 1.0), "fullname": "test_it.py::a"}, session)
    assert case.repeatability.freedom == 2.75


def test_a_case_that_no_earlier_session_has_measured_may_repeat_badly() -> None:
    session = revisits(0.05, np.random.default_rng(2), 12, of=of_earlier)
    seen, unseen = known((), session, "a", "0"), known((), session, "a", "another")
    assert (seen.freedom, unseen.freedom) == (2.75, 1.0)
    assert unseen.interval > 2 * seen.interval


@pytest.mark.parametrize(
    ("second_s", "told"), [(0.4, "400 ms"), (0.6, ""), (1.9, ""), (2.1, "2.1 s")]
)
def test_a_case_with_two_results_is_named(second_s: float, told: str) -> None:
    """Its width alone would hide it."""
    session = {"a": of_pairs({"1": [1.0, 1.01], "2": [1.0, second_s], "3": [1.0, 0.99]})}
    cases = [replace(measured("a", 1.0, session), nodeid=n, test=f"of {n}") for n in "123"]
    text = uncertainty(cases)
    assert ": 3 cases revisited" in text
    named = f"; {cases[1].name} took 1 s, and {told} in a fresh process"
    assert text.endswith(named if told else "revisited")
    assert "took" not in uncertainty(cases[:1])


def test_few_of_many_cases_with_two_results_are_named() -> None:
    """An earlier session may have many."""
    names = [str(number) for number in range(12)]
    session = {"a": of_earlier({n: [1.0, 3.0 if int(n) < 5 else 1.0] for n in names})}
    text = uncertainty(
        [replace(measured("a", 1.0, session), nodeid=n, test=f"of {n}") for n in names]
    )
    assert "by 12 cases of an earlier session" in text
    assert text.count("took 1 s, and 3 s in an earlier session") == 3
    assert text.endswith("; 2 others differ as much")
