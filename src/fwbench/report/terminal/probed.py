"""What probes have found out about each case, in a line."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from fwbench.records.facts import CaseFacts, Memory, Profile
from fwbench.records.units import count, mebibytes

#: The smallest share that a line names, and the name of all others together.
_LEAST, _REST = 0.03, "rest"

#: A case's id, and its facts.
Named = Sequence[tuple[str, CaseFacts]]


def profiles(cases: Named, traces: str, *, in_full: bool) -> Iterator[str]:
    """Where the time goes, and where the traces are.

    Args:
        cases: all that were measured.
        traces: the folder of the traces.
        in_full: whether each case has a line.
    """
    profiled = [(name, facts, facts.profile) for name, facts in cases if facts.profile is not None]
    if not profiled:
        return
    if in_full:
        yield "where the time goes, by the frameworks' own profilers:"
        for name, facts, profile in profiled:
            yield f"  {name}: {_shares(facts, profile)}"
    else:
        gaps = sum(profile.gap is not None for _, _, profile in profiled)
        without = f", {gaps} without a result" if gaps else ""
        yield f"{count(len(profiled), 'case')} profiled{without}: -v shows where the time goes"
    if any(profile.trace for _, _, profile in profiled):
        yield f"traces for https://ui.perfetto.dev: {traces}"


def _shares(facts: CaseFacts, profile: Profile) -> str:
    if profile.shares is None:
        return profile.gap or "nothing profiled"
    ordered = sorted(profile.shares.items(), key=lambda named: -named[1])
    shown = {name: share for name, share in ordered if share >= _LEAST}
    rest = 1.0 - sum(shown.values())
    if rest >= _LEAST / 2:
        shown[_REST] = rest
    overhead = facts.profile_overhead
    cost = "" if overhead is None else f" (profiler: {overhead:+.0%})"
    return ", ".join(f"{name} {share:.0%}" for name, share in shown.items()) + cost


def memory(cases: Named, *, in_full: bool) -> Iterator[str]:
    """Peak memory of the calls of each case.

    Args:
        cases: all that were measured.
        in_full: whether each case has a line; nothing is said otherwise.
    """
    measured = [(name, facts) for name, facts in cases if facts.memory is not None]
    if not measured:
        return
    if not in_full:
        yield f"memory of {count(len(measured), 'case')} measured: -v shows it, and reports do"
        return
    yield "peak memory above what was held before, each in a process of its own:"
    for name, facts in measured:
        parts = {"forward": facts.forward_memory, facts.direction: facts.memory}
        yield f"  {name}: {', '.join(_memory(what, m) for what, m in parts.items() if m)}"


def _memory(what: str, memory: Memory) -> str:
    """The peak, and in brackets what else is known."""
    if memory.above_bytes is None:
        return f"{what} {memory.gap or 'unknown'}"
    known = {"planned": memory.planned_bytes, "saved": memory.saved_bytes}
    more = [f"{mebibytes(size)} {name}" for name, size in known.items() if size is not None]
    brackets = f" ({', '.join(more)})" if more else ""
    return f"{what} {mebibytes(memory.above_bytes)}{brackets}"
