"""Functions that a change is in: differences of their times, by samples of both sides.

Samples say what part of a call a function has; the call's time is that of the calls that were
timed, so what the profiler costs is in no figure. Functions that make many calls have too much.
"""

import math
from collections import defaultdict
from collections.abc import Collection, Mapping
from typing import NamedTuple

from fwbench.gate.explanation import Cause, CauseKind
from fwbench.records.facts import ROOT, SEPARATOR
from fwbench.records.measurement import Measurement, ratio
from fwbench.records.repeatability import DECIDED
from fwbench.records.units import count, signed, time

#: Standard deviations of a difference that samples of equal functions hardly ever have.
_DEVIATIONS = 4.0

#: Functions that are named, and a cost of the profiler that is.
_NAMED, _COST = 8, 0.5


class Spent(NamedTuple):
    """Seconds of a call within a function: alone, with its callees, and its own's deviation."""

    own_s: float
    inclusive_s: float
    deviation_s: float


class FunctionChange(NamedTuple):
    """A function, as records name it, on both sides.

    Attributes:
        allowed_s: difference of its own time that sides without a change may have.
    """

    name: str
    base: Spent
    contender: Spent
    allowed_s: float

    @property
    def difference_s(self) -> float:
        """Extra time of the function itself, in a call of the contender."""
        return self.contender.own_s - self.base.own_s

    @property
    def title(self) -> str:
        """The name for people to read: ``Reader.parse() in pkg/reader.py``."""
        if self.name == ROOT:
            return "the call itself"
        file, _, function = self.name.rpartition(":")
        called = function if function.endswith(">") else f"{function}()"
        return f"{called} (built-in)" if file == "<built-in>" else f"{called} in {file}"

    @property
    def text(self) -> str:
        """The function and its times in words."""
        base, contender = self.base, self.contender
        parts = [f"{self.title}: {time(base.own_s)} -> {time(contender.own_s)} own"]
        if base.own_s != base.inclusive_s or contender.own_s != contender.inclusive_s:
            both = f"{time(base.inclusive_s)} -> {time(contender.inclusive_s)}"
            parts.append(f"{both} with its callees")
        if not (base.inclusive_s and contender.inclusive_s):
            parts.append(f"only the {'base' if base.inclusive_s else 'contender'} has it")
        return ", ".join(parts)


def samples(side: Measurement) -> Mapping[str, float]:
    """Own samples by stack; empty of a side without any."""
    return (side.facts.sampled and side.facts.sampled.stacks) or {}


def changes(
    base: Measurement,
    contender: Measurement,
    times_s: tuple[float, float] | None = None,
    *,
    by_turns: bool = False,
) -> list[FunctionChange]:
    """Every function of two sides with samples, the largest difference first.

    Args:
        times_s: of a call; None for the medians of both sides.
        by_turns: whether these were compared by turns; others may be off by what medians are.
    """
    base_s, contender_s = times_s or (base.median_s, contender.median_s)
    off = 0.0 if by_turns else math.expm1(ratio(base, contender).off(DECIDED))
    before, after = _spent(base, base_s), _spent(contender, contender_s)
    for old, new in _moved(before.keys() - after.keys(), after.keys() - before.keys()):
        before[new] = before.pop(old)
    found = []
    for name in before.keys() | after.keys():
        sides = before[name], after[name]
        noise_s = _DEVIATIONS * math.hypot(*(side.deviation_s for side in sides))
        allowed_s = noise_s + off * max(side.own_s for side in sides)
        found.append(FunctionChange(name, *sides, allowed_s))
    return sorted(found, key=lambda change: (-abs(change.difference_s), change.name))


def _moved(gone: Collection[str], new: Collection[str]) -> list[tuple[str, str]]:
    """The old and the new name of functions whose file has been moved within its package.

    NumPy 2 has ``numpy/_core`` for ``numpy/core``.
    """

    def places(names: Collection[str]) -> dict[tuple[str, str], list[str]]:
        found: defaultdict[tuple[str, str], list[str]] = defaultdict(list)
        for name in names:
            package, _, _ = name.partition("/")
            found[package, name.rpartition("/")[2]].append(name)
        return found

    before, after = places(gone), places(new)
    both = ((before[place], after[place]) for place in before.keys() & after.keys())
    return [(old[0], new[0]) for old, new in both if len(old) == len(new) == 1]


def _spent(side: Measurement, call_s: float) -> defaultdict[str, Spent]:
    """Times of functions by their names; of others nothing, as far as the samples can tell."""
    stacks, noise = samples(side), (side.facts.sampled and side.facts.sampled.noise) or 1.0
    own: defaultdict[str, float] = defaultdict(float)
    inclusive: defaultdict[str, float] = defaultdict(float)
    for stack, number in stacks.items():
        functions = stack.split(SEPARATOR)
        own[functions[-1]] += number
        for function in {*functions}:
            inclusive[function] += number
    every = sum(stacks.values())

    def spent(function: str) -> Spent:
        # Binomial, with a sample more of either kind: what was not seen may be there.
        share = (own[function] + 1) / (every + 2)
        deviation_s = call_s * math.sqrt(noise * share * (1 - share) / every)
        own_s, inclusive_s = (call_s * seen[function] / every for seen in (own, inclusive))
        return Spent(own_s, inclusive_s, deviation_s)

    nothing = spent("")
    return defaultdict(lambda: nothing, {name: spent(name) for name in [*inclusive] if name})


def function_causes(
    base: Measurement,
    contender: Measurement,
    times_s: tuple[float, float] | None = None,
    *,
    by_turns: bool = False,
) -> tuple[list[Cause], list[str]]:
    """Functions that a change is in, the largest difference first, and what cannot be said.

    The last cause has all other differences, and no seconds. There is nothing to say of a case that
    neither side has samples of.

    See :func:`changes` for the arguments.
    """
    sides = {"base": base.facts.sampled, "contender": contender.facts.sampled}
    gaps = [
        f"functions of the {side}: {(sampled and sampled.gap) or 'no samples (--fw-profile)'}"
        for side, sampled in sides.items()
        if sampled is None or not sampled.stacks
    ]
    if gaps:
        return [], gaps if any(sides.values()) else []
    every = changes(base, contender, times_s, by_turns=by_turns)
    real = [change for change in every if abs(change.difference_s) > change.allowed_s][:_NAMED]
    costs = {side: (sampled and sampled.overhead) or 0.0 for side, sampled in sides.items()}
    shown = ", ".join(f"{side} {max(0.0, cost):+.0%}" for side, cost in costs.items())
    notes = [f"functions: the profiler's cost, where calls are many: {shown}"]
    notes = notes if max(costs.values()) >= _COST else []
    if not real:
        visible_s = max(change.allowed_s for change in every)
        return [], [f"functions: no difference above {time(visible_s)} of a call", *notes]
    causes = []
    for change in real:
        own_s = change.base.own_s, change.contender.own_s
        causes.append(Cause(CauseKind.FUNCTIONS, change.text, change.difference_s, own_s))
    others = [change.difference_s for change in every if change not in real and change.difference_s]
    if others:
        number, together = count(len(others), "function"), signed(sum(others))
        most = time(max(map(abs, others)))
        text = f"others, among what is not explained: {number}, {together} together, "
        text += f"none by more than {most}"
        causes.append(Cause(CauseKind.FUNCTIONS, text))
    return causes, notes
