"""Claims about times in a test: faster than another function, no slower, or fast enough.

Functions make visits of a millisecond by turns in this process, in an order that is drawn anew in
each turn of both: as many calls of either, after a few that are not timed. A turn says the
logarithm of the ratio of its two visits. Turns of one process are no launches: they share its
memory layout and its luck, so a claim is about this process. Nor are they independent of each
other, since machines change their speed for milliseconds or seconds. But whichever speeds a turn
meets, the draw decides which function has the better half of it: if the claimed ratio is the true
one, a turn exceeds it as a fair coin falls, whatever earlier turns did, and so does the median of
an odd number of turns. Such a block is the unit of the test, and the test the gambler of ``fwbench
ab`` who bets on signs alone (:func:`fwbench.gate.sequential.evidence_of_sign`): functions that do
different work differ in the shape of their noise, and the sizes of differences would favour one.
Single turns would decide within 20 ms, in which a machine may suit one function better than later.

A limit has no other side, and no draw: a machine that is slow for four seconds makes every visit of
them late. So a limit is refuted only where no visit kept it for longer than that, or most exceeded
it by a factor that no speed of a machine explains, and never on a contended machine.
"""

import inspect
import math
import random
import statistics
import sys
import time
from array import array
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import partial
from itertools import repeat
from typing import Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from fwbench.errors import CannotTell, ClaimFailed, UsageError
from fwbench.frameworks.results import AwaitedResults
from fwbench.gate.sequential import Bools, Floats, evidence_of_sign, interval, until_decided
from fwbench.measure.clock import Clock, Timer
from fwbench.measure.condition import is_contended, slowdown
from fwbench.measure.resources import OtherProcesses, RunQueue
from fwbench.measure.warmup import warm_up
from fwbench.options.values import duration
from fwbench.records import units

#: Reports of failures end where a test makes a claim, in methods of unittest and in fixtures, too.
__tracebackhide__ = True

#: The visit of the slower function, and untimed calls before a visit. To calls of the third length
#: the state of caches does not matter.
_VISIT_S, _LEAD_IN_S, _LONG_S = 1e-3, 300e-6, 20e-3

#: A block; a shorter one where there is no time for so many.
_BLOCK_S, _BLOCKS = 50e-3, 40

#: Each function is warmed up for this part of the time at most, and for so long.
_WARM_UP, _WARM_UP_S = 0.05, 0.2

#: Further visits that tell how long a call is; a single one may have been disturbed.
_TRIED = 4

#: A function does nothing if it takes less than this many times one that does nothing for certain;
#: asked of calls shorter than this, and of as many as tell.
_NOTHING, _SHORT_S, _CALLS_AT_MOST = 1.5, 1e-6, 2**20

#: Two copies of one function differ by up to 0.8 % for as long as a process lives, by where their
#: results lie in memory: so close to a claim neither it nor its contrary is shown.
_MARGIN = math.log(1.01)

#: A limit is refuted if no visit kept it for longer than machines are slow, or if most exceeded it
#: by this factor, however long.
_SLOW_S, _SLOW_FACTOR = 4.5, 2.0

#: No smaller level is asked for.
_LEAST_LEVEL = 1e-9

#: What an iterator gives that is used up.
_END = object()

#: Suggested time in addition, as a multiple of what would do in half of all cases.
_SPARE = 2.0


T = TypeVar("T")


@dataclass
class _Side:
    """A function, and its calls in a visit."""

    name: str
    function: Callable[..., Any]
    args: Sequence[Any]
    clock: Clock
    calls: int = 1
    #: Untimed calls before.
    lead_in: int = 0
    #: The result of the latest call.
    latest: Any = None

    def call(self, times: int = 1) -> None:
        """Call the function, and keep its last result; nothing else is done between calls."""
        function, args = self.function, self.args
        for _ in repeat(None, times - 1):
            function(*args)
        self.latest = function(*args)

    def visit(self) -> float:
        """Make a visit; seconds of a call, until its result exists."""
        if self.lead_in:
            self.call(self.lead_in)
        start_s = self.clock()
        self.call(self.calls)
        took_s = self.clock() - start_s
        # Kept, it would send the results of the other function to another place in memory: of two
        # copies of a product of 128 x 128 one was slower by 7 %, for as long as both lived.
        self.latest = None
        return took_s / self.calls

    def prepare(self, limit_s: float) -> float:
        """Warm the function up for so long at most; seconds of a call."""
        call_s = self.visit()
        if call_s < _LONG_S:
            warm_up(self.call, self.clock, limit_s)
            call_s = self.visit()
            while call_s * self.calls < _VISIT_S / 2 and self.calls < _CALLS_AT_MOST:
                self.calls *= 2
                call_s = self.visit()
            call_s = min(call_s, *(self.visit() for _ in range(_TRIED)))
        return call_s


class _Busy(NamedTuple):
    """Other processes meanwhile; see :class:`fwbench.measure.condition.Evidence`."""

    others_cpus: float | None
    idle_cpus: float | None
    queued_cpus: float | None
    preempted: float | None = None
    others_on_gpu: int | None = None
    full_speed: float | None = None


@dataclass
class Seen:
    """The visits that were made for a claim."""

    #: Of each block, the median logarithm of its turns' ratios.
    logs: list[float] = field(default_factory=list)
    #: Of each turn, seconds of a call of each function.
    times_s: list[list[float]] = field(default_factory=list)
    #: Seconds that the blocks took.
    lasted_s: float = 0.0
    #: Whether there is no time for another block.
    is_over: bool = False
    #: Whether other processes took processors that visits needed.
    is_contended: bool = False


@dataclass(frozen=True)
class Claim:
    """A claim about the ratio of the times of two functions."""

    #: The claim, as it stands in the test.
    text: str
    #: The ratio that is claimed.
    by: float
    #: Whether it is the second time over the first, and claimed to be larger; otherwise the first
    #: over the second, and claimed to be smaller.
    is_speed: bool
    #: The probability of a wrong verdict, of either kind.
    level: float
    within_s: float

    @property
    def needed(self) -> float:
        """The logarithm of the evidence that a verdict takes."""
        return -math.log(self.level)

    @property
    def least_blocks(self) -> int:
        """The number of blocks that make a verdict if all agree."""
        most = math.ceil(2 * self.needed) + 2
        return int(np.argmax(evidence_of_sign(np.ones(most)) >= self.needed)) + 1

    def log(self, row: Sequence[float]) -> float:
        """The logarithm of the ratio of a turn, from seconds of a call of each function."""
        return math.log(row[1] / row[0] if self.is_speed else row[0] / row[1])

    def spare(self, ratios: Floats) -> Floats:
        """The logarithm of the factor by which blocks keep the claim."""
        return (1 if self.is_speed else -1) * (ratios - math.log(self.by))

    def decided(self, ratios: Floats) -> Bools:
        """True if the claim or its contrary is shown, by number of blocks along the last axis."""
        spare = self.spare(ratios)
        return self.shows(spare) | self.shows(-spare)

    def shows(self, spare: Floats) -> Bools:
        """True if a factor is shown to be above 1 by the margin, by number of blocks."""
        return evidence_of_sign(spare - _MARGIN) >= self.needed

    def verdict(self, seen: Seen) -> bool | None:
        """True if the claim holds, False if it does not; None while neither is shown."""
        spare = self.spare(np.array(seen.logs))
        if self.shows(spare)[-1]:
            return True
        return False if self.is_refuted(spare, seen) else None

    def is_refuted(self, spare: Floats, seen: Seen) -> bool:
        """True if the contrary is shown."""
        return bool(self.shows(-spare)[-1])

    def found(self, seen: Seen, names: Sequence[str]) -> str:
        """The times, their ratio, its bounds, and the turns that these are from."""
        medians_s = [np.median(column) for column in zip(*seen.times_s, strict=True)]
        times = [f"{name} takes {units.time(s)}" for name, s in zip(names, medians_s, strict=True)]
        low, high = interval(np.array(seen.logs), 1 - self.level, evidence_of_sign)
        ends = [self.shown(low) if math.isfinite(low) else "?"]
        ends += [self.shown(high) if math.isfinite(high) else "?"]
        turns = f"{units.count(len(seen.times_s), 'turn')} in {units.duration(seen.lasted_s)}"
        between = f"{100 * (1 - self.level):.4g}% bounds {' to '.join(ends)}, {turns}"
        return f"{' and '.join(times)}{self.ratio(statistics.median(seen.logs))} ({between})"

    def ratio(self, log: float) -> str:
        """A ratio, in words that follow the times."""
        return f": {self.shown(log)} {'as fast' if self.is_speed else 'the time'}"

    def shown(self, log: float) -> str:
        """A ratio, from its logarithm."""
        return units.times(math.exp(log))

    def advice(self, seen: Seen) -> str:
        """Advice where neither is shown."""
        busy = "other processes took processors meanwhile; " * seen.is_contended
        more = until_decided(np.array(seen.logs), self.decided)
        if math.isfinite(more):
            longer_s = self.within_s + _SPARE * more * seen.lasted_s / len(seen.logs)
            return f'{busy}give it more time: within="{math.ceil(longer_s)}s"'
        return (
            f"{busy}it is too close to call for turns that differ so much, and several times as "
            "long would not tell either: claim less, or give it much more time: "
            f'within="{math.ceil(10 * self.within_s)}s"'
        )


@dataclass(frozen=True)
class Limit(Claim):
    """A claim that a function takes at most so many seconds: more often than not, its median."""

    def log(self, row: Sequence[float]) -> float:
        """The logarithm of the time of a call over the limit."""
        return math.log(row[0] / self.by)

    def spare(self, ratios: Floats) -> Floats:
        """The logarithm of the factor by which blocks keep the limit."""
        return -ratios

    def is_refuted(self, spare: Floats, seen: Seen) -> bool:
        """True if it takes longer, and not because the machine is slow for a while."""
        over = -spare
        if self.shows(over - math.log(_SLOW_FACTOR))[-1]:
            return True
        has_lasted = seen.is_over and seen.lasted_s >= _SLOW_S
        return has_lasted and self._is_late(seen) and bool(self.shows(over)[-1])

    def _is_late(self, seen: Seen) -> bool:
        """True if no visit has kept the limit."""
        return min(row[0] for row in seen.times_s) > self.by

    def ratio(self, log: float) -> str:
        """Nothing: there is no other function."""
        return ""

    def shown(self, log: float) -> str:
        """The time, from the logarithm of its ratio to the limit."""
        return units.time(self.by * math.exp(log))

    def advice(self, seen: Seen) -> str:
        """Advice where neither is shown."""
        if seen.is_contended and self._is_late(seen):
            return "other processes took processors meanwhile: repeat it on an idle machine"
        if seen.lasted_s < _SLOW_S and self._is_late(seen):
            longer_s = self.within_s - seen.lasted_s + _SLOW_S + 1
            return (
                "a machine may be slow for as long as that: give it more time: "
                f'within="{math.ceil(longer_s)}s"'
            )
        return super().advice(seen)


class ClaimTest:
    """Has functions make visits by turns until a claim is decided, or its time is over.

    Args:
        functions: the one that the claim is about, and the other one, by their names in messages.
        read: the clock.
        draw: the order of each turn; not the test's own generator.
    """

    def __init__(
        self,
        claim: Claim,
        functions: Mapping[str, Callable[..., Any]],
        args: Sequence[Any],
        read: Timer = time.perf_counter,
        draw: random.Random | None = None,
    ) -> None:
        self._claim = claim
        self._read = read
        self._ends_s = read() + claim.within_s
        self._sides = [_Side(name, f, args, Clock(read)) for name, f in functions.items()]
        self._random = draw or random.Random()  # noqa: S311 (no secret)
        self.seen = Seen()

    def outcome(self) -> str:
        """The claim, and what was found, if it holds.

        Raises:
            ClaimFailed: it does not.
            CannotTell: neither is shown.
            UsageError: a function returns what does nothing until it is awaited or iterated, or
                leaves less to do for its next call.
        """
        with ExitStack() as stack:
            stack.enter_context(_untraced())
            for side in self._sides:
                stack.enter_context(side.clock.untimed())
            turns = self._prepared()
            verdict = self._verdict(turns)
        claim, names = self._claim, [side.name for side in self._sides]
        found = claim.found(self.seen, names)
        if verdict:
            return f"{claim.text} holds: {found}"
        if verdict is None:
            raise CannotTell(
                f"{claim.text} is neither shown nor refuted: {found}; {claim.advice(self.seen)}"
            )
        raise ClaimFailed(f"{claim.text} is false: {found}")

    def _prepared(self) -> int:
        """Warm the functions up, and size their visits; the turns of a block."""
        for side in self._sides:
            self._call_first(side)
        results = AwaitedResults()
        results.look()  # what functions import is there by now
        if any(results.are_pending(side.latest) for side in self._sides):
            for side in self._sides:
                side.clock.wait = partial(_wait, results, side)
        limit_s = min(_WARM_UP_S, _WARM_UP * self._claim.within_s)
        calls_s = [self._made(side, partial(side.prepare, limit_s)) for side in self._sides]
        self._refuse_nothing(max(calls_s))
        calls = max(1, round(_VISIT_S / max(calls_s)))
        for side, call_s in zip(self._sides, calls_s, strict=True):
            side.calls = calls
            side.lead_in = math.ceil(_LEAD_IN_S / call_s) if call_s < _LONG_S else 0
        both = zip(self._sides, calls_s, strict=True)
        return self._turns(sum((side.calls + side.lead_in) * call_s for side, call_s in both))

    def _call_first(self, side: _Side) -> None:
        """Call a function for the first time; refuse it if it leaves less to do for later calls."""
        before = [*map(_content, side.args)]
        self._made(side, side.call)
        _refuse_unfinished(side.name, side.latest)
        after = [*map(_content, side.args)]
        for place, value in enumerate(side.args):
            what, others = _taken(value, before[place], after[place]), ""
            if not what and _is_rearranged(before[place], after[place]):
                self._made(side, side.call)
                # Shuffled once more, it has as much to do; sorted, it has not.
                is_settled = np.array_equal(after[place], _content(value))
                what = "puts in order, and finds in order from then on," * is_settled
                others = ", or pass zeros if the calls only write it"
            if what:
                raise UsageError(
                    f"{self._claim.text}: {side.name} {what} argument {place + 1} "
                    f"({type(value).__name__}), so that later calls have less to do; copy it in "
                    f"each call{' of both' * (len(self._sides) > 1)}{others}"
                )

    def _turns(self, turn_s: float) -> int:
        """The number of turns in a block, which is odd, from seconds of a turn."""
        left_s, least = self._ends_s - self._read(), self._claim.least_blocks
        if least * turn_s > left_s:
            needed_s = self._claim.within_s - left_s + _SPARE * least * turn_s
            raise CannotTell(
                f"{self._claim.text}: a turn takes {units.time(turn_s)}, a verdict {least} turns "
                f"or more, and {units.duration(max(0.0, left_s))} were left after the first calls; "
                f'give it more time: within="{math.ceil(needed_s)}s"'
            )
        turns = round(min(_BLOCK_S, left_s / _BLOCKS) / turn_s)
        return max(1, turns - 1 + turns % 2)

    def _verdict(self, turns: int) -> bool | None:
        claim, seen = self._claim, self.seen
        others, queue = OtherProcesses(), RunQueue()
        verdict = None
        begun_s = self._read()
        with others, queue:
            while verdict is None and not seen.is_over:
                rows = [self._turn() for _ in range(turns)]
                seen.times_s += rows
                seen.logs.append(statistics.median(map(claim.log, rows)))
                seen.lasted_s = self._read() - begun_s
                block_s = seen.lasted_s / len(seen.logs)
                seen.is_over = self._read() + block_s > self._ends_s
                verdict = claim.verdict(seen)
        busy = _Busy(others.cpus, others.idle_cpus, queue.cpus)
        seen.is_contended = is_contended(busy, slowdown([row[0] for row in seen.times_s]))
        is_theirs = isinstance(claim, Limit) and verdict is False and seen.is_contended
        return None if is_theirs else verdict

    def _turn(self) -> list[float]:
        """One visit of each function, in an order that is drawn; seconds of a call."""
        row = [0.0] * len(self._sides)
        for place in self._random.sample(range(len(row)), len(row)):
            side = self._sides[place]
            row[place] = self._made(side, side.visit)
        return row

    def _made(self, side: _Side, visit: Callable[[], T]) -> T:
        try:
            return visit()
        except Exception as error:
            error.add_note(f"{side.name} raised it, called for the claim {self._claim.text}")
            raise

    def _refuse_nothing(self, call_s: float) -> None:
        """Refuse functions of which calling them is all that takes time."""
        if call_s >= _SHORT_S:
            return
        nothing_s = _Side("", lambda *_: None, self._sides[0].args, Clock(self._read)).prepare(0.0)
        if call_s < _NOTHING * nothing_s:
            raise CannotTell(
                f"{self._claim.text}: a call takes {units.time(call_s)}, and that of a function "
                f"that does nothing {units.time(nothing_s)}: there is no time to judge; have it do "
                "its work, or more of it, in each call"
            )


def _wait(results: AwaitedResults, side: _Side) -> None:
    results.wait(side.latest)


def _content(value: Any) -> NDArray[Any]:
    """Numbers that an argument holds, or the identities of its objects, where calls may change it.

    Nothing of arrays of objects, and of what NumPy cannot sort.
    """
    if isinstance(value, np.ndarray) and value.dtype.kind in "biufmMSU":
        return value.flatten()
    if isinstance(value, list | deque):
        return np.array([*map(id, value)])
    return np.array(value if isinstance(value, bytearray | array) else ())


def _taken(value: Any, before: NDArray[Any], after: NDArray[Any]) -> str:
    """Say how a call left less of an argument; empty if all is left."""
    if after.size < before.size:
        return "takes elements from"
    is_file = hasattr(value, "seek")  # which a call may rewind
    is_over = isinstance(value, Iterator) and not is_file and next(value, _END) is _END
    return "uses up" * is_over


def _is_rearranged(before: NDArray[Any], after: NDArray[Any]) -> bool:
    """True if an argument holds the same in another order: what a buffer gets is nearly never."""
    is_same = np.array_equal(before, after)
    return not is_same and np.array_equal(np.sort(before), np.sort(after))


def _is_coroutine(result: Any) -> bool:
    return inspect.iscoroutine(result) or inspect.isasyncgen(result)


def _is_lazy(result: Any) -> bool:
    """True of what computes an element when it is asked for it; not of a file, nor of a list's."""
    is_built_in = isinstance(result, map | filter | zip)
    return inspect.isgenerator(result) or is_built_in or type(result).__module__ == "itertools"


def _is_promise(result: Any) -> bool:
    """True of a future, of any package, or of what a pool of processes returns at once."""
    kind = type(result)
    is_of_pool = hasattr(kind, "ready") and hasattr(kind, "successful")
    return hasattr(kind, "add_done_callback") or is_of_pool


#: Results of functions whose work is done after they have returned, and what has it done.
_UNFINISHED: Sequence[tuple[Callable[[Any], bool], str]] = (
    (_is_lazy, "does nothing until it is iterated"),
    (_is_coroutine, "does nothing until it is awaited"),
    (_is_promise, "may not be done until its result is asked for"),
)


def _refuse_unfinished(name: str, result: Any) -> None:
    """Refuse a function whose work is done after it has returned."""
    parts = result if isinstance(result, list | tuple) else [result]
    examples = {type(part): part for part in parts}  # one of each kind is enough to tell
    for kind, part in examples.items():
        for is_unfinished, why in _UNFINISHED:
            if not is_unfinished(part):
                continue
            if inspect.iscoroutine(part):
                part.close()  # which would warn that nobody has awaited it
            raise UsageError(
                f"{name} returned {'' if part is result else 'what contains '}a {kind.__name__}, "
                f"which {why}: pass a function that does that, too"
            )


@contextmanager
def _untraced() -> Iterator[None]:
    """A context in which neither coverage nor a debugger follows every line of a function."""
    trace = sys.gettrace()
    sys.settrace(None)
    try:
        yield
    finally:
        sys.settrace(trace)


#: The probability that a verdict is wrong, and the time that it may take.
_LEVEL, _WITHIN = 0.01, "5s"


def faster(
    function: Callable[..., Any],
    *,
    than: Callable[..., Any],
    by: float = 1.0,
    args: Sequence[Any] = (),
    level: float = _LEVEL,
    within: str = _WITHIN,
) -> str:
    """Claim that a function is faster than another: that takes more than ``by`` times as long.

    That is in most turns that both take in this process, which is what the claim is about. Results
    of asynchronous frameworks are waited for.

    Args:
        by: a factor from 1.
        args: arguments of both functions, the same in every call: of what a call changes later
            calls of both have what it has left. What sorts its argument, or takes something from
            it, is refused.
        level: the probability at most that the claim passes although it is false, and that it
            fails although it is true.
        within: how long it may take, from the first calls on; a call that has begun is not
            interrupted.

    Returns:
        The claim, and what was found.

    Raises:
        ClaimFailed: the claim is false: an AssertionError.
        CannotTell: neither is shown; pytest skips the test (``fw_cannot_tell``).
        UsageError: an argument makes no claim.
    """
    functions = _named(function, than)
    first, second = functions
    text = f"faster({first}, than={second}, by={by})"
    claim = Claim(text, _factor(by, text), True, _level(level), duration(str(within), "within"))
    return ClaimTest(claim, functions, args).outcome()


def no_slower(
    function: Callable[..., Any],
    *,
    than: Callable[..., Any],
    by: float = 1.03,
    args: Sequence[Any] = (),
    level: float = _LEVEL,
    within: str = _WITHIN,
) -> str:
    """Claim that a function takes less than ``by`` times as long as another.

    Args:
        by: a factor from 1: of functions that are equally fast, nothing shows that one takes no
            longer at all.
        args: and all others, as those of :func:`faster`.

    Returns:
        As :func:`faster`, which raises the same errors, too.
    """
    functions = _named(function, than)
    first, second = functions
    text = f"no_slower({first}, than={second}, by={by})"
    claim = Claim(text, _factor(by, text), False, _level(level), duration(str(within), "within"))
    return ClaimTest(claim, functions, args).outcome()


def at_most(
    function: Callable[..., Any],
    limit: str,
    *,
    args: Sequence[Any] = (),
    level: float = _LEVEL,
    within: str = _WITHIN,
) -> str:
    """Claim that a call takes at most so long on this machine: more often than not.

    It passes once the medians of 50 ms of visits have shown that, and fails if no visit of 4.5
    seconds kept the limit, or if most took twice as long. On a contended machine it does not fail.
    The level is that of medians which are independent of each other, as on a machine of one speed.

    Args:
        limit: a duration: ``"2ms"``.
        args: and all others, as those of :func:`faster`.

    Returns:
        As :func:`faster`, which raises the same errors, too.
    """
    functions = _named(function)
    text = f'at_most({", ".join(functions)}, "{limit}")'
    limit_s = duration(str(limit), "at_most")
    claim = Limit(text, limit_s, False, _level(level), duration(str(within), "within"))
    return ClaimTest(claim, functions, args).outcome()


def _named(*functions: Callable[..., Any]) -> dict[str, Callable[..., Any]]:
    """Functions by their names, or by those that claims have for them."""
    for function in functions:
        if not callable(function):
            raise UsageError(
                f"a claim is about functions, and {function!r} cannot be called; pass the function "
                "itself, not what it returns"
            )
    for name_of in _NAMES:
        names = [*map(name_of, functions)]
        if len({*names}) == len(names) and all(map(str.isidentifier, ".".join(names).split("."))):
            return dict(zip(names, functions, strict=True))
    return dict(zip("fg", functions, strict=False))


def _qualified(function: Callable[..., Any]) -> str:
    return str(getattr(function, "__qualname__", "")).replace("<locals>.", "")


#: Names of functions; of two that have one in common the next one is tried.
_NAMES: tuple[Callable[[Callable[..., Any]], str], ...] = (
    lambda function: str(getattr(function, "__name__", "")),
    _qualified,
    lambda function: f"{getattr(function, '__module__', '')}.{_qualified(function)}",
)


def _factor(by: Any, text: str) -> float:
    if isinstance(by, bool) or not isinstance(by, int | float) or not 1 <= by < math.inf:
        raise UsageError(f"{text}: by is a factor from 1, as 1.5 for half as long again")
    return float(by)


def _level(level: Any) -> float:
    if not (isinstance(level, float) and _LEAST_LEVEL <= level < 1 / 2):
        raise UsageError(
            f"level {level!r} is not a probability from {_LEAST_LEVEL} to 0.5; give 0.01 for one "
            "wrong verdict in a hundred"
        )
    return level
