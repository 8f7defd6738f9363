"""fwbench's part of the terminal: what the tables of statistics leave out."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

from fwbench.records import equality
from fwbench.records.facts import CaseFacts
from fwbench.records.units import count, time
from fwbench.report import loops
from fwbench.report.ranking import condition, means
from fwbench.report.ranking.contests import Timed, contests
from fwbench.report.ranking.means import Ranking
from fwbench.toggles import TOGGLES, Toggle

#: From this ratio on, completion and dispatch are said to differ.
_DISPATCH_RATIO = 2.0

#: At most this many cases of a kind are named.
_SHOWN = 3

Entry = Mapping[str, Any]


def section(
    records: Sequence[Entry],
    skips: Sequence[str],
    toggles: Mapping[str, Toggle] = TOGGLES,
    cpus: int | None = None,
) -> list[str]:
    """What is compared, what was misread for years, what is not known.

    Args:
        records: pytest-benchmark's entries.
        skips: the reason of each case that was skipped.
        toggles: those of the session, by name.
        cpus: of the machine; None where it is not known.
    """
    equality.annotate(records, toggles)
    return [
        *condition.notes([_facts(entry) for entry in records], cpus),
        *_means(records),
        *loops.section(records, toggles),
        *_overhead(records),
        *_dispatch(records),
        *_unsteady(records),
        *_skipped(skips),
    ]


def _facts(entry: Entry) -> CaseFacts:
    return CaseFacts.unchecked(entry["extra_info"]["fwbench"])


def _means(records: Sequence[Entry]) -> list[str]:
    """Geometric means of time against the fastest, over the cases that all share."""
    held = contests(
        Timed(_name(entry), _completion_s(_facts(entry)), _facts(entry)) for entry in records
    )
    return [line for ranking in means.rankings(held) for line in _ranking(ranking)]


def _name(entry: Entry) -> str:
    """Framework and execution, and the toggles that were asked for."""
    facts, params = _facts(entry), entry.get("params") or {}
    asked = [f"{name}={params[name]}" for name in facts.toggles or {} if name in params]
    return " ".join([facts.framework, facts.execution, *asked])


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


def _overhead(records: Sequence[Entry]) -> list[str]:
    times_s: dict[str, float] = {}
    for facts in map(_facts, records):
        if facts.workload == "noop":
            name = f"{facts.framework} {facts.execution}"
            times_s[name] = min(_completion_s(facts), times_s.get(name, math.inf))
    if not times_s:
        return []
    costs = ", ".join(f"{name} {time(time_s)}" for name, time_s in times_s.items())
    return [f"noop, which harness and framework take to do nothing (not subtracted): {costs}"]


def _completion_s(facts: CaseFacts) -> float:
    assert facts.completion_s is not None  # noqa: S101 (it was just measured)
    return facts.completion_s


def _dispatch(records: Sequence[Entry]) -> list[str]:
    apart: dict[str, list[tuple[float, CaseFacts, str]]] = defaultdict(list)
    for entry in records:
        facts = _facts(entry)
        ratio = _completion_s(facts) / max(facts.dispatch_s or 0.0, 1e-9)
        if ratio > _DISPATCH_RATIO:
            apart[facts.framework].append((ratio, facts, str(entry["param"])))
    lines = []
    for framework, cases in apart.items():
        ratio, facts, name = max(cases, key=lambda case: case[0])
        lines.append(
            f"{framework}: {count(len(cases), 'case')} returned in less than half the time that "
            f"the work took; most of all {name}: returned after {facts.text('dispatch_s')}, done "
            f"after {facts.text('completion_s')} ({ratio:.0f}x)"
        )
    return lines


def _unsteady(records: Sequence[Entry]) -> list[str]:
    names = [str(entry["param"]) for entry in records if _facts(entry).steady is False]
    if not names:
        return []
    more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    return [
        f"not steady when its warm-up ended: {', '.join(names[:_SHOWN])}{more}",
        "  (a longer --fw-warmup may help, or a quieter machine)",
    ]


def _skipped(skips: Sequence[str]) -> list[str]:
    counts = Counter(skips).most_common()
    return [f"skipped {count(number, 'case')}: {reason}" for reason, number in counts]
