"""What a report says first: on what, how fast, what differs most, what is missing and why."""

from __future__ import annotations

import statistics
from collections import Counter
from collections.abc import Sequence
from typing import Any

from fwbench.records.entry import work_of
from fwbench.report.model import Record, Run, labels
from fwbench.report.sections.table import Cell, Part, Row
from fwbench.report.units import count, time

#: How many of the largest differences are named.
_SHOWN = 10


def notes(runs: Sequence[Run]) -> list[str]:
    """What must be known before anything is read."""
    found = []
    machines = {run.cpu for run in runs if run.records}
    if len(machines) > 1:
        found.append("The runs are from different machines: they are shown side by side, and no "
                     "ratio is formed between them.")  # fmt: skip
    if any(
        one.data and one.data.get("source") == "synthetic" for run in runs for one in run.records
    ):
        found.append(
            "Some trainings were on generated data (synthetic): their accuracy says nothing."
        )
    if any(one.contended for run in runs for one in run.records):
        found.append("Some cases shared their processors with other processes (contended).")
    return found


def parts(runs: Sequence[Run]) -> list[Part]:
    """The tables of the summary."""
    several = len(runs) > 1
    found = []
    for run, name in zip(runs, labels(runs), strict=True):
        suffix = f" ({name})" if several else ""
        groups = _groups(run)
        found += [
            _means(f"Geometric mean of time against the fastest{suffix}", groups),
            _differences(f"Largest differences{suffix}", groups),
            _missing(f"Not measured{suffix}", run),
        ]
    return [part for part in found if part.rows]


def _groups(run: Run) -> list[list[Record]]:
    """What is compared side by side; `noop` is no contestant."""
    found: dict[tuple[Any, ...], list[Record]] = {}
    for record in run.records:
        if record.facts and record.workload != "noop":
            found.setdefault(work_of(record.facts), []).append(record)
    # Alone, a case would be its own fastest.
    return [records for records in found.values() if len(records) > 1]


def _called(record: Record) -> str:
    """The work, in words."""
    return " ".join(str(part) for part in work_of(record.facts)[:-1])


def _means(title: str, groups: Sequence[Sequence[Record]]) -> Part:
    ratios: dict[str, list[float]] = {}
    for records in groups:
        fastest = min(record.median_s for record in records)
        for record in records:
            name = f"{record.framework} {record.execution}"
            ratios.setdefault(name, []).append(record.median_s / fastest)
    means = {name: statistics.geometric_mean(values) for name, values in ratios.items()}
    return Part(
        title,
        ("framework and execution", "times as long", "cases"),
        [
            Row([Cell(name), Cell(f"{mean:.2f}x", mean), Cell(str(len(ratios[name])))])
            for name, mean in sorted(means.items(), key=lambda pair: pair[1])
        ],
    )


def _differences(title: str, groups: Sequence[Sequence[Record]]) -> Part:
    rows = []
    for records in groups:
        fast, *_, slow = sorted(records, key=lambda record: record.median_s)
        rows.append((slow.median_s / fast.median_s, _called(fast), fast, slow))
    rows.sort(key=lambda row: -row[0])
    return Part(
        title,
        ("what", "fastest", "its time", "slowest", "the slowest's time", "ratio"),
        [
            Row(
                [
                    Cell(group),
                    Cell(fast.series),
                    Cell(time(fast.median_s), fast.median_s),
                    Cell(slow.series),
                    Cell(time(slow.median_s), slow.median_s),
                    Cell(f"{ratio:.1f}x", ratio),
                ]
            )
            for ratio, group, fast, slow in rows[:_SHOWN]
        ],
    )


def _missing(title: str, run: Run) -> Part:
    reasons = Counter(str(one["why"]) for one in run.surroundings.get("missing", []))
    for name, why in run.surroundings.get("absent", {}).items():
        reasons[f"{name}: {why}"] += 0
    return Part(
        title,
        ("why", "cases"),
        [
            Row([Cell(reason), Cell(count(number, "case") if number else "all", number)])
            for reason, number in reasons.most_common()
        ],
    )
