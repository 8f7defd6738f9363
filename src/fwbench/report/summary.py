"""What a report says first: on what, how fast, what differs most, what is missing and why."""

from __future__ import annotations

import statistics
from collections import Counter
from collections.abc import Sequence
from typing import Any

from fwbench.records.units import count
from fwbench.report.model import Record, Run, labels
from fwbench.report.section import Row, Section, TableCell, seconds

#: How many of the largest differences are named.
_SHOWN = 10


def notes(runs: Sequence[Run]) -> list[str]:
    """What must be known before anything is read."""
    texts = []
    machines = {run.cpu for run in runs if run.records}
    if len(machines) > 1:
        texts.append("The runs are from different machines: they are shown side by side, and no "
                     "ratio is formed between them.")  # fmt: skip
    if any(record.is_synthetic for run in runs for record in run.records):
        texts.append(
            "Some trainings were on generated data (synthetic): their accuracy says nothing."
        )
    if any(record.facts.contended for run in runs for record in run.records):
        texts.append("Some cases shared their processors with other processes (contended).")
    return [*texts, *(note for run in runs for note in _unknown(run))]


def _unknown(run: Run) -> list[str]:
    """The facts that this version does not know, as they are stored."""
    tables = [run.session, *(record.facts for record in run.records)]
    notes = []
    for key in run.unknown:
        values = list(dict.fromkeys(str(table[key]) for table in tables if key in table))
        more = ", ..." if len(values) > _SHOWN else ""
        said = f": {', '.join(values[:_SHOWN])}{more}" if values else ""
        notes.append(f"{run.name} has {key}, which this version of fwbench does not know{said}")
    return notes


def sections(runs: Sequence[Run]) -> list[Section]:
    """The tables of the summary."""
    several = len(runs) > 1
    shown = []
    for run, name in zip(runs, labels(runs), strict=True):
        suffix = f" ({name})" if several else ""
        groups = _groups(run)
        shown += [
            _means(f"Geometric mean of time against the fastest{suffix}", groups),
            _differences(f"Largest differences{suffix}", groups),
            _missing(f"Not measured{suffix}", run),
        ]
    return [section for section in shown if section.rows]


def _groups(run: Run) -> list[list[Record]]:
    """Records that are compared side by side; `noop` is left out, since it does no work."""
    groups: dict[tuple[Any, ...], list[Record]] = {}
    for record in run.records:
        if record.facts and record.facts.workload != "noop":
            groups.setdefault(record.facts.work, []).append(record)
    # Alone, a case would be its own fastest.
    return [records for records in groups.values() if len(records) > 1]


def _work_text(record: Record) -> str:
    """The work, in words."""
    return " ".join(str(part) for part in record.facts.work[:-1])


def _means(title: str, groups: Sequence[Sequence[Record]]) -> Section:
    ratios: dict[str, list[float]] = {}
    for records in groups:
        fastest = min(record.median_s for record in records)
        for record in records:
            name = f"{record.facts.framework} {record.facts.execution}"
            ratios.setdefault(name, []).append(record.median_s / fastest)
    means = {name: statistics.geometric_mean(values) for name, values in ratios.items()}
    rows = [
        [TableCell(name), TableCell(f"{mean:.2f}x", mean), TableCell(str(len(ratios[name])))]
        for name, mean in sorted(means.items(), key=lambda pair: pair[1])
    ]
    columns = ("framework and execution", "times as long", "cases")
    return Section(title, columns, [Row(cells) for cells in rows])


def _differences(title: str, groups: Sequence[Sequence[Record]]) -> Section:
    pairs = []
    for records in groups:
        fast, *_, slow = sorted(records, key=lambda record: record.median_s)
        pairs.append((slow.median_s / fast.median_s, fast, slow))
    pairs.sort(key=lambda pair: -pair[0])
    return Section(
        title,
        ("what", "fastest", "its time", "slowest", "the slowest's time", "ratio"),
        [_difference(ratio, fast, slow) for ratio, fast, slow in pairs[:_SHOWN]],
    )


def _difference(ratio: float, fast: Record, slow: Record) -> Row:
    return Row(
        [
            TableCell(_work_text(fast)),
            TableCell(fast.series),
            seconds(fast.median_s),
            TableCell(slow.series),
            seconds(slow.median_s),
            TableCell(f"{ratio:.1f}x", ratio),
        ]
    )


def _missing(title: str, run: Run) -> Section:
    reasons = Counter(missing.why for missing in run.session.missing or ())
    for name, why in (run.session.absent or {}).items():
        reasons[f"{name}: {why}"] += 0
    return Section(
        title,
        ("why", "cases"),
        [
            Row([TableCell(reason), TableCell(count(number, "case") if number else "all", number)])
            for reason, number in reasons.most_common()
        ],
    )
