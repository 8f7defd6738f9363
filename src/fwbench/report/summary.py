"""Summary of a report: machine, answer, speed, largest differences, missing cases and reasons."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from fwbench.records.measurement import uncertainty
from fwbench.records.session_facts import MachineFacts, SessionFacts
from fwbench.records.units import count
from fwbench.report import condition, ranking
from fwbench.report.condition import marked
from fwbench.report.model import Run, frameworks, have_same_machine, labels
from fwbench.report.races import race_answer, race_winners
from fwbench.report.ranking import (
    Answer,
    Contest,
    Coverage,
    Difference,
    Mean,
    Ranking,
    Unranked,
    answers,
    extremes,
)
from fwbench.report.section import (
    Column,
    Meter,
    Section,
    TableCell,
    columns,
    quantity,
    run_suffix,
    seconds,
    turns_note,
)

#: How dates begin in ISO 8601, to the minute.
_MINUTE = 16

#: How many of the largest differences are named.
_SHOWN = 10


@dataclass(frozen=True)
class FastestShare:
    """A part of the contests of an answer."""

    name: str
    contests: int
    #: Of the framework; empty for those that are too close to call, or disturbed.
    colour: str


@dataclass(frozen=True)
class HeadVerdict:
    """An answer in words, and its parts for a bar; without these where it cannot be told."""

    title: str
    text: str
    shares: Sequence[FastestShare]


@dataclass(frozen=True)
class Card:
    """The answer for one kind of workload on one device: in words, and as a picture."""

    title: str
    verdicts: Sequence[HeadVerdict]
    #: Means, with a bar in each cell.
    table: Section
    #: The reason why there are none.
    why: str = ""


@dataclass(frozen=True)
class Head:
    """Head of one run."""

    title: str
    facts: Mapping[str, str]
    verdicts: Sequence[HeadVerdict]


def title(runs: Sequence[Run]) -> str:
    """Title of the report: its frameworks and its machine."""
    names = frameworks(runs)
    compared = [run.comparison for run in runs if run.comparison]
    if not names and len(compared) == 1:
        return f"{compared[0].contender} against {compared[0].base}"
    if not names:
        return "fwbench report"
    *others, last = names
    listed = f"{', '.join(others)} and {last}" if others else last
    machines = list(dict.fromkeys(run.cpu for run in runs if run.cpu))
    return listed + (f" on {machines[0]}" if len(machines) == 1 else "")


def heads(runs: Sequence[Run], colours: Mapping[str, str]) -> list[Head]:
    """Head of each run that has cases, or whose machine is known."""
    return [
        Head(
            name if len(runs) > 1 else "",
            {what: text for what, text in _facts(run) if text},
            [*_by_race(run, colours)] or [*_verdicts(run, run.contests, colours).values()],
        )
        for run, name in zip(runs, labels(runs), strict=True)
        if run.records or run.session.machine
    ]


def _facts(run: Run) -> Iterator[tuple[str, str]]:
    """Names and texts; a text is empty where nothing is known."""
    machine = run.session.machine or MachineFacts()
    # pytest-benchmark stores times in UTC.
    yield "measured", f"{run.when[:_MINUTE].replace('T', ' ')} UTC" if run.when else ""
    yield "machine", ", ".join(_machine(run, machine))
    yield "threads", str(run.threads or "")
    versions = sorted((run.session.frameworks or {}).items())
    yield "versions", ", ".join(f"{name} {framework.version}" for name, framework in versions)
    number = launches(run.session)
    yield "launches", f"{number}, shuffled" if number else ""
    yield "cases", run.incompleteness or f"{len(run.records):,}"
    known = [record for record in run.records if record.facts]
    yield "uncertainty", uncertainty(known) if known else ""


def launches(session: SessionFacts) -> str:
    """Launches of each case: ``5``, or with a budget ``1 to 14 a case``."""
    if session.launches is None:
        return ""
    least = session.launches.launches
    most = session.budget.launches if session.budget else least
    return f"{least} to {most} a case" if least < most else str(most)


def _machine(run: Run, machine: MachineFacts) -> Iterator[str]:
    if run.cpu:
        yield run.cpu
    if machine.usable_cpus:
        yield f"{count(machine.usable_cpus, 'CPU')} used"
    devices = {record.facts.device: record.facts.device_name for record in run.records
               if record.facts}  # fmt: skip
    yield from (name for device, name in sorted(devices.items()) if device != "cpu" and name)
    if machine.os:
        yield machine.os


def _verdicts(
    run: Run, contests: Iterable[Contest], colours: Mapping[str, str]
) -> dict[tuple[str, str], HeadVerdict]:
    """The answers of some contests, by kind and device."""
    devices = {record.facts.device for record in run.records if record.facts}
    return {
        (answer.kind, answer.device): _verdict(
            answer, f" on {answer.device}" if len(devices) > 1 else "", colours
        )
        for answer in answers(contests)
    }


def _by_race(run: Run, colours: Mapping[str, str]) -> Iterator[HeadVerdict]:
    """The answer of a race that has decided anything."""
    race = run.session.race
    if race is not None and (text := race_answer(race)):
        shares = [
            FastestShare(name, number, colours.get(name.partition(" ")[0], ""))
            for name, number in race_winners(race).items()
        ]
        kinds = Counter(group.verdict for group in race.groups)
        shares += [FastestShare(kind, n, "") for kind, n in kinds.items() if kind != "fastest"]
        yield HeadVerdict("Fastest, by the race", text, shares)


def _verdict(answer: Answer, where: str, colours: Mapping[str, str]) -> HeadVerdict:
    shares = [FastestShare(name, number, colours[name]) for name, number in answer.fastest.items()]
    others = {"too close to call": answer.too_close, "disturbed": answer.disturbed}
    shares += [FastestShare(name, number, "") for name, number in others.items() if number]
    title = f"Fastest ({answer.kind}{where})"
    return HeadVerdict(title, answer.text, shares if answer.is_known else [])


def notes(runs: Sequence[Run]) -> list[str]:
    """Notes for readers, before everything else."""
    texts = []
    for run, name in zip(runs, labels(runs), strict=True):
        before = f"{name}: " if len(runs) > 1 else ""
        doubts = [*run.shortfalls, *_conditions(run)]
        texts += [_sentence(doubt, before) for doubt in doubts]
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
    return [*ranking.notes(facts), *doubts]


def _unknown(run: Run) -> Iterator[str]:
    """The facts that this version does not know, as they are stored."""
    tables = [run.session, *(record.facts for record in run.records)]
    for key in run.unknown:
        values = list(dict.fromkeys(str(table[key]) for table in tables if key in table))
        more = ", ..." if len(values) > _SHOWN else ""
        stored = f": {', '.join(values[:_SHOWN])}{more}" if values else ""
        yield f"{run.name} has {key}, which this version of fwbench does not know{stored}"


def sections(runs: Sequence[Run]) -> list[Section]:
    """The tables of the summary: who is how fast, what differs most, what is missing."""
    return [*rankings(runs), *remarks(runs)]


def _filled(runs: Sequence[Run], make: Callable[[Run, str], Iterable[Section]]) -> list[Section]:
    names = labels(runs)
    suffixed = ((run, run_suffix(number, names)) for number, run in enumerate(runs))
    return [section for run, suffix in suffixed for section in make(run, suffix) if section.rows]


def cards(runs: Sequence[Run], colours: Mapping[str, str]) -> list[Card]:
    """The answers of all runs, of each run those over most contests first."""
    names = labels(runs)
    return [
        card
        for number, run in enumerate(runs)
        for card in _cards(run, run_suffix(number, names), colours)
    ]


def _cards(run: Run, suffix: str, colours: Mapping[str, str]) -> list[Card]:
    """A card for each kind of workload; small sizes and large ones have different fastest."""
    kinds = ranking.by_kind(run.contests)
    every, *parts = (
        _verdicts(run, contests, colours) for contests in (run.contests, *extremes(run.contests))
    )
    by_race = [*_by_race(run, colours)]
    rankings = ranking.rankings(run.contests)
    made = []
    for (key, contests), kind in zip(kinds.items(), rankings, strict=True):
        sizes = {"smallest sizes": parts[0], "largest sizes": parts[1]}
        shown = {"fastest": every, **(sizes if all(key in part for part in parts) else {})}
        verdicts = [
            replace(of[key], title=what) for what, of in shown.items() if key in of and not by_race
        ]
        why = "" if kind.means else f"No means: {kind.why_empty}."
        card = Card(f"{kind.title}{suffix}", verdicts, _ranking(kind, suffix, colours), why)
        made.append((len(contests), card))
    cards = [card for _, card in sorted(made, key=lambda each: -each[0])]
    if by_race:
        means = " The means are of medians." * any(kind.means for kind in rankings)
        why = f"Its verdicts are below, each with its figures.{means}"
        cards.insert(
            0,
            Card(
                f"race{suffix}",
                [replace(v, title="fastest") for v in by_race],
                Section("", (), ()),
                why,
            ),
        )
    return cards


def rankings(runs: Sequence[Run]) -> list[Section]:
    """Who is how fast: a table of means for each kind of workload and each device."""
    return _filled(runs, _rankings)


def remarks(runs: Sequence[Run]) -> list[Section]:
    """Largest differences, then cases that were not measured or not reached."""
    return [*_filled(runs, _differences), *_filled(runs, _gaps)]


def _rankings(run: Run, suffix: str) -> Iterator[Section]:
    ranked = ranking.rankings(run.contests)
    yield from (_ranking(kind, suffix, {}) for kind in ranked if kind.means)
    empty = [kind for kind in ranked if not kind.means]
    yield Section.from_items(f"Not ranked{suffix}", _WHY_EMPTY, empty)


def _ranking(kind: Ranking, suffix: str, colours: Mapping[str, str]) -> Section:
    heading = f"Geometric mean of time against the fastest: {kind.title}{suffix}"
    rows: list[Mean | Unranked] = [*kind.means, *kind.unranked]
    return Section.from_items(heading, _mean_columns(kind, colours), rows)


def _differences(run: Run, suffix: str) -> Iterator[Section]:
    largest = ranking.differences(run.contests)[:_SHOWN]
    compared = (case for row in largest for case in (row.fastest, row.slowest))
    yield Section.from_items(
        f"Largest differences{suffix}", _DIFFERENCES, largest, notes=turns_note(compared)
    )


def _gaps(run: Run, suffix: str) -> Iterator[Section]:
    reasons = Counter(missing.why for missing in run.session.missing or ())
    for name, why in (run.session.absent or {}).items():
        reasons[f"{name}: {why}"] += 0
    yield Section.from_items(f"Not measured{suffix}", _MISSING, reasons.most_common())
    yield Section.from_items(f"Failed{suffix}", _NAMED, run.failed)
    yield Section.from_items(f"Not reached{suffix}", _NAMED, run.lost)


_WHY_EMPTY = columns("not-ranked")


def _mean_columns(kind: Ranking, colours: Mapping[str, str]) -> list[Column[Mean | Unranked]]:
    def ratio(row: Mean | Unranked, number: float | None) -> TableCell:
        """The ratio, and a bar for the speed: the longer, the faster."""
        if number is None:
            return TableCell("")
        colour = colours.get(row.name.partition(" ")[0], "var(--faint)")
        return TableCell(f"{number:.2f}x", number, bar=Meter(1 / number, colour))

    return [
        Column("framework and execution", lambda row: TableCell(row.name)),
        Column(
            f"smallest size ({_rows(kind.smallest)})",
            lambda row: ratio(row, None if isinstance(row, Unranked) else row.smallest),
        ),
        Column(
            f"largest size ({_rows(kind.largest)})",
            lambda row: (
                TableCell(row.text) if isinstance(row, Unranked) else ratio(row, row.largest)
            ),
        ),
    ]


def _rows(part: Coverage) -> str:
    return f"{part.known} of {count(part.of, 'row')}"


_DIFFERENCES: tuple[Column[Difference], ...] = (
    Column("what", lambda row: TableCell(row.title)),
    Column("fastest", lambda row: TableCell(marked(row.fastest.contestant, row.fastest.facts))),
    Column("its time", lambda row: seconds(row.fastest.median_s)),
    Column("slowest", lambda row: TableCell(marked(row.slowest.contestant, row.slowest.facts))),
    Column("the slowest's time", lambda row: seconds(row.slowest.median_s)),
    Column("ratio", lambda row: quantity(row.ratio, "{:.1f}x".format)),
)


def _cases(row: tuple[str, int]) -> TableCell:
    cases = "1 case" if row[1] == 1 else f"{row[1]:,} cases"
    return TableCell(cases if row[1] else "all", row[1])


_MISSING = columns("not-measured", _cases)


_NAMED = columns("not-reached")
