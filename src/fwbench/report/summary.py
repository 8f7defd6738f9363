"""Summary of a report: machine, speed, largest differences, missing cases and their reasons."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from fwbench.records.measurement import Measurement
from fwbench.records.units import count
from fwbench.report.model import Run, have_same_machine, labels
from fwbench.report.ranking import condition, means
from fwbench.report.ranking.condition import marked
from fwbench.report.ranking.contests import Contest
from fwbench.report.ranking.means import Ranking
from fwbench.report.section import Row, Section, TableCell, seconds

#: How many of the largest differences are named.
_SHOWN = 10


def notes(runs: Sequence[Run]) -> list[str]:
    """Notes for readers, before everything else."""
    texts = []
    for run, name in zip(runs, labels(runs), strict=True):
        said = [*filter(None, [run.incompleteness]), *_conditions(run)]
        texts += [_sentence(note, f"{name}: " if len(runs) > 1 else "") for note in said]
    if not have_same_machine(runs):
        texts.append("The runs are from different machines: they are shown side by side, and no "
                     "ratio is formed between them.")  # fmt: skip
    if any(record.is_synthetic for run in runs for record in run.records):
        texts.append(
            "Some trainings were on generated data (synthetic): their accuracy says nothing."
        )
    return [*texts, *(note for run in runs for note in _unknown(run))]


def _sentence(note: str, before: str) -> str:
    return f"{before}{note}." if before else f"{note[0].upper()}{note[1:]}."


def _conditions(run: Run) -> list[str]:
    machine = run.session.machine
    facts = [record.facts for record in run.records if record.facts]
    doubts = condition.notes(facts, None if machine is None else machine.cpus)
    return [*means.notes(facts), *doubts]


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
    """The tables of the summary: who is how fast, what differs most, what is missing."""
    return [*rankings(runs), *differences(runs), *gaps(runs)]


def rankings(runs: Sequence[Run]) -> list[Section]:
    """Who is how fast: a table of means for each kind of workload and each device."""
    return _filled(
        section
        for run, suffix in zip(runs, _suffixes(runs), strict=True)
        for ranked in [means.rankings(run.contests)]
        for section in (
            *(_means(ranking, suffix) for ranking in ranked if ranking.means),
            _unranked(f"Not ranked{suffix}", ranked),
        )
    )


def differences(runs: Sequence[Run]) -> list[Section]:
    """Largest differences between contestants."""
    return _filled(
        _differences(f"Largest differences{suffix}", run.contests)
        for run, suffix in zip(runs, _suffixes(runs), strict=True)
    )


def gaps(runs: Sequence[Run]) -> list[Section]:
    """Cases that were not measured, and those that were not reached."""
    return _filled(
        section
        for run, suffix in zip(runs, _suffixes(runs), strict=True)
        for section in (
            _missing(f"Not measured{suffix}", run),
            _lost(f"Not reached{suffix}", run),
        )
    )


def _suffixes(runs: Sequence[Run]) -> list[str]:
    return [f" ({name})" if len(runs) > 1 else "" for name in labels(runs)]


def _filled(sections: Iterable[Section]) -> list[Section]:
    return [section for section in sections if section.rows]


def _means(ranking: Ranking, suffix: str) -> Section:
    columns = (
        "framework and execution",
        f"all sizes ({count(ranking.cases, 'case')})",
        f"largest size ({count(ranking.largest, 'case')})",
    )
    ranked = [
        [TableCell(mean.name), _ratio(mean.all_sizes), _ratio(mean.largest)]
        for mean in ranking.means
    ]
    unranked = [
        [TableCell(each.name), TableCell(each.text), TableCell("")] for each in ranking.unranked
    ]
    title = f"Geometric mean of time against the fastest: {ranking.title}{suffix}"
    return Section(title, columns, [Row(cells) for cells in (*ranked, *unranked)])


def _unranked(title: str, rankings: Sequence[Ranking]) -> Section:
    rows = [
        Row([TableCell(ranking.title), TableCell(ranking.why_empty)])
        for ranking in rankings
        if not ranking.means
    ]
    return Section(title, ("what", "why"), rows)


def _ratio(ratio: float | None) -> TableCell:
    return TableCell("" if ratio is None else f"{ratio:.2f}x", ratio)


def _differences(title: str, held: Sequence[Contest]) -> Section:
    pairs = []
    for contest in held:
        if len(contest.ranked) > 1:
            fast, *_, slow = sorted(contest.ranked, key=lambda case: case.median_s)
            pairs.append((slow.median_s / fast.median_s, contest.title, fast, slow))
    pairs.sort(key=lambda pair: -pair[0])
    return Section(
        title,
        ("what", "fastest", "its time", "slowest", "the slowest's time", "ratio"),
        [_difference(*pair) for pair in pairs[:_SHOWN]],
    )


def _difference(ratio: float, title: str, fast: Measurement, slow: Measurement) -> Row:
    return Row(
        [
            TableCell(title),
            TableCell(marked(fast.contestant, fast.facts)),
            seconds(fast.median_s),
            TableCell(marked(slow.contestant, slow.facts)),
            seconds(slow.median_s),
            TableCell(f"{ratio:.1f}x", ratio),
        ]
    )


def _lost(title: str, run: Run) -> Section:
    rows = [Row([TableCell(case.nodeid), TableCell(case.framework)]) for case in run.lost]
    return Section(title, ("case", "framework"), rows)


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
