"""Profiles of both sides: sessions of their own after a comparison, and what differs in them.

Nothing that is compared by its time is profiled. These sessions make each case ready as if they
timed it, and profile it in the same process, as the start of another would take most of the time.
Both are alive together, and their blocks of profiled calls take turns, so that a slow stretch of
the machine meets both.

What the profiles of a case differ by is added up: its operators, and the time between them. As
much as a profiler costs is taken off the operators by their calls, and of none all that it has;
what that does not account for is in no line, and so in
:attr:`fwbench.gate.explanation.Explanation.unexplained_s`.
"""

import functools
import itertools
import math
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Self

from fwbench.errors import FwbenchError
from fwbench.frameworks import probes
from fwbench.frameworks.profiler import COMPILATION, DATA_MOVEMENT, OTHER
from fwbench.gate.explanation import Cause, CauseKind
from fwbench.gate.launches import EXAMINED, parsed, start
from fwbench.gate.sides import Side
from fwbench.processes import scratch
from fwbench.processes.session import SIDES, ChildSession, last_words
from fwbench.project import make_own_folder, own_folder, project_root
from fwbench.records import stored
from fwbench.records.facts import Profile, ProfiledOperator
from fwbench.records.measurement import Measurement
from fwbench.records.stored import StoredRun
from fwbench.records.units import count, duration
from fwbench.records.units import time as shown
from fwbench.turns.contest import Effort
from fwbench.turns.referee import Referee
from fwbench.workers.environments import Environments

#: The seconds that two sessions take until they profile, and each case on both sides.
_START_S, _CASE_S = 5.0, 4.0

#: Times tell nothing here.
_EFFORT = Effort(lambda *_: True)


def measure_profiles(
    sides: Sequence[Side],
    arguments: Sequence[str],
    environments: Environments,
    nodeids: Mapping[int, Sequence[str]],
    seed: int,
    budget_s: float,
    say: Callable[[str], object],
    step: str = "",
) -> tuple[StoredRun | None, StoredRun | None]:
    """Profile cases on both sides; None for a side whose session has brought nothing.

    Args:
        arguments: of pytest, as the comparison was given them.
        nodeids: of the cases, by side and in one order; the first that there is time for are
            profiled, and one in any case.
        budget_s: of both sessions together.
        say: hears how many cases are profiled, and why a side has brought nothing.
        step: the folder of these traces among those of other sides; empty if there are none.
    """
    number = min(len(nodeids[side]) for side in range(2))
    if not number:
        return None, None
    first = max(1, min(number, int((budget_s - _START_S) / _CASE_S)))
    took = duration(_START_S + first * _CASE_S)
    say(f"profiles of {first} of {count(number, 'case')}, by turns: about {took}")
    try:
        with scratch.folder() as folder, ExitStack() as sampling:
            for side in sides:
                sampling.enter_context(side.sampling())
            given, variables = _arguments(arguments, step), _variables(budget_s)
            results = [folder / f"{name}.json" for name in SIDES]
            referee = Referee(folder, len(SIDES), _EFFORT, seed)
            begun = [
                start(
                    sides[side],
                    given[side],
                    environments,
                    seed,
                    results[side],
                    {**variables, **referee.variables(side)},
                    selected=nodeids[side][:first],
                    origin={},
                )
                for side in range(2)
            ]
            ended = _served(referee, begun)
            base, contender = map(functools.partial(_read, say), sides, results, ended)
    except (FwbenchError, OSError) as error:
        say(f"no profiles: {error}")
        return None, None
    return base, contender


def _arguments(given: Sequence[str], step: str) -> Sequence[Sequence[str]]:
    """Arguments of pytest on each side; creates the folder of traces."""
    traces = own_folder(project_root(Path.cwd()), "traces")
    make_own_folder(traces)
    of_both = [*(each for each in given if each != "--fw-memory"), "--fw-profile"]
    return [[*of_both, f"-ofw_traces={traces / step / name}"] for name in SIDES]


def _variables(budget_s: float) -> Mapping[str, str]:
    until_s = time.monotonic() + budget_s
    return {**EXAMINED, probes.VARIABLE: probes.PROFILE, probes.UNTIL_VARIABLE: str(until_s)}


def _served(
    referee: Referee, begun: Iterable[AbstractContextManager[ChildSession]]
) -> Sequence[ChildSession]:
    """Both sessions, which have taken turns to their end."""
    with ExitStack() as running:
        children = [running.enter_context(session) for session in begun]
        referee.serve(children)
    return children


def _read(
    say: Callable[[str], object], side: Side, results: Path, ended: ChildSession
) -> StoredRun | None:
    if not results.is_file():
        say(f"no profiles of {side.name}; its session's last output: {last_words(ended.done)}")
        return None
    return stored.from_json(side.name, parsed(side, results))


#: A difference counts beyond so many standard errors, and beyond this share of the time: kernels
#: of one operator differ by as much from process to process.
_ERRORS, _LEAST = 3.0, 0.01

#: Numbers of calls that differ by no more are the same: those of a training step may vary. Errors
#: of times do not make those chance that differ by more than the other share.
_AS_MANY, _MANY_MORE = 0.01, 0.1

#: Events of a call, with the kind of cause and the share by which the same code may differ; fewer
#: than one make no difference.
_EVENTS = {
    "instructions": (CauseKind.PROCESSOR, 0.02),
    "cycles": (CauseKind.PROCESSOR, 0.05),
    "cache_misses": (CauseKind.PROCESSOR, 0.25),
    "branch_misses": (CauseKind.PROCESSOR, 0.25),
    "page_faults": (CauseKind.MEMORY, 0.25),
}

#: An operator of the other side alone.
_NOTHING = ProfiledOperator(name="", operator_class=OTHER, time_s=0.0, calls=0.0)

#: Profilers take microseconds for each call of an operator.
_MOST_COST_S = 20e-6

#: Operators that have a line of their own, and that have their name in a line of several.
_LINES, _NAMES = 6, 3


@dataclass(frozen=True)
class _Change:
    """An operator of both sides, or several: what a call of the case has of them.

    Attributes:
        times_s: own time of the base and of the contender, without the profiler's cost.
        calls: likewise.
        error_s: standard error of the difference of the times.
    """

    name: str
    operator_class: str
    times_s: Sequence[float]
    calls: Sequence[float]
    error_s: float = 0.0

    @property
    def time_s(self) -> float:
        return self.times_s[1] - self.times_s[0]

    @property
    def limit_s(self) -> float:
        """The largest difference that two runs of the same code may have.

        Where an operator is called more often, and takes longer, errors do not make that chance.
        """
        more = self.calls[1] - self.calls[0]
        is_of_calls = abs(more) > _MANY_MORE * max(self.calls) and more * self.time_s > 0
        error_s = 0.0 if is_of_calls else _ERRORS * self.error_s
        return max(error_s, _LEAST * max(self.times_s))

    @property
    def is_recounted(self) -> bool:
        return abs(self.calls[1] - self.calls[0]) > _AS_MANY * max(self.calls)

    @property
    def is_work(self) -> bool:
        """True of copies, compilations and the like."""
        return self.operator_class in (DATA_MOVEMENT, COMPILATION) and self.is_recounted

    @property
    def calls_text(self) -> str:
        return " -> ".join(f"{number:.3g}" for number in self.calls)

    def joined(self, other: Self) -> Self:
        return replace(
            self,
            times_s=_added([self.times_s, other.times_s]),
            calls=_added([self.calls, other.calls]),
            error_s=math.hypot(self.error_s, other.error_s),
        )


def profile_causes(base: Measurement, contender: Measurement) -> tuple[list[Cause], list[str]]:
    """Differences between the profiles of a case on both sides, and why none are known.

    The seconds of all causes together are what a call takes longer under the profilers, without
    their cost. Operators are matched by name and class. Where of a class one side has some and the
    other side others, these are one cause: an upgrade has renamed them.

    Returns:
        Causes, the kinds in their order and the largest first within a kind, and gaps.
    """
    sides = base, contender
    if not all(side.facts for side in sides):  # plain tests have functions, and no operators
        return [], []
    every = [side.facts.profile or Profile(gap="not profiled (--fw-profile)") for side in sides]
    if gaps := [
        f"{name}'s operators: {p.gap}" for name, p in zip(SIDES, every, strict=True) if p.gap
    ]:
        return [], gaps
    changes = _renamed(_changes(every, _cost(every, sides)))
    changes.sort(key=lambda change: -abs(change.time_s))
    others = [change for change in changes if not change.is_work]
    gaps = [*dict.fromkeys(profile.events_gap for profile in every if profile.events_gap)]
    causes = [*_work(changes), *_operators(others, every), *_events(*every)]
    return [*_instruction_sets(base.facts.framework, *every), *causes], gaps


def _instruction_sets(framework: str, base: Profile, contender: Profile) -> Iterator[Cause]:
    """A difference of what oneDNN computes with; none where either profile has nothing of it."""
    sides = base.onednn_isa, contender.onednn_isa
    if all(sides) and sides[0] != sides[1]:
        yield Cause(CauseKind.BUILD, f"{framework} onednn isa: {sides[0]} -> {sides[1]}")


def _cost(profiles: Sequence[Profile], sides: Sequence[Measurement]) -> tuple[float, float]:
    """Seconds by which calls take longer under a profiler, by the calls of their operators.

    The lower figure of both sides, since a disturbed profile looks costly; 0 where it is not known,
    and on a GPU, whose operators the profiler only starts later.

    Returns:
        These seconds, and their share of the time under the profiler, likewise.
    """
    costs_s, shares = [], []
    if any(side.facts.device.startswith("gpu") for side in sides):
        return 0.0, 0.0
    for profile, side in zip(profiles, sides, strict=True):
        every = profile.operators or ()
        calls = sum(op.calls for op in every if op.operator_class != COMPILATION)
        if calls and profile.call_s:
            added_s = max(0.0, profile.call_s - (side.facts.call_s or math.inf))
            costs_s.append(added_s / calls)
            shares.append(added_s / profile.call_s)
    return min(costs_s, default=0.0), min(shares, default=0.0)


def _own_times_s(
    operators: Sequence[ProfiledOperator], cost_s: float, share: float
) -> Sequence[float]:
    """Times of an operator on both sides without the profiler's cost, which is never all of one.

    Where the cost is more than either side has, or than a profiler takes, something else made the
    calls longer, and the operator as much as any other part of them. Both sides are treated alike,
    or else the treatment would be a difference.
    """
    times_s = [op.time_s for op in operators]
    if any(op.operator_class == COMPILATION for op in operators):
        return times_s
    added_s = [cost_s * op.calls for op in operators]
    has_more = all(t > a for t, a in zip(times_s, added_s, strict=True) if t or a)
    if cost_s < _MOST_COST_S and has_more:
        return [t - a for t, a in zip(times_s, added_s, strict=True)]
    return [time_s * (1 - share) for time_s in times_s]


def _changes(profiles: Sequence[Profile], cost: tuple[float, float]) -> list[_Change]:
    """The operators of both sides, those of either among them."""
    by_key = [{(op.name, op.operator_class): op for op in p.operators or ()} for p in profiles]
    changes = []
    for key in dict.fromkeys(itertools.chain(*by_key)):
        both = [of_side.get(key, _NOTHING) for of_side in by_key]
        errors_s = (_LEAST * op.time_s if op.error_s is None else op.error_s for op in both)
        calls, error_s = [op.calls for op in both], math.hypot(*errors_s)
        changes.append(_Change(*key, _own_times_s(both, *cost), calls, error_s))
    return changes


def _renamed(changes: Iterable[_Change]) -> list[_Change]:
    """Changes, of which those that one side alone has are one for each class that both have."""
    kept: list[_Change] = []
    alone: defaultdict[str, list[_Change]] = defaultdict(list)
    for change in changes:
        is_kept = all(change.calls) or change.operator_class in (DATA_MOVEMENT, COMPILATION)
        (kept if is_kept else alone[change.operator_class]).append(change)
    for of_class in alone.values():
        sides = [[each.name for each in of_class if each.calls[side]] for side in range(2)]
        if all(sides):
            joined = functools.reduce(_Change.joined, of_class)
            names = " -> ".join(", ".join(names[:_NAMES]) for names in sides)
            kept.append(replace(joined, name=names))
        else:
            kept += of_class
    return kept


def _work(changes: Sequence[_Change]) -> Iterator[Cause]:
    """One cause of all data movement, since a transposition is several operators, and others."""
    work = [change for change in changes if change.is_work]
    moved = [change for change in work if change.operator_class == DATA_MOVEMENT]
    if moved:
        calls = ", ".join(f"{change.name} {change.calls_text}" for change in moved[:_NAMES])
        every = functools.reduce(_Change.joined, moved)
        text = f"{DATA_MOVEMENT}: {calls} a call: {_times(*every.times_s)}"
        yield Cause(CauseKind.WORK, text, every.time_s, every.times_s)
    for change in (change for change in work if change not in moved):
        text = f"{change.name}: {change.calls_text} a call"
        if any(change.times_s):
            text += f": {_times(*change.times_s)}"
            yield Cause(CauseKind.WORK, text, change.time_s, change.times_s)
        else:
            yield Cause(CauseKind.WORK, text)


def _operators(changes: Sequence[_Change], profiles: Sequence[Profile]) -> Iterator[Cause]:
    """Operators that differ, the sum of the others, and the time between operators."""
    # Less is not worth a line, and two processes differ by as much for no reason.
    least_s = _LEAST * max(profile.call_s or 0.0 for profile in profiles)
    differ = (each for each in changes if abs(each.time_s) > max(each.limit_s, least_s))
    told = [*itertools.islice(differ, _LINES)]
    untold = [change for change in changes if change not in told]
    rests_s = [
        (p.operators_s or 0.0) - sum(op.time_s for op in p.operators or ()) for p in profiles
    ]
    others_s = _added([rests_s, *(change.times_s for change in untold)])
    most_s = max([least_s, *(change.limit_s for change in untold)])
    others = "others" if told else f"no operator differs by more than {shown(most_s)}"
    between_s = [(profile.call_s or 0.0) - (profile.operators_s or 0.0) for profile in profiles]
    text = f"between operators (dispatch, Python): {_times(*between_s)}"
    lines: list[tuple[str, Sequence[float]]] = [(text, between_s)]
    for change in told:
        calls = f", {change.calls_text} calls" * change.is_recounted
        lines.append((f"{change.name}: {_times(*change.times_s)}{calls}", change.times_s))
    lines.sort(key=lambda line: -abs(line[1][1] - line[1][0]))
    for text, sides_s in [*lines, (others, others_s)]:
        yield Cause(CauseKind.OPERATORS, text, sides_s[1] - sides_s[0], sides_s)


def _events(base: Profile, contender: Profile) -> Iterator[Cause]:
    """Events of a call of which one side has more."""
    for name, (kind, share) in _EVENTS.items():
        numbers = [(profile.events or {}).get(name) for profile in (base, contender)]
        if None not in numbers:
            before, after = (number or 0.0 for number in numbers)
            if abs(after - before) > max(1.0, share * max(before, after)):
                words = name.replace("_", " ")
                yield Cause(kind, f"{words} of a call: {before:,.0f} -> {after:,.0f}")


def _added(numbers: Iterable[Sequence[float]]) -> list[float]:
    """Numbers of both sides, added up on either."""
    return [*map(sum, zip(*numbers, strict=True))]


def _times(*times_s: float) -> str:
    """Times on both sides: ``61 -> 74 us``; less than nothing, between overlapping ones, is 0."""
    base, contender = (shown(max(0.0, time_s)) for time_s in times_s)
    number, _, unit = base.partition(" ")
    return (
        f"{number if unit == contender.split()[-1] or not float(number) else base} -> {contender}"
    )
