"""Launches: every case measured in several fresh processes, and what they add up to.

The launch is the unit of replication: rounds of one process share its memory layout, its threads'
places and its luck, so their spread says little of what another process would show.
"""

from __future__ import annotations

import random
import statistics
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

Entry = Mapping[str, Any]
T = TypeVar("T")

#: What one launch says of a case: the smallest of its rounds, or the median one. Other work on the
#: machine makes an operation slower and never faster; an epoch is long enough to have met it all.
STATISTICS: Mapping[str, Callable[[Sequence[float]], float]] = {
    "min": min,
    "median": statistics.median,
}

#: A launch had to share its processors if it was preempted in a larger share of its rounds, and
#: others kept more processors busy than that. Either alone says less: on two processors JAX's own
#: three threads preempt each other in half of the rounds.
_PREEMPTED_AT_MOST = 0.25
_OTHERS_AT_MOST_CPUS = 0.25

#: What differs from launch to launch, and is kept of each.
_OF_EACH = (
    *("dispatch_s", "completion_s", "first_call_s", "compile_s", "warmup_s", "warmup_calls"),
    *("steady", "cpu_s", "wall_s", "preempted", "others_cpus", "load"),
)
#: Those of them whose median stands for all launches.
_MEDIANS = ("dispatch_s", "completion_s", "first_call_s", "compile_s", "preempted")


@dataclass(frozen=True)
class Plan:
    """How often every case is measured, and in which order.

    Attributes:
        launches: fresh processes for each case.
        seed: of the order; the same seed and cases give the same order.
    """

    launches: int
    seed: int

    def order(self, launch: int, cases: Sequence[T]) -> list[T]:
        """The cases of a launch, shuffled: what one leaves behind meets another each time."""
        shuffled = list(cases)
        random.Random(f"{self.seed} {launch}").shuffle(shuffled)  # noqa: S311 (no secret)
        return shuffled


def mark(entry: dict[str, Any], launch: int) -> dict[str, Any]:
    """Note in an entry which launch it is of; gives the entry back."""
    entry["extra_info"]["fwbench"]["launch"] = launch
    return entry


def merge(entries: Sequence[Entry]) -> dict[str, Any]:
    """One entry for all launches of a case.

    Args:
        entries: of the same case, marked with their launches.

    Returns:
        An entry of pytest-benchmark's whose ``stats.data`` has one value, in seconds, for each
        launch; its rounds are under ``extra_info["fwbench"]["launches"]``.
    """
    of_launches = [entry["extra_info"]["fwbench"] for entry in entries]
    first = of_launches[0]
    statistic = STATISTICS[first["statistic"]]
    kept = [
        {
            "launch": facts["launch"],
            "value_s": float(statistic(entry["stats"]["data"])),
            "iterations": entry["stats"]["iterations"],
            "rounds_s": entry["stats"]["data"],
            **{name: facts[name] for name in _OF_EACH if name in facts},
        }
        for entry, facts in zip(entries, of_launches, strict=True)
    ]
    merged = {
        **{name: value for name, value in first.items() if name != "launch"},
        **{n: statistics.median(one[n] for one in kept) for n in _MEDIANS if n in first},
        "steady": _all_steady(one["steady"] for one in kept),
        "contended": any(is_contended(one) for one in kept),
        "launches": kept,
    }
    return {
        **entries[0],
        "extra_info": {**entries[0]["extra_info"], "fwbench": merged},
        "stats": {
            "data": [one["value_s"] for one in kept],
            "iterations": entries[0]["stats"]["iterations"],
        },
    }


def is_contended(launch: Mapping[str, Any]) -> bool:
    """Whether a launch had to share its processors with other processes."""
    others_cpus = launch["others_cpus"]
    known_alone = others_cpus is not None and others_cpus <= _OTHERS_AT_MOST_CPUS
    return bool(launch["preempted"] > _PREEMPTED_AT_MOST and not known_alone)


def _all_steady(found: Iterable[bool | None]) -> bool | None:
    known = [steady for steady in found if steady is not None]
    return all(known) if known else None


def gather(entries: Iterable[Entry]) -> list[Entry]:
    """Entries of a journal: those of launches merged, others as they are, in their order."""
    by_case: dict[str, list[Entry]] = defaultdict(list)
    for entry in entries:
        by_case[entry["fullname"]].append(entry)
    gathered: list[Entry] = []
    for found in by_case.values():
        launched = [
            one for one in found if "launch" in one.get("extra_info", {}).get("fwbench", {})
        ]
        gathered += [merge(launched)] if launched else found
    return gathered
