"""What tables do not say: means, overhead, early returns, unsteady cases, skips."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence

from fwbench.records.facts import CaseFacts
from fwbench.records.units import JOULES, count, time
from fwbench.report.ranking import means
from fwbench.report.ranking.contests import Contest, Timed, contests, works
from fwbench.report.ranking.early import early
from fwbench.report.ranking.means import Ranking
from fwbench.report.terminal.contestants import completion_s

#: At most this many cases of a kind are named.
_SHOWN = 3

Cases = Sequence[CaseFacts]


def geometric_means(cases: Sequence[Timed]) -> list[str]:
    """Geometric means of time against the fastest, over the cases that all share.

    Args:
        cases: all that were measured.
    """
    rankings = means.rankings(contests(cases))
    return [line for ranking in rankings for line in _ranking(ranking)]


def _ranking(ranking: Ranking) -> list[str]:
    if not ranking.means:
        return [f"{ranking.title}: not ranked: {ranking.why_empty}"]
    names = [mean.name for mean in ranking.means] + [each.name for each in ranking.unranked]
    width = max(map(len, names))
    over = f"over {count(ranking.cases, 'case')}, and over the {ranking.largest} of largest size"
    return [
        f"{ranking.title}: geometric mean of the median times against the fastest, {over}:",
        *(
            f"  {mean.name:<{width}}  {mean.all_sizes:8.2f}x{_ratio(mean.largest)}"
            for mean in ranking.means
        ),
        *(f"  {each.name:<{width}}  {each.text}" for each in ranking.unranked),
    ]


def _ratio(ratio: float | None) -> str:
    return "" if ratio is None else f" {ratio:8.2f}x"


def overhead(cases: Cases) -> list[str]:
    """What harness and framework take to do nothing: the least of the times of ``noop``."""
    times_s: dict[str, float] = {}
    for facts in cases:
        if facts.workload == "noop":
            name = f"{facts.framework} {facts.execution}"
            times_s[name] = min(completion_s(facts), times_s.get(name, math.inf))
    if not times_s:
        return []
    costs = ", ".join(f"{name} {time(time_s)}" for name, time_s in times_s.items())
    return [f"noop, the time to do nothing (not subtracted): {costs}"]


def dispatch(cases: Cases, *, in_full: bool) -> list[str]:
    """The frameworks whose calls returned long before their work was done.

    Args:
        cases: all that were measured.
        in_full: whether to name the case where the two differ most.
    """
    apart: dict[str, list[tuple[float, CaseFacts]]] = defaultdict(list)
    for facts in cases:
        times_s = early(facts)
        if times_s is not None:
            returned_s, done_s = times_s
            apart[facts.framework].append((done_s / returned_s, facts))
    return [
        f"{framework}: {count(len(found), 'case')} returned in less than half the time that the "
        f"work took{_most(found) if in_full else ''}"
        for framework, found in apart.items()
    ]


def _most(cases: Iterable[tuple[float, CaseFacts]]) -> str:
    ratio, facts = max(cases, key=lambda case: case[0])
    name = f"{facts.workload} {facts.execution} {facts.shape or facts.size}"
    times = f"{facts.text('dispatch_s')} of {facts.text('completion_s')} ({ratio:.0f}x)"
    return f", most of all {name}: after {times}"


def energy(cases: Iterable[Timed], *, in_full: bool) -> list[str]:
    """The energy of a call, or of an epoch, of each contestant that a GPU's counter told of.

    Args:
        cases: all that were measured.
        in_full: whether every work has a line; otherwise those that took most.
    """
    told = []
    for work in works(cases):
        by_energy = [(t.facts.energy_j, t.name) for t in work.entrants if t.facts.energy_j]
        if by_energy:
            told.append((max(by_energy)[0], work, sorted(by_energy)))
    told.sort(key=lambda each: each[0], reverse=True)
    shown = told if in_full else told[:_SHOWN]
    lines = [
        f"energy of {'an epoch' if _is_loop(work) else 'a call'}, {work.title}: "
        + ", ".join(f"{name} {JOULES.show(energy_j)}" for energy_j, name in by_energy)
        for _, work, by_energy in shown
    ]
    more = len(told) - len(shown)
    return [*lines, f"energy of {count(more, 'other work')}: -v"] if more else lines


def _is_loop(work: Contest) -> bool:
    """Whether a round of it is an epoch."""
    return work.entrants[0].facts.epoch_s is not None


def unsteady(cases: Sequence[tuple[str, CaseFacts]], *, in_full: bool) -> list[str]:
    """The cases whose times had not settled when their warm-up ended.

    Args:
        cases: id and facts of each.
        in_full: whether to name some of them.
    """
    names = [name for name, facts in cases if facts.steady is False]
    if not names:
        return []
    line = (
        f"{count(len(names), 'case')} not steady when the warm-up ended: a longer --fw-warmup may "
        "help, or a quieter machine"
    )
    return [line, _some(names)] if in_full else [line]


def _some(names: Sequence[str]) -> str:
    more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    return f"  {', '.join(names[:_SHOWN])}{more}"


def skipped(reasons: Sequence[str], *, in_full: bool) -> list[str]:
    """How many cases were skipped, and why.

    Args:
        reasons: one for each case.
        in_full: whether every reason has a line; otherwise there is one line for all.
    """
    counts = Counter(reasons).most_common()
    if in_full or len(counts) == 1:
        return [f"skipped {count(number, 'case')}: {reason}" for reason, number in counts]
    if not counts:
        return []
    return [f"skipped {count(len(reasons), 'case')} for {len(counts)} reasons: -rs lists them"]
