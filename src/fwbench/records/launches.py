"""Launches: every case measured in several fresh processes, and what they add up to.

The launch is the unit of replication: rounds of one process share its memory layout, its threads'
places and its luck, so their spread says little of what another process would show.
"""

import random
import statistics
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from fwbench.measure import condition
from fwbench.measure.stopping import PRECISE, TIME_OVER
from fwbench.records.facts import CaseFacts, Launch

Entry = Mapping[str, Any]
T = TypeVar("T")

#: What one launch says of a case: the smallest of its rounds, or the median one. Other work on the
#: machine makes an operation slower and never faster; an epoch is long enough to have met it all.
STATISTICS: Mapping[str, Callable[[Sequence[float]], float]] = {
    "min": min,
    "median": statistics.median,
}

#: The facts whose median stands for all launches.
MEDIANS = (
    *("dispatch_s", "completion_s", "wait_s", "device_s", "device_cycles", "throughput_s"),
    "kernels_s",
    *("cpu_clock_hz", "sm_clock_hz", "power_w", "energy_j", "energy_uncertainty"),
    *("burst_s", "temperature_c"),
    *("first_call_s", "first_call_in_process_s", "compile_s"),
    *("preempted", "others_cpus", "siblings_cpus", "idle_cpus", "queued_cpus"),
    "throttled_cpus",
    *("full_speed", "loop_s", "drift", "median_interval"),
)


@dataclass(frozen=True)
class LaunchPlan:
    """Number of launches of every case, and their order."""

    #: Fresh processes for each case; with a race or a budget, the fewest.
    launches: int
    seed: int

    def order(self, launch: int, cases: Sequence[T], key: Callable[[T], str] = str) -> list[T]:
        """The cases of a launch, shuffled: what one leaves behind meets another each time.

        Args:
            key: names a case. Two sessions have those that both have in one order, whatever
                others either has: sessions that take turns wait for each other.
        """
        return sorted(
            cases,
            key=lambda case: random.Random(f"{self.seed} {launch} {key(case)}").random(),  # noqa: S311 (no secret)
        )


def mark(entry: dict[str, Any], launch: int) -> dict[str, Any]:
    """Note in an entry which launch it is of; gives the entry back."""
    entry["extra_info"]["fwbench"]["launch"] = launch
    return entry


def mark_fresh(entry: dict[str, Any]) -> None:
    """Note in an entry that its case was the first of its process, and so was its first call."""
    facts = entry["extra_info"]["fwbench"]
    if "first_call_in_process_s" in facts:  # a loop has epochs
        facts["first_call_s"] = facts["first_call_in_process_s"]


def merge(entries: Sequence[Entry]) -> dict[str, Any]:
    """One entry for all launches of a case.

    Returns:
        An entry of pytest-benchmark's whose ``stats.data`` has one value, in seconds, for each
        launch; its rounds are under ``extra_info["fwbench"]["launches"]``.
    """
    facts_by_launch = [CaseFacts.unchecked(entry["extra_info"]["fwbench"]) for entry in entries]
    launches = [
        _launch(e["stats"], facts) for e, facts in zip(entries, facts_by_launch, strict=True)
    ]
    merged = _condition(launches) | CaseFacts(
        **_medians(launches),
        **_stopped(launches),
        steady=_all_steady(launch.steady for launch in launches),
        contended=any(is_contended(launch) for launch in launches),
        launches=launches,
    )
    facts = {**facts_by_launch[0], **merged}
    del facts["launch"]
    facts.pop("turns", None)  # each launch has its own
    return {
        **entries[0],
        "extra_info": {**entries[0]["extra_info"], "fwbench": facts},
        "stats": {
            "data": [launch.value_s for launch in launches],
            "iterations": entries[0]["stats"]["iterations"],
        },
    }


def _medians(launches: Sequence[Launch]) -> dict[str, Any]:
    """The medians of the facts that launches have; those that none knows are left out."""
    known = {
        name: [v for launch in launches if (v := launch.get(name)) is not None] for name in MEDIANS
    }
    return {name: statistics.median(values) for name, values in known.items() if values}


def _condition(launches: Sequence[Launch]) -> CaseFacts:
    """Condition of the middle launch; empty where no launch has one."""
    known = [launch for launch in launches if launch.condition and launch.spinning is not None]
    if not known:
        return CaseFacts()
    return CaseFacts(
        condition=condition.of_launches([launch.condition or "" for launch in known]),
        spinning=statistics.median_high(bool(launch.spinning) for launch in known),
    )


def _stopped(launches: Sequence[Launch]) -> CaseFacts:
    """Reason for the end of the rounds; empty where no launch has one."""
    known = {launch.stopped for launch in launches} - {None}
    return CaseFacts(stopped=TIME_OVER if TIME_OVER in known else PRECISE) if known else CaseFacts()


def _launch(stats: Mapping[str, Any], facts: CaseFacts) -> Launch:
    """Record of one launch: its rounds, and the facts that differ from launch to launch."""
    assert facts.statistic is not None  # noqa: S101 (every case has one)
    rounds_s = stats["data"]
    launch_facts = {name: facts[name] for name in Launch.declared() if name in facts}
    values_s = {name: float(of_rounds(rounds_s)) for name, of_rounds in STATISTICS.items()}
    return Launch(
        **launch_facts,
        value_s=values_s[facts.statistic],
        min_s=values_s["min"],
        median_s=values_s["median"],
        iterations=stats["iterations"],
        rounds_s=rounds_s,
    )


def launch_of(entry: Entry) -> Launch:
    """Record of the launch that an entry is of."""
    return _launch(entry["stats"], CaseFacts.unchecked(entry["extra_info"]["fwbench"]))


def is_contended(launch: Launch) -> bool:
    """True if a launch had to share its processors with other processes."""
    slowed = condition.slowdown(launch.rounds_s) if launch.rounds_s else None
    return condition.is_contended(launch, slowed)


def _all_steady(values: Iterable[bool | None]) -> bool | None:
    known = [steady for steady in values if steady is not None]
    return all(known) if known else None


def gather(entries: Iterable[Entry]) -> list[Entry]:
    """Entries of a journal: those of launches merged, others as they are, in their order.

    A case without launches that was run again has the entry of its last run.
    """
    by_case: dict[str, list[Entry]] = defaultdict(list)
    for entry in entries:
        by_case[entry["fullname"]].append(entry)
    gathered: list[Entry] = []
    for group in by_case.values():
        launched = [
            entry
            for entry in group
            if entry.get("extra_info", {}).get("fwbench", {}).get("launch") is not None
        ]
        gathered += [merge(launched)] if launched else group[-1:]
    return gathered
