"""fwbench's part of the terminal: what the tables of statistics leave out."""

from __future__ import annotations

import math
import statistics
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

from fwbench.records.entry import work_of
from fwbench.report import loops
from fwbench.report.units import count, time
from fwbench.toggles import TOGGLES, Toggle

#: From this ratio on, completion and dispatch are said to differ.
_DISPATCH_RATIO = 2.0

#: At most this many cases of a kind are named.
_SHOWN = 3

Entry = Mapping[str, Any]


def section(
    records: Sequence[Entry], skips: Sequence[str], toggles: Mapping[str, Toggle] = TOGGLES
) -> list[str]:
    """What is compared, what was misread for years, what is not known.

    Args:
        records: pytest-benchmark's entries.
        skips: the reason of each case that was skipped.
        toggles: those of the session, by name.
    """
    return [
        *_means(records),
        *loops.section(records, toggles),
        *_overhead(records),
        *_dispatch(records),
        *_unsteady(records),
        *_skipped(skips),
    ]


def _means(records: Sequence[Entry]) -> list[str]:
    """Geometric means of time against the fastest of each group; ``noop`` is no contestant."""
    groups: dict[tuple[Any, ...], list[Entry]] = defaultdict(list)
    for entry in records:
        if entry["extra_info"]["fwbench"]["workload"] != "noop":
            groups[work_of(entry["extra_info"]["fwbench"])].append(entry)
    ratios: dict[tuple[str, str], list[float]] = defaultdict(list)
    for entries in groups.values():
        if len(entries) > 1:  # alone, it would be its own fastest
            fastest_s = min(map(_completion_s, entries))
            for entry in entries:
                facts = entry["extra_info"]["fwbench"]
                name = facts["framework"], facts["execution"]
                ratios[name].append(_completion_s(entry) / fastest_s)
    if not ratios:
        return []
    width = max(len(f"{framework} {execution}") for framework, execution in ratios)
    means = {name: statistics.geometric_mean(values) for name, values in ratios.items()}
    return [
        "geometric mean of the median times against the fastest of each group:",
        *(
            f"  {' '.join(name):<{width}}  {mean:8.2f}x  ({count(len(ratios[name]), 'case')})"
            for name, mean in sorted(means.items(), key=lambda pair: pair[1])
        ),
    ]


def _overhead(records: Sequence[Entry]) -> list[str]:
    times_s: dict[str, float] = {}
    for entry in records:
        facts = entry["extra_info"]["fwbench"]
        if facts["workload"] == "noop":
            name = f"{facts['framework']} {facts['execution']}"
            times_s[name] = min(_completion_s(entry), times_s.get(name, math.inf))
    if not times_s:
        return []
    costs = ", ".join(f"{name} {time(time_s)}" for name, time_s in times_s.items())
    return [f"noop, which harness and framework take to do nothing (not subtracted): {costs}"]


def _completion_s(entry: Entry) -> float:
    return float(entry["extra_info"]["fwbench"]["completion_s"])


def _dispatch(records: Sequence[Entry]) -> list[str]:
    apart: dict[str, list[tuple[float, Entry]]] = defaultdict(list)
    for entry in records:
        facts = entry["extra_info"]["fwbench"]
        ratio = facts["completion_s"] / max(facts["dispatch_s"], 1e-9)
        if ratio > _DISPATCH_RATIO:
            apart[facts["framework"]].append((ratio, entry))
    lines = []
    for framework, found in apart.items():
        ratio, entry = max(found, key=lambda pair: pair[0])
        facts = entry["extra_info"]["fwbench"]
        lines.append(
            f"{framework}: {count(len(found), 'case')} returned in less than half the time that "
            f"the work took; most of all {entry['param']}: returned after "
            f"{time(facts['dispatch_s'])}, done after {time(facts['completion_s'])} "
            f"({ratio:.0f}x)"
        )
    return lines


def _unsteady(records: Sequence[Entry]) -> list[str]:
    names = [
        str(entry["param"])
        for entry in records
        if entry["extra_info"]["fwbench"]["steady"] is False
    ]
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
