"""Functions that the time of calls goes to, by samples of the stack: pyinstrument.

It looks at the stack at the next call or return once its time has come. So it sees C functions that
Python calls by name; operators and ufuncs count for their Python caller. A thread keeps that time:
a moment that followed from the last sample would meet the same function again and again, because
benchmarks repeat themselves.
"""

import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import PurePath
from typing import Any

from fwbench.errors import ProbeError
from fwbench.records.facts import ROOT, SEPARATOR, Sampled
from fwbench.records.units import count, duration

#: Seconds between samples, of calls, and of all with what prepares calls; of calls made together.
_INTERVAL_S, _CALLS_S, _AT_MOST_S, _TOGETHER_S = 2e-4, 1.0, 5.0, 0.01

#: What holds less is its caller's; so is what lies deeper, and all beyond so many stacks.
_LEAST, _DEEPEST, _STACKS = 0.002, 80, 300

#: A stack from the root on, and its samples.
_Seen = tuple[tuple[str, ...], float]


@dataclass(frozen=True)
class RepeatedCall:
    """A call that was timed, and can be made again.

    Attributes:
        timed_s: median seconds of it, without a profiler.
        arguments: prepares those of a call.
        together: whether many calls may have the same ones.
        finish: is given them when the call is over.
        wait: blocks until a result exists; None where the call returns when it does.
        at_most: number of calls.
    """

    function: Callable[..., Any]
    timed_s: float
    arguments: Callable[[], tuple[Sequence[Any], Mapping[str, Any]]] = lambda: ((), {})
    together: bool = True
    finish: Callable[..., object] | None = None
    wait: Callable[[Any], object] | None = None
    at_most: float = float("inf")


def sampled(repeated: RepeatedCall) -> Sampled:
    """Functions that a call spends its time in; made again for about a second.

    Raises:
        ProbeError: pyinstrument is not installed, a call fails, or all are over too soon.
    """
    try:
        from pyinstrument import Profiler
    except ImportError as error:
        raise ProbeError(
            f"functions are sampled by pyinstrument, which cannot be imported ({error}): "
            "pip install 'fwbench[explain]'"
        ) from error
    profiler = Profiler(interval=_INTERVAL_S, async_mode="disabled", use_timing_thread=True)
    try:
        with profiler:
            calls, took_s = _make(repeated)
    except Exception as error:
        why = f"{type(error).__name__}: {error}".partition("\n")[0]
        raise ProbeError(f"calls could not be made again under a profiler: {why}") from error
    stacks = [*_stacks(profiler.last_session)]
    if not stacks:
        raise ProbeError(
            f"{count(calls, 'call')} under a profiler took {duration(took_s)}, and no sample was "
            "taken: let the test make more calls"
        )
    call_s = took_s / calls
    known = Sampled(calls=calls, call_s=call_s, stacks=folded(stacks))
    return known | Sampled(overhead=call_s / repeated.timed_s - 1) if repeated.timed_s else known


def _make(repeated: RepeatedCall) -> tuple[int, float]:
    """Number of calls that were made, and seconds that they took."""
    number, calls, took_s, end_s = 1, 0, 0.0, time.perf_counter() + _AT_MOST_S
    while took_s < _CALLS_S and calls < repeated.at_most and time.perf_counter() < end_s:
        now = int(min(number, repeated.at_most - calls))
        args, kwargs = repeated.arguments()
        round_s = _calls(repeated.function, args, kwargs, now, repeated.wait)
        if repeated.finish is not None:
            repeated.finish(*args, **kwargs)
        calls, took_s = calls + now, took_s + round_s
        if repeated.together and round_s < _TOGETHER_S:
            number *= 2
    return calls, took_s


def _calls(
    function: Callable[..., Any],
    args: Sequence[Any],
    kwargs: Mapping[str, Any],
    number: int,
    wait: Callable[[Any], object] | None,
) -> float:
    """Make calls, whose stacks begin here; returns seconds."""
    start_s = time.perf_counter()
    for _ in range(number):
        result = function(*args, **kwargs)
        if wait is not None:
            wait(result)
    return time.perf_counter() - start_s


def _stacks(session: Any) -> Iterator[_Seen]:
    """Stacks of calls; one that nothing interrupted for long stands for as many samples."""
    names: dict[str, str] = {}
    for frames, time_s in session.frame_records:
        for frame in frames:
            if frame not in names:
                names[frame] = _name(frame, session)
        stack = [names[frame] for frame in frames]
        if ROOT in stack:
            # A function that calls itself is there once.
            functions = (name for name, _ in groupby(stack[stack.index(ROOT) :]))
            yield tuple(functions), time_s / _INTERVAL_S


def _name(text: str, session: Any) -> str:
    """Function of a frame as records name it: ``pkg/reader.py:Reader.parse``."""
    from pyinstrument.frame import Frame

    frame = Frame(text)
    if (frame.file_path, frame.function) == (__file__, _calls.__name__):
        return ROOT
    # Relative to the import path, and so the same in another environment; or as little of the path.
    path = session.shorten_path(frame.file_path or "")
    if path.startswith(("..", "/")):
        path = "/".join(PurePath(path).parts[-2:])
    of_class = f"{frame.class_name}." if frame.class_name else ""
    return f"{path}:{of_class}{frame.function}".replace(SEPARATOR, ",")


def folded(stacks: Sequence[_Seen]) -> dict[str, float]:
    """Own samples of each stack, most first; those of what holds little are its caller's."""
    kept = [(stack[:_DEEPEST], samples) for stack, samples in stacks]
    inclusive: defaultdict[tuple[str, ...], float] = defaultdict(float)
    for stack, samples in kept:
        for depth in range(1, len(stack) + 1):
            inclusive[stack[:depth]] += samples
    least = _LEAST * sum(samples for _, samples in kept)
    while len(own := _own(kept, inclusive, least)) > _STACKS:
        least *= 2
    ordered = sorted(own.items(), key=lambda seen: -seen[1])
    rounded = {SEPARATOR.join(stack): round(samples, 1) for stack, samples in ordered}
    return {stack: samples for stack, samples in rounded.items() if samples}


def _own(
    stacks: Iterable[_Seen], inclusive: Mapping[tuple[str, ...], float], least: float
) -> dict[tuple[str, ...], float]:
    """Own samples of each stack that has the least, with those of callees that have not."""
    own: defaultdict[tuple[str, ...], float] = defaultdict(float)
    for stack, samples in stacks:
        shown = stack
        while len(shown) > 1 and inclusive[shown] < least:
            shown = shown[:-1]
        own[shown] += samples
    return own
