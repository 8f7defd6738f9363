"""Causes of a change of what a process does once: an import, a first call."""

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from fwbench.gate.explanation import Cause, CauseKind
from fwbench.records.facts import CaseFacts
from fwbench.records.units import count, mebibytes, time
from fwbench.terms.names import compiles

#: The most parts of a change that are named, and the least share of it that one must hold.
_LARGEST = 5
_SHARE = 0.05

#: Launches of the same build differ by so much in what they do once, and in memory; and a shorter
#: time is no matter of what is done once.
_NOISE, _LEAST_S = 0.1, 1e-3


class _Part(NamedTuple):
    """A part of a cold start on both sides, in seconds."""

    name: str
    base_s: float
    contender_s: float

    @property
    def difference_s(self) -> float:
        return self.contender_s - self.base_s

    def __str__(self) -> str:
        return f"{self.name}: {time(self.base_s)} -> {time(self.contender_s)}"


def cold_start_causes(base: CaseFacts, contender: CaseFacts) -> tuple[list[Cause], list[str]]:
    """Causes by which a cold start differs between two records of a case.

    The parts of an import hold seconds of a call. A first call is none of those that are timed, so
    it holds none.

    Returns:
        Causes, the largest first within a kind; what could not be compared, and why.
    """
    if base.imported_modules is None or contender.imported_modules is None:
        return _of_compilation(base, contender)
    gaps = [
        f"import by part: the {name} has none"
        for name, side in (("base", base), ("contender", contender))
        if not (side.import_parts and side.call_s)
    ]
    parts = [] if gaps else _largest(_scaled(base), _scaled(contender))
    causes = [
        Cause(CauseKind.FUNCTIONS, str(part), part.difference_s, (part.base_s, part.contender_s))
        for part in parts
    ]
    return [*_modules(base, contender), *causes, *_memory(base, contender)], gaps


def _scaled(facts: CaseFacts) -> Mapping[str, float]:
    """Seconds by part that add up to a call: importing takes longer under ``-X importtime``."""
    parts = facts.import_parts or {}
    factor = (facts.call_s or 0.0) / (sum(parts.values()) or 1.0)
    return {name: factor * seconds for name, seconds in parts.items()}


def _modules(base: CaseFacts, contender: CaseFacts) -> Iterator[Cause]:
    before, after = base.imported_modules or 0, contender.imported_modules or 0
    if before != after:
        yield Cause(CauseKind.WORK, f"{count(before, 'module')} imported -> {after:,}")


def _memory(base: CaseFacts, contender: CaseFacts) -> Iterator[Cause]:
    before, after = base.imported_bytes, contender.imported_bytes
    if before and after and abs(after - before) > _NOISE * before:
        yield Cause(
            CauseKind.MEMORY, f"memory of the import: {mebibytes(before)} -> {mebibytes(after)}"
        )


def _of_compilation(base: CaseFacts, contender: CaseFacts) -> tuple[list[Cause], list[str]]:
    """Causes of the compilations of binding and of a first call, and gaps."""
    if not compiles(base.get("execution", "eager")):  # others have too little in it
        return [], []
    texts = _changed("compiled when bound", *map(_bound_s, (base, contender)))
    texts += _phases("bind", base.bind_phases, contender.bind_phases) if texts else []
    first_call = _changed("first call", *map(_first_call_s, (base, contender)))
    texts += first_call
    gaps: list[str] = []
    before, after = base.first_call_compilations, contender.first_call_compilations
    if before and after and before != after:  # which no noise explains
        texts.append(f"compilations of the first call: {before} -> {after}")
    if first_call:
        texts += _phases("first call", base.first_call_phases, contender.first_call_phases)
        gaps += _untold(base, contender)
    return [Cause(CauseKind.WORK, text) for text in texts], gaps


def _changed(name: str, base_s: float | None, contender_s: float | None) -> list[str]:
    """A text on what is done once, if it takes another time on the contender."""
    if not (base_s and contender_s):
        return []
    part = _Part(name, base_s, contender_s)
    return [str(part)] if abs(part.difference_s) > max(_LEAST_S, _NOISE * base_s) else []


def _phases(
    name: str, base: Mapping[str, float] | None, contender: Mapping[str, float] | None
) -> list[str]:
    """Texts on the phases that hold most of a change; none unless both sides know theirs."""
    if base is None or contender is None:
        return []
    return [f"{name}, {part}" for part in _largest(base, contender)]


def _untold(base: CaseFacts, contender: CaseFacts) -> Iterator[str]:
    """Why the phases of a first call cannot be compared."""
    lacking = [
        name
        for name, side in (("base", base), ("contender", contender))
        if side.first_call_phases is None
    ]
    if len(lacking) == 2:  # noqa: PLR2004 (sides)
        execution = f"{base.get('framework', 'its framework')}, {base.execution}"
        yield f"first call by phase: none told by {execution}"
    elif lacking:
        yield f"first call by phase: the {lacking[0]} has none"


def _bound_s(facts: CaseFacts) -> float | None:
    return sum(facts.bind_phases.values()) if facts.bind_phases else None


def _first_call_s(facts: CaseFacts) -> float | None:
    """Seconds of the first call of a process; None where others may have come before it."""
    if facts.first_call_s is None and facts.first_in_process:
        return facts.first_call_in_process_s
    return facts.first_call_s


def _largest(base: Mapping[str, float], contender: Mapping[str, float]) -> list[_Part]:
    """The parts that hold most of a change, in either direction, the largest first.

    A part that a side does not have takes it no time.
    """
    names = dict.fromkeys((*base, *contender))
    parts = [_Part(name, base.get(name, 0.0), contender.get(name, 0.0)) for name in names]
    parts.sort(key=lambda part: -abs(part.difference_s))
    change_s = sum(abs(part.difference_s) for part in parts)
    return [part for part in parts if abs(part.difference_s) > _SHARE * change_s][:_LARGEST]
