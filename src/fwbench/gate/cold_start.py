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

#: Launches of the same build differ by so much in what they do once, and in memory.
_NOISE = 0.1


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
        return _of_first_call(base, contender)
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


def _of_first_call(base: CaseFacts, contender: CaseFacts) -> tuple[list[Cause], list[str]]:
    before_s, after_s = _first_call_s(base), _first_call_s(contender)
    is_compiled = compiles(base.get("execution", "eager"))  # others have too little in it
    if not (before_s and after_s and is_compiled and abs(after_s - before_s) > _NOISE * before_s):
        return [], []
    texts = [str(_Part("first call", before_s, after_s))]
    before, after = base.first_call_compilations, contender.first_call_compilations
    if before != after:
        texts.append(f"compilations of the first call: {before} -> {after}")
    phases = base.first_call_phases, contender.first_call_phases
    known = phases[0] is not None and phases[1] is not None
    parts = _largest(phases[0] or {}, phases[1] or {}) if known else []
    texts += [f"first call, {part}" for part in parts]
    gaps = [] if known else ["first call by phase: not recorded on both sides"]
    return [Cause(CauseKind.WORK, text) for text in texts], gaps


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
