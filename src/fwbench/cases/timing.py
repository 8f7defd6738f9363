"""Checks of timed calls: their work is over, is done each time, and is possible in that time.

A framework whose calls return early, and whose waiter does not wait, is timed while it enqueues
work; one whose results are computed when they are read is timed while it does nothing. Either way
the work remains to be done when the result is read. The clock also waits before a round, untimed: a
waiter that works then is found by how long it waits where there is nothing to wait for.
"""

import heapq
import math
import os
import random
import resource
import statistics
import time
from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any

import numpy as np
import xxhash

from fwbench.cases.inputs import guarded_read, read_result
from fwbench.cases.work import Others, Work
from fwbench.errors import (
    ImpossibleRate,
    SkippedWork,
    UnfinishedWork,
    UnreadableResult,
    VerificationError,
)
from fwbench.frameworks.contract import Array, BoundCall, Framework
from fwbench.measure.clock import Clock
from fwbench.measure.limits import Limits
from fwbench.processes.session import EXAMINED_VARIABLE
from fwbench.records.facts import CaseFacts
from fwbench.records.units import count, four_digits
from fwbench.records.units import time as shown
from fwbench.terms.names import answered_dtype, product_precision
from fwbench.workloads.grid import Cell

#: Work that remains is in every reading. What else takes time, such as other processes or what a
#: framework prepares when it reads for the first time, is not in the shortest of this many. The
#: second shortest counts: work may be done while this process has to wait for a processor.
_READINGS = 60

#: Nor may a single disturbed call look long, or one reading of what was there: this many tries are
#: made at least, except of calls that take longer than a disturbance.
_READINGS_AT_LEAST = 2
_LONG_S = 0.1

#: Before every third of the further tries: a process that has slept keeps its processor for a
#: while, and on a busy machine every reading would be disturbed otherwise. Only the first call
#: after a pause finds cold caches. The second half of the tries outlasts what keeps a machine busy
#: for a moment: with 15 processes that wait for two processors, one of 3,000 honest cases had 30
#: readings that were all disturbed.
_READING_PAUSE_S = 0.01
_LONG_READING_PAUSE_S = 0.1
_PAUSE_EACH = 3

#: What the shortest reading may take beyond reading alone: this share of the call, this many
#: seconds, and twice as much as reading alone, or this for each array: JAX's first readings of
#: results take twice as long as later ones, and on slow CPUs those of TensorFlow (three arrays 1.3
#: to 2.2 ms, and 0.8 to 1.1; a batch of its loader 0.44 to 0.51 ms, and 0.16 to 0.18). Of 1,101
#: cases in five frameworks all but two pass within three tries.
_SHARE = 0.1
_READING_SPARE_S = 20e-6
_FIRST_READING_S = 200e-6

#: What taking a result apart may take, in parts of what it takes where its containers are Python's:
#: three for 10,000 dataclasses.
_APART = 4.0

#: After the rounds results are read behind so many calls, or for so long, the results of which
#: nobody reads; nobody can know how many. Then reading may take this many seconds more an array:
#: TensorFlow's way to read takes 50 us, and 300 to 500 where calls have filled the caches.
_UNREAD, _UNREAD_AT_LEAST, _UNREAD_S = (9, 18), 3, 5e-3
_COLD_READING_S = 500e-6

#: What calls change is read behind so many of them, or for so long: of each some work may remain.
#: Reading may take this much longer than once more: of MXNet's and TensorFlow's `mlp` it takes 0.4
#: to 0.8 ms behind steps, and then 0.1 to 0.2. Steps nobody waits for take 30 ms to 1.3 s.
_CHANGING, _CHANGING_S = 50, 20e-3
_STATE_SPARE_S = 1e-3

#: What waiting for nothing may take: this share of the call, and this many seconds more.
_IDLE_SHARE = 0.5
_IDLE_SPARE_S = 200e-6


def check_finished(
    work: Work,
    framework: Framework,
    cell: Cell,
    clock: Clock,
    last: tuple[float, Any] | None = None,
) -> float:
    """Check that nothing is left to compute when a call is over for the clock.

    An element of every array of the result is read, and one of new arrays with the same values and
    layout that were placed before: the difference is work that had remained.

    Args:
        last: seconds of a call that was timed, and the result of the last one, which nobody has
            read: it is read first. None before the rounds, where all results are read: work may
            be done in time as long as they are.

    Returns:
        Seconds that waiting takes where there is nothing to wait for: the shortest of its tries.

    Raises:
        UnfinishedWork: reading took longer than that, each time, or waiting for nothing did.
        UnreadableResult: the element is not that of the result.
    """
    readings_s: list[float] = []
    call_s = alone_s = plain_s = idle_s = math.inf
    for tries in range(1, 1 + _READINGS):
        if tries > _READINGS_AT_LEAST and tries % _PAUSE_EACH == 1 and call_s < _LONG_S:
            time.sleep(_READING_PAUSE_S if tries <= _READINGS // 2 else _LONG_READING_PAUSE_S)
        taken_s, result = last if last and tries == 1 else _called(work, clock, last)
        idle_s = min(idle_s, _idle_s(clock))
        # Of a user's class, which may compute its fields when they are asked for.
        apart_s, arrays = _timed(clock, partial(work.arrays, result))
        readings_s.append(apart_s + _reading_s(framework, clock, arrays))
        shortest_s = heapq.nsmallest(2, readings_s)[-1]
        call_s = min(call_s, taken_s)
        allowed_s = _SHARE * call_s / work.pieces + _READING_SPARE_S
        allowed_s += _COLD_READING_S * len(arrays) * bool(last)
        if last is None or shortest_s > allowed_s:
            there = [_placed(framework, cell, array) for array in arrays]
            alone_s = min(alone_s, _reading_s(framework, clock, there))
            plain_s = min(plain_s, _seconds(clock, partial(work.arrays, work.plain(result))))
            allowed_s += alone_s + min(2 * alone_s, len(arrays) * _FIRST_READING_S)
            allowed_s += _APART * plain_s
        is_done = shortest_s <= allowed_s
        is_idle = idle_s <= _IDLE_SHARE * call_s + _IDLE_SPARE_S
        if is_done and is_idle and (last or tries >= _READINGS_AT_LEAST or call_s >= _LONG_S):
            if last is None:
                _check_elements(framework, arrays)
            return idle_s
    if is_done:
        raise UnfinishedWork(
            "work is done while fwbench waits before a round, and not in the call: to wait for a "
            f"device without work took at least {shown(idle_s)}, and a call {shown(call_s)}; "
            "compute in calls, and return from waiter what does nothing but wait"
        )
    raise _unfinished(shortest_s, alone_s + plain_s, call_s, is_timed=last is not None)


def _unfinished(read_s: float, alone_s: float, call_s: float, *, is_timed: bool) -> UnfinishedWork:
    """The error where reading a result takes as long as work that was left in it.

    Args:
        read_s: the shortest time of reading an element.
        alone_s: the same where the values were there already.
        is_timed: whether the calls are those that were timed.
    """
    what = "calls return before their work is done, and the framework's `waiter` does not wait"
    if is_timed:
        what = "work is done in time only where its result is read after each call"
    return UnfinishedWork(
        f"{what}: to read one element of the result took at least {shown(read_s)} after calls of "
        f"{shown(call_s)}, and {shown(alone_s)} where the same values were there already; return "
        "from waiter what blocks until all work is done, and from calls no results that are "
        "computed when they are read"
    )


def settled_s(again_s: float, timed_s: float) -> float:
    """The longest that reading a state takes if nothing had remained, by a second reading."""
    return 2 * again_s + _SHARE * timed_s + _STATE_SPARE_S


def check_settled(read: BoundCall, run: BoundCall, clock: Clock, timed_s: float) -> None:
    """Check that what calls change, and do not return, is there when they are over for the clock.

    All of it is read, and once more: the difference is work that had remained.

    Raises:
        UnfinishedWork: the first reading took longer, each time.
    """
    calls = math.ceil(min(_CHANGING, _CHANGING_S / timed_s))
    first_s, again_s, begun_s = list[float](), math.inf, clock.read()
    for tries in range(_READINGS):
        if tries > _TRIES and clock.read() - begun_s > _TRIES_S:
            break
        for _ in range(calls):
            clock.time(run)
        first_s.append(_seconds(clock, read))
        again_s = min(again_s, _seconds(clock, read))
        shortest_s = heapq.nsmallest(2, first_s)[-1]
        if shortest_s <= settled_s(again_s, timed_s):
            return
    raise UnfinishedWork(
        "calls return before what they change is there, and the framework's `waiter` does not "
        f"wait: to read it took at least {shown(shortest_s)} after {calls} calls of "
        f"{shown(timed_s)}, and {shown(again_s)} once more; return from waiter what blocks until "
        "all work is done"
    )


def _seconds(clock: Clock, call: BoundCall) -> float:
    return _timed(clock, call)[0]


def _timed(clock: Clock, call: BoundCall) -> tuple[float, Any]:
    """Seconds of a call, and its result; nothing is waited for."""
    start_s = clock.read()
    result = call()
    return clock.read() - start_s, result


def _called(work: Work, clock: Clock, last: tuple[float, Any] | None) -> tuple[float, Any]:
    """Seconds and result of a call; after the rounds behind others, whose results nobody reads."""
    if last is not None:
        unread = min(random.SystemRandom().randint(*_UNREAD), math.ceil(_UNREAD_S / last[0]))
        for _ in range(max(_UNREAD_AT_LEAST, unread)):
            clock.time(work.run)
    return clock.time(work.run)


def _check_elements(framework: Framework, arrays: Sequence[Array]) -> None:
    for array in arrays:
        element = np.ravel(framework.read_element(array))[:1]
        values = np.ravel(read_result(framework, array))[:1]
        if not np.array_equal(element, values, equal_nan=True):
            raise UnreadableResult(
                f"the first element of a result is {values[0]}, and {framework.name}'s "
                f"read_element returned {element[0] if element.size else 'nothing'}; return what "
                "to_numpy has there"
            )


def _idle_s(clock: Clock) -> float:
    """Seconds that the framework waits once where there is nothing to wait for."""
    return 0.0 if clock.wait is None else _seconds(clock, clock.wait)


def _placed(framework: Framework, cell: Cell, array: Array) -> Array:
    """An array with the same values that is surely there, in the same layout."""
    placed = framework.copy_in_layout(array)
    if placed is None:
        values = read_result(framework, array)
        dtype = answered_dtype(cell.dtype) if values.dtype.kind == "f" else values.dtype.name
        placed = framework.creator(cell.device, dtype)(values)
    framework.to_numpy(placed)
    return placed


def _reading_s(framework: Framework, clock: Clock, arrays: Sequence[Array]) -> float:
    """Seconds until an element of each array has been read."""
    with guarded_read(framework, *arrays):
        start_s = clock.read()
        for array in arrays:
            framework.read_element(array)
        return clock.read() - start_s


#: Functions that a verdict hangs on, as they were before any framework was imported.
_RELIED_ON = [
    (module, name, getattr(module, name))
    for module, names in {
        time: "perf_counter process_time",
        resource: "getrusage",
        xxhash: "xxh3_64_intdigest",
        np: "abs all argmax array array_equal asarray einsum isfinite isnan max mean sqrt where",
    }.items()
    for name in names.split()
]


def check_functions() -> None:
    """Check that functions which tell right from wrong, and long from short, are as they were.

    Raises:
        VerificationError: one is not.
    """
    for module, name, function in _RELIED_ON:
        if getattr(module, name) is not function:
            raise VerificationError(
                f"{module.__name__}.{name} was replaced, so no result is known; let it be"
            )


def check_threads(framework: Framework, begun_with: int | None) -> None:
    """Check that a framework still computes with the threads that it began with.

    Raises:
        VerificationError: it does not.
    """
    actual = framework.threads()
    if begun_with is not None and actual is not None and begun_with != actual:
        raise VerificationError(
            f"{framework.name} computes with {count(actual, 'thread')} by now, and began with "
            f"{begun_with}: what is measured, or was in this process before, has set it, and times "
            "would not compare; let it be, and choose --fw-threads instead"
        )


#: The fastest call on new data may take this many times as long as those that were timed, this many
#: seconds, and the time that the data need from memory: they are in no cache. TensorFlow's Adam of
#: a million parameters takes 0.7 ms, and 1.5 ms on new ones.
_TIMES = 1.5
_SPARE_S = 40e-6
_COLD_BYTES_PER_S = 10e9

#: Where a machine has become slow: that many times as long as those that are repeated, as long as
#: this many times those that were timed, and a millisecond.
_TIMES_TIMED = 10.0

#: What is repeated was called so often before, or for so long; twice as often in each further turn,
#: since what is kept may be used once it was asked for often enough, but for no longer than this.
_REPEATED, _REPEATED_S, _REPEATED_AT_MOST_S = 9, 5e-3, 0.1

#: So many turns are taken at least, or for so long: new data of a million numbers take 20 ms to
#: draw, each. And this many until a call on new data is as fast, or some for so long: on a busy
#: machine most may have to wait for a processor. Of 374 cases none needs more on a quiet machine,
#: and 9 beside two busy processes.
_TURNS_AT_LEAST, _TURNS_S = 2, 10e-3
_TRIES, _TRIES_AT_LEAST, _TRIES_S = 26, 9, 1.0

#: Of new data.
_SEEDS = 2**32

#: True in a later launch of a comparison, which takes a third less without. Known before the code
#: under test runs: what that sets means nothing.
IS_EXAMINED = bool(os.environ.get(EXAMINED_VARIABLE))

#: One in so many is examined all the same: code that finds the variable cannot count on it.
_EXAMINED_AGAIN = 8


def verify_again(
    work: Work, framework: Framework, cell: Cell, clock: Clock, last: Any, rounds_s: Sequence[float]
) -> CaseFacts:
    """Verify what was timed, and that calls on changed inputs take no longer than it did.

    Args:
        last: the result of the last call that was, which nobody has read.
        clock: times the calls; not the one of the rounds, which keeps them for the record.
        rounds_s: seconds per call of every round; empty where nothing was timed.

    Returns:
        What was found.

    Raises:
        VerificationError: a result is wrong, or a function that tells this was replaced.
        UnfinishedWork: work is put off in rounds, where no result is read; or updates of weights.
        SkippedWork: all calls took longer on new data.
    """
    check_functions()
    # Of what is overwritten further calls would be further steps.
    if rounds_s and last is not None and work.is_readable(last):
        _idle_s(clock)  # pytest-benchmark makes a call behind the rounds, which nobody waits for
        check_finished(work, framework, cell, clock, (statistics.median(rounds_s), last))
    if rounds_s and work.read_state is not None:
        check_settled(work.read_state, work.run, clock, statistics.median(rounds_s))
    if IS_EXAMINED and random.SystemRandom().randrange(_EXAMINED_AGAIN):
        return work.verify_again(last, lambda _: ())
    if not rounds_s:
        return work.verify_again(last)
    turns = partial(_turns, clock, statistics.median(rounds_s), work.data_bytes)
    return work.verify_again(last, turns)


def _turns(clock: Clock, timed_s: float, data_bytes: int, others: Others) -> Iterator[None]:
    """Time calls on new data beside repeated ones on the first: what is kept makes these faster.

    Neither the new data nor the turn before which results are verified, or after the last one, can
    be known before.
    """
    chance = random.SystemRandom()
    repeats = math.ceil(min(_REPEATED, _REPEATED_S / timed_s))
    before = chance.randrange(1 + _TURNS_AT_LEAST)
    spare_s = _SPARE_S + data_bytes / _COLD_BYTES_PER_S
    allowed_s = _TIMES * timed_s + spare_s
    again_s, new_s, begun_s, is_verified = list[float](), math.inf, clock.read(), False
    for turn in range(_TRIES):
        took_s = clock.read() - begun_s
        is_enough = turn >= _TURNS_AT_LEAST or (turn > 0 and took_s > _TURNS_S)
        if is_enough and (new_s <= allowed_s or (turn >= _TRIES_AT_LEAST and took_s > _TRIES_S)):
            break
        if turn == before:
            yield
            is_verified = True
        if is_enough:
            repeats = max(repeats, math.ceil(min(2 * repeats, _REPEATED_AT_MOST_S / timed_s)))
            if again_s[-1] > _TIMES_TIMED * timed_s + 1e-3:  # others have the processors now
                time.sleep(_LONG_READING_PAUSE_S)
        first, new = others(0), others(chance.randrange(1, _SEEDS))
        again = first()
        for _ in range(repeats):
            clock.time(again)
        again_s.append(clock.time(again)[0])
        new_s = min(new_s, clock.time(new())[0])
    repeated_s = statistics.median(again_s[len(again_s) // 2 :])
    if new_s > max(allowed_s, min(_TIMES * repeated_s + spare_s, _TIMES_TIMED * timed_s + 1e-3)):
        slower = repeated_s > _TIMES_TIMED * timed_s + 1e-3
        raise SkippedWork(
            f"calls took {shown(new_s)} at least on new data, {shown(repeated_s)} when they were "
            f"repeated on the first, and {shown(timed_s)} when they were timed, so "
            + (_ALL_SLOWER if slower else _KEPT)
        )
    if not is_verified:
        yield


_KEPT = (
    "results were kept from earlier calls, or branches were learned; compute in every call, and "
    "declare branching=True where what is to be done depends on the numbers"
)
_ALL_SLOWER = (
    "all calls have become slower since: other processes have taken processors, or calls are only "
    "fast while they are timed; measure again when the machine is quiet"
)

_REMEDY = (
    "its calls do not do the work, or the operation declares more than there is to do; if the peak "
    "was measured on a busy machine, measure it again"
)


def check_rates(facts: CaseFacts, limits: Limits) -> CaseFacts:
    """Check that the declared work can have been done in the median time of its rounds.

    Of a result that is a view, or may be one, no bytes are claimed to have moved.

    Returns:
        The limits of its rates, for the record.

    Raises:
        ImpossibleRate: it was faster.
    """
    dtype = product_precision(facts.dtype, facts.toggles or {})
    flops_per_s = limits.flops_per_s.get(dtype) if facts.flops else None
    moves = facts.bytes and facts.result_is_view is False
    bytes_per_s = limits.bytes_per_s if moves else None
    source = limits.source
    _hold(facts, facts.flops, flops_per_s, "GFLOP", source.get(dtype, ""))
    _hold(facts, facts.bytes, bytes_per_s, "GB", source.get("bytes", ""))
    held = CaseFacts()
    if flops_per_s:
        held |= CaseFacts(limit_flops_per_s=flops_per_s)
    return held | CaseFacts(limit_bytes_per_s=bytes_per_s) if bytes_per_s else held


def _hold(
    facts: CaseFacts, work: float | None, limit_per_s: float | None, unit: str, source: str
) -> None:
    seconds = facts.completion_s
    if not (work and limit_per_s and seconds) or work / seconds <= limit_per_s:
        return
    raise ImpossibleRate(
        f"{four_digits(work / 1e9)} {unit} in {shown(seconds)} are "
        f"{four_digits(work / seconds / 1e9)} {unit}/s, and no more than "
        f"{four_digits(limit_per_s / 1e9)} are possible here ({source}): {_REMEDY}"
    )
