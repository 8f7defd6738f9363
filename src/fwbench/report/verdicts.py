"""Verdicts in words: comparisons as a table or as Markdown, races and budgets as lines."""

import math
import statistics
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace

from fwbench.errors import some
from fwbench.gate.samples import THRESHOLDS
from fwbench.gate.verdicts import Comparison, Judgement, Verdict
from fwbench.records.measurement import MEMORY, MEMORY_BEFORE
from fwbench.records.session_facts import (
    DESELECTED,
    StoredBudget,
    StoredContestant,
    StoredGroup,
    StoredRace,
)
from fwbench.records.units import count, duration, time, times
from fwbench.report import escaping
from fwbench.report.section import Column, TableCell
from fwbench.report.terminal.text import plain_lines

_MEBIBYTE = 2**20

#: Unchanged cases that are shown one by one.
_SHOWN_UNCHANGED = 20

#: Groups that a terminal shows; of more, those without a fastest contestant, and not all of them.
_SHOWN_GROUPS = 12

#: Cases that are named, at most.
_NAMED = 5

#: From the one that a reader must know of first.
_VERDICTS = ("undecided", "tie", "fastest")

#: From this difference on, a factor is easier to read than per cent.
_FACTOR = 1.0

#: Quotients of two times with three digits are off by as much.
_ROUNDED = 0.01

#: The share of cases in which a change must show for a machine to be said to see it.
MOST = 0.9

#: Verdicts on cases that are not on both sides, or not the same there: no change could have shown.
_INCOMPARABLE = (Verdict.DIFFERENT, Verdict.MISSING, Verdict.NEW)


def _judged(
    text: Callable[[Judgement], str], value: Callable[[Judgement], float | None] = lambda _: None
) -> Callable[[Judgement], TableCell]:
    """A cell with a text only where the judgement has a ratio."""
    return lambda j: TableCell("" if j.ratio is None else text(j), value(j))


def _figure(judgement: Judgement, values: Sequence[float]) -> str:
    if judgement.metric in (MEMORY, MEMORY_BEFORE):
        return f"{statistics.median(values) / _MEBIBYTE:.0f} MiB"
    return time(statistics.median(values))


def _median(values: Sequence[float]) -> float | None:
    return statistics.median(values) if values else None


def _change(ratio: float | None) -> str:
    return "?" if ratio is None else f"{ratio - 1:+.1%}"


def _bounds(judgement: Judgement) -> str:
    if judgement.low is judgement.high is None:
        return ""
    return f"{_change(judgement.low)} to {_change(judgement.high)}"


def _visible(judgement: Judgement) -> str:
    return "nothing" if judgement.visible is None else f"+{judgement.visible:.1%}"


def _why(judgement: Judgement) -> TableCell:
    """The reason, and on a GPU the change in cycles of its clock."""
    ratio = None if judgement.ratio is None else judgement.cycles_ratio
    in_cycles = "" if ratio is None else f"in cycles {_change(ratio)}"
    return TableCell("; ".join(filter(None, [judgement.reason, in_cycles])))


_BOUNDS = "bounds"

_COLUMNS: tuple[Column[Judgement], ...] = (
    Column("verdict", lambda j: TableCell(j.verdict)),
    Column("case", lambda j: TableCell(j.name)),
    Column("metric", _judged(lambda j: j.metric)),
    Column("base", _judged(lambda j: _figure(j, j.base), lambda j: _median(j.base))),
    Column("contender", _judged(lambda j: _figure(j, j.contender), lambda j: _median(j.contender))),
    Column("ratio", _judged(lambda j: _change(j.ratio), lambda j: j.ratio)),
    Column(_BOUNDS, _judged(_bounds)),
    Column("detectable change", _judged(_visible, lambda j: j.visible)),
    Column("", _why),
)

#: Columns before the first one of numbers.
_TEXTS = 3


def columns(comparison: Comparison, why: str = "") -> list[Column[Judgement]]:
    """The columns of a comparison, all of them shown; the bounds with their confidence."""
    bounds = f"{comparison.rules['confidence']:.0%} bounds".replace("%", " %")
    names = {_BOUNDS: bounds, "": why}
    return [
        replace(column, name=names.get(column.name, column.name), optional=False)
        for column in _COLUMNS
    ]


def _texts(comparison: Comparison, judgements: Iterable[Judgement]) -> list[list[str]]:
    shown = columns(comparison)
    rows = [[column.cell(judgement).text for column in shown] for judgement in judgements]
    return [[column.name for column in shown], *rows]


# The comparison


def table(comparison: Comparison, width: int | None = None) -> list[str]:
    """The lines of a table: worst first; then means, counts and notes.

    Where nothing could be judged, the first line says so.

    Args:
        width: of the terminal; None where a case has one line, however long that is.
    """
    shown, more = _shown(comparison)
    # Names may hold line breaks.
    rows = [
        [" ".join(escaping.terminal(cell).split()) for cell in row]
        for row in _texts(comparison, shown)
    ]
    above = [*map(escaping.terminal, [*_alarm(comparison), *_versions(comparison)])]
    below = [*map(escaping.terminal, [*more, *_summary(comparison)])]
    if width is None:
        return [*above, *_in_lines(rows), *below]
    return [*plain_lines(above, width), *_within(rows, width), *plain_lines(below, width)]


def _in_lines(rows: Sequence[Sequence[str]], texts: int = _TEXTS) -> list[str]:
    """Rows with aligned cells, the last one apart, which is a reason of any length.

    Args:
        texts: the number of columns before the first one of numbers.
    """
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return [
        "  ".join(
            cell.ljust(width) if i < texts else cell.rjust(width)
            for i, (cell, width) in enumerate(zip(row[:-1], widths, strict=False))
        )
        + ("  " + row[-1] if row[-1] else "")
        for row in rows
    ]


def _within(rows: Sequence[Sequence[str]], width: int) -> list[str]:
    """Rows as lines of at most this width."""
    return [
        line
        for beside, below in _laid_out(rows, width)
        for line in plain_lines([beside, *(f"  {text}" for text in below if text)], width)
    ]


def _laid_out(rows: Sequence[Sequence[str]], width: int) -> Iterable[tuple[str, Sequence[str]]]:
    """Rows with the texts below them: reasons where these have no room, then cases, then all."""
    head, *cases = rows
    lines = _in_lines(rows)
    if max(map(len, lines)) <= width:
        return [(line, ()) for line in lines]
    lines = _in_lines([[*row[:-1], ""] for row in rows])
    if max(map(len, lines)) <= width:
        return zip(lines, ([row[-1]] for row in rows), strict=True)
    names = [*head[:1], *head[2:-2], head[-2].partition(" ")[0], ""]
    lines = _in_lines([names, *([row[0], *row[2:-1], ""] for row in cases)], _TEXTS - 1)
    if max(map(len, lines)) <= width:
        return zip(lines, [(), *([row[1], row[-1]] for row in cases)], strict=True)
    return [(f"{row[0]} {row[1]}", [_in_words(head, row), row[-1]]) for row in cases]


def _in_words(names: Sequence[str], row: Sequence[str]) -> str:
    """The numbers of a row: ``median 61 us -> 74 us, +21.3%, ...``; empty where there are none."""
    metric, base, contender, ratio, *others = row[_TEXTS - 1 : -1]
    if not ratio:
        return ""
    more = [f"{name} {cell}" for name, cell in zip(names[-3:], others, strict=False) if cell]
    return ", ".join([f"{metric} {base} -> {contender}", ratio, *more])


def markdown(comparison: Comparison) -> str:
    """The comparison as Markdown, for a comment on a pull request.

    Where no case and no package has changed, the first line says so, and all else is behind
    :data:`fwbench.report.escaping.FOLDED`.
    """
    heading = f"{escaping.HEADING}{escaping.markdown(_headline(comparison))}"
    would = escaping.markdown(_would_have_shown(comparison))
    if not (
        comparison.interrupted or comparison.versions or {*comparison.counts} - {Verdict.UNCHANGED}
    ):
        heading = ": ".join(filter(None, [heading, would]))
        lines = [heading, "", escaping.FOLDED, "", *_markdown_table(comparison), "", "</details>"]
        return "\n".join(lines) + "\n"
    lines = [
        heading,
        "",
        *(f"**{escaping.markdown(line)}**\n" for line in _alarm(comparison)),
        *(f"- {escaping.markdown(line)}" for line in _versions(comparison)),
        *([""] if comparison.versions else []),
        *_markdown_table(comparison),
        *([f"- {would}"] if would else []),
    ]
    return "\n".join(lines) + "\n"


def _markdown_table(comparison: Comparison) -> list[str]:
    """The lines of the table, then means, counts and notes."""
    shown, more = _shown(comparison)
    head, *rows = _texts(comparison, shown)
    return [
        *(escaping.markdown_row(cells) for cells in (head, ["---"] * len(head), *rows)),
        "",
        *(line for each in more for line in (escaping.markdown(each), "")),
        *(f"- {escaping.markdown(line)}" for line in _summary(comparison)),
    ]


def detectable(comparison: Comparison, share: float) -> float | None:
    """The change of the time that would have shown, as a share, in this share of the cases.

    None where no change would have shown in that many, and without a case on both sides.
    """
    visible = sorted(
        math.inf if judgement.visible is None else judgement.visible
        for judgement in ranked(comparison)
        if judgement.metric not in THRESHOLDS and judgement.verdict not in _INCOMPARABLE
    )
    if not visible:
        return None
    change = visible[math.ceil(share * len(visible)) - 1]
    return None if change == math.inf else change


def _would_have_shown(comparison: Comparison) -> str:
    """The change that most cases would have shown; empty if half of them would have shown none."""
    shares = {"nine of ten": MOST, "half of the": 0.5}
    changes = {which: detectable(comparison, share) for which, share in shares.items()}
    texts = (f"{c:+.1%} would have shown in {which} cases" for which, c in changes.items() if c)
    return next(texts, "")


def _alarm(comparison: Comparison) -> list[str]:
    """Lines to be read before anything else."""
    lines = ["interrupted: what follows is what was known by then"] * comparison.interrupted
    if comparison.is_all_inconclusive:
        number = sum(verdict is Verdict.INCONCLUSIVE for verdict in comparison.verdicts.values())
        cases = "the only case is" if number == 1 else f"all {number} cases are"
        lines.append(f"nothing could be judged: {cases} inconclusive")
    return lines


def _versions(comparison: Comparison) -> list[str]:
    """Packages that differ between two builds, which verdicts are to be read with."""
    return [str(change) for change in comparison.versions]


def ranked(comparison: Comparison) -> list[Judgement]:
    """The judgements that are shown, the worst first.

    Of each case the one on its time, by the statistic that looks worse; of other metrics only
    those that are not unchanged.
    """
    times: dict[str, Judgement] = {}
    others: list[Judgement] = []
    for judgement in comparison.judgements:
        if judgement.metric in THRESHOLDS:
            if judgement.verdict is not Verdict.UNCHANGED:
                others.append(judgement)
        elif judgement.key not in times or _rank(judgement) < _rank(times[judgement.key]):
            times[judgement.key] = judgement
    return sorted([*times.values(), *others], key=_rank)


_ORDER = {verdict: place for place, verdict in enumerate(Verdict)}


def _rank(judgement: Judgement) -> tuple[int, float, str]:
    return (_ORDER[judgement.verdict], -_size(judgement), judgement.name)


def _shown(comparison: Comparison) -> tuple[list[Judgement], list[str]]:
    """The cases of a table, and lines on those that it leaves out: deselected, or unchanged."""
    every = ranked(comparison)
    deselected = [each for each in every if each.reason == DESELECTED]
    ordered = [each for each in every if each not in deselected]
    left_out = []
    if deselected:
        names = some([judgement.name for judgement in deselected])
        left_out.append(f"missing: {count(len(deselected), 'case')}, deselected: {names}")
    changed = [judgement for judgement in ordered if judgement.verdict is not Verdict.UNCHANGED]
    unchanged = ordered[len(changed) :]
    shown, others = unchanged[:_SHOWN_UNCHANGED], unchanged[_SHOWN_UNCHANGED:]
    if not others:
        return changed + shown, left_out
    ratios = [judgement.ratio for judgement in others if judgement.ratio is not None]
    ends = dict.fromkeys(_change(end) for end in (min(ratios), max(ratios))) if ratios else {}
    between = f", of {' to '.join(ends)}" * bool(ends)
    unchanged_more = f"... and {count(len(others), 'unchanged case')} more{between}"
    return changed + shown, [unchanged_more, *left_out]


def _size(judgement: Judgement) -> float:
    """The size of a change, in either direction for those that improved."""
    change = math.log(judgement.ratio) if judgement.ratio else 0.0
    return abs(change) if judgement.verdict is Verdict.IMPROVED else change


def _headline(comparison: Comparison) -> str:
    counts = ", ".join(f"{number} {verdict}" for verdict, number in comparison.counts.items())
    return f"{comparison.contender} against {comparison.base}: {counts or 'no case'}"


def _summary(comparison: Comparison) -> list[str]:
    means = [
        f"{name}: {mean:.3f}x of the base's time (geometric mean)"
        for name, mean in comparison.means.items()
    ]
    return [*means, _headline(comparison), *comparison.notes]


# Races and budgets


def race_lines(race: StoredRace, width: int, *, every: bool = False) -> list[str]:
    """A race for a terminal: who is fastest how often, then the groups."""
    ordered = sorted(race.groups, key=lambda group: _VERDICTS.index(group.verdict))
    if not every and len(ordered) > _SHOWN_GROUPS:
        ordered = [group for group in ordered if group.verdict != "fastest"][:_SHOWN_GROUPS]
    texts = [headline(race), *_winners(race)]
    texts += [f"{group.title}: {verdict(group)}" for group in ordered]
    if len(ordered) < len(race.groups):
        texts.append(f"{count(len(race.groups) - len(ordered), 'more group')}: -v shows all")
    texts += paired(ordered)
    return plain_lines(texts, width)


def race_answer(race: StoredRace | None) -> str:
    """The winners of a race: ``torch eager for 3 of 6, numpy eager for 1; 1 tie; 1 undecided``.

    Returns:
        The answer of the session, in place of that by medians; empty where the race has decided
        nothing, or there was none.
    """
    counts = Counter(group.verdict for group in race.groups) if race else Counter[str]()
    if race is None or counts["undecided"] == len(race.groups):
        return ""
    first, *others = [f"{name} for {n}" for name, n in race_winners(race).items()] or ["0"]
    parts = [", ".join([f"{first} of {len(race.groups)}", *others])]
    parts += [f"{counts[name]} {name}" for name in ("tie", "undecided") if counts[name]]
    return "; ".join(parts)


def race_winners(race: StoredRace) -> dict[str, int]:
    """Numbers of groups by the contestant that is the fastest of them, the largest first."""
    firsts = Counter(g.contestants[0].name for g in race.groups if g.verdict == "fastest")
    return dict(firsts.most_common())


def paired(groups: Iterable[StoredGroup]) -> list[str]:
    """Say how contestants are compared; empty where the quotients of their times are the same."""
    apart = (
        abs((1 + other.behind) * leader.time_s / other.time_s - 1) > _ROUNDED
        for leader, *others in (group.contestants for group in groups)
        for other in others
        if leader.time_s and other.time_s and other.behind is not None
    )
    if not any(apart):
        return []
    note = (
        "contestants are compared launch by launch, by adjacent visits where they took turns: the "
        "difference is not that of the times shown"
    )
    return [note]


def headline(race: StoredRace) -> str:
    """Number of groups by verdict: ``4 groups: 2 fastest, 1 tie, 1 undecided``."""
    if not race.groups:
        return (
            "no contestant has a rival: those with the same work did it in different ways (a view "
            "or a copy, in fewer bits), or failed"
        )
    counts = Counter(group.verdict for group in race.groups)
    parts = ", ".join(f"{counts[name]} {name}" for name in reversed(_VERDICTS) if counts[name])
    return (
        f"{count(len(race.groups), 'group')}: {parts} "
        f"(a verdict is wrong with a probability of {race.level:.0%} at most)"
    )


def verdict(group: StoredGroup) -> str:
    """The verdict on a group, with the figures of its first contestants."""
    leader, *others = group.contestants
    if group.verdict == "fastest":
        return f"fastest: {_timed(leader)}; {'; '.join(map(_behind, others[:2]))}"
    if group.verdict == "tie":
        tied = [contestant for contestant in group.contestants if contestant.standing == "tied"]
        names = " and ".join(contestant.name for contestant in tied)
        return f"tie within {group.threshold:.0%}: {names}, {_time(leader)}"
    rivals = [_behind(other) for other in others if other.standing == "open"]
    return f"undecided: {'; '.join([_timed(leader), *rivals])}: {why_undecided(group)}"


def why_undecided(group: StoredGroup) -> str:
    """Cost of a decision, or the obstacle to it."""
    racing = [rival for rival in group.contestants if rival.standing == "open"]
    if len(racing) < 2:  # noqa: PLR2004 (a race has two contestants or more)
        lost = [f"{rival.name} {rival.why}" for rival in group.contestants if rival.why]
        return f"no rival is left: {', '.join(lost)}"
    if slowed := [rival.name for rival in racing[1:] if 2 * rival.contended >= rival.launches]:
        verb = "was" if len(slowed) == 1 else "were"
        return (
            f"{' and '.join(slowed)} {verb} contended, and may be faster on a quiet machine: "
            "race again there"
        )
    contended = max(contestant.contended for contestant in racing)
    launches = max(contestant.launches for contestant in racing)
    disturbed = (
        f"; other processes disturbed {contended} of {count(launches, 'launch', 'launches')}"
        if contended
        else ""
    )
    if group.more_than is not None:
        more = count(group.more_than, "more launch", "more launches")
        return f"more than {more}, or a quieter machine, would decide it{disturbed}"
    if group.more_launches is None or group.more_s is None:
        return f"too few launches to say how many it takes{disturbed}"
    more = count(group.more_launches, "more launch", "more launches")
    return f"about {more} ({duration(group.more_s)}) would decide it{disturbed}"


def budget_lines(budget: StoredBudget, width: int) -> list[str]:
    """A budget for a terminal: what it was spent on, and what is still uncertain."""
    return plain_lines([spent(budget), *_too_short(budget), *unsettled(budget)], width)


def spent(budget: StoredBudget) -> str:
    """Use of a budget: ``14 launches in 4 min 50 s of 5 min``."""
    launches = count(budget.launches, "launch", "launches")
    return f"{launches} in {duration(budget.took_s)} of {duration(budget.budget_s)}"


def _too_short(budget: StoredBudget) -> list[str]:
    if budget.launch_s is None or budget.took_s < budget.budget_s or budget.launches > 1:
        return []
    launch = f"one launch of {count(budget.cases, 'case')} takes {duration(budget.launch_s)}"
    return [
        (
            f"a budget of {duration(budget.budget_s)} is too short to measure anything twice: "
            f"{launch}; give more (--fw-budget), or select fewer cases (-k)"
        )
    ]


def unsettled(budget: StoredBudget) -> list[str]:
    """Number of times that are not known well enough, and the least certain; often empty."""
    if budget.resolution is None or budget.unsettled is None:
        return []
    cases = count(budget.cases, "case")
    if not budget.unsettled:
        return [f"the time of each of {cases} is known to {budget.resolution:.0%}"]
    named = [f"{case.name} ({_share(case.uncertainty)})" for case in budget.unsettled]
    unknown = f"{len(budget.unsettled)} of {cases} is not known to {budget.resolution:.0%}"
    return [f"the time of {unknown}: {some(named, _NAMED)}"]


def _share(share: float | None) -> str:
    return "a single launch" if share is None else f"{share:.0%}"


def _winners(race: StoredRace) -> Iterator[str]:
    if firsts := race_winners(race):
        yield "fastest: " + ", ".join(f"{name} in {n}" for name, n in firsts.items())


def _timed(contestant: StoredContestant) -> str:
    return f"{contestant.name} {_time(contestant)}"


def _time(contestant: StoredContestant) -> str:
    return "" if contestant.time_s is None else time(contestant.time_s)


def _behind(contestant: StoredContestant) -> str:
    """A contestant and how much longer it takes than the leader: ``numpy eager +12 %``."""
    return f"{contestant.name} {behind(contestant) or _time(contestant)}".rstrip()


def behind(contestant: StoredContestant) -> str:
    """Extra time of a contestant over the leader; the reason where that is not known."""
    share = contestant.behind
    if share is None:
        return "" if contestant.why is None else f"({contestant.why})"
    return times(1 + share) if share >= _FACTOR else f"{100 * share:+.1f} %"
