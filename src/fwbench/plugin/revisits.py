"""Cases that were measured twice, in two sessions or again at the end of one.

Both medians show how far those of this machine repeat: :mod:`fwbench.records.repeatability`.
"""

import hashlib
import math
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, NamedTuple

import pytest

from fwbench.plugin.plain import known_variables
from fwbench.plugin.session import CELL, Session, cached, implemented
from fwbench.records.repeatability import of_earlier, of_pairs
from fwbench.records.session_facts import StoredRevisits
from fwbench.records.stored import just_measured
from fwbench.report.condition import is_contended
from fwbench.terms.names import framework_of
from fwbench.workloads.grid import Cell

#: Cases that are measured a second time at the end, and the seconds that this may take; unasked, a
#: share of those of the session, if these are enough to import frameworks again.
_REVISITED, AT_MOST_S, _SHARE, _SESSION_AT_LEAST_S = 12, 20.0, 0.1, 60.0

#: Where pytest's cache keeps the medians of cases, by framework and what they are of.
_CACHED = "fwbench/medians"

#: Of so many versions, thread counts and the like: a session with others forgets none of them.
_STATES_AT_MOST = 8


class Visit(NamedTuple):
    """A measured case.

    Its traits are framework, order of magnitude of its time, kind of work. ``loop_s`` tells the
    full speed of CPUs, as its process has found it.
    """

    median_s: float
    took_s: float
    traits: tuple[Any, ...]
    loop_s: float | None = None


Visits = Mapping[pytest.Item, Visit]

#: Both medians of cases in seconds, by framework and node id, this session's first visit first.
Pairs = dict[str, dict[str, list[float]]]

#: Reports of cases that were measured again; others were not, for want of time.
Again = Mapping[pytest.Item, Sequence[pytest.TestReport]]


def visit_of(report: pytest.TestReport) -> Visit | None:
    """The case that a report brings; None without one, and of a time that is an upper bound."""
    measured = getattr(report, "fwbench", None)
    case = None if measured is None else just_measured(measured["entry"])
    if case is None or is_contended(case.facts) or not any(case.values_s):
        return None
    kind = case.facts.family, case.facts.direction
    traits = case.facts.framework, round(math.log10(case.median_s)), kind
    return Visit(case.median_s, report.duration, traits, case.facts.loop_s)


def is_upper_bound(report: pytest.TestReport) -> bool:
    """True if a report brings a case that had to share processors."""
    measured = getattr(report, "fwbench", None)
    return measured is not None and is_contended(just_measured(measured["entry"]).facts)


def known_loop_s(visits: Visits, framework: str) -> float | None:
    """The shortest ``loop_s`` of a framework's cases; None if there is none yet."""
    every = [visit.loop_s for i, visit in visits.items() if i.stash[CELL].framework == framework]
    return min(filter(None, every), default=None)


def _counts(cell: Cell) -> bool:
    """True of work that shows how far medians repeat; not whole loops, gangs, ``noop``."""
    return not (cell.workload.cold or cell.gang or cell.workload.name == "noop")


def spread(visits: Visits, number: int) -> list[pytest.Item]:
    """Cases by turns of frameworks, then of times and kinds of work, the cheap ones first."""
    left = [item for item in visits if _counts(item.stash[CELL])]
    chosen: list[pytest.Item] = []
    used: Counter[Any] = Counter()
    while left and len(chosen) < number:
        ranks = {i: (*(used[t] for t in visits[i].traits), visits[i].took_s) for i in left}
        chosen.append(min(left, key=ranks.__getitem__))
        left.remove(chosen[-1])
        used.update(visits[chosen[-1]].traits)
    return chosen


class Medians:
    """Medians of an earlier session, in pytest's cache folder.

    They are those of the same versions, files, threads and options. What a user has implemented is
    not among them: they may have made it faster, which is not how far a machine repeats.

    Args:
        cache: ``config.cache``; None where pytest's cache is switched off.
    """

    def __init__(self, cache: Any, session: Session) -> None:
        self._cache = cache
        self._session = session

    def pairs(self, visits: Visits) -> Pairs:
        """Medians of these cases, and of the same in an earlier session."""
        pairs: Pairs = defaultdict(dict)
        for framework, medians_s in self._of(visits).items():
            earlier_s = self._earlier_s(framework)
            for nodeid, median_s in medians_s.items():
                if nodeid in earlier_s:
                    pairs[framework_of(framework)][nodeid] = [median_s, earlier_s[nodeid]]
        return pairs

    def keep(self, visits: Visits) -> None:
        """Let later sessions know these medians, and earlier ones of the same."""
        if self._cache is None:
            return
        kept, measured = cached(self._cache, _CACHED), self._of(visits)
        for framework, medians_s in measured.items():
            states, state = self._states(framework), self._state(framework)
            states.pop(state, None)
            latest = {state: {**self._earlier_s(framework), **medians_s}}
            kept[framework] = dict([*states.items(), *latest.items()][-_STATES_AT_MOST:])
        if measured:
            self._cache.set(_CACHED, kept)

    def _of(self, visits: Visits) -> dict[str, dict[str, float]]:
        medians_s: dict[str, dict[str, float]] = defaultdict(dict)
        for item, visit in visits.items():
            cell = item.stash[CELL]
            if _counts(cell) and framework_of(cell.framework) not in implemented(cell.workload):
                medians_s[cell.framework][item.nodeid] = visit.median_s
        return medians_s

    def _earlier_s(self, framework: str) -> dict[str, float]:
        """By node id; none if something else was measured, or somebody else has written them."""
        medians_s = self._states(framework).get(self._state(framework), {})
        known_s = {n: s for n, s in medians_s.items() if isinstance(s, float)}
        return {n: s for n, s in known_s.items() if 0 < s < math.inf}

    def _states(self, framework: str) -> dict[str, dict[str, Any]]:
        """Medians by what they are of, the latest ones last."""
        states = cached(self._cache, _CACHED).get(framework)
        every = states.items() if isinstance(states, dict) else ()
        return {state: medians_s for state, medians_s in every if isinstance(medians_s, dict)}

    def _state(self, framework: str) -> str:
        """A text that differs whenever a framework may have another speed for a known reason."""
        session, machine = self._session, self._session.machine
        versions = session.inventory.fingerprint(framework)
        facts = versions, session.settings, known_variables(), machine.cpu, machine.usable_cpus
        return hashlib.sha256(repr(facts).encode()).hexdigest()


def repeated(
    visits: Visits,
    medians: Medians,
    asked: int | None,
    session_s: float,
    again: Callable[[list[pytest.Item], float], Again],
    contended: Collection[pytest.Item] = (),
) -> dict[str, StoredRevisits]:
    """The medians that show how far they repeat: of an earlier session, or of cases once more.

    Args:
        contended: cases that are no visits, as their times are upper bounds.
        asked: number of cases that are to be measured again; None for as many as are needed.
        again: measures cases within a number of seconds.
    """
    earlier = medians.pairs(visits)
    medians.keep(visits)
    needed = _REVISITED * (session_s >= _SESSION_AT_LEAST_S)
    frameworks = {framework_of(item.stash[CELL].framework) for item in visits}
    is_known = frameworks <= earlier.keys() and sum(map(len, earlier.values())) >= needed
    if asked is None and (is_known or not needed):
        return {name: of_earlier(those) for name, those in earlier.items()}
    number = needed if asked is None else asked
    cases = spread(visits, number)
    limit_s = AT_MOST_S if asked else min(AT_MOST_S, _SHARE * session_s)
    visited = again(cases, limit_s) if cases else {}
    pairs: Pairs = defaultdict(dict)
    bounds = [item for item in contended if _counts(item.stash[CELL])][: number - len(cases)]
    for item, reports in visited.items():
        for second in filter(None, map(visit_of, reports)):
            medians_s = [visits[item].median_s, second.median_s]
            pairs[framework_of(item.stash[CELL].framework)][item.nodeid] = medians_s
        bounds += [item] * any(map(is_upper_bound, reports))
    numbers = [
        Counter(framework_of(item.stash[CELL].framework) for item in items)
        for items in (bounds, [item for item in cases if item not in visited])
    ]
    return {
        name: of_pairs(pairs[name], contended=numbers[0][name], late=numbers[1][name])
        for name in dict.fromkeys([*pairs, *numbers[0], *numbers[1]])
    }
