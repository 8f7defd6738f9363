"""Claims in a test: their verdicts are right on any machine, and every dead end has a sentence."""

import copy
import math
import random
import re
import sys
from collections.abc import AsyncIterator, Callable, Iterator
from concurrent.futures import Future
from contextlib import suppress
from functools import partial
from importlib.util import find_spec
from itertools import chain, pairwise
from operator import methodcaller
from typing import Any

import numpy as np
import pytest

from fwbench import CannotTell, ClaimFailed, at_most, claims, faster, no_slower
from fwbench.claims import Claim, ClaimTest, Limit
from fwbench.errors import UsageError
from fwbench.frameworks.results import AwaitedArrays, AwaitedResults
from fwbench.options import values
from fwbench.testing import HandClock
from support import programs
from support.two_speeds import TwoSpeeds

_CALL_S = 0.7e-3


def _outcome(claim: Claim, ratio: float, shape: str, seed: int) -> bool | None:
    """True if a claim holds, False if it fails, None if that cannot be told."""
    machine = TwoSpeeds(seed)
    functions = {"f": machine.function(_CALL_S, shape)}
    if not isinstance(claim, Limit):
        functions["g"] = machine.function(_CALL_S * ratio)
    try:
        ClaimTest(claim, functions, (), machine, random.Random(seed)).outcome()  # noqa: S311
    except ClaimFailed:
        return False
    except CannotTell:
        return None
    finally:
        assert machine.now_s < claim.within_s + 0.1
    return True


@pytest.fixture(autouse=True)
def _idle(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let no process of this machine disturb those that are made up."""
    monkeypatch.setattr(claims, "is_contended", lambda *_: False)


# Errors and power


@pytest.mark.parametrize(
    ("by", "ratio", "shape"),
    [
        *((1.5, 1.5, shape) for shape in ("even", "skewed", "preempted")),
        *((1.0, ratio, "even") for ratio in (1.0, 1.01, 1 / 1.01)),
    ],
)
def test_neither_verdict_is_more_frequent_than_the_level(
    by: float, ratio: float, shape: str
) -> None:
    """At the claimed ratio, and at the edges of the margin, on a machine that changes its speed."""
    level, cases = 0.1, 100
    claim = Claim("edge", by, True, level, 1.0)
    outcomes = [_outcome(claim, ratio, shape, seed) for seed in range(cases)]
    most = cases * level + 2 * math.sqrt(cases * level)
    assert outcomes.count(True) <= most
    assert outcomes.count(False) <= most


@pytest.mark.parametrize("shape", ["even", "skewed", "preempted"])
@pytest.mark.parametrize(
    ("by", "ratio", "holds"), [(1.0, 1.1, True), (1.0, 1 / 1.1, False), (1.5, 1.7, True)]
)
def test_what_differs_by_a_tenth_is_told(by: float, ratio: float, holds: bool, shape: str) -> None:
    claim = Claim("clear", by, True, 0.01, 5.0)
    assert {_outcome(claim, ratio, shape, seed) for seed in range(20)} == {holds}


def test_equal_functions_are_no_slower_than_each_other() -> None:
    claim = Claim("equal", 1.03, False, 0.01, 5.0)
    assert {_outcome(claim, 1.0, "even", seed) for seed in range(20)} == {True}


@pytest.mark.parametrize(("limit", "wrong"), [(0.95, True), (1.05, False), (1.5, False)])
def test_limits_are_told_right_or_not_at_all(limit: float, wrong: bool) -> None:
    """A machine that is slow for seconds makes no limit fail that is kept at full speed."""
    claim = Limit("limit", limit * _CALL_S, False, 0.01, 5.0)
    outcomes = {_outcome(claim, 1.0, "even", seed) for seed in range(60)}
    assert wrong not in outcomes
    assert (not wrong) in outcomes


def test_a_limit_exceeded_twice_fails_at_once() -> None:
    machine = TwoSpeeds(0)
    claim = Limit("limit", 0.2 * _CALL_S, False, 0.01, 5.0)
    with pytest.raises(ClaimFailed, match=r"limit is false: f takes .* \(99% bounds"):
        ClaimTest(claim, {"f": machine.function(_CALL_S)}, (), machine).outcome()
    assert machine.now_s < 1


def test_a_contended_machine_makes_no_limit_fail(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(claims, "is_contended", lambda *_: True)
    machine = TwoSpeeds(0)
    claim = Limit("limit", 0.2 * _CALL_S, False, 0.01, 5.0)
    with pytest.raises(CannotTell, match="other processes took processors meanwhile: repeat it on"):
        ClaimTest(claim, {"f": machine.function(_CALL_S)}, (), machine).outcome()


def test_a_late_limit_is_not_refuted_sooner_than_machines_are_slow() -> None:
    for within_s, error in ((2.0, CannotTell), (5.0, ClaimFailed)):
        hand = HandClock()
        claim = Limit("limit", 2**-10 / 1.2, False, 0.01, within_s)
        with pytest.raises(error) as caught:
            ClaimTest(claim, {"f": partial(hand.spend, 2**-10)}, (), hand).outcome()
        assert hand() == pytest.approx(within_s, abs=0.1)
        is_told = "slow for as long as that: give it more time: within=" not in str(caught.value)
        assert is_told == (error is ClaimFailed)


# Visits


def test_visits_have_equal_calls_in_an_order_that_is_drawn() -> None:
    hand, made = HandClock(), list[str]()

    def calls(name: str, seconds: float) -> Callable[[], None]:
        return lambda: (made.append(name), hand.spend(seconds))[0]

    claim = Claim("ever", 1.0, True, 1e-9, 5.0)
    watch = ClaimTest(claim, {"f": calls("f", 2**-12), "g": calls("g", 2**-11)}, (), hand)
    watch._prepared()
    made.clear()
    orders = set()
    for _ in range(40):
        row = watch._turn()
        assert row == [2**-12, 2**-11]
        orders.add("".join(made[:1] + [new for old, new in pairwise(made) if new != old]))
        # Two calls each, and those before: 0.3 ms of either.
        assert (made.count("f"), made.count("g")) == (2 + 2, 2 + 1)
        made.clear()
    assert orders == {"fg", "gf"}


def test_a_call_of_which_one_is_a_visit() -> None:
    """It is not warmed up, and the turns of a verdict have room."""
    hand, made = HandClock(), list[float]()

    def slow() -> None:
        made.append(hand())
        hand.spend(0.25)

    claim = Claim("slow", 2.0, True, 0.01, 13.0)
    outcome = ClaimTest(claim, {"f": slow, "g": lambda: hand.spend(1.0)}, (), hand).outcome()
    assert outcome == (
        "slow holds: f takes 250 ms and g takes 1 s: 4x as fast "
        "(99% bounds 4x to 4x, 8 turns in 10 s)"
    )
    assert len(made) == 1 + 1 + 8


class _Pending:
    """An array that will exist when the device's queue is empty."""

    def __init__(self, hand: HandClock) -> None:
        self.wait = hand.wait


def test_asynchronous_results_are_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """Wherever they are in what a function returns."""
    hand = HandClock()
    arrays = AwaitedArrays(_Pending, methodcaller("wait"))
    monkeypatch.setattr(AwaitedResults, "look", lambda self: self._arrays.update(fake=arrays))

    def enqueued() -> dict[str, _Pending]:
        hand.spend(2**-14)
        hand.enqueue(2**-9)
        return {"y": _Pending(hand)}

    claim = Claim("async", 1.5, True, 0.01, 5.0)
    with pytest.raises(ClaimFailed, match=r"f takes 2\.01 ms and g takes 977 us: 0.48"):
        ClaimTest(claim, {"f": enqueued, "g": lambda: hand.spend(2**-10)}, (), hand).outcome()


_MXNET = """
import numpy, time
numpy.bool = bool  # MXNet needs it
import mxnet as mx
from fwbench import faster
x = mx.nd.ones((512, 512))
mx.nd.dot(x, x).wait_to_read()
start_s = time.perf_counter()
mx.nd.dot(x, x).wait_to_read()
print(time.perf_counter() - start_s)
print(faster(lambda: mx.nd.relu(x), than=lambda: mx.nd.dot(x, x), by=2))
"""


@pytest.mark.skipif(find_spec("mxnet") is None, reason="MXNet is not installed")
def test_mxnet_is_waited_for() -> None:
    """A product that seems to take microseconds takes milliseconds."""
    alone_s, told = programs.output("-c", _MXNET).splitlines()
    value, unit = re.findall(r"g takes ([\d.]+) (\w+)", told)[0]
    assert values.duration(value + unit, "time") > float(alone_s) / 4


def test_lines_are_not_traced_meanwhile() -> None:
    """By coverage, or by a debugger, which make Python slower and NumPy not."""
    traces = []

    def look() -> float:
        traces.append(sys.gettrace())
        return sum(range(1000))

    before = sys.gettrace()
    sys.settrace(lambda *_: None)
    try:
        at_most(look, "1s", within="1s")
    finally:
        sys.settrace(before)
    assert {*traces} == {None}


# Dead ends


def _nothing() -> None:
    """Do nothing."""


def _work(size: int = 20_000) -> float:
    return float(np.sqrt(np.ones(size)).sum())


def _awaited() -> Any:
    async def later() -> None:
        """Do nothing."""

    return later()


async def _yielded() -> AsyncIterator[int]:
    yield 1


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: faster(_work, than=_work, by=0), r"faster\(f, than=g, by=0\): by is a factor fro"),
        (lambda: faster(_work, than=_nothing, by=-2), r"than=_nothing, by=-2\): by is a factor"),
        (lambda: no_slower(_work, than=_work, by=math.nan), "by is a factor from 1, as 1.5 for"),
        (lambda: faster(_work, than=_work, by="3%"), "by is a factor from 1"),  # type: ignore[arg-type]
        (lambda: at_most(_work, "2 parsecs"), "at_most '2 parsecs' is not a duration above 0; gi"),
        (lambda: at_most(_work, "2ms", within="soon"), "within 'soon' is not a duration above 0"),
        (lambda: at_most(_work, "2ms", level=5), "level 5 is not a probability from 1e-09 to 0.5"),
        (lambda: at_most(_work(), "2ms"), "functions, and 200.* cannot be called; pass the functi"),  # type: ignore[arg-type]
        (lambda: at_most(_awaited, "2ms"), "_awaited returned a coroutine, which does nothing unt"),
        (lambda: at_most(lambda: (i for i in ()), "2ms"), "f returned a generator, which does not"),
        (lambda: at_most(_yielded, "2ms"), "returned a async_generator, which does noth"),
        (lambda: at_most(lambda: map(abs, [1]), "2ms"), "f returned a map, which does nothing unt"),
        (lambda: at_most(lambda: chain([1]), "2ms"), "f returned a chain, which does nothing unti"),
        (lambda: at_most(lambda: [Future()], "2ms"), "f returned what contains a Future, whic"),
    ],
)
def test_what_makes_no_claim_is_refused(make: Callable[[], str], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        make()


_SHUFFLED = random.Random(1).sample(range(999), 999)  # noqa: S311 (no secret)


@pytest.mark.parametrize(
    ("function", "value", "what"),
    [
        (np.ndarray.sort, np.array(_SHUFFLED), "puts in order, and finds in order from then on, "),
        (list.sort, _SHUFFLED, "puts in order, and finds in order from then on, argument 1 (list)"),
        (list.pop, _SHUFFLED, "takes elements from argument 1 (list)"),
        (sum, iter(_SHUFFLED), "uses up argument 1 (list_iterator)"),
    ],
)
def test_what_leaves_less_for_its_next_call_is_refused(
    function: Callable[..., Any], value: Any, what: str
) -> None:
    """An array is sorted from the second call on, also for the other function."""
    given = value if isinstance(value, Iterator) else copy.copy(value)
    message = re.escape(what) + ".*so that later calls have less to do"
    with pytest.raises(UsageError, match=message):
        faster(function, than=lambda _: 0, args=(given,))


def test_a_buffer_that_holds_the_result_in_another_order_may_be_passed_empty() -> None:
    """Nobody can tell it from an array that is sorted in place."""

    def fill(into: np.ndarray) -> None:
        into[:] = range(len(_SHUFFLED))

    with pytest.raises(UsageError, match="or pass zeros if the calls only write it"):
        no_slower(fill, than=fill, args=(np.array(_SHUFFLED),), within="0.5s")
    with suppress(CannotTell):
        no_slower(fill, than=fill, args=(np.zeros_like(_SHUFFLED),), within="0.5s")


@pytest.mark.parametrize(
    "function", [random.shuffle, lambda into: into.fill(1), lambda numbers: numbers + 1]
)
def test_what_is_only_written_to_is_compared(function: Callable[..., Any]) -> None:
    """And what every call changes anew."""
    with suppress(CannotTell):
        no_slower(function, than=function, args=(np.array(_SHUFFLED),), within="0.5s")


def test_functions_that_do_nothing_are_not_compared() -> None:
    with pytest.raises(
        CannotTell, match=r"a call takes .* ns, and that of a function that does no"
    ):
        faster(_nothing, than=lambda: None)


def test_functions_that_take_too_long_are_given_up() -> None:
    hand = HandClock()
    functions = {"f": lambda: hand.spend(2.0), "g": lambda: hand.spend(1.0)}
    message = (
        "slow: a turn takes 3 s, a verdict 8 turns or more, and 0 s were left after the first "
        'calls; give it more time: within="54s"'
    )
    with pytest.raises(CannotTell, match=message):
        ClaimTest(Claim("slow", 1.0, True, 0.01, 5.0), functions, (), hand).outcome()
    assert hand() == 6.0


def test_what_is_too_close_to_tell_says_so() -> None:
    machine = TwoSpeeds(1)
    functions = {"f": machine.function(_CALL_S), "g": machine.function(_CALL_S)}
    message = 'neither shown nor refuted: f .*: (0.99.|1)x as fast .*; it is too close .*="10s"'
    with pytest.raises(CannotTell, match=message):
        ClaimTest(Claim("close", 1.0, True, 0.01, 1.0), functions, (), machine).outcome()


def test_what_takes_more_turns_says_how_long() -> None:
    machine = TwoSpeeds(1)
    claim = Claim("more", 1.0, True, 0.001, 0.45)
    functions = {"f": machine.function(4e-3, "skewed"), "g": machine.function(4.4e-3, "skewed")}
    with pytest.raises(CannotTell, match='give it more time: within="'):
        ClaimTest(claim, functions, (), machine, random.Random(1)).outcome()  # noqa: S311


def test_an_error_of_a_function_is_its_own() -> None:
    with pytest.raises(ZeroDivisionError) as caught:
        faster(lambda x: x, than=lambda x: 1 / x, args=(0,))
    assert caught.value.__notes__ == ["g raised it, called for the claim faster(f, than=g, by=1.0)"]


def test_real_functions_are_told_apart_and_the_test_fails_as_any() -> None:
    """And arguments are passed to both."""

    def single(size: int) -> float:
        return _work(size)

    def double(size: int) -> float:
        return _work(size) + _work(size)

    told = faster(single, than=double, by=1.2, args=(20_000,))
    assert told.startswith("faster(single, than=double, by=1.2) holds: single takes ")
    with pytest.raises(AssertionError, match=r"no_slower\(double, than=single, by=1.03\) is false"):
        no_slower(double, than=single, args=(20_000,))


# In pytest

_TESTS = """
import unittest, pytest
from fwbench import CannotTell, ClaimFailed

def test_undecided():
    raise CannotTell("too close")

def test_false():
    raise ClaimFailed("slower")

@pytest.fixture
def undecided():
    raise CannotTell("too close")

def test_with_fixture(undecided): ...

class Test(unittest.TestCase):
    def test_undecided(self):
        raise CannotTell("too close")
"""


@pytest.mark.parametrize(
    ("setting", "outcomes"),
    [("", {"skipped": 3, "failed": 1}), ("fw_cannot_tell = error", {"failed": 3, "errors": 1})],
)
def test_what_cannot_be_told_is_skipped_or_an_error(
    pytester: pytest.Pytester, setting: str, outcomes: dict[str, int]
) -> None:
    pytester.makeini(f"[pytest]\n{setting}")
    pytester.makepyfile(_TESTS)
    result = pytester.runpytest("-rs", "-p", "no:randomly")
    assert result.parseoutcomes() == outcomes
    if "skipped" in outcomes:
        result.stdout.fnmatch_lines(["SKIPPED ?1? test_*.py:5: cannot tell: too close"])


def test_another_outcome_is_refused(pytester: pytest.Pytester) -> None:
    pytester.makeini("[pytest]\nfw_cannot_tell = pass")
    result = pytester.runpytest()
    result.stderr.fnmatch_lines(
        ["*ini setting fw_cannot_tell: unknown outcome *; known: skip, er*"]
    )


class _One:
    def work(self) -> None:
        """Do nothing."""


class _Other(_One):
    def work(self) -> None:
        """Do nothing, too."""


def _work_of(module: str) -> Callable[[], None]:
    def work() -> None:
        """Do nothing."""

    work.__module__ = module
    return work


@pytest.mark.parametrize(
    ("functions", "names"),
    [
        ((_One().work, _Other().work), ["_One.work", "_Other.work"]),
        ((_work_of("old"), _work_of("new.api")), ["old._work_of.work", "new.api._work_of.work"]),
        ((_work, _work), ["f", "g"]),
        ((_work, lambda: None), ["f", "g"]),
        ((partial(_work),), ["f"]),
    ],
)
def test_functions_of_one_name_have_names_that_differ(
    functions: tuple[Callable[..., Any], ...], names: list[str]
) -> None:
    assert [*claims._named(*functions)] == names
