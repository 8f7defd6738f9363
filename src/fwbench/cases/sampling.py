"""Functions that the time of calls goes to, by samples of the stack: pyinstrument.

It looks at the stack at the next call or return once its time has come. So it sees C functions that
Python calls by name; operators and ufuncs count for their Python caller. Benchmarks repeat
themselves, and regular samples of them would meet the same functions again and again: so the
profiler's own thread keeps the time, and calls begin at random moments between two samples.
"""

import math
import random
import sys
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import PurePath
from typing import Any, Self

from fwbench.errors import ProbeError
from fwbench.records.facts import ROOT, SEPARATOR, Sampled
from fwbench.records.units import count, duration

#: Seconds between samples, of all calls together, and of these with their preparation at most.
_INTERVAL_S, _CALLS_S, _AT_MOST_S = 2e-4, 0.75, 5.0

#: The profiler's thread may begin with a pause of a second.
_START_S = 2.0

#: Stacks with a smaller share, or deeper than this, count for their callers; so many are kept.
_LEAST, _DEEPEST, _STACKS = 0.002, 80, 300

#: Parts of the calls that are compared, by functions with a share between this and the rest.
_PARTS, _SHARE = 20, 0.02

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


class _Samples:
    """Samples of this thread's stack while the block runs.

    Attributes:
        seen: the frames of each, from the root on, and how many samples it stands for: all in which
            a function was not interrupted.
    """

    def __init__(self) -> None:
        from pyinstrument.stack_sampler import get_stack_sampler

        self.seen: list[tuple[list[str], int]] = []
        self._sampler = get_stack_sampler()

    def __enter__(self) -> Self:
        self._sampler.subscribe(
            self.add, desired_interval=_INTERVAL_S, use_timing_thread=True, use_async_context=False
        )
        end_s = time.perf_counter() + _START_S
        while not self.seen and time.perf_counter() < end_s:
            pass
        return self

    def __exit__(self, *_: object) -> None:
        self._sampler.unsubscribe(self.add)

    def add(self, frames: list[str], since_last_s: float, _: object) -> None:
        """Keep a sample."""
        self.seen.append((frames, max(1, int(since_last_s / _INTERVAL_S))))


def sampled(repeated: RepeatedCall) -> Sampled:
    """Functions that a call spends its time in; made again for three quarters of a second.

    Raises:
        ProbeError: pyinstrument is not installed, a call fails, or all are over too soon.
    """
    try:
        samples = _Samples()
    except ImportError as error:
        raise ProbeError(
            f"functions are sampled by pyinstrument, which cannot be imported ({error}): "
            "pip install 'fwbench[explain]'"
        ) from error
    try:
        with samples:
            calls, took_s = _make(repeated)
    except Exception as error:
        why = f"{type(error).__name__}: {error}".partition("\n")[0]
        raise ProbeError(f"calls could not be made again under a profiler: {why}") from error
    stacks = [*_stacks(samples.seen)]
    if not stacks:
        raise ProbeError(
            f"{count(calls, 'call')} under a profiler took {duration(took_s)}, and no sample was "
            "taken: let the test make more calls"
        )
    call_s, noise = took_s / calls, _noise(stacks)
    known = Sampled(calls=calls, call_s=call_s, stacks=folded(stacks), noise=noise)
    return known | Sampled(overhead=call_s / repeated.timed_s - 1) if repeated.timed_s else known


def _make(repeated: RepeatedCall) -> tuple[int, float]:
    """Number of calls that were made, and seconds that they took."""
    number, calls, took_s, end_s = 1, 0, 0.0, time.perf_counter() + _AT_MOST_S
    while took_s < _CALLS_S and calls < repeated.at_most and time.perf_counter() < end_s:
        now = int(min(number, repeated.at_most - calls))
        args, kwargs = repeated.arguments()
        start_s = time.perf_counter() + random.uniform(0, _INTERVAL_S)  # noqa: S311 (no secret)
        while time.perf_counter() < start_s:  # asleep it would miss samples
            pass
        round_s = _calls(repeated.function, args, kwargs, now, repeated.wait)
        if repeated.finish is not None:
            repeated.finish(*args, **kwargs)
        calls, took_s = calls + now, took_s + round_s
        if repeated.together and round_s < _INTERVAL_S:
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


def _stacks(seen: Iterable[tuple[list[str], int]]) -> Iterator[_Seen]:
    """Stacks of calls, and the samples that each stands for."""
    names: dict[str, str] = {}
    for frames, number in seen:
        for frame in frames:
            if frame not in names:
                names[frame] = _name(frame)
        stack = [names[frame] for frame in frames]
        if ROOT in stack:
            # A function that calls itself is there once.
            yield tuple(name for name, _ in groupby(stack[stack.index(ROOT) :])), number


def _name(text: str) -> str:
    """Function of a frame as records name it: ``pkg/reader.py:Reader.parse``."""
    from pyinstrument.frame import Frame

    frame = Frame(text)
    path = frame.file_path or ""
    if (path, frame.function) == (__file__, _calls.__name__):
        return ROOT
    if not path.startswith("<"):
        # Relative to the import path, so the same in another environment; or as little as tells.
        above = [entry for entry in sys.path if entry and PurePath(path).is_relative_to(entry)]
        parts = PurePath(path).parts
        parts = PurePath(path).relative_to(max(above, key=len)).parts if above else parts[-2:]
        path = "/".join(parts)
    of_class = f"{frame.class_name}." if frame.class_name else ""
    return f"{path}:{of_class}{frame.function}".replace(SEPARATOR, ",")


def _noise(stacks: Sequence[_Seen]) -> float:
    """Variance of a function's samples between parts of the calls, over the binomial one.

    Samples that follow each other are not independent where something else had the processor, or
    the calls' rhythm was that of the samples. Of the function with the largest; 1 at least.
    """
    size = math.ceil(len(stacks) / _PARTS)
    parts = [stacks[start : start + size] for start in range(0, len(stacks), size)]
    own: list[defaultdict[str, float]] = []
    for part in parts:
        own.append(defaultdict(float))
        for stack, number in part:
            own[-1][stack[-1]] += number
    sizes = [sum(of_part.values()) for of_part in own]
    ratios = [1.0]
    for function in {stack[-1] for stack, _ in stacks}:
        share = sum(of_part[function] for of_part in own) / sum(sizes)
        if _SHARE < share < 1 - _SHARE and len(parts) > 1:
            squares = (
                (of_part[function] - number * share) ** 2 / (number * share * (1 - share))
                for of_part, number in zip(own, sizes, strict=True)
            )
            ratios.append(sum(squares) / (len(parts) - 1))
    return max(ratios)


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
    """Own samples of each stack with enough of them, and those of its callees with fewer."""
    own: defaultdict[tuple[str, ...], float] = defaultdict(float)
    for stack, samples in stacks:
        shown = stack
        while len(shown) > 1 and inclusive[shown] < least:
            shown = shown[:-1]
        own[shown] += samples
    return own
